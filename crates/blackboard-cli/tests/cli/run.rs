use blackboard::Code;
use serde_json::Value;
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    run_registers_a_session_of_its_own_process,
    session_of_run_gets_the_configured_name_or_that_of_the_command,
    run_releases_its_item_at_the_end_and_keeps_a_completion,
    run_accepts_a_description_of_the_work_with_the_item,
    command_is_not_started_when_its_item_is_claimed,
    the_exit_code_is_that_of_the_command,
    run_inside_a_session_is_a_delegate_with_its_own_process,
    run_reports_an_ended_outer_session_and_has_no_parent,
    a_refused_claim_leaves_no_session_and_no_event,
];

fn human_output_matches_transcript() {
    transcript::check("run");
}

/// What the command in a run printed, each line as JSON.
#[track_caller]
fn lines(ran: &Output) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn run_registers_a_session_of_its_own_process() {
    let scratch = Scratch::new();
    let script = "blackboard agent show --json; echo $PPID";
    let call = ["run", "--name", "Ivy", "--project", "pai", "--work", "The schema", "--", "sh", "-c", script];
    let said = lines(&scratch.run(call).success());
    let [agent, parent] = &said[..] else { panic!("{said:?}") };
    assert_eq!((&agent["agent_name"], &agent["project"]), (&"Ivy".into(), &"pai".into()));
    assert_eq!((&agent["current_work"], &agent["status"]), (&"The schema".into(), &"active".into()));
    assert_eq!(&agent["pid"], parent, "the process that waits for the command");
    assert_eq!(scratch.json(["agent", "list"])["count"], 0, "it ended with the command");
    let ended = scratch.json(["agent", "show", agent["session_id"].as_str().unwrap()]);
    assert_eq!(ended["status"], "completed");
}

fn session_of_run_gets_the_configured_name_or_that_of_the_command() {
    let scratch = Scratch::new();
    let call = ["run", "--", "sh", "-c", "blackboard agent show --json"];
    let agent = &lines(&scratch.run(call).success())[0];
    assert_eq!(agent["agent_name"], format!("sh-{}", &agent["session_id"].as_str().unwrap()[..4]));
    let home = scratch.path().join(".pai/blackboard");
    std::fs::write(home.join("config.json"), r#"{"agent": {"name": "Oak"}}"#).unwrap();
    assert_eq!(lines(&scratch.run(call).success())[0]["agent_name"], "Oak");
}

fn run_releases_its_item_at_the_end_and_keeps_a_completion() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "second", "--title", "Second"]);
    let script = "echo $BLACKBOARD_FENCE; blackboard work claim second >/dev/null; \
                  blackboard lock acquire deploy >/dev/null; \
                  blackboard write result 1 --fence \"$BLACKBOARD_FENCE\" >/dev/null; \
                  blackboard work complete first --fence \"$BLACKBOARD_FENCE\" >/dev/null";
    let call = ["run", "--work-item", "first", "--title", "First", "--json", "--", "sh", "-c", script];
    let ran = scratch.run(call).success();
    let first = scratch.json(["work", "status", "first"]);
    assert!(ran.stdout.starts_with("work:first=") && ran.stdout.lines().count() == 1, "{ran:?}");
    assert_eq!(first["status"], "completed");
    assert_eq!(scratch.json(["work", "status", "second"])["status"], "available");
    assert_eq!(scratch.json(["lock", "list"])["count"], 0);
    assert_eq!(scratch.json(["read", "result"])["value"], 1);
}

fn run_accepts_a_description_of_the_work_with_the_item() {
    let scratch = Scratch::new();
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    let script = "blackboard agent show --json; blackboard work status first --json";
    let new = ["run", "--work-item", "first", "--title", "First", "--project", "pai"];
    let said = lines(&scratch.run(new.iter().chain(&["--", "sh", "-c", script])).success());
    assert_eq!((&said[0]["current_work"], &said[1]["project_id"]), (&"First".into(), &"pai".into()));
    let call = ["run", "--work-item", "first", "--work", "Only looking", "--", "sh", "-c", script];
    let said = lines(&scratch.run(call).success());
    assert_eq!((&said[0]["current_work"], &said[1]["status"]), (&"Only looking".into(), &"claimed".into()));
}

fn command_is_not_started_when_its_item_is_claimed() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "claim", "first", "--title", "First", "--session", "ivy"]);
    let call = ["run", "--work-item", "first", "--json", "--", "touch", "started"];
    assert_eq!(scratch.run(call).refused(Code::AlreadyClaimed)["held_by_name"], "Ivy");
    assert!(!scratch.path().join("started").exists());
    assert_eq!(scratch.json(["agent", "list"])["count"], 1, "only Ivy is left");
    assert_eq!(scratch.json(["work", "status", "first"])["claimed_by_name"], "Ivy");
}

fn the_exit_code_is_that_of_the_command() {
    let scratch = Scratch::new();
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137)] {
        let ran = scratch.run(["run", "--json", "--", "sh", "-c", script]);
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (code, "", ""), "{script}");
    }
    std::fs::write(scratch.path().join("no-program"), "").unwrap();
    for (program, code) in [("no-such-program", 127), ("./no-program", 126)] {
        let ran = scratch.run(["run", "--work-item", "x", "--title", "X", "--json", "--", program]);
        assert_eq!((ran.code, &ran.json()["ok"], &ran.json()["code"]), (code, &false.into(), &"io".into()));
        assert_eq!(scratch.json(["work", "status", "x"])["status"], "available", "the item is free again");
        assert_eq!(scratch.json(["agent", "list"])["count"], 0);
    }
}

fn run_inside_a_session_is_a_delegate_with_its_own_process() {
    let scratch = Scratch::new();
    let inner = "blackboard agent show --json; blackboard agent show \"$OUTER\" --json";
    let outer = "OUTER=$BLACKBOARD_SESSION_ID blackboard run -- sh -c \"$0\"";
    let call = ["run", "--name", "Ivy", "--project", "pai", "--", "sh", "-c", outer, inner];
    let said = lines(&scratch.run(call).success());
    let [delegate, parent] = &said[..] else { panic!("{said:?}") };
    assert_eq!((&delegate["parent_id"], &delegate["parent_name"]), (&parent["session_id"], &"Ivy".into()));
    let name = format!("sh-{}", &delegate["session_id"].as_str().unwrap()[..4]);
    assert_eq!((&delegate["agent_name"], &delegate["project"]), (&name.into(), &"pai".into()));
    assert_ne!(delegate["pid"], parent["pid"]);
    assert_eq!(parent["delegates"][0]["session_id"], delegate["session_id"]);
    assert_eq!(scratch.json(["agent", "list"])["count"], 0);
}

fn run_reports_an_ended_outer_session_and_has_no_parent() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Gone", "--session-hint", "gone"]);
    scratch.json(["agent", "deregister", "gone"]);
    for (session, said) in
        [("gone", "has ended"), ("00000000-0000-4000-8000-000000000000", "is not on this board")]
    {
        let mut command = scratch.command(["run", "--", "sh", "-c", "blackboard agent show --json"]);
        let ran = Output::of(command.env("BLACKBOARD_SESSION_ID", session).run_to_end()).success();
        assert!(ran.stderr.contains(said) && ran.stderr.contains("continuing without a parent"), "{ran:?}");
        assert_eq!(lines(&ran)[0]["parent_id"], Value::Null);
    }
}

fn a_refused_claim_leaves_no_session_and_no_event() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "create", "taken", "--title", "Taken"]);
    scratch.json(["work", "claim", "taken", "--session", "ivy"]);
    scratch.json(["work", "create", "waiting", "--title", "Waiting", "--blocked-by", "later"]);
    let state = || {
        (
            scratch.json(["agent", "list", "--all"])["items"].clone(),
            scratch.json(["status"])["revision"].clone(),
        )
    };
    let before = state();
    for (item, code) in
        [("missing", Code::WorkNotFound), ("taken", Code::AlreadyClaimed), ("waiting", Code::WorkBlocked)]
    {
        let refused = scratch.run(["run", "--work-item", item, "--json", "--", "echo", "ran"]);
        assert!(!refused.stdout.contains("ran"), "{refused:?}");
        refused.refused(code);
        assert_eq!(state(), before, "{item}");
        // As a delegate, too.
        let mut delegate = scratch.command(["run", "--work-item", item, "--json", "--", "echo", "ran"]);
        Output::of(delegate.env("BLACKBOARD_SESSION_ID", "ivy").run_to_end()).refused(code);
        assert_eq!(state(), before, "{item}");
    }
}
