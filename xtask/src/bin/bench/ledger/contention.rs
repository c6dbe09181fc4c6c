//! Many processes that want to write at once, with and without the queue.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use blackboard::clock::{Clock, SystemClock};
use blackboard::store::sqlite::Waiting;
use serde_json::Value;
use testkit::{limited, patience};

use super::worker::{Mode, waiting_name};
use crate::boards::Scratch;
use crate::report::{Bar, Line, Unit};
use crate::statistics::{median, percentile};
use crate::{Result, Scale};

/// The number of processes, and their work.
#[derive(Clone, Copy)]
struct Crowd {
    mode: Mode,
    size: usize,
    /// Claims per second, if they are paced.
    rate: u32,
    seconds: u32,
}

/// The result of a crowd.
pub struct Outcome {
    /// Milliseconds.
    pub waits: Vec<f64>,
    pub failures: Vec<String>,
}

/// 128 processes at a steady pace.
pub fn paced(scale: &Scale) -> Result<Vec<Line>> {
    let crowd = Crowd {
        mode: Mode::Paced,
        size: scale.of(128, 16),
        rate: 10,
        seconds: if scale.quick { 1 } else { 10 },
    };
    compare(&format!("{} processes at 10 claims a second", crowd.size), crowd, "p99", 99.0, 0.15, scale)
}

/// Many commands at the same moment.
pub fn bursts(scale: &Scale) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for size in [200, 500] {
        let crowd = Crowd { mode: Mode::Once, size: scale.of(size, size / 10), rate: 0, seconds: 0 };
        lines.extend(compare(
            &format!("{} one-shot claims at once", crowd.size),
            crowd,
            "p99",
            99.0,
            0.35,
            scale,
        )?);
    }
    Ok(lines)
}

/// 32 processes that write as fast as they can.
pub fn closed_loop(scale: &Scale) -> Result<Vec<Line>> {
    let crowd =
        Crowd { mode: Mode::Loop, size: scale.of(32, 8), rate: 0, seconds: if scale.quick { 1 } else { 10 } };
    compare(&format!("{} processes in a closed loop", crowd.size), crowd, "longest wait", 100.0, 0.7, scale)
}

/// Starts one worker that claims `ITEM-0` and so on at this pace from now.
pub fn start_paced(scratch: &Scratch, session: &str, item: &str, rate: u32, seconds: u32) -> Result<Child> {
    let crowd = Crowd { mode: Mode::Paced, size: 1, rate, seconds };
    start(crowd, Waiting::Queue, scratch, session, item, SystemClock.now().millis())
}

/// Waits for a worker's answer.
pub fn finish(worker: Child) -> Result<Outcome> {
    // It works for at most 10 s.
    let output = limited("a worker", 2 * patience(), || worker.wait_with_output())?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let list = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
    Ok(Outcome {
        waits: list("waits").iter().filter_map(Value::as_f64).collect(),
        failures: list("failures").iter().filter_map(|text| text.as_str().map(str::to_owned)).collect(),
    })
}

fn compare(
    what: &str,
    crowd: Crowd,
    measure: &str,
    percent: f64,
    limit: f64,
    scale: &Scale,
) -> Result<Vec<Line>> {
    let mut failures = Vec::new();
    let (mut queued, mut polled, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut polled_failures = 0;
    for _ in 0..scale.rounds {
        let with_queue = run(crowd, Waiting::Queue)?;
        let without = run(crowd, Waiting::BusyHandler)?;
        polled_failures += without.failures.len();
        failures.extend(with_queue.failures);
        queued.push(percentile(&with_queue.waits, percent));
        polled.push(percentile(&without.waits, percent));
        ratios.push(percentile(&with_queue.waits, percent) / percentile(&without.waits, percent));
    }
    let first = failures.first().cloned().unwrap_or_default();
    let raw = format!(
        "{measure} {:.1} ms, without the queue {:.1} ms and {polled_failures} failures",
        median(&queued),
        median(&polled)
    );
    Ok(vec![
        Line::new(
            format!("{what}: failures"),
            Bar::AtMost(0.0),
            Unit::Count,
            &[failures.len() as f64],
            first,
        ),
        Line::new(
            format!("{what}: {measure} against the queue off"),
            Bar::AtMost(limit),
            Unit::Ratio,
            &ratios,
            raw,
        ),
    ])
}

fn run(crowd: Crowd, waiting: Waiting) -> Result<Outcome> {
    let scratch = Scratch::new()?;
    let sessions = scratch.register(crowd.size)?;
    let claims = (crowd.rate * crowd.seconds) as usize;
    for number in 0..crowd.size {
        match crowd.mode {
            Mode::Paced => scratch.add_items(&format!("item-{number}"), claims)?,
            Mode::Once | Mode::Loop if number == 0 => scratch.add_items("item", crowd.size)?,
            Mode::Once | Mode::Loop => {}
        }
    }
    // Time until all of them are started and ready.
    let ready = Duration::from_millis(500 + 6 * crowd.size as u64);
    let at = SystemClock.now().plus(ready).millis();
    let workers = sessions
        .iter()
        .enumerate()
        .map(|(number, session)| start(crowd, waiting, &scratch, session, &format!("item-{number}"), at));
    let workers = workers.collect::<Result<Vec<_>>>()?;
    let mut all = Outcome { waits: Vec::new(), failures: Vec::new() };
    for worker in workers {
        let outcome = finish(worker)?;
        all.waits.extend(outcome.waits);
        all.failures.extend(outcome.failures);
    }
    Ok(all)
}

fn start(
    crowd: Crowd,
    waiting: Waiting,
    scratch: &Scratch,
    session: &str,
    item: &str,
    at: i64,
) -> Result<Child> {
    let worker = Command::new(std::env::current_exe()?)
        .args(["worker", crowd.mode.name(), waiting_name(waiting)])
        .arg(scratch.path())
        .args([session, item, &at.to_string(), &crowd.rate.to_string(), &crowd.seconds.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    Ok(worker)
}
