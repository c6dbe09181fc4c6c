//! The time from a write until a follower on another connection has it, against a bare stream.

use std::cell::RefCell;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use blackboard::Board;
use blackboard::entry::{Value, Write};
use blackboard::follow::{Follow, StopHandle};

use super::floor::BareScript;
use crate::Result;
use crate::Scale;
use crate::entries::followers::{delays, until_heard};
use crate::programs::microseconds;
use crate::redis_server::Server;
use crate::remote_board::open;
use crate::report::{Bar, Line, Unit};
use crate::statistics::{median, ratios};

/// Which follower has seen something, when, and what.
type Seen = Sender<(usize, Instant, String)>;

/// Writes of one entry; entries of a bare stream, added by a command and by the script that is the least of a commit.
pub fn hearing(scale: &Scale) -> Result<Vec<Line>> {
    let writes = scale.of(400, 20);
    let server = Server::start()?;
    let url = server.url("follow");
    let board = open(&url)?;
    let (sender, heard) = mpsc::channel();
    let stop = follow(&open(&url)?, sender)?;
    let (scope, calls) = (board.scope("default"), RefCell::new(Vec::new()));
    let mut tell = |number: usize| -> Result {
        let start = Instant::now();
        scope.write(&Write::new("task:a", Value::of(&number)?))?;
        calls.borrow_mut().push(microseconds(start.elapsed()));
        Ok(())
    };
    until_heard(&mut tell, &heard, 1)?;

    let (mut adding, heard_added) = (server.connect()?, read_stream(&server, "added")?);
    let mut add = |number: usize| -> Result {
        adding.call(&["XADD", "added", "*", "e", &number.to_string()])?;
        Ok(())
    };
    until_heard(&mut add, &heard_added, 1)?;

    let (mut script, heard_script) = (BareScript::on(&server)?, read_stream(&server, BareScript::LOG)?);
    let mut run = |number: usize| script.run(&number.to_string());
    until_heard(&mut run, &heard_script, 1)?;

    let (mut ours, mut added, mut scripted) = (Vec::new(), Vec::new(), Vec::new());
    calls.borrow_mut().clear();
    for _ in 0..scale.rounds {
        ours.push(median(&delays(writes, &mut tell, &heard)?));
        added.push(median(&delays(writes, &mut add, &heard_added)?));
        scripted.push(median(&delays(writes, &mut run, &heard_script)?));
    }
    stop.stop();
    // The call waits for the answer of its server, which is no part of the way to the follower.
    let (own, call) = (median(&ours), median(&calls.borrow()));
    let against = |bare: &[f64]| {
        let bare = median(bare);
        format!(
            "{own:.0} µs; bare {bare:.0} µs; the call of the write returns after {call:.0} µs. One round trip each, no polling"
        )
    };
    let what =
        "a write until a follower on another connection has it, p50, against bare `XADD` → `XREAD BLOCK`";
    let same = "the same, against a bare `EVALSHA` that sets a field and adds to a stream → `XREAD BLOCK`";
    Ok(vec![
        Line::new(what, Bar::AtMost(2.0), Unit::Ratio, &ratios(&ours, &added), against(&added)),
        Line::new(same, Bar::NoLimit, Unit::Ratio, &ratios(&ours, &scripted), against(&scripted)),
    ])
}

/// Follows a board in a thread, until it is stopped.
fn follow(board: &Board, seen: Seen) -> Result<StopHandle> {
    let mut follower = board.follow(&Follow { without_sweep: true, ..Follow::default() })?;
    let stop = follower.stop_handle();
    let stopped = stop.clone();
    thread::spawn(move || {
        while !stopped.is_stopped() {
            let Ok(batch) = follower.next_batch(100, Duration::from_secs(1)) else { return };
            for event in batch.into_iter().flat_map(|batch| batch.events) {
                if seen.send((0, Instant::now(), event.summary)).is_err() {
                    return;
                }
            }
        }
    });
    Ok(stop)
}

/// Reads a stream in a thread, until the server ends.
fn read_stream(server: &Server, stream: &'static str) -> Result<Receiver<(usize, Instant, String)>> {
    let (mut client, (seen, heard)) = (server.connect()?, mpsc::channel());
    thread::spawn(move || {
        let mut last = "$".to_owned();
        while let Ok(answer) = client.call(&["XREAD", "BLOCK", "0", "STREAMS", stream, &last]) {
            // The name of the stream; then each entry: its id, and the name and value of its one field.
            for entry in answer.get(1..).unwrap_or_default().chunks(3) {
                last.clone_from(&entry[0]);
                if seen.send((0, Instant::now(), entry[0].clone())).is_err() {
                    return;
                }
            }
        }
    });
    Ok(heard)
}
