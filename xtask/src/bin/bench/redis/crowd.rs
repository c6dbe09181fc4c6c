//! Many processes that claim the items of one queue, against one.

use std::collections::HashSet;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use blackboard::Code;
use blackboard::clock::{Clock, SystemClock, Timestamp};
use blackboard::work::ClaimNext;
use serde_json::{Value, json};
use testkit::{limited, patience};

use crate::redis_server::Server;
use crate::remote_board::{add_items, open, register, take_runs};
use crate::report::{Bar, Line, Unit};
use crate::statistics::{median, percentile, ratios};
use crate::{Result, Scale};

/// The numbers of processes, and the least they claim per second against one process.
const CROWDS: [(usize, f64); 2] = [(8, 1.2), (64, 0.8)];

/// What processes have claimed.
#[derive(Default)]
struct Outcome {
    items: Vec<String>,
    /// How often each claim ran.
    runs: Vec<f64>,
    failures: Vec<String>,
    /// The end of the last claim, in milliseconds.
    ended: i64,
}

/// Claims of all items by 1, 8 and 64 processes.
pub fn claiming(scale: &Scale) -> Result<Vec<Line>> {
    let items = scale.of(5_000, 200);
    let mut alone = Vec::new();
    let mut crowds = CROWDS.map(|_| (Vec::new(), Vec::new(), 0.0, Vec::new()));
    for _ in 0..scale.rounds {
        alone.push(run(items, 1)?.0);
        for ((size, _), (rates, runs, double, failures)) in CROWDS.iter().zip(&mut crowds) {
            let (rate, outcome) = run(items, *size)?;
            rates.push(rate);
            runs.push(percentile(&outcome.runs, 99.0));
            let different: HashSet<&String> = outcome.items.iter().collect();
            *double += (outcome.items.len() - different.len()) as f64;
            failures.extend(outcome.failures);
        }
    }
    let mut lines = Vec::new();
    for ((size, limit), (rates, runs, double, failures)) in CROWDS.iter().zip(&crowds) {
        let what = format!("claims of {items} items by {size} processes");
        let detail = format!("{:.0} claims/s, 1 process {:.0} claims/s", median(rates), median(&alone));
        lines.push(Line::new(
            format!("{what} against 1"),
            Bar::AtLeast(*limit),
            Unit::Ratio,
            &ratios(rates, &alone),
            detail,
        ));
        let first = failures.first().cloned().unwrap_or_default();
        lines.push(Line::new(
            format!("{what}: double"),
            Bar::AtMost(0.0),
            Unit::Count,
            &[*double],
            format!("{} failures {first}", failures.len()),
        ));
        lines.push(Line::new(
            format!("{what}: runs per claim p99"),
            Bar::AtMost(3.0),
            Unit::Count,
            runs,
            "counted in each process",
        ));
    }
    Ok(lines)
}

/// Claims per second, and the claims.
fn run(items: usize, size: usize) -> Result<(f64, Outcome)> {
    let server = Server::start()?;
    let url = server.url("crowd");
    let board = open(&url)?;
    let sessions = register(&board, size)?;
    add_items(&board, items)?;
    // Time until all of them are started and connected.
    let begins = SystemClock.now().plus(Duration::from_millis(500 + 10 * size as u64)).millis();
    let workers = sessions.iter().map(|session| start(&url, session, begins)).collect::<Result<Vec<_>>>()?;
    let mut all = Outcome::default();
    for worker in workers {
        let outcome = finish(worker)?;
        all.items.extend(outcome.items);
        all.runs.extend(outcome.runs);
        all.failures.extend(outcome.failures);
        all.ended = all.ended.max(outcome.ended);
    }
    if all.items.len() != items {
        return Err(format!("{} of {items} items were claimed: {:?}", all.items.len(), all.failures).into());
    }
    let seconds = (all.ended - begins).max(1) as f64 / 1e3;
    Ok((items as f64 / seconds, all))
}

fn start(url: &str, session: &str, begins: i64) -> Result<Child> {
    let worker = Command::new(std::env::current_exe()?)
        .args(["claimer", url, session, &begins.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    Ok(worker)
}

fn finish(worker: Child) -> Result<Outcome> {
    let output = limited("a process that claims", 4 * patience(), || worker.wait_with_output())?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let list = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
    let texts = |name| list(name).iter().filter_map(|text| text.as_str().map(str::to_owned)).collect();
    Ok(Outcome {
        items: texts("items"),
        runs: list("runs").iter().filter_map(Value::as_f64).collect(),
        failures: texts("failures"),
        ended: answer["ended"].as_i64().unwrap_or(0),
    })
}

/// A process that claims until nothing is available, and prints one JSON object.
pub fn claim_all(arguments: &[String]) -> Result {
    let [url, session, begins] = arguments else {
        return Err("usage: claimer URL SESSION START_MILLIS".into());
    };
    let board = open(url)?;
    let next = ClaimNext { session: session.clone(), ..ClaimNext::default() };
    let (mut items, mut runs, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    let begins = Timestamp::from_millis(begins.parse()?);
    std::thread::sleep(begins.since(SystemClock.now()));
    let mut ended = begins;
    take_runs();
    loop {
        match board.work().claim_next(&next) {
            Ok(claimed) => {
                items.push(claimed.item.item_id);
                runs.push(take_runs());
                ended = SystemClock.now();
            }
            Err(error) if error.code() == Code::NothingAvailable => break,
            Err(error) => {
                failures.push(error.to_string());
                break;
            }
        }
    }
    let answer = json!({"items": items, "runs": runs, "failures": failures, "ended": ended.millis()});
    writeln!(std::io::stdout(), "{answer}")?;
    Ok(())
}
