//! A hundred hooks at the same time, each of which wants to write.

use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::Instant;

use super::agents::Agents;
use crate::programs::{feed, milliseconds, status};
use crate::report::{Bar, Line, Unit};
use crate::statistics::{median, percentile};
use crate::{Result, Scale};

/// The time limit of a hook, in milliseconds.
const DEADLINE: f64 = 300.0;

/// How many are late, and how many gave up their write. Lateness is measured from outside: from before the start of the
/// process until after its end.
pub fn measure(scale: &Scale) -> Result<Vec<Line>> {
    let size = scale.of(100, 20);
    let (mut late, mut skipped, mut all) = (Vec::new(), Vec::new(), Vec::new());
    let mut cut_off = 0;
    for _ in 0..scale.rounds {
        let agents = Agents::new(scale, size)?;
        agents.fall_silent()?;
        let commands = (0..size).map(|number| {
            let (mut command, input) = agents.used_a_tool(number);
            feed(&mut command, &input)?;
            Ok(command)
        });
        let times = at_once(commands.collect::<Result<_>>()?)?;
        let log =
            std::fs::read_to_string(agents.scratch.path().with_file_name("hook.log")).unwrap_or_default();
        let lines = |words: &str| log.lines().filter(|line| line.contains(words)).count();
        cut_off += lines("the time was over");
        skipped.push(lines(" busy: ") as f64);
        late.push(times.iter().filter(|time| **time > DEADLINE).count() as f64);
        all.extend(times);
    }
    let detail = format!(
        "p50 {:.0} ms, p99 {:.0} ms, longest {:.0} ms; {cut_off} ended by their own deadline in {} rounds",
        median(&all),
        percentile(&all, 99.0),
        percentile(&all, 100.0),
        scale.rounds,
    );
    let most = [percentile(&late, 100.0)];
    let what = format!("{size} hooks at once that write: over their deadline");
    let skips = format!("{size} hooks at once: writes skipped");
    Ok(vec![
        Line::new(what, Bar::AtMost(0.0), Unit::Count, &most, detail),
        Line::new(skips, Bar::NoLimit, Unit::Count, &skipped, "from the log of hooks"),
    ])
}

/// Starts all of them at once, and returns the duration of each.
fn at_once(commands: Vec<Command>) -> Result<Vec<f64>> {
    let barrier = Barrier::new(commands.len());
    let times: Vec<std::io::Result<f64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = commands
            .into_iter()
            .map(|mut command| {
                let barrier = &barrier;
                scope.spawn(move || {
                    command.stdout(Stdio::null()).stderr(Stdio::null());
                    barrier.wait();
                    let start = Instant::now();
                    let status = status(&mut command, "a hook")?;
                    let elapsed = milliseconds(start.elapsed());
                    if status.success() {
                        Ok(elapsed)
                    } else {
                        Err(std::io::Error::other(status.to_string()))
                    }
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(std::io::Error::other("a thread broke down")))
        });
        joined.collect()
    });
    Ok(times.into_iter().collect::<std::io::Result<_>>()?)
}
