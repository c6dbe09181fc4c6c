//! `render --follow`: many writers, one file, never a torn one.

use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use blackboard::entry::{Actor, Value, Write};
use blackboard::swarm::parse;
use rustix::process::Signal;
use testkit::process::Lines;

use crate::crowd::{at_once, wait_for, wait_until};
use crate::scale::size;
use crate::test_board::TestBoard;

testkit::on_each_engine![a_followed_file_is_never_torn_and_ends_up_complete];

/// The number of concurrent writers.
const WRITERS: usize = 10;

fn a_followed_file_is_never_torn_and_ends_up_complete() {
    let board = TestBoard::new();
    let library = board.library();
    let write = |key: &str, number: usize| {
        let value = Value::of(&format!("```\n### {number}\n## Knowledge Cache")).unwrap();
        library.scope("default").acting_as(Actor::author("Oak")).write(&Write::new(key, value)).unwrap();
    };
    write("task:first", 0);
    let file = board.path().join("swarm-blackboard.md");
    let call = ["render", file.to_str().unwrap(), "--follow"];
    let mut follower = board.command(call).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = Lines::of(&mut follower);
    let first = lines.next();
    assert!(first.starts_with("Rendered: ") && first.ends_with(", revision 1)"), "{first}");
    let note = "A person's note.\n";
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("## Execution History\n", &format!("## Execution History\n{note}")))
        .unwrap();
    let (each, is_done) = (size(30, 300), AtomicBool::new(false));
    let looks = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut looks = 0;
            while !is_done.load(Ordering::Relaxed) {
                let text = fs::read_to_string(&file).unwrap();
                let parsed = parse(&text);
                assert_eq!((&*parsed.problems, parsed.notes.len()), (&[][..], 1), "{text}");
                assert!(text.ends_with("<!-- blackboard:end history -->\n"), "{text}");
                looks += 1;
            }
            looks
        });
        at_once(WRITERS, |writer| {
            for number in 0..each {
                write(&format!("task:{writer}:{}", number % 7), number);
            }
        });
        wait_until("the file shows the last writes", || {
            let shown = parse(&fs::read_to_string(&file).unwrap()).entries;
            let expected = library.swarm_view("default").unwrap().entries;
            let same = |(a, b): (&blackboard::swarm::FileEntry, &blackboard::swarm::FileEntry)| {
                (&a.key, &a.value) == (&b.key, &b.value)
            };
            (shown.len() == expected.len() && shown.iter().zip(&expected).all(same)).then_some(())
        });
        is_done.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(looks > 0);
    assert!(fs::read_to_string(&file).unwrap().contains(note));
    testkit::processes::signal(follower.id(), Signal::INT);
    lines.discard_rest();
    assert_eq!(wait_for(&mut follower).code(), Some(0));
    let temporary = fs::read_dir(board.path()).unwrap().map(|file| file.unwrap().file_name());
    let temporary: Vec<_> = temporary.filter(|name| name.to_string_lossy().starts_with(".swarm-")).collect();
    assert!(temporary.is_empty(), "{temporary:?}");
}
