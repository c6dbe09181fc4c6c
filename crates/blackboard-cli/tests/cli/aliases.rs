//! The commands of the original proposal work by their own names.

use crate::scratch::Scratch;
use testkit::process::RunToEnd as _;

testkit::on_each_engine![
    commands_of_the_original_proposal_run_unchanged,
    every_alias_does_what_its_command_does,
    help_of_a_command_names_its_aliases,
    an_alias_presets_options_that_can_be_overridden,
    help_of_the_program_does_not_list_aliases_but_each_explains_itself,
];

fn commands_of_the_original_proposal_run_unchanged() {
    let scratch = Scratch::new();
    let session = scratch.json(["register", "--name", "Ivy", "--session-id", "abc"])["session_id"].clone();
    for (id, status) in [("collab-issue-77", "available"), ("collab-pr-56", "available")] {
        let created = scratch.json(["work", "create", id, "--title", id]);
        assert_eq!(created["status"], status);
    }
    let run = |line: &str| {
        let mut command = scratch.command(line.split(' ').chain(["--json"]));
        let output = command.env("BLACKBOARD_SESSION_ID", session.as_str().unwrap()).run_to_end();
        crate::scratch::Output::of(output).success().json()
    };
    assert_eq!(run("heartbeat --progress 2/3")["progress"], "2/3");
    assert_eq!(run("tasks list")["count"], 2);
    assert_eq!(run("tasks claim collab-issue-77")["claimed"], true);
    assert_eq!(run("tasks list")["count"], 1, "only what is available");
    assert_eq!(run("tasks list --status claimed")["count"], 1, "unless one asks for something else");
    assert_eq!(run("tasks list --all")["count"], 2);
    assert_eq!(run("tasks release collab-issue-77")["released"], true);
    assert_eq!(run("tasks claim --task collab-pr-56")["claimed"], true);
    assert_eq!(run("complete --task collab-pr-56 --summary ready")["status"], "completed");
    assert_eq!(run("deregister")["status"], "completed");
}

/// Every alias, the command that it means, and arguments with which both succeed.
const ALIASES: &[(&str, &str, &str)] = &[
    ("register", "agent register", "--name Elm"),
    ("heartbeat", "agent heartbeat", ""),
    ("deregister", "agent deregister", ""),
    ("agent ls", "agent list", ""),
    ("who", "agent list", ""),
    ("agent status", "agent show", ""),
    ("create", "work create", "new --title New"),
    ("work new", "work create", "new --title New"),
    ("claim", "work claim", "open"),
    ("tasks claim", "work claim", "open"),
    ("release", "work release", "open"),
    ("tasks release", "work release", "open"),
    ("done", "work complete", "held"),
    ("complete", "work complete", "held"),
    ("work done", "work complete", "held"),
    ("work close", "work complete", "held"),
    ("work ls", "work list", ""),
    ("ready", "work list --status available", ""),
    ("tasks list", "work list --status available", ""),
    ("tasks ls", "work list --status available", ""),
    ("show", "work status", "held"),
    ("work show", "work status", "held"),
    ("log", "observe --last 20 --peek", ""),
    ("watch", "observe --follow", "--timeout 0s"),
    ("st", "status", ""),
    ("get", "read", "key"),
    ("set", "write", "new 1"),
    ("ls", "list", ""),
    ("transaction", "txn", "--file then.json"),
    ("lock ls", "lock list", ""),
    ("file ls", "file list", ""),
    ("project ls", "project list", ""),
    ("project show", "project status", "pai"),
];

fn every_alias_does_what_its_command_does() {
    for (alias, command, arguments) in ALIASES {
        let [first, second] = [alias, command].map(|words| {
            let scratch = Scratch::new();
            std::fs::write(scratch.path().join("then.json"), r#"{"then":[{"read":{"key":"key"}}]}"#).unwrap();
            scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
            scratch.json(["project", "register", "pai", "--name", "PAI"]);
            scratch.json(["work", "create", "open", "--title", "Open"]);
            scratch.json(["work", "claim", "held", "--title", "Held", "--session", "ivy"]);
            scratch.json(["write", "key", "1"]);
            let line = format!("blackboard {words} {arguments} --json");
            let output = scratch.shell(&line).env("BLACKBOARD_SESSION_ID", "ivy").run_to_end();
            let output = crate::scratch::Output::of(output).success();
            let mut fields: Vec<_> = output.stdout.split('"').skip(1).step_by(2).map(str::to_owned).collect();
            // Ids, times and paths differ from board to board.
            fields.retain(|text| !text.contains(|letter: char| letter.is_ascii_digit() || letter == '/'));
            (fields, output.stdout.lines().count())
        });
        assert_eq!(first, second, "{alias}");
    }
}

fn help_of_a_command_names_its_aliases() {
    let scratch = Scratch::new();
    for (alias, command, _) in ALIASES {
        let command = command.split(" --").next().unwrap();
        let help = scratch.run(command.split(' ').chain(["--help"])).success().stdout;
        let (_, rest) = help.split_once("\nAliases: ").unwrap_or_else(|| panic!("{command}: {help}"));
        let listed = rest.split("\n\n").next().unwrap().replace('\n', " ");
        assert!(listed.split(", ").any(|listed| listed == *alias), "{alias}: {listed}");
    }
}

fn an_alias_presets_options_that_can_be_overridden() {
    let scratch = Scratch::new();
    for number in 0..30 {
        scratch.json(["write", "key", &number.to_string()]);
    }
    assert_eq!(scratch.json(["log"])["count"], 20);
    assert_eq!(scratch.json(["log", "-n", "3"])["count"], 3);
    assert_eq!(scratch.json(["log", "--since", "1h"])["count"], 30);
    let followed = scratch.run(["log", "-f", "--timeout", "0s", "--json"]).success().stdout;
    assert_eq!(followed.lines().count(), 20);
    scratch.run(["watch", "--cursor", "mirror", "--timeout", "0s"]).success();
}

fn help_of_the_program_does_not_list_aliases_but_each_explains_itself() {
    let scratch = Scratch::new();
    let help = scratch.run(["--help"]).success().stdout;
    assert!(!help.contains("tasks"), "{help}");
    for (alias, ..) in ALIASES {
        let help = scratch.run(alias.split(' ').chain(["--help"])).success().stdout;
        assert!(help.contains(&format!("Usage: blackboard {alias}")), "{help}");
    }
    for noun in ["agent", "work", "project", "lock", "file"] {
        let help = scratch.run([noun, "--help"]).success().stdout;
        let lists = |word: &str| help.lines().any(|line| line.trim_start().starts_with(&format!("{word} ")));
        assert!(lists("list") && !lists("ls") && !lists("new") && !lists("done"), "{help}");
    }
}
