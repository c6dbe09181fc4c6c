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

testkit::on_each_engine![
    a_followed_file_is_never_torn_and_ends_up_complete,
    a_followed_file_is_rendered_once_it_is_repaired,
    a_follower_that_may_not_read_the_scope_any_more_ends,
];

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

fn a_followed_file_is_rendered_once_it_is_repaired() {
    let board = TestBoard::new();
    let scope = board.library();
    let write = |value: i64| {
        scope.scope("default").write(&Write::new("task:1", Value::of(&value).unwrap())).unwrap();
    };
    write(1);
    let [file, warnings] = ["swarm-blackboard.md", "warnings"].map(|name| board.path().join(name));
    let call = ["render", file.to_str().unwrap(), "--follow"];
    let stderr = fs::File::create(&warnings).unwrap();
    let mut follower = board.command(call).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
    let mut lines = Lines::of(&mut follower);
    lines.next();
    let whole = fs::read_to_string(&file).unwrap();
    // As an editor does: a file that is written in place is empty for a moment.
    let save = |text: &str| {
        let saved = board.path().join("saved.md");
        fs::write(&saved, text).unwrap();
        fs::rename(&saved, &file).unwrap();
    };
    let warned = || fs::read_to_string(&warnings).unwrap().matches("warning: ").count();
    // Two mistakes, each with its own warning, however often the board changes.
    for (number, marker) in
        ["<!-- blackboard:end tasks -->\n", "<!-- blackboard:end history -->\n"].iter().enumerate()
    {
        let broken = whole.replacen(marker, "", 1);
        assert_ne!(broken, whole);
        save(&broken);
        (0..3).for_each(|_| write(2));
        wait_until("the follower warns", || (warned() > number).then_some(()));
    }
    // The repair is no event of the board.
    save(&whole);
    wait_until("the repaired file is rendered", || {
        fs::read_to_string(&file).unwrap().contains("\"value\":2,").then_some(())
    });
    assert_eq!(warned(), 2, "{}", fs::read_to_string(&warnings).unwrap());
    testkit::processes::signal(follower.id(), Signal::INT);
    lines.discard_rest();
    assert_eq!(wait_for(&mut follower).code(), Some(0));
}

fn a_follower_that_may_not_read_the_scope_any_more_ends() {
    let board = TestBoard::new();
    board.run(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]).success();
    let private = ["scope", "create", "private", "--visibility", "shared", "--member", "Ivy"];
    board.run(private).success();
    board.run(["write", "a", "1", "--scope", "private"]).success();
    let file = board.path().join("board.md");
    let call = ["render", file.to_str().unwrap(), "--scope", "private", "--as", "ivy", "--follow"];
    let mut follower = board.command(call).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = Lines::of(&mut follower);
    lines.next();
    board.run(["agent", "deregister", "ivy"]).success();
    lines.discard_rest();
    let ended = testkit::process::end_of(follower);
    assert_eq!(ended.status.code(), Some(i32::from(blackboard::Code::SessionEnded.exit_code())), "{ended:?}");
    assert!(ended.stderr.starts_with("error: ") && ended.stderr.contains("ended"), "{ended:?}");
}
