//! Ten thousand agents on one board.

use clap::Parser;

use crate::fleet::Progress;
use crate::fleet::{self, Options};
use crate::report::{Bar, Line, Unit};
use crate::statistics::median;
use crate::{Result, Scale};

/// One heartbeat a minute each, and 1,000 claims a second of all of them.
pub fn ten_thousand(scale: &Scale) -> Result<Vec<Line>> {
    let agents = scale.of(10_000, 100);
    let seconds = scale.of(20, 2);
    let rate = scale.of(1_000, 50);
    let options = Options::try_parse_from([
        format!("--agents={agents}"),
        format!("--seconds={seconds}"),
        format!("--claims-per-second={rate}"),
        "--writes-per-second=0".to_owned(),
    ])?;
    let (mut failures, mut late, mut middle, mut threads) = (0, Vec::new(), Vec::new(), 0);
    for _ in 0..scale.rounds {
        let figures = fleet::simulate(&options, &Progress::on_stderr())?;
        failures += figures.failures();
        late.push(figures.percentile(99.0));
        middle.push(figures.percentile(50.0));
        threads = threads.max(figures.load.threads);
    }
    let what = format!("{agents} simulated agents at one heartbeat a minute, {rate} claims a second offered");
    let detail = format!("p50 {:.1} ms; {threads} threads", median(&middle));
    Ok(vec![
        Line::new(format!("{what}: failures"), Bar::AtMost(0.0), Unit::Count, &[failures as f64], ""),
        Line::new(format!("{what}: p99"), Bar::AtMost(50.0), Unit::Milliseconds, &late, detail),
    ])
}
