//! `init`: a board at the place that the command, the environment or the project names. A board on a server has no directory.

use std::fs;

use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    init_creates_the_board_of_the_environment_once,
    command_that_reads_names_the_way_to_create_the_missing_board,
];

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

fn init_creates_the_board_of_the_environment_once() {
    let scratch = Scratch::with_file("boards/team.db");
    let named = scratch.location();
    for (call, is_created) in [(1, true), (2, false)] {
        let made = scratch.json(["init"]);
        is_object(&made, &["database", "created"]);
        assert_eq!(made["created"], is_created, "call {call}");
        assert!(shown_as(&named, made["database"].as_str().unwrap()), "{made}");
    }
    scratch.run(["work", "create", "a", "--title", "A"]).success();
    // An existing board keeps what it has.
    assert_eq!(scratch.json(["init", "--db", &named])["created"], false);
    assert_eq!(scratch.json(["work", "list"])["count"], 1);
}

fn command_that_reads_names_the_way_to_create_the_missing_board() {
    let scratch = Scratch::with_file("boards/team.db");
    let shown = scratch.run(["work", "list"]).success().stdout;
    let command = shown.split('`').nth(1).unwrap_or_else(|| panic!("{shown}"));
    // It is run as printed, in the same environment.
    let created = Output::of(scratch.shell(command).run_to_end()).success().stdout;
    assert!(created.starts_with("Created board: "), "{created}");
    assert_eq!(scratch.json(["init"])["created"], false);
}

/// Whether a location is shown under its name. A board on a server is shown without what only connections need.
fn shown_as(location: &str, shown: &str) -> bool {
    shown == location || (location.starts_with("redis+unix://") && shown.starts_with("redis+unix://"))
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
