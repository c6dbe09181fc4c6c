//! The duration of a list, against the same query and its serialization in process.

use std::time::Instant;

use blackboard::work::NewestWork;

use super::server::{Server, ask, body, request};
use crate::boards::Scratch;
use crate::programs::microseconds;
use crate::report::{Bar, Line, Unit};
use crate::statistics::{median, ratios};
use crate::{Result, Scale};

const ITEMS: usize = 5000;
const LIMIT: usize = 200;

/// The first 200 of 5,000 work items.
pub fn listing(scale: &Scale) -> Result<Vec<Line>> {
    let requests = scale.of(300, 20);
    let scratch = Scratch::new()?;
    let board = scratch.open()?;
    scratch.add_items("item", ITEMS)?;
    let server = Server::start(scale, &scratch.path());
    let path = format!("/api/work?limit={LIMIT}");
    let mut stream = request(&server.access, "/api/status")?;
    // The request that opens the connection is not measured.
    let _ = std::io::BufRead::read_line(&mut stream, &mut String::new())?;
    let query = NewestWork { limit: Some(LIMIT), ..NewestWork::default() };
    let (mut remote, mut own) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for _ in 0..scale.rounds {
        let mut times = Vec::new();
        for _ in 0..requests {
            let start = Instant::now();
            let length = ask(&mut stream, &server.access, &path)?.ok_or("a list without a length")?;
            bytes = body(&mut stream, length)?.len();
            times.push(microseconds(start.elapsed()));
        }
        remote.push(median(&times));
        times.clear();
        for _ in 0..requests {
            let start = Instant::now();
            let page = board.work().newest(&query)?;
            let text = serde_json::to_vec(&page.items)?;
            times.push(microseconds(start.elapsed()));
            assert!(page.items.len() == LIMIT && !text.is_empty());
        }
        own.push(median(&times));
    }
    let detail = format!("{:.0} µs for {bytes} bytes, in process {:.0} µs", median(&remote), median(&own));
    let what = "`/api/work?limit=200` among 5,000 items, against the same query + serde_json in process";
    Ok(vec![Line::new(what, Bar::AtMost(2.0), Unit::Ratio, &ratios(&remote, &own), detail)])
}
