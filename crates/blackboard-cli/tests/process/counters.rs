//! Counting by `write --if-revision` in a shell, as an agent would write it: no increment is lost.

use std::process::Stdio;

use crate::crowd::{at_once, end_of};
use crate::scale::{progress, size};
use crate::test_board::TestBoard;

testkit::on_each_engine![sixteen_shells_count_and_the_sum_is_exact,];

/// Increments a number of times, and returns how often another shell was faster. On exit code 4 it reads again; any other
/// error ends it.
const LOOP: &str = r#"
counted=0
refused=0
while [ "$counted" -lt "$1" ]; do
    entry=$(blackboard read counter --json) || exit 9
    value=${entry#*'"value":'} revision=${entry#*'"revision":'}
    value=${value%%,*} revision=${revision%%,*}
    blackboard write counter "$((value + 1))" --if-revision "$revision" >/dev/null
    case $? in
        0) counted=$((counted + 1)) ;;
        4) refused=$((refused + 1)) ;;
        *) exit 8 ;;
    esac
done
echo "$refused"
"#;

/// How often a shell counts before all of them start again, so that none runs as long as one that hangs.
const PART: usize = 10;

fn sixteen_shells_count_and_the_sum_is_exact() {
    let (shells, times) = (16, size(4, 500));
    let rounds = times.div_ceil(PART);
    let board = TestBoard::new();
    board.json(&["write", "counter", "0"]);
    let mut refused = 0;
    for round in 0..rounds {
        let part = (times - round * PART).min(PART).to_string();
        let answers = at_once(shells, |_| shell(&board, &part));
        refused += answers.into_iter().sum::<usize>();
        progress("counters, rounds", round + 1, rounds);
    }
    println!("counters: {} counted by {shells} shells, {refused} tried again", shells * times);
    let entry = board.json(&["read", "counter"]);
    assert_eq!(entry["value"], shells * times);
    assert_eq!(entry["version"], shells * times + 1, "one version for each");
    board.assert_sound();
}

fn shell(board: &TestBoard, times: &str) -> usize {
    let mut shell = board.shell(LOOP);
    let shell = shell.args(["sh", times]).stdout(Stdio::piped()).stderr(Stdio::null());
    let ended = end_of(shell.spawn().unwrap());
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    ended.stdout.trim().parse().unwrap()
}
