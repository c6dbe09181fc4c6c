use std::fs;
use std::os::unix::fs::PermissionsExt;

use blackboard::Code;

use super::{configured, write_config};
use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_windows_load_agents_and_items,
    a_quota_that_is_not_configured_has_no_file_and_no_output,
    a_project_can_only_be_stricter,
    a_ledger_that_cannot_be_used_stops_only_its_own_commands,
    hostile_names_are_refused_and_never_shown,
];

fn human_output_matches_transcript() {
    transcript::check("quota status");
}

fn json_has_windows_load_agents_and_items() {
    let scratch = configured();
    assert_eq!(scratch.json(["quota", "status"])["providers"][0]["windows"][0]["remaining"], 1000);
    assert!(!scratch.home_file("quota.db").exists(), "a reader creates no ledger");
    let ivy = scratch.json(["agent", "register", "--name", "Ivy"])["session_id"].clone();
    scratch.json(["quota", "record", "--input-tokens", "100", "--item", "x", "--session", "Ivy"]);
    scratch.json(["quota", "check", "--tokens", "50", "--reserve", "--session", "Ivy"]);
    let status = scratch.json(["quota", "status"]);
    is_object(&status, &["enforce", "providers", "uncounted"]);
    let provider = &status["providers"][0];
    let window = &provider["windows"][0];
    assert_eq!((&window["used"], &window["reserved"]), (&100.into(), &50.into()));
    assert_eq!((&window["remaining"], &window["available"]), (&850.into(), &650.into()));
    assert!(window["frees_at"].is_string(), "{window}");
    assert_eq!((&provider["agents"][0]["session"], &provider["agents"][0]["tokens"]), (&ivy, &100.into()));
    assert_eq!(provider["items"][0]["item"], "x");
    assert_eq!(provider["reservations"][0]["session"], ivy);
    assert_eq!(provider["load"]["active_agents"], 1);
}

fn a_quota_that_is_not_configured_has_no_file_and_no_output() {
    let scratch = Scratch::new();
    scratch.run(["agent", "register", "--name", "Ivy"]).success();
    let calls = [
        &["quota", "status"][..],
        &["quota", "check", "--tokens", "1"],
        &["quota", "check", "--tokens", "1", "--reserve", "--session", "Ivy"],
        &["quota", "record", "--input-tokens", "1"],
        &["quota", "release", "--session", "Ivy"],
        &["quota", "history"],
        &["quota", "set", "enforce", "deny"],
        &["export", "--format", "yaml", "--what", "quota"],
    ];
    for call in calls {
        let refused = scratch.run(call.iter().chain(&["--json"])).refused(Code::QuotaNotConfigured);
        assert!(refused["hint"].as_str().unwrap().ends_with("blackboard quota init"), "{refused}");
    }
    for call in [&["status"][..], &["work", "list"], &["agent", "list"]] {
        let output = scratch.run(call).success();
        assert!(!format!("{}{}", output.stdout, output.stderr).contains("quota"), "{output:?}");
    }
    assert!(!scratch.home_file("quota.db").exists());
}

fn a_project_can_only_be_stricter() {
    let scratch = configured();
    if scratch.is_served() {
        return;
    }
    fs::create_dir(scratch.path().join(".blackboard")).unwrap();
    fs::set_permissions(scratch.path().join(".blackboard"), fs::Permissions::from_mode(0o700)).unwrap();
    let project = |text: &str| fs::write(scratch.path().join(".blackboard/config.json"), text).unwrap();
    project(r#"{"quota": {"providers": {"a": {"windows": {"5h": {"budget": 500}}}}}}"#);
    assert_eq!(scratch.json(["quota", "status"])["providers"][0]["windows"][0]["budget"], 500);
    project(r#"{"quota": {"providers": {"a": {"windows": {"5h": {"budget": 5000}}}}}}"#);
    let looser = scratch.run(["quota", "status"]).success();
    assert!(
        looser.stderr.contains("quota.providers.a.windows.5h.budget: 5,000 is looser than 1,000"),
        "{looser:?}"
    );
    assert!(looser.stdout.contains("1,000"), "{looser:?}");
    // A clone alone does not turn it on.
    write_config(&scratch, "{}");
    scratch.run(["quota", "status", "--json"]).refused(Code::QuotaNotConfigured);
}

fn a_ledger_that_cannot_be_used_stops_only_its_own_commands() {
    let scratch = configured();
    let file = scratch.home_file("quota.db");
    fs::write(&file, "no database").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    scratch.run(["quota", "status", "--json"]).refused(Code::ForeignDatabase);
    scratch.run(["quota", "record", "--input-tokens", "1", "--json"]).refused(Code::ForeignDatabase);
    assert_eq!(fs::read_to_string(&file).unwrap(), "no database");
    scratch.run(["status"]).success();
    fs::remove_file(&file).unwrap();
    scratch.run(["quota", "record", "--input-tokens", "1"]).success();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    scratch.run(["quota", "status", "--json"]).refused(Code::UnsafePermissions);
}

fn hostile_names_are_refused_and_never_shown() {
    let scratch = configured();
    let mut accepted = 0;
    for hostile in crate::hostile_text::HOSTILE {
        // What looks as it is written does no harm.
        let is_harmless = blackboard::text::escape_for_terminal(hostile) == *hostile;
        for option in ["--id", "--model", "--item"] {
            let call = ["quota", "record", "--input-tokens", "1", option, hostile];
            let shown = scratch.run(call);
            assert!(!shown.stderr.contains(['\u{1b}', '\u{202e}', '\u{9b}', '\r']), "{shown:?}");
            if is_harmless {
                accepted += 1;
                shown.success();
                continue;
            }
            assert_eq!(shown.stdout, "", "{shown:?}");
            let refused = scratch.run([&call[..], &["--json"]].concat()).refused(Code::InvalidValue);
            assert!(refused["error"].as_str().unwrap().contains("invisible"), "{option}: {refused}");
        }
    }
    assert!(accepted > 0);
    let used = scratch.json(["quota", "status"])["providers"][0]["windows"][0]["used"].clone();
    assert_eq!(used, accepted);
    let shown = scratch.run(["quota", "status"]).success().stdout;
    assert!(shown.chars().all(|character| character == '\n' || !character.is_control()), "{shown}");
}
