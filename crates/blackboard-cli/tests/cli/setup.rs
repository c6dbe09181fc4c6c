//! `setup`: our entries in the settings files of agents. It opens no board; `redis/setup.rs` is about the board of a server in it.

mod ivy_blackboard;
mod remove;
mod settings;
mod status;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use blackboard::Code;
use serde_json::Value;
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;
use crate::transcript;

/// Each platform has a file with what it sends.
fn platforms_with_examples() -> BTreeSet<String> {
    let files = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/hooks")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned)).collect()
}

#[test]
fn human_output_matches_transcript() {
    transcript::check("setup");
}

#[test]
fn json_has_the_change_of_each_file_and_what_is_left_to_do() {
    let scratch = Scratch::new();
    let answer = scratch.json(["setup", "codex", "--yes"]);
    is_object(&answer, &["written", "program_on_path", "platforms"]);
    assert_eq!(answer["written"], true);
    let codex = &answer["platforms"][0];
    assert_eq!((codex["platform"].as_str(), codex["scope"].as_str()), (Some("codex"), Some("user")));
    let hooks = &codex["changes"][0];
    assert_eq!(hooks["file"], scratch.path().join(".codex/hooks.json").to_str().unwrap());
    assert_eq!((hooks["part"].as_str(), hooks["action"].as_str()), (Some("hooks"), Some("create")));
    assert!(hooks["diff"].as_str().unwrap().contains("+            \"command\": \"blackboard hook codex\","));
    assert!(codex["afterwards"][0].as_str().unwrap().contains("/hooks"), "{answer}");
}

#[test]
fn a_dry_run_shows_everything_and_writes_nothing() {
    for platform in &platforms_with_examples() {
        let scratch = Scratch::new();
        let before = scratch.contents();
        let answer = scratch.json(["setup", platform, "--dry-run"]);
        assert_eq!(answer["written"], false);
        let shown = scratch.run(["setup", platform, "--dry-run"]).success().stdout;
        for change in changes(&answer) {
            assert_eq!(change["action"], "create");
            assert!(
                shown.contains(&format!("\n+++ {}\n", change["file"].as_str().unwrap()))
                    || shown.starts_with("---")
            );
        }
        assert!(shown.ends_with("Nothing was written.\n"), "{shown}");
        assert!(scratch.contents() == before, "{platform}: a dry run has written something");
    }
}

#[test]
fn setup_writes_nothing_without_an_answer() {
    let scratch = Scratch::new();
    let before = scratch.contents();
    scratch.run(["setup", "claude", "--json"]).refused(Code::Usage);
    let output = scratch.run(["setup", "claude"]);
    assert_eq!(output.code, 2);
    assert!(
        output.stderr.contains("hint: pass --yes to write, or --dry-run to show the changes"),
        "{output:?}"
    );
    assert!(scratch.contents() == before);
}

#[test]
fn setup_without_a_name_uses_the_installed_agents() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path().join(".gemini")).unwrap();
    let programs = scratch.path().join("bin");
    fs::create_dir(&programs).unwrap();
    for (name, mode) in [("codex", 0o755), ("copilot", 0o644)] {
        fs::write(programs.join(name), "").unwrap();
        fs::set_permissions(programs.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    for call in [&["setup", "--yes", "--json"][..], &["setup", "all", "--json"]] {
        let mut command = scratch.command(call);
        let output = command.env("PATH", &programs).run_to_end();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found: Vec<_> =
            answer["platforms"].as_array().unwrap().iter().map(|one| &one["platform"]).collect();
        assert_eq!(found, ["codex", "gemini"], "{answer}");
    }
    let without_agents = Scratch::new();
    let output = without_agents.command(["setup", "all", "--json"]).env("PATH", "/nowhere").run_to_end();
    let refusal = crate::scratch::Output::of(output).refused(Code::NothingAvailable);
    let hint = refusal["hint"].as_str().unwrap();
    assert!(platforms_with_examples().iter().all(|platform| hint.contains(platform)), "{hint}");
}

#[test]
fn json_reports_a_file_that_was_left_unchanged() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join(".claude.json"), "{").unwrap();
    let refusal = scratch.run(["setup", "claude", "--yes", "--json"]).refused(Code::ReadOnly);
    assert!(
        refusal["error"].as_str().unwrap().contains(".claude.json was not changed: it is not"),
        "{refusal}"
    );
    assert_eq!((&refusal["written"], changes(&refusal).count()), (&true.into(), 3), "{refusal}");
}

#[test]
fn setup_warns_when_the_program_is_not_on_the_path() {
    let scratch = Scratch::new();
    let told = |call: &[&str]| {
        let output = scratch.command(call).env("PATH", "/usr/bin:/bin").run_to_end();
        crate::scratch::Output::of(output).success().stdout
    };
    let program = crate::scratch::program().canonicalize().unwrap();
    let programs = program.parent().unwrap().to_str().unwrap();
    for call in [&["setup", "codex", "--yes"][..], &["setup", "codex"], &["setup", "status"]] {
        let (shown, here) = (told(call), scratch.run(call).success().stdout);
        assert!(shown.contains("warning: `blackboard` is not on the PATH"), "{shown}");
        assert!(shown.contains(programs), "{shown}");
        assert!(!here.contains("warning:"), "{here}");
    }
    assert!(told(&["setup", "status", "--json"]).contains("\"program_on_path\":false"));
    let project = told(&["setup", "copilot", "--settings", "project", "--yes"]);
    assert!(project.contains("Everyone who works here needs `blackboard` on the PATH."), "{project}");
}

#[test]
fn setup_repeats_manual_steps_and_reports_disabled_parts() {
    let scratch = Scratch::new();
    let first = scratch.run(["setup", "codex", "--yes"]).success().stdout;
    assert!(first.contains("  Still to do: accept the hooks"), "{first}");
    assert!(!first.contains("+++"), "--yes prints no diff: {first}");
    let file = scratch.path().join(".codex/config.toml");
    fs::write(&file, fs::read_to_string(&file).unwrap() + "enabled = false\n").unwrap();
    let second = scratch.run(["setup", "codex"]).success().stdout;
    assert!(second.contains("  If not done yet: accept the hooks"), "{second}");
    assert!(second.contains("config.toml (MCP server): it is disabled there\n"), "{second}");
    let status = scratch.run(["setup", "status"]).success().stdout;
    assert!(status.contains("MCP server  switched off"), "{status}");
}

#[test]
fn complete_file_counts_as_set_up_in_every_form() {
    let scratch = Scratch::new();
    let settings = scratch.path().join(".codex");
    let file = settings.join("config.toml");
    fs::create_dir(&settings).unwrap();
    for text in [
        "[mcp_servers.blackboard]\ncommand = \"blackboard\"\nargs = [\"mcp\"]\n",
        "mcp_servers.blackboard.command = \"blackboard\"\nmcp_servers.blackboard.args = [\"mcp\"]\n",
        "mcp_servers = { blackboard = { command = \"blackboard\", args = [\"mcp\"] } }\n",
    ] {
        for is_link in [false, true] {
            let _ = fs::remove_file(&file);
            let there = if is_link { scratch.path().join("kept.toml") } else { file.clone() };
            fs::write(&there, text).unwrap();
            if is_link {
                std::os::unix::fs::symlink(&there, &file).unwrap();
            }
            let answer = scratch.json(["setup", "codex", "--yes"]);
            let change = changes(&answer).find(|change| change["part"] == "mcp").unwrap();
            assert_eq!(change["action"], "none", "{text} {change}");
            assert_eq!(fs::read_to_string(&there).unwrap(), text);
            let status = scratch.run(["setup", "status"]).success().stdout;
            assert!(status.contains("MCP server  set up"), "{status}");
        }
    }
}

#[test]
fn a_link_that_leads_out_of_the_project_is_not_followed() {
    for (scope, link) in [("project", ".claude"), ("local", ".claude")] {
        let scratch = Scratch::new();
        let (project, outside) = (scratch.path().join("project"), scratch.path().join("outside"));
        fs::create_dir_all(project.join(".git")).unwrap();
        fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, project.join(link)).unwrap();
        let call = |verb: &[&str]| {
            let mut command = scratch.command(verb);
            let command = command.args(["claude", "--settings", scope, "--yes", "--json"]);
            Output::of(command.current_dir(&project).run_to_end())
        };
        let refusal = call(&["setup"]).refused(Code::ReadOnly);
        let refused: Vec<_> = changes(&refusal).filter(|change| change["action"] == "refused").collect();
        assert!(!refused.is_empty(), "{refusal}");
        for change in refused {
            let reason = change["reason"].as_str().unwrap();
            assert!(reason.starts_with(".claude"), "{change}");
            assert!(reason.ends_with("/outside, outside of the project"), "{change}");
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);

        // A link inside the project is followed: its target is in the project, too.
        fs::remove_file(project.join(link)).unwrap();
        fs::create_dir(project.join("settings")).unwrap();
        std::os::unix::fs::symlink("settings", project.join(link)).unwrap();
        call(&["setup"]).success();
        assert!(fs::read_dir(project.join("settings")).unwrap().count() > 0);
        call(&["setup", "remove"]).success();
        assert_eq!(fs::read_dir(project.join("settings")).unwrap().count(), 0);
    }
}

#[test]
fn another_server_with_our_name_gets_no_text_to_add() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path().join(".codex")).unwrap();
    let text = "[mcp_servers.blackboard]\ncommand = \"chalk\"\n";
    fs::write(scratch.path().join(".codex/config.toml"), text).unwrap();
    let refusal = scratch.run(["setup", "codex", "--yes", "--json"]).refused(Code::ReadOnly);
    let change = changes(&refusal).find(|change| change["action"] == "refused").unwrap();
    assert!(change["reason"].as_str().unwrap().contains("rename that"), "{change}");
    assert_eq!(change.get("by_hand"), None, "{change}");
}

#[test]
fn a_project_is_set_up_at_its_root_and_local_is_for_one_user() {
    let scratch = Scratch::new();
    let inside = scratch.path().join("project/src");
    fs::create_dir_all(&inside).unwrap();
    fs::create_dir(scratch.path().join("project/.git")).unwrap();
    fs::write(scratch.path().join("project/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let files = |scope: &str, platform: &str| -> Vec<String> {
        let mut command = scratch.command(["setup", platform, "--dry-run", "--json", "--scope", scope]);
        let output = command.current_dir(&inside).run_to_end();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let home = scratch.path().to_str().unwrap();
        changes(&answer).map(|change| change["file"].as_str().unwrap().replace(home, "~")).collect()
    };
    assert_eq!(
        files("project", "claude"),
        [
            "~/project/.claude/settings.json",
            "~/project/.mcp.json",
            "~/project/.claude/skills/blackboard/SKILL.md"
        ]
    );
    assert_eq!(files("local", "claude"), ["~/project/.claude/settings.local.json", "~/.claude.json"]);
    assert_eq!(
        files("project", "copilot"),
        [
            "~/project/.github/hooks/blackboard.json",
            "~/project/.github/mcp.json",
            "~/project/.github/skills/blackboard/SKILL.md"
        ]
    );
    for command in [&["setup", "cursor"][..], &["setup", "remove", "cursor"]] {
        let call = command.iter().copied().chain(["--settings", "local", "--json"]);
        let refusal = scratch.run(call).refused(Code::InvalidValue);
        let words = command.join(" ");
        let hint =
            format!("run: blackboard {words} --settings user, or: blackboard {words} --settings project");
        assert_eq!(refusal["hint"], hint);
    }
    // Only Claude Code has this settings level.
    let all = scratch.json(["setup", "remove", "--dry-run", "--scope", "local"]);
    assert_eq!(all["platforms"].as_array().unwrap().len(), 1);
}

#[test]
fn environment_moves_the_settings_of_an_agent() {
    let scratch = Scratch::new();
    let moved = scratch.path().join("moved");
    let mut command = scratch.command(["setup", "claude", "--yes"]);
    assert!(command.env("CLAUDE_CONFIG_DIR", &moved).run_to_end().status.success());
    assert!(moved.join("settings.json").exists() && moved.join(".claude.json").exists());
    assert!(!scratch.path().join(".claude").exists() && !scratch.path().join(".claude.json").exists());
}

#[test]
fn a_file_that_will_hold_secrets_is_private_from_the_start() {
    let scratch = Scratch::new();
    scratch.json(["setup", "claude", "--yes"]);
    let mode = fs::metadata(scratch.path().join(".claude.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn large_state_of_claude_code_is_edited_and_its_backup_is_private() {
    let scratch = Scratch::new();
    let history: Vec<_> = (0..200).map(|line| format!("\"{line}: {}\"", "x".repeat(11_000))).collect();
    let text = format!("{{\n  \"history\": [\n    {}\n  ]\n}}\n", history.join(",\n    "));
    assert!(text.len() > 2 * 1024 * 1024);
    let file = scratch.path().join(".claude.json");
    fs::write(&file, &text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    scratch.json(["setup", "claude", "--yes"]);
    let backup = fs::metadata(scratch.path().join(".claude.json.before-blackboard")).unwrap();
    assert_eq!(backup.permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&file).unwrap().contains("\"blackboard\""));
    scratch.json(["setup", "remove", "claude", "--yes"]);
    assert!(fs::read_to_string(&file).unwrap() == text);
}

#[test]
fn unchanged_state_of_claude_code_gets_a_hint_with_its_own_command() {
    for (scope, file) in [("user", ".claude.json"), ("project", ".mcp.json"), ("local", ".claude.json")] {
        let scratch = Scratch::new();
        fs::write(scratch.path().join(file), "{").unwrap();
        let told = scratch.run(["setup", "claude", "--yes", "--scope", scope]);
        let command = format!("or run: claude mcp add --scope {scope} blackboard -- blackboard mcp\n");
        assert!(told.stdout.contains(&command), "{told:?}");
    }
}

#[test]
fn diff_does_not_show_other_values() {
    // None of these words looks like a credential.
    let secret = "correct horse";
    let last = format!("{{\n  // {secret}\n  \"mcpServers\": {{}},\n  \"primaryApiKey\": \"{secret}\"\n}}\n");
    let one_line = format!("{{\"mcpServers\": {{\"x\": {{\"env\": {{\"GITHUB_TOKEN\": \"{secret}\"}}}}}}}}");
    let toml = format!("token = \"{secret}\" # {secret}\n[mcp_servers.x]\nenv = {{ T = '{secret}' }}\n");
    for (platform, file, text) in [
        ("claude", ".claude.json", &last),
        ("claude", ".claude.json", &one_line),
        ("gemini", ".gemini/settings.json", &one_line),
        ("codex", ".codex/config.toml", &toml),
    ] {
        let scratch = Scratch::new();
        let file = scratch.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        for call in [
            &["setup", platform, "--dry-run"][..],
            &["setup", platform, "--dry-run", "--json"],
            &["setup", platform, "--yes", "--json"],
            &["setup", "remove", platform, "--dry-run"],
            &["setup", "remove", platform, "--yes", "--json"],
        ] {
            let output = scratch.run(call).success();
            assert!(output.stdout.contains("…") && !output.stdout.contains("horse"), "{call:?}: {output:?}");
            let diff = output.stdout.contains("primaryApiKey")
                || output.stdout.contains("TOKEN")
                || output.stdout.contains("token =");
            assert!(diff, "the keys are shown: {output:?}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), *text);
    }
}

#[test]
fn removed_credential_in_our_own_file_is_not_shown() {
    let scratch = Scratch::new();
    scratch.json(["setup", "opencode", "--yes"]);
    let file = scratch.path().join(".config/opencode/plugins/blackboard.js");
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let added = format!("const token = \"{secret}\"\nconst mine = 1\n");
    fs::write(&file, fs::read_to_string(&file).unwrap() + &added).unwrap();
    for call in [&["setup", "opencode", "--dry-run"][..], &["setup", "remove", "--dry-run", "--json"]] {
        let shown = scratch.run(call).success().stdout;
        assert!(shown.contains("-const mine = 1") && !shown.contains(&secret), "{shown}");
    }
}

#[test]
fn without_a_home_directory_there_are_no_settings() {
    let scratch = Scratch::new();
    for call in
        [&["setup", "claude", "--json"][..], &["setup", "status", "--json"], &["setup", "remove", "--json"]]
    {
        let output = scratch.command(call).env_remove("HOME").run_to_end();
        crate::scratch::Output::of(output).refused(Code::InvalidValue);
    }
}

/// What happens to each file.
fn changes(answer: &Value) -> impl Iterator<Item = &Value> {
    let platforms = answer["platforms"].as_array().unwrap().iter();
    platforms.flat_map(|platform| platform["changes"].as_array().unwrap())
}
