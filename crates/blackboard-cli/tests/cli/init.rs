use std::fs;

use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("init");
}

#[test]
fn printed_command_creates_the_missing_board() {
    let scratch = Scratch::new();
    let board = scratch.path().join("boards/team board.db");
    fs::create_dir(scratch.path().join("boards")).unwrap();
    let name = board.to_str().unwrap();
    // The command between the quotes is run as printed, in the same environment.
    let follow = |line: &str, variable: &str, last: &str| {
        assert!(line.trim_end().ends_with(last), "{line}");
        let command = line.split('`').nth(1).unwrap_or_else(|| panic!("{line}"));
        let mut shell = scratch.shell(command);
        let created = Output::of(shell.env("BLACKBOARD_DB", variable).run_to_end()).success();
        assert_eq!(created.stdout, format!("Created board: {name}\n"), "{command}");
        assert!(board.exists() && !scratch.path().join(".blackboard").exists(), "{command}");
        fs::remove_file(&board).unwrap();
    };
    let shown = scratch.run(["work", "list", "--db", name]).success().stdout;
    follow(&shown, "", ", or check --db.");
    let run_with_variable =
        |call: &[&str]| Output::of(scratch.command(call).env("BLACKBOARD_DB", &board).run_to_end()).success();
    follow(&run_with_variable(&["work", "list"]).stdout, name, ", or check BLACKBOARD_DB.");
    follow(&run_with_variable(&["status"]).stderr, name, ", or check BLACKBOARD_DB");
}

#[test]
fn json_has_the_path_of_the_board() {
    let scratch = Scratch::new();
    let made = scratch.json(["init"]);
    is_object(&made, &["database", "created"]);
    assert_eq!(made["database"], scratch.path().join(".blackboard/local.db").to_str().unwrap());
    assert_eq!(
        (made["created"].as_bool(), scratch.json(["init"])["created"].as_bool()),
        (Some(true), Some(false))
    );
}
