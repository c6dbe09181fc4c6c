//! A claim on a warm connection: its round trips, and its time against a bare script.

use std::time::Instant;

use blackboard::work::Claim;

use super::floor::BareScript;
use crate::programs::microseconds;
use crate::redis_server::Server;
use crate::remote_board::{add_items, open, register};
use crate::report::{Bar, Line, Unit};
use crate::server_counters::Counters;
use crate::statistics::{median, ratios};
use crate::{Result, Scale};

/// How many agents the board has.
const AGENTS: usize = 50;

/// Claims of named items, each with the probe of an automatic sweep, as every command makes it.
pub fn claiming(scale: &Scale) -> Result<Vec<Line>> {
    let claims = scale.of(2_000, 50);
    let server = Server::start()?;
    let mut counting = server.connect()?;
    let mut bare = BareScript::on(&server)?;
    let (mut round_trips, mut ours, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..scale.rounds {
        let url = server.url(&format!("claims-{round}"));
        let other = open(&url)?;
        let session = register(&other, AGENTS)?.swap_remove(0);
        add_items(&other, 2 * claims)?;
        // A process that has not seen the items.
        let board = open(&url)?;
        let claim = |number: usize| -> Result<f64> {
            let claim = Claim::of(&format!("item-{number}"), &session);
            board.sweep_with_next_call(Some(&session));
            let start = Instant::now();
            board.work().claim(&claim)?;
            Ok(microseconds(start.elapsed()))
        };
        // The first one opens and checks the connection.
        claim(0)?;
        let before = Counters::of(&mut counting)?;
        (1..claims).try_for_each(|number| claim(number).map(drop))?;
        let counted = Counters::of(&mut counting)?.since(before);
        round_trips.push(counted.requests as f64 / (claims - 1) as f64);
        // In turns, so that other activity of the machine affects both alike.
        let (mut times, mut bare_times) = (Vec::new(), Vec::new());
        for number in claims..2 * claims {
            let start = Instant::now();
            bare.run(&number.to_string())?;
            bare_times.push(microseconds(start.elapsed()));
            times.push(claim(number)?);
        }
        ours.push(median(&times));
        floor.push(median(&bare_times));
    }
    let detail = format!("{:.0} µs, script {:.0} µs", median(&ours), median(&floor));
    let counted = "requests that the server read";
    Ok(vec![
        Line::new(
            "claim on a warm connection, round trips, sweep probe included",
            Bar::AtMost(2.0),
            Unit::Ratio,
            &round_trips,
            counted,
        ),
        Line::new(
            "the same, p50 against a bare `EVALSHA` that sets a field and adds to a stream",
            Bar::AtMost(6.0),
            Unit::Ratio,
            &ratios(&ours, &floor),
            detail,
        ),
    ])
}
