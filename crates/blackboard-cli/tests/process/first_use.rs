//! The first use of a missing board, by many processes at once.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::crowd::at_once;
use crate::scratch::Output;
use crate::test_board::TestBoard;

testkit::on_each_engine![
    fifty_processes_register_on_a_board_that_does_not_exist_and_all_succeed,
    one_of_twenty_processes_that_create_a_board_at_once_reports_that_it_did,
    readers_that_race_the_first_use_see_an_empty_board_or_the_new_one_and_never_fail,
    waits_that_race_the_first_use_find_the_board_or_refuse_and_all_writes_succeed,
];

fn fifty_processes_register_on_a_board_that_does_not_exist_and_all_succeed() {
    let board = TestBoard::new();
    // With this umask, a file is private only if it was created so.
    let wrapper = ["sh", "-c", "umask 0000; exec \"$@\"", "sh"];
    let answers = at_once(50, |index| {
        let name = format!("agent-{index}");
        board.wrapped(&wrapper, &["agent", "register", "--name", &name, "--json"])
    });
    for answer in &answers {
        assert!(answer.status.success() && answer.stderr.is_empty(), "{answer:?}");
    }
    assert_eq!(board.number("SELECT count(DISTINCT agent_name) FROM agents"), 50);
    assert_eq!(board.count_of("agent_registered"), 50);
    board.assert_sound();
    if !board.is_served() {
        assert_private(board.database());
    }
}

/// The directory of a board and everything in it are private, and nothing is left over.
fn assert_private(database: &Path) {
    assert_eq!(mode(database.parent().unwrap()), 0o700);
    for entry in fs::read_dir(database.parent().unwrap()).unwrap() {
        let file = entry.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        assert!(!file.to_str().unwrap().contains("-new"), "{} is left over", file.display());
    }
}

fn one_of_twenty_processes_that_create_a_board_at_once_reports_that_it_did() {
    for (call, created) in
        [(&["init"][..], "Created board: "), (&["write", "k", "1"], "note: created a new board at ")]
    {
        for _ in 0..5 {
            let board = TestBoard::new();
            let answers = at_once(20, |_| board.run(call));
            for answer in &answers {
                assert_eq!(answer.code, 0, "{answer:?}");
            }
            let is_creator =
                |answer: &&Output| answer.stdout.contains(created) || answer.stderr.contains(created);
            let creators: Vec<_> = answers.iter().filter(is_creator).collect();
            assert_eq!(creators.len(), 1, "{creators:?}");
            let existed =
                answers.iter().filter(|answer| answer.stdout.starts_with("Board already exists: ")).count();
            assert_eq!(existed, if call == ["init"] { 19 } else { 0 }, "{answers:?}");
        }
    }
}

fn readers_that_race_the_first_use_see_an_empty_board_or_the_new_one_and_never_fail() {
    let board = TestBoard::new();
    let answers = at_once(40, |index| match index % 2 {
        0 => board.run(["agent", "register", "--name", "Ivy", "--json"]),
        _ => board.run(["agent", "list", "--json"]),
    });
    for answer in answers {
        assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer:?}");
    }
    assert_eq!(board.count_of("agent_registered"), 20);
    board.assert_sound();
}

fn waits_that_race_the_first_use_find_the_board_or_refuse_and_all_writes_succeed() {
    let board = TestBoard::new();
    let answers = at_once(50, |index| {
        let key = format!("key:{}", index / 2);
        match index % 2 {
            0 => board.run(["write", &key, "1", "--json"]),
            _ => board.run(["wait", &key, "--timeout", "10m", "--json"]),
        }
    });
    for (index, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.stderr, "", "{answer:?}");
        let came_first = index % 2 == 1 && answer.code == 3 && answer.json()["code"] == "board_not_found";
        assert!(answer.code == 0 || came_first, "{answer:?}");
    }
    assert_eq!(board.count_of("entry_written"), 25);
    assert_eq!(board.json(&["list"]).as_array().unwrap().len(), 25);
    board.assert_sound();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}
