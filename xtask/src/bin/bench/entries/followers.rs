//! The latency from a write to its followers: `observe --follow` in other processes, against a Redis stream.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use blackboard::entry::{Value, Write};

use crate::boards::Scratch;
use crate::programs::{end, microseconds, milliseconds};
use crate::redis_server::{Client, Server};
use crate::report::{Bar, Line, Unit};
use crate::statistics::{median, percentile, ratios};
use crate::{Result, Scale};

/// How long a follower may print nothing.
const LIMIT: Duration = Duration::from_secs(30);

/// A process that prints a line for each event.
pub struct Follower {
    process: Child,
}

impl Follower {
    /// Starts it. Its lines go into the channel, with the time at which they were read from the pipe.
    pub fn start(
        mut command: Command,
        number: usize,
        heard: Sender<(usize, Instant, String)>,
    ) -> Result<Follower> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let output = BufReader::new(process.stdout.take().ok_or("a process without output")?);
        std::thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                if heard.send((number, Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        Ok(Follower { process })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// The time from a write until another process has printed it.
pub fn hearing(scale: &Scale) -> Result<Vec<Line>> {
    let writes = scale.of(400, 20);
    let scratch = Scratch::new()?;
    let board = scratch.open()?;
    let scope = board.scope("default");
    let (sender, heard) = mpsc::channel();
    let _follower = Follower::start(follow(scale, &scratch), 0, sender)?;
    let mut tell = |number: usize| -> Result {
        scope.write(&Write::new("task:a", Value::of(&number)?))?;
        Ok(())
    };
    until_heard(&mut tell, &heard, 1)?;
    let server = Server::start()?;
    let mut redis = server.connect()?;
    let (sender, heard_remote) = mpsc::channel();
    let mut reader = Command::new(std::env::current_exe()?);
    reader.arg("stream-reader").arg(server.port().to_string());
    let _reader = Follower::start(reader, 0, sender)?;
    let mut tell_remote = |number: usize| -> Result {
        redis.call(&["XADD", "events", "*", "value", &number.to_string()])?;
        Ok(())
    };
    until_heard(&mut tell_remote, &heard_remote, 1)?;
    let (mut own, mut remote) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        own.push(median(&delays(writes, &mut tell, &heard)?));
        remote.push(median(&delays(writes, &mut tell_remote, &heard_remote)?));
    }
    let detail = format!("{:.0} µs, Redis {:.0} µs", median(&own), median(&remote));
    let what = "a write until `observe --follow` has printed it, p50, against `XADD` until `XREAD BLOCK` has";
    Ok(vec![Line::new(what, Bar::AtMost(2.0), Unit::Ratio, &ratios(&own, &remote), detail)])
}

/// Microseconds from each write until its line.
pub fn delays(
    writes: usize,
    tell: &mut dyn FnMut(usize) -> Result,
    heard: &Receiver<(usize, Instant, String)>,
) -> Result<Vec<f64>> {
    let mut delays = Vec::with_capacity(writes);
    for number in 0..writes {
        // The reader sleeps again by then.
        std::thread::sleep(Duration::from_millis(3));
        let start = Instant::now();
        tell(number)?;
        let (_, moment, _) = heard.recv_timeout(LIMIT).map_err(|_| "a write was never heard of")?;
        delays.push(microseconds(moment.duration_since(start)));
    }
    Ok(delays)
}

/// Writes until every follower has seen an event, so that all of them are following, then waits for the rest.
pub fn until_heard(
    tell: &mut dyn FnMut(usize) -> Result,
    heard: &Receiver<(usize, Instant, String)>,
    followers: usize,
) -> Result {
    let start = Instant::now();
    let mut listening = vec![false; followers];
    while listening.contains(&false) {
        if start.elapsed() > LIMIT {
            return Err("not every follower started".into());
        }
        tell(0)?;
        std::thread::sleep(Duration::from_millis(100));
        for (number, ..) in heard.try_iter() {
            listening[number] = true;
        }
    }
    while heard.recv_timeout(Duration::from_millis(500)).is_ok() {}
    Ok(())
}

/// Many followers at once.
pub fn many(scale: &Scale) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (followers, limit) in [(50, 10.0), (200, 50.0)] {
        let mut rounds = Vec::new();
        let mut middle = Vec::new();
        for _ in 0..scale.rounds {
            let delays = with_followers(scale, followers)?;
            middle.push(percentile(&delays, 50.0));
            rounds.push(percentile(&delays, 99.0));
        }
        let what = format!("{followers} followers, 25 writes a second: p99 of hearing of one");
        let detail = format!("p50 {:.1} ms; all {followers} started", median(&middle));
        lines.push(Line::new(what, Bar::AtMost(limit), Unit::Milliseconds, &rounds, detail));
    }
    Ok(lines)
}

fn with_followers(scale: &Scale, count: usize) -> Result<Vec<f64>> {
    let scratch = Scratch::new()?;
    let board = scratch.open()?;
    let scope = board.scope("default");
    let (sender, heard) = mpsc::channel();
    let followers = (0..count)
        .map(|number| Follower::start(follow(scale, &scratch), number, sender.clone()))
        .collect::<Result<Vec<_>>>()?;
    let mut tell = |number: usize| -> Result {
        scope.write(&Write::new("task:a", Value::of(&number)?))?;
        Ok(())
    };
    until_heard(&mut tell, &heard, count)?;
    let mut delays = Vec::new();
    for number in 0..scale.of(50, 5) {
        let start = Instant::now();
        tell(number)?;
        for _ in 0..count {
            let (_, moment, _) = heard.recv_timeout(LIMIT).map_err(|_| "a write was never heard of")?;
            delays.push(milliseconds(moment.duration_since(start)));
        }
        std::thread::sleep(Duration::from_millis(40).saturating_sub(start.elapsed()));
    }
    drop(followers);
    Ok(delays)
}

/// The cost of an idle follower.
pub fn idle(scale: &Scale) -> Result<Vec<Line>> {
    let scratch = Scratch::new()?;
    let board = scratch.open()?;
    let scope = board.scope("default");
    let (sender, heard) = mpsc::channel();
    let follower = Follower::start(follow(scale, &scratch), 0, sender)?;
    let mut tell = |number: usize| -> Result {
        scope.write(&Write::new("task:a", Value::of(&number)?))?;
        Ok(())
    };
    until_heard(&mut tell, &heard, 1)?;
    let mut rounds = Vec::new();
    for _ in 0..scale.rounds {
        let (start, before) = (Instant::now(), processor_time(&follower)?);
        std::thread::sleep(Duration::from_secs(scale.of(10, 1) as u64));
        let used = processor_time(&follower)?.saturating_sub(before);
        rounds.push(100.0 * used.as_secs_f64() / start.elapsed().as_secs_f64());
    }
    let what = "an idle follower, in percent of a core";
    Ok(vec![Line::new(what, Bar::AtMost(0.1), Unit::Percent, &rounds, "time on a processor, by the kernel")])
}

fn processor_time(follower: &Follower) -> Result<Duration> {
    let file = format!("/proc/{}/schedstat", follower.process.id());
    let text = std::fs::read_to_string(&file)?;
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
    Ok(Duration::from_nanos(nanoseconds.ok_or("the kernel does not say how long a process ran")?))
}

/// The command that follows the board.
pub fn follow(scale: &Scale, scratch: &Scratch) -> Command {
    let mut command = scale.blackboard(&scratch.path());
    command.args(["observe", "--follow", "--key", "task:*", "--json"]);
    command
}

/// The process that reads a Redis stream and prints the entries.
pub fn read_stream(arguments: &[String]) -> Result {
    let port = arguments.first().and_then(|port| port.parse().ok()).ok_or("which port?")?;
    let mut client = Client::connect(port)?;
    let mut last = "$".to_owned();
    let mut output = std::io::stdout().lock();
    loop {
        let answer = client.call(&["XREAD", "BLOCK", "0", "STREAMS", "events", &last])?;
        // The name of the stream; then each entry: its id, and the name and value of its one field.
        for entry in answer.get(1..).unwrap_or_default().chunks(3) {
            last.clone_from(&entry[0]);
            writeln!(output, "{{\"id\":\"{}\",\"value\":{}}}", entry[0], entry[entry.len() - 1])?;
        }
        output.flush()?;
    }
}
