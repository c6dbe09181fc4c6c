//! The queue in front of the writer lock: a killed member delays no other one.

use std::process::Child;

use rustix::process::Signal;

use crate::crowd::{at_once, end_of, kill, signal, wait_until};
use crate::scale::{Chance, progress, size};
use crate::test_board::TestBoard;

#[test]
fn killed_members_of_the_queue_delay_no_other_member() {
    let (rounds, members) = (size(2, 40), size(40, 120));
    let mut finished = 0;
    for round in 1..=rounds {
        let board = TestBoard::new();
        board.session("Ivy");
        kill_a_queue(&board);
        let mut chance = Chance::new(round);
        let (mut children, mut killed) = (Vec::new(), Vec::new());
        for index in 0..members {
            let call = ["work", "create", &format!("item-{index}"), "--title", "Work", "--json"];
            children.push(Some(board.start(call)));
            // One of the last, which may not have ended yet.
            let victim = index - chance.below(8).min(index);
            if chance.below(2) == 0
                && let Some(child) = children[victim].take()
            {
                kill(child.id());
                killed.push(child);
            }
        }
        for child in killed {
            end_of(child);
        }
        for (index, child) in children.into_iter().enumerate() {
            let Some(child) = child else { continue };
            let ended = end_of(child);
            assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
            let created = format!("SELECT count(*) FROM work_items WHERE item_id = 'item-{index}'");
            assert_eq!(board.number(&created), 1);
            finished += 1;
        }
        board.assert_sound();
        progress("queue, rounds", round, rounds);
    }
    println!("queue: {rounds} rounds of {members}, {finished} finished, the others were killed, none failed");
}

/// Kills the member at the head of a queue, which tries to write, and one that waits behind it.
fn kill_a_queue(board: &TestBoard) {
    let holder = board.sql();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut members = Vec::new();
    wait_until("a queue", || {
        // A member gives up after 5 s, which may be less than the other one needs to start.
        members.retain_mut(|member: &mut Child| member.try_wait().unwrap().is_none());
        members.resize_with(2, || board.start(["work", "create", "never", "--title", "Never", "--json"]));
        (waiting_for(board) > 0).then_some(())
    });
    for member in &members {
        kill(member.id());
    }
    for member in members {
        end_of(member);
    }
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(board.number("SELECT count(*) FROM work_items WHERE item_id = 'never'"), 0);
}

#[test]
fn member_stopped_at_the_head_of_the_queue_delays_no_other_member() {
    let board = TestBoard::new();
    board.session("Ivy");
    let holder = board.sql();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let call = |item| ["work", "create", item, "--title", "Work", "--json"];
    let stopped = board.start(call("first"));
    let sidecar = board.beside("-lock");
    wait_until("one at the head", || (std::fs::metadata(&sidecar).ok()?.len() > 0).then_some(()));
    signal(stopped.id(), Signal::STOP);
    holder.execute_batch("ROLLBACK").unwrap();
    board.run(call("second")).success();
    board.run(call("third")).success();
    signal(stopped.id(), Signal::CONT);
    assert!(end_of(stopped).status.success());
    assert_eq!(board.count_of("work_created"), 3);
    board.assert_sound();
}

#[test]
fn a_hundred_writers_at_once_all_get_their_turn() {
    let writers = size(100, 500);
    let board = TestBoard::new();
    let session = board.session("Ivy");
    let answers =
        at_once(writers, |_| board.run(["agent", "heartbeat", "--session", &session, "--progress", "on"]));
    for answer in answers {
        assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer:?}");
    }
    assert_eq!(board.count_of("heartbeat_received"), writers);
    board.assert_sound();
    println!("queue: {writers} writers at once, none failed");
}

/// How many processes wait in the queue of a board, as the kernel sees it.
fn waiting_for(board: &TestBoard) -> usize {
    use std::os::unix::fs::MetadataExt;
    let Ok(sidecar) = std::fs::symlink_metadata(board.beside("-lock")) else { return 0 };
    let file = format!(":{} ", sidecar.ino());
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    locks.lines().filter(|line| line.contains("->") && line.contains("FLOCK") && line.contains(&file)).count()
}
