//! The time until a browser has the bytes of a commit, against `observe --follow` in the same run.

use std::io::BufRead;
use std::sync::mpsc;
use std::time::Instant;

use blackboard::entry::{Value, Write};

use super::server::{Server, request};
use crate::boards::Scratch;
use crate::entries::followers::{Follower, delays, follow, until_heard};
use crate::report::{Bar, Line, Unit};
use crate::statistics::{median, ratios};
use crate::{Result, Scale};

/// The time from a write until its message arrives at a client.
pub fn hearing(scale: &Scale) -> Result<Vec<Line>> {
    let writes = scale.of(400, 20);
    // Separate boards, so that neither has to wait for the other.
    let (followed, watched) = (Scratch::new()?, Scratch::new()?);
    let (board, shown) = (followed.open()?, watched.open()?);
    let write = |board: &blackboard::Board, number: usize| -> Result {
        board.scope("default").write(&Write::new("task:a", Value::of(&number)?))?;
        Ok(())
    };
    let (sender, heard) = mpsc::channel();
    let _follower = Follower::start(follow(scale, &followed), 0, sender)?;
    let mut tell = |number: usize| write(&board, number);
    until_heard(&mut tell, &heard, 1)?;
    let server = Server::start(scale, &watched.path());
    let (sender, pushed) = mpsc::channel();
    let mut stream = request(&server.access, "/api/events/stream")?;
    std::thread::spawn(move || {
        let mut line = String::new();
        while stream.read_line(&mut line).is_ok_and(|count| count > 0) {
            if line.starts_with("data: ") && sender.send((0, Instant::now(), line.clone())).is_err() {
                return;
            }
            line.clear();
        }
    });
    let mut push = |number: usize| write(&shown, number);
    until_heard(&mut push, &pushed, 1)?;
    let (mut browser, mut terminal) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        browser.push(median(&delays(writes, &mut push, &pushed)?));
        terminal.push(median(&delays(writes, &mut tell, &heard)?));
    }
    let detail = format!("{:.0} µs, `observe --follow` {:.0} µs", median(&browser), median(&terminal));
    let what = "commit → SSE bytes at a client, p50, against `observe --follow`";
    Ok(vec![Line::new(what, Bar::AtMost(2.0), Unit::Ratio, &ratios(&browser, &terminal), detail)])
}
