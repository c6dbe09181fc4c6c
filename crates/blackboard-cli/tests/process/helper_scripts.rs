//! Sessions that a helper script registers for the script that uses them: the helper ends, and the other script is the
//! process to watch.

use std::process::Stdio;

use serde_json::Value;
use testkit::process::wait_for;
use testkit::wait_until;

use crate::crowd::{Orphan, kill};
use crate::test_board::TestBoard;

testkit::on_each_engine![
    script_that_evaluates_the_output_of_a_helper_is_watched,
    script_that_acts_for_a_session_of_an_ended_helper_is_watched_until_it_is_killed,
];

/// Runs the lines as `main.sh`, without an ancestor that is an agent or a script: one of them may run this test. Returns
/// the PID of the script, which waits at its end, and the agent that the lines wrote to `shown`.
fn run_main(board: &TestBoard, lines: &str) -> (Orphan, Value) {
    let main = format!(
        "echo $$ > writing && mv writing pid\nuntil [ -e go ]; do sleep 0.02; done\n{lines}\nmv shown done\nread end < gate\n"
    );
    std::fs::write(board.path().join("main.sh"), main).unwrap();
    let start = "mkfifo gate; setsid sh main.sh > out 2>&1 < /dev/null &";
    let mut shell = board.shell(start).env_remove("BLACKBOARD_PID").stdout(Stdio::null()).spawn().unwrap();
    wait_for(&mut shell);
    // From here on its parent is the first process.
    std::fs::write(board.path().join("go"), "").unwrap();
    let read = |name: &str| std::fs::read_to_string(board.path().join(name)).ok();
    let main = Orphan(wait_until("the PID of main.sh", || read("pid")?.trim().parse().ok()));
    let shown = wait_until("main.sh has come to its end", || read("done"));
    (main, serde_json::from_str(&shown).unwrap_or_else(|_| panic!("{shown}{:?}", read("out"))))
}

fn write(board: &TestBoard, name: &str, lines: &str) {
    std::fs::write(board.path().join(name), lines).unwrap();
}

const SHOW: &str = "blackboard agent show \"$BLACKBOARD_SESSION_ID\" --json > shown";

fn script_that_evaluates_the_output_of_a_helper_is_watched() {
    for helper in [
        "blackboard agent register --name helped --shell",
        "sh inner.sh",
        "echo 'echo hello'; ( env blackboard agent register --name helped --shell )",
    ] {
        let board = TestBoard::new();
        write(&board, "helper.sh", helper);
        write(&board, "inner.sh", "blackboard agent register --name helped --shell");
        let (main, shown) = run_main(&board, &format!("eval \"$(sh helper.sh)\"\n{SHOW}"));
        assert_eq!((&shown["pid"], &shown["process"]), (&main.0.into(), &"alive".into()), "{helper}");
    }
}

fn script_that_acts_for_a_session_of_an_ended_helper_is_watched_until_it_is_killed() {
    let board = TestBoard::new();
    let session = r#"sed -n 's/.*"session_id": *"\([^"]*\)".*/\1/p' registered"#;
    write(
        &board,
        "helper.sh",
        &format!("blackboard agent register --name helped --json > registered\n{session}"),
    );
    write(&board, "step.sh", "blackboard work claim item --title Item");
    let lines =
        format!("BLACKBOARD_SESSION_ID=$(sh helper.sh)\nexport BLACKBOARD_SESSION_ID\nsh step.sh\n{SHOW}");
    let (main, shown) = run_main(&board, &lines);
    assert_eq!((&shown["pid"], &shown["process"]), (&main.0.into(), &"alive".into()), "{shown}");
    assert_eq!(shown["work_items"][0]["item_id"], "item", "{shown}");
    let oak = board.session("Oak");
    board.make_all_heartbeats_eleven_seconds_old();
    board.refusal(4, &["work", "claim", "item", "--session", &oak]);
    kill(main.0);
    let list = || board.json(&["agent", "list"])["items"].clone();
    wait_until("the script has ended", || {
        let is_gone = list().as_array().unwrap().iter().any(|agent| agent["process"] == "dead");
        is_gone.then_some(())
    });
    board.make_all_heartbeats_eleven_seconds_old();
    assert_eq!(board.json(&["work", "claim", "item", "--session", &oak])["claimed"], true);
}
