//! A long event log: reading its end, adding to it, its size, pruning it, and printing all of it.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use blackboard::event::Since;
use blackboard::work::Claim;
use blackboard::{Board, Revision, Settings};

use super::contention;
use crate::boards::Scratch;
use crate::programs::{Program, interleave, microseconds, milliseconds, peak_memory};
use crate::report::{Bar, Line, Unit};
use crate::statistics::{median, percentile};
use crate::{Result, Scale};

const MONTHS: Duration = Duration::from_hours(24 * 60);

/// How many events a reader finds after its cursor.
const NEW_EVENTS: i64 = 100;

const READER: &str = "observe";

/// Reading the end and adding to it, on a short log and on a long one.
pub fn lengths(scale: &Scale) -> Result<Vec<Line>> {
    let runs = scale.of(500, 50);
    let mut boards = Vec::new();
    for events in [10_000, if scale.quick { 50_000 } else { 1_000_000 }] {
        let scratch = Scratch::new()?;
        let session = scratch.register(50)?.swap_remove(0);
        scratch.add_items("item", scale.rounds * runs)?;
        scratch.add_events(events, Duration::from_hours(1))?;
        let board = scratch.open()?;
        let end = board.events().observe(&Since::Revision(Revision::ZERO), &[])?.until;
        board.events().advance(&session, READER, Revision::new(end.get() - NEW_EVENTS))?;
        boards.push((scratch, board, session));
    }
    let (mut reading, mut claiming) = (Vec::new(), Vec::new());
    let mut raw = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for round in 0..scale.rounds {
        let mut reads = [Vec::new(), Vec::new()];
        let mut claims = [Vec::new(), Vec::new()];
        for run in 0..runs {
            for (place, (_, board, session)) in boards.iter().enumerate() {
                reads[place].push(read_from_cursor(board, session)?);
                let claim = Claim::of(&format!("item-{}", round * runs + run), session);
                let start = Instant::now();
                board.work().claim(&claim)?;
                claims[place].push(microseconds(start.elapsed()));
                board.maintain();
            }
        }
        reading.push(median(&reads[1]) / median(&reads[0]));
        claiming.push(median(&claims[1]) / median(&claims[0]));
        for (all, part) in raw.iter_mut().zip(reads.iter().chain(&claims)) {
            all.push(median(part));
        }
    }
    let tell = |short: &[f64], long: &[f64]| format!("{:.0} µs and {:.0} µs", median(short), median(long));
    let line = |what: &str, rounds: &[f64], raw| Line::new(what, Bar::AtMost(1.2), Unit::Ratio, rounds, raw);
    Ok(vec![
        line("`observe` from a cursor at 10⁶ events against 10⁴", &reading, tell(&raw[0], &raw[1])),
        line("a claim at 10⁶ events against 10⁴", &claiming, tell(&raw[2], &raw[3])),
    ])
}

/// The size of the event of a claim.
pub fn room(scale: &Scale) -> Result<Vec<Line>> {
    let claims = scale.of(10_000, 500);
    let scratch = Scratch::new()?;
    let session = scratch.register(1)?.swap_remove(0);
    scratch.add_items("item", claims)?;
    let board = scratch.open()?;
    for number in 0..claims {
        board.work().claim(&Claim::of(&format!("item-{number}"), &session))?;
    }
    let pages =
        "SELECT CAST(sum(pgsize) AS REAL) / (SELECT count(*) FROM events) FROM dbstat WHERE name = 'events'";
    let bytes: f64 = scratch.connect()?.query_row(pages, [], |row| row.get(0))?;
    Ok(vec![Line::new("an event", Bar::AtMost(220.0), Unit::Bytes, &[bytes], format!("{claims} claims"))])
}

/// Pruning a long event log, while another process claims.
pub fn pruning(scale: &Scale) -> Result<Vec<Line>> {
    const RATE: u32 = 200;
    let events = if scale.quick { 50_000 } else { 1_000_000 };
    let template = Scratch::new()?;
    let session = template.register(2)?.swap_remove(0);
    template.add_items("quiet", (RATE * 2) as usize)?;
    template.add_items("busy", (RATE * 2) as usize)?;
    // The old events come first; the newest one is never pruned.
    template.connect()?.execute_batch("UPDATE events SET timestamp = '2000-01-01T00:00:00.000Z'")?;
    template.add_events(events, MONTHS)?;
    template.add_events(1, Duration::ZERO)?;
    let (mut total, mut held, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let (mut quiet, mut busy, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let scratch = Scratch::copy_of(&template)?;
        let before = contention::finish(contention::start_paced(&scratch, &session, "quiet", RATE, 2)?)?;
        let (board, watched) = scratch.open_watched(Settings::default())?;
        let claims = contention::start_paced(&scratch, &session, "busy", RATE, 2)?;
        total.push(prune(&board)?.as_secs_f64());
        let meanwhile = contention::finish(claims)?;
        failures.extend(meanwhile.failures);
        let locks: Vec<f64> = watched.take_held().into_iter().map(milliseconds).collect();
        held.push(percentile(&locks, 99.0));
        quiet.push(percentile(&before.waits, 99.0));
        busy.push(percentile(&meanwhile.waits, 99.0));
        ratios.push(percentile(&meanwhile.waits, 99.0) / percentile(&before.waits, 99.0));
    }
    let raw = format!("p99 {:.2} ms, {:.2} ms before", median(&busy), median(&quiet));
    let failed = &[failures.len() as f64];
    let failure = failures.first().cloned().unwrap_or_default();
    let what = "pruning 10⁶ events";
    Ok(vec![
        Line::new(
            format!("{what}, in all"),
            Bar::AtMost(2.0),
            Unit::Seconds,
            &total,
            format!("{events} events"),
        ),
        Line::new(format!("{what}: lock held, p99"), Bar::AtMost(20.0), Unit::Milliseconds, &held, ""),
        Line::new("claims meanwhile: failures", Bar::AtMost(0.0), Unit::Count, failed, failure),
        Line::new("claims meanwhile: p99 against before", Bar::AtMost(2.0), Unit::Ratio, &ratios, raw),
    ])
}

/// Printing the complete event log as JSON.
pub fn telling(scale: &Scale) -> Result<Vec<Line>> {
    let events = if scale.quick { 20_000 } else { 1_000_000 };
    let scratch = Scratch::new()?;
    scratch.register(1)?;
    scratch.add_events(events, Duration::from_hours(1))?;
    let observe = || {
        let mut command = scale.blackboard(&scratch.path());
        command.args(["observe", "--since", "2000-01-01T00:00:00Z", "--json"]);
        command
    };
    let mut programs = [
        Program::new("raw scan", || {
            let mut command = Command::new(scale.program("baseline"));
            command.arg("scan").arg(scratch.path());
            command
        }),
        Program::new("observe", observe),
    ];
    interleave(&mut programs, scale.rounds, 1)?;
    let [scan, detail] = &programs;
    let raw = format!("{}, {}", detail.tell(), scan.tell());
    let what = "`observe` of 10⁶ events to JSON";
    let mut lines = vec![Line::new(
        format!("{what} against a raw scan"),
        Bar::AtMost(3.0),
        Unit::Ratio,
        &detail.ratios(scan),
        raw,
    )];
    if let Some(memory) = peak_memory(&observe())? {
        lines.push(Line::new(format!("{what}: memory"), Bar::AtMost(16.0), Unit::Megabytes, &[memory], ""));
    }
    Ok(lines)
}

fn read_from_cursor(board: &Board, session: &str) -> Result<f64> {
    let since = Since::Cursor { session: session.to_owned(), reader: READER.to_owned() };
    let start = Instant::now();
    let observation = board.events().observe(&since, &[])?;
    board.events().next(&observation, observation.after, NEW_EVENTS as usize)?.ok_or("there are events")?;
    Ok(microseconds(start.elapsed()))
}

/// Prunes as successive commands do: three batches, and one check of the WAL. Returns the duration without the time between
/// them.
fn prune(board: &Board) -> Result<Duration> {
    const BATCHES_OF_A_COMMAND: usize = 3;
    const UNTIL_THE_NEXT_COMMAND: Duration = Duration::from_millis(1);
    let mut pruning = Duration::ZERO;
    loop {
        let start = Instant::now();
        let mut more = true;
        for _ in 0..BATCHES_OF_A_COMMAND {
            match board.prune() {
                Ok(pruned) => more = pruned.more,
                Err(error) if error.code() == blackboard::Code::Busy => break,
                Err(error) => return Err(error.into()),
            }
            if !more {
                break;
            }
        }
        board.maintain();
        pruning += start.elapsed();
        if !more {
            return Ok(pruning);
        }
        thread::sleep(UNTIL_THE_NEXT_COMMAND);
    }
}
