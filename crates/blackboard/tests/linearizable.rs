//! Concurrent calls of several processes on entries are linearizable.
//!
//! Processes read, write, compare-and-swap, delete, count up and move amounts between keys. They record each call
//! before it and each answer after it. Some are killed in the middle: their last call has happened, or it has not. A
//! checker looks for an order in which every answer is right. One run has a planted fault, which has to be found.
//!
//! On a server the same holds while it is killed, while another one takes over, and while connections break.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use blackboard::entry::{Actor, Entry, Value, Write};
#[cfg(feature = "redis")]
use blackboard::store::redis::{Redis, RedisOptions};
use blackboard::{Board, Code, Result};
use porcupine_rs::{CheckResult, Model, Operation, check_operations_timeout};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use testkit::process::wait_for;
#[cfg(feature = "redis")]
use testkit::proxy::Proxy;
#[cfg(feature = "redis")]
use testkit::redis::RedisServer;
#[cfg(feature = "redis")]
use testkit::redis_sentinel::SentinelGroup;

/// The environment of a client process: its directory, its number, and its job.
const DIRECTORY: &str = "BLACKBOARD_TEST_DIRECTORY";
const CLIENT: &str = "BLACKBOARD_TEST_CLIENT";
const JOB: &str = "BLACKBOARD_TEST_JOB";

const KEYS: [&str; 3] = ["a", "b", "c"];

/// A call of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Call {
    Read(usize),
    Write(usize, i64),
    /// Only if the key has this version, by its revision; 0 if it does not exist.
    Swap(usize, u64, i64),
    Delete(usize),
    Increment(usize, i64),
    /// From one key to another, in a transaction.
    Move(usize, usize, i64),
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Answer {
    Found(Option<(i64, u64)>),
    Written(u64),
    Refused,
    Moved(Option<i64>, Option<i64>),
}

#[derive(Serialize, Deserialize)]
struct Note {
    at: i64,
    call: Option<Call>,
    answer: Option<Answer>,
}

/// Each key: its value if it exists, and its last version.
type State = [(Option<i64>, u64); 3];

#[derive(Clone)]
struct Entries;

impl Model for Entries {
    type State = State;
    type Op = (Call, Option<Answer>);
    type Metadata = ();

    fn init() -> State {
        State::default()
    }

    /// Whether the answer matches the state. Without an answer, anything that could have happened matches.
    fn step(state: &State, (call, answer): &(Call, Option<Answer>)) -> (bool, State) {
        let mut next = *state;
        let put = |next: &mut State, key: usize, value: i64| {
            next[key] = (Some(value), next[key].1 + 1);
            Answer::Written(next[key].1)
        };
        let expected = match *call {
            Call::Read(key) => Answer::Found(state[key].0.map(|value| (value, state[key].1))),
            Call::Write(key, value) => put(&mut next, key, value),
            Call::Swap(key, version, value) => {
                let (current, last) = state[key];
                let holds = if current.is_some() { last == version } else { version == 0 };
                if holds { put(&mut next, key, value) } else { Answer::Refused }
            }
            Call::Delete(key) => match state[key] {
                (Some(_), version) => {
                    next[key].0 = None;
                    Answer::Written(version)
                }
                _ => Answer::Refused,
            },
            Call::Increment(key, by) => put(&mut next, key, state[key].0.unwrap_or(0) + by),
            Call::Move(from, to, amount) => {
                let seen = Answer::Moved(state[from].0, state[to].0);
                put(&mut next, from, state[from].0.unwrap_or(0) - amount);
                put(&mut next, to, state[to].0.unwrap_or(0) + amount);
                seen
            }
        };
        (answer.as_ref().is_none_or(|answer| *answer == expected), next)
    }
}

struct Scratch(TempDir);

impl Scratch {
    fn new() -> Scratch {
        let scratch = Scratch(testkit::tempdir().unwrap());
        drop(scratch.board());
        scratch
    }

    /// The same with a board on a server.
    #[cfg(feature = "redis")]
    fn on(server: &RedisServer) -> Scratch {
        Scratch::at(&server.url("a"))
    }

    #[cfg(feature = "redis")]
    fn at(url: &str) -> Scratch {
        let directory = testkit::tempdir().unwrap();
        fs::write(directory.path().join(URL), url).unwrap();
        let scratch = Scratch(directory);
        drop(scratch.board());
        scratch
    }

    /// Clients repeat a call whose outcome is unknown, as the same operation, and pause after each call.
    #[cfg(feature = "redis")]
    fn repeating(self, pause: Duration) -> Scratch {
        fs::write(self.0.path().join(PAUSE), pause.as_millis().to_string()).unwrap();
        self
    }

    fn board(&self) -> Board {
        board_in(self.0.path())
    }

    /// A process that does a job on this board.
    fn client(&self, number: usize, job: &str) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "runs_as_client_process", "--ignored"])
            .env(DIRECTORY, self.0.path())
            .env(CLIENT, number.to_string())
            .env(JOB, job)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Waits until a client has begun this many calls.
    fn wait_for_calls(&self, client: usize, calls: usize) {
        let noted =
            || fs::read_to_string(notes_of(self.0.path(), client)).unwrap_or_default().lines().count();
        testkit::wait_until(&format!("{calls} calls of client {client}"), || {
            (noted() >= 2 * calls).then_some(())
        });
    }

    /// The records of every client. A call without an answer may happen at any later time.
    fn history(&self) -> Vec<Operation<Entries>> {
        let mut history = Vec::new();
        for client in 0..CLIENTS {
            // A client that was killed early may have recorded nothing.
            let Ok(notes) = fs::read_to_string(notes_of(self.0.path(), client)) else { continue };
            let mut open: Option<(i64, Call)> = None;
            let mut finish = |open: &mut Option<(i64, Call)>, return_time, answer: Option<Answer>| {
                if let Some((call_time, call)) = open.take() {
                    let client_id = u32::try_from(client).ok();
                    let op = (call, answer);
                    history.push(Operation { client_id, call_time, return_time, op, metadata: None });
                }
            };
            for line in notes.lines() {
                // A process that was killed may have left half a line at the end.
                let Ok(note) = serde_json::from_str::<Note>(line) else { break };
                match note.call {
                    Some(call) => {
                        // The outcome of the call before is unknown: it may happen at any later time.
                        finish(&mut open, i64::MAX, None);
                        open = Some((note.at, call));
                    }
                    None => finish(&mut open, note.at, note.answer),
                }
            }
            finish(&mut open, i64::MAX, None);
        }
        history
    }
}

/// The file with the address of a board on a server.
#[cfg(feature = "redis")]
const URL: &str = "url";

/// The file with the milliseconds between the calls of clients that repeat what they do not know.
const PAUSE: &str = "pause";

fn board_in(directory: &Path) -> Board {
    #[cfg(feature = "redis")]
    if let Ok(url) = fs::read_to_string(directory.join(URL)) {
        let options = RedisOptions { patience: Duration::from_mins(1), ..RedisOptions::default() };
        let store = Redis::open(url.parse().unwrap(), &options).unwrap();
        let clock = store.clock();
        return Board::on(std::sync::Arc::new(store), clock);
    }
    Board::open(&directory.join("local.db")).unwrap()
}

fn notes_of(directory: &Path, client: usize) -> PathBuf {
    directory.join(format!("client-{client}.jsonl"))
}

/// Nanoseconds of the clock that all processes of this machine share.
fn moment() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[test]
#[ignore = "the process that other tests start; without their environment it does nothing"]
fn runs_as_client_process() {
    testkit::limit_test();
    let (Some(directory), Ok(job)) = (std::env::var_os(DIRECTORY), std::env::var(JOB)) else { return };
    let directory = PathBuf::from(directory);
    let client: usize = std::env::var(CLIENT).unwrap().parse().unwrap();
    match job.as_str() {
        "count" => count_up(&board_in(&directory)),
        job => {
            // A client that is to be killed continues until then.
            let calls = if job == "endless" { usize::MAX } else { CALLS };
            note_everything(&directory, client, calls, job == "faulty");
        }
    }
}

/// How often each process counts up.
const COUNTS: i64 = 500;

fn count_up(board: &Board) {
    for _ in 0..COUNTS {
        board
            .transaction(|tx| {
                let mut scope = tx.scope("default");
                let count = scope.read("counter")?.map_or(Ok(0), |value| value.to::<i64>())?;
                scope.write(&Write::new("counter", Value::of(&(count + 1))?))
            })
            .unwrap();
    }
}

/// How many clients there are.
const CLIENTS: usize = 8;

/// How many calls each client makes, unless it is killed.
const CALLS: usize = 150;

fn note_everything(directory: &Path, client: usize, calls: usize, faulty: bool) {
    let board = board_in(directory);
    let mut notes =
        OpenOptions::new().create_new(true).append(true).open(notes_of(directory, client)).unwrap();
    let mut note = |note: Note| {
        let line = serde_json::to_string(&note).unwrap() + "\n";
        notes.write_all(line.as_bytes()).unwrap();
    };
    let mut random = 88_172_645_463_325_252_u64.wrapping_add(client as u64 * 7_919);
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below as u64).unwrap()
    };
    // What this client last read of each key, for its comparisons.
    let mut seen: [Option<Entry>; 3] = Default::default();
    // Long faults make long histories, which take long to check, so some clients pause.
    let pause = fs::read_to_string(directory.join(PAUSE)).ok().and_then(|pause| pause.parse().ok());
    for number in 0..calls {
        let (key, value) = (next(3), i64::try_from(client * 1_000_000 + number).unwrap());
        let call = match next(6) {
            0 => Call::Read(key),
            1 => Call::Write(key, value),
            2 => Call::Swap(key, seen[key].as_ref().map_or(0, |entry| entry.version), value),
            3 => Call::Delete(key),
            4 => Call::Increment(key, 1),
            _ => Call::Move(key, (key + 1) % 3, 5),
        };
        note(Note { at: moment(), call: Some(call.clone()), answer: None });
        let operation = pause.map(|_| format!("{client}-{number}"));
        // A transaction cannot be repeated as the same operation.
        let repeats = operation.is_some() && !matches!(call, Call::Move(..));
        let answer = loop {
            match run(&board, &call, &mut seen, faulty, operation.as_deref()) {
                Err(error) if error.code() == Code::OutcomeUnknown && repeats => {}
                answer => break answer,
            }
        };
        match answer {
            Err(error) if error.code() == Code::OutcomeUnknown => {}
            answer => note(Note { at: moment(), call: None, answer: Some(answer.unwrap()) }),
        }
        std::thread::sleep(Duration::from_millis(pause.unwrap_or(0)));
    }
}

fn run(
    board: &Board,
    call: &Call,
    seen: &mut [Option<Entry>; 3],
    faulty: bool,
    operation: Option<&str>,
) -> Result<Answer> {
    let by = Actor { operation: operation.map(str::to_owned), ..Actor::default() };
    let scope = board.scope("default").acting_as(by);
    let written = |version| Ok(Answer::Written(version));
    let refused = |error: blackboard::Error| match error.code() {
        Code::Conflict | Code::EntryNotFound => Ok(Answer::Refused),
        _ => Err(error),
    };
    match *call {
        Call::Read(key) => {
            seen[key] = scope.entry(KEYS[key])?;
            Ok(Answer::Found(match &seen[key] {
                Some(entry) => Some((entry.value.to()?, entry.version)),
                None => None,
            }))
        }
        Call::Write(key, value) => written(scope.write(&Write::new(KEYS[key], Value::of(&value)?))?.version),
        Call::Swap(key, _, value) => {
            let expected = seen[key].as_ref().map_or(blackboard::Revision::ZERO, |entry| entry.revision);
            let write = Write { if_revision: Some(expected), ..Write::new(KEYS[key], Value::of(&value)?) };
            scope.write(&write).map_or_else(refused, |done| written(done.version))
        }
        Call::Delete(key) => scope.delete(KEYS[key]).map_or_else(refused, |done| written(done.version)),
        // A read and a write instead of `increment`: another client may write meanwhile.
        Call::Increment(key, by) if faulty => {
            let before = board.revision()?;
            let count = scope.read(KEYS[key])?.map_or(Ok(0), |value| value.to::<i64>())?;
            // Until another client has written, as long as there is one.
            board.wait(before, Duration::from_millis(20))?;
            written(scope.write(&Write::new(KEYS[key], Value::of(&(count + by))?))?.version)
        }
        Call::Increment(key, by) => written(scope.increment(KEYS[key], by)?.version),
        Call::Move(from, to, amount) => board.transaction(|tx| {
            let mut scope = tx.scope("default");
            let mut amounts = [None; 2];
            for (amount, key) in amounts.iter_mut().zip([from, to]) {
                *amount = scope.read(KEYS[key])?.map(|value| value.to::<i64>()).transpose()?;
            }
            let changes = [(from, amounts[0].unwrap_or(0) - amount), (to, amounts[1].unwrap_or(0) + amount)];
            for (key, value) in changes {
                scope.write(&Write::new(KEYS[key], Value::of(&value)?))?;
            }
            Ok(Answer::Moved(amounts[0], amounts[1]))
        }),
    }
}

fn judged(history: &[Operation<Entries>]) -> CheckResult {
    check_operations_timeout::<Entries>(history, Duration::from_mins(2))
}

/// How many of the clients are killed.
const KILLED: usize = 4;

#[test]
fn history_of_killed_clients_is_linearizable() {
    check_history(&Scratch::new(), || {});
}

/// The server is killed as often as a client is, and starts again with its data.
#[cfg(feature = "redis")]
#[test]
fn history_on_a_killed_server_is_linearizable() {
    let settings = [("appendonly", "yes"), ("appendfsync", "always")];
    let Some(mut server) = RedisServer::start(&settings) else { return };
    let scratch = Scratch::on(&server);
    check_history(&scratch, || {
        server.kill();
        server.start_again();
    });
}

/// Another server takes over, twice.
#[cfg(feature = "redis")]
#[test]
fn history_through_failovers_is_linearizable() {
    testkit::limit_test();
    let Some(mut group) = SentinelGroup::start() else { return };
    let scratch = Scratch::at(&format!("{}&replicas=2", group.url("a")));
    let mut failovers = testkit::scale::size(2, KILLED);
    let mut history = history_of(&scratch.repeating(Duration::from_millis(50)), || {
        if failovers > 0 {
            failovers -= 1;
            group.fail_over();
        }
    });
    // What only reads, or is refused because of what it has read, may have seen a change that no replica had yet.
    let reads = |call: &Call| matches!(call, Call::Read(_));
    history.retain(|made| !reads(&made.op.0) && made.op.1 != Some(Answer::Refused));
    assert_eq!(judged(&history), CheckResult::Ok);
}

/// Requests and replies are cut, swallowed, delayed and repeated.
#[cfg(feature = "redis")]
#[test]
fn history_through_broken_connections_is_linearizable() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let scratch = Scratch::at(&proxy.url("a")).repeating(Duration::ZERO);
    proxy.fail_at_random(3, 10);
    check_history(&scratch, || proxy.cut_all());
    assert!(proxy.faults() > 20, "{} faults", proxy.faults());
}

/// Checks the history of clients of which some are killed, with `disturb` after each of these.
fn check_history(scratch: &Scratch, disturb: impl FnMut()) {
    assert_eq!(judged(&history_of(scratch, disturb)), CheckResult::Ok);
}

/// Runs clients of which some are killed, and `disturb` after each of these.
fn history_of(scratch: &Scratch, mut disturb: impl FnMut()) -> Vec<Operation<Entries>> {
    let job = |number| if number < KILLED { "endless" } else { "honest" };
    let mut clients: Vec<_> = (0..CLIENTS).map(|number| scratch.client(number, job(number))).collect();
    for (number, client) in clients.iter_mut().enumerate().take(KILLED) {
        scratch.wait_for_calls(number, 10 * (number + 1));
        // SIGKILL, whatever it is doing.
        client.kill().unwrap();
        disturb();
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(wait_for(client).success(), number >= KILLED, "client {number}");
    }
    let history = scratch.history();
    let calls = history.len();
    assert!(calls >= (CLIENTS - KILLED) * CALLS + 100, "{calls} calls: notes of a client are missing");
    history
}

#[test]
fn a_planted_fault_is_found() {
    let scratch = Scratch::new();
    let mut clients: Vec<_> = (0..CLIENTS).map(|number| scratch.client(number, "faulty")).collect();
    for client in &mut clients {
        assert!(wait_for(client).success());
    }
    assert_eq!(judged(&scratch.history()), CheckResult::Illegal);
}

#[test]
fn sixteen_processes_increment_by_transactions_without_loss() {
    check_counter(&Scratch::new());
}

#[cfg(feature = "redis")]
#[test]
fn sixteen_processes_increment_on_a_server_without_loss() {
    let Some(server) = RedisServer::start(&[]) else { return };
    check_counter(&Scratch::on(&server));
}

fn check_counter(scratch: &Scratch) {
    let mut clients: Vec<_> = (0..16).map(|number| scratch.client(number, "count")).collect();
    for client in &mut clients {
        assert!(wait_for(client).success());
    }
    let counter = scratch.board().scope("default").entry("counter").unwrap().unwrap();
    assert_eq!(counter.value, Value::of(&(16 * COUNTS)).unwrap());
    assert_eq!(counter.version, 16 * u64::try_from(COUNTS).unwrap());
}
