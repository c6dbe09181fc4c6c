//! The time from a write until a follower on another connection has it, against a bare stream.

use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use blackboard::Board;
use blackboard::entry::{Value, Write};
use blackboard::follow::{Follow, StopHandle};

use crate::Result;
use crate::Scale;
use crate::entries::followers::{delays, until_heard};
use crate::redis_server::{Client, Server};
use crate::remote_board::open;
use crate::report::{Bar, Line, Unit};
use crate::statistics::{median, ratios};

/// Which follower has seen something, when, and what.
type Seen = Sender<(usize, Instant, String)>;

/// Writes of one entry, and entries of a bare stream.
pub fn hearing(scale: &Scale) -> Result<Vec<Line>> {
    let writes = scale.of(400, 20);
    let server = Server::start()?;
    let url = server.url("follow");
    let board = open(&url)?;
    let (sender, heard) = mpsc::channel();
    let stop = follow(&open(&url)?, sender)?;
    let scope = board.scope("default");
    let mut tell = |number: usize| -> Result {
        scope.write(&Write::new("task:a", Value::of(&number)?))?;
        Ok(())
    };
    until_heard(&mut tell, &heard, 1)?;

    let (mut adding, reading) = (server.connect()?, server.connect()?);
    let (sender, heard_bare) = mpsc::channel();
    thread::spawn(move || read_stream(reading, &sender));
    let mut add = |number: usize| -> Result {
        adding.call(&["XADD", "bare", "*", "e", &number.to_string()])?;
        Ok(())
    };
    until_heard(&mut add, &heard_bare, 1)?;

    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        ours.push(median(&delays(writes, &mut tell, &heard)?));
        bare.push(median(&delays(writes, &mut add, &heard_bare)?));
    }
    stop.stop();
    let detail = format!("{:.0} µs, stream {:.0} µs", median(&ours), median(&bare));
    let what =
        "a write until a follower on another connection has it, p50, against bare `XADD` → `XREAD BLOCK`";
    Ok(vec![Line::new(what, Bar::AtMost(2.0), Unit::Ratio, &ratios(&ours, &bare), detail)])
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

/// Reads a stream until the server ends.
fn read_stream(mut client: Client, seen: &Seen) {
    let mut last = "$".to_owned();
    while let Ok(answer) = client.call(&["XREAD", "BLOCK", "0", "STREAMS", "bare", &last]) {
        // The name of the stream; then each entry: its id, and the name and value of its one field.
        for entry in answer.get(1..).unwrap_or_default().chunks(3) {
            last.clone_from(&entry[0]);
            if seen.send((0, Instant::now(), entry[0].clone())).is_err() {
                return;
            }
        }
    }
}
