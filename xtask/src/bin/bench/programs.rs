//! Complete processes, run in turns.
//!
//! Programs that are compared run alternately, so that other activity of the machine affects all of them alike.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use testkit::{limited, patience};

use crate::Result;
use crate::statistics::{median, percentile, ratios};

/// A program that is measured. Its arguments may differ each time: an item can be claimed only once.
pub struct Program<'a> {
    pub name: &'static str,
    command: Box<dyn FnMut() -> Result<Command> + 'a>,
    /// Milliseconds, one list per round.
    rounds: Vec<Vec<f64>>,
}

impl<'a> Program<'a> {
    pub fn new(name: &'static str, mut command: impl FnMut() -> Command + 'a) -> Program<'a> {
        let command = move || {
            let mut command = command();
            command.stdin(Stdio::null());
            Ok(command)
        };
        Program { name, command: Box::new(command), rounds: Vec::new() }
    }

    /// A program that reads a short text, which is in a pipe when it starts.
    pub fn fed(name: &'static str, mut call: impl FnMut() -> (Command, String) + 'a) -> Program<'a> {
        let command = move || {
            let (mut command, input) = call();
            feed(&mut command, &input)?;
            Ok(command)
        };
        Program { name, command: Box::new(command), rounds: Vec::new() }
    }

    /// The smallest possible program.
    pub fn nothing() -> Program<'static> {
        Program::new("/bin/true", || {
            let mut command = Command::new("/bin/true");
            command.env_clear();
            command
        })
    }

    /// The ratio of this program's median to the other's, in each round.
    pub fn ratios(&self, other: &Program<'_>) -> Vec<f64> {
        ratios(&self.medians(), &other.medians())
    }

    /// The median of each round, in milliseconds.
    pub fn medians(&self) -> Vec<f64> {
        self.rounds.iter().map(|round| median(round)).collect()
    }

    /// The numbers in one phrase.
    pub fn tell(&self) -> String {
        let p95 = percentile(&self.rounds.concat(), 95.0);
        format!("{} {:.2} ms (p95 {p95:.2})", self.name, median(&self.medians()))
    }

    fn run(&mut self) -> Result<f64> {
        let mut command = (self.command)()?;
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        let status = status(&mut command, self.name)?;
        let elapsed = milliseconds(start.elapsed());
        if !status.success() {
            return Err(format!("{} ended with {status}: {command:?}", self.name).into());
        }
        Ok(elapsed)
    }
}

/// Runs a command to its end, with a limit.
pub fn status(command: &mut Command, name: &str) -> std::io::Result<ExitStatus> {
    limited(name, patience(), || command.status())
}

/// Kills a process and waits for its end.
pub fn end(process: &mut Child) {
    let _ = process.kill();
    let _ = limited("a killed process", patience(), || process.wait());
}

/// Passes a text to a command. The text must fit into a pipe.
pub fn feed(command: &mut Command, input: &str) -> Result {
    let (reader, mut writer) = std::io::pipe()?;
    writer.write_all(input.as_bytes())?;
    command.stdin(reader);
    Ok(())
}

/// Runs every program `runs` times in each round, in turns.
pub fn interleave(programs: &mut [Program<'_>], rounds: usize, runs: usize) -> Result {
    // Once to fill the caches.
    for program in programs.iter_mut() {
        program.run()?;
    }
    for _ in 0..rounds {
        for program in programs.iter_mut() {
            program.rounds.push(Vec::with_capacity(runs));
        }
        for _ in 0..runs {
            for program in programs.iter_mut() {
                let elapsed = program.run()?;
                program.rounds.last_mut().into_iter().for_each(|round| round.push(elapsed));
            }
        }
    }
    Ok(())
}

/// The peak memory of a command, in megabytes; `None` if `time` is not installed.
pub fn peak_memory(command: &Command) -> Result<Option<f64>> {
    const TIME: &str = "/usr/bin/time";
    if !PathBuf::from(TIME).exists() {
        return Ok(None);
    }
    let mut measured = Command::new(TIME);
    measured.args(["-f", "%M"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => measured.env(name, value),
            None => measured.env_remove(name),
        };
    }
    measured.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = limited(TIME, patience(), || measured.output())?;
    let report = String::from_utf8_lossy(&output.stderr);
    let kilobytes: f64 = report.trim().parse().map_err(|_| format!("{command:?} failed: {report}"))?;
    Ok(Some(kilobytes / 1024.0))
}

/// A duration in milliseconds.
pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// A duration in microseconds.
pub fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
