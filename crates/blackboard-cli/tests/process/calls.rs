//! Calls between processes: a worker that is killed in the middle of a request, and the one that continues its work.

use std::env;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use blackboard::Board;
use blackboard::entry::Value;
use blackboard::protocol::{AgentRun, Call, Dispatch, Dispatcher, Handlers};
use blackboard::store::redis::{Redis, RedisOptions};

use crate::crowd::{end_of, wait_for, wait_until};
use crate::scale::size;
use crate::test_board::TestBoard;

testkit::on_each_engine![
    request_of_a_killed_worker_is_answered_once_by_the_next_one,
    workers_that_are_killed_one_after_the_other_answer_every_request_once,
];

/// Tells a worker where the board is.
const BOARD: &str = "BLACKBOARD_TEST_WORKER_BOARD";

/// Tells a worker to begin requests and never to answer them.
const HANGS: &str = "BLACKBOARD_TEST_WORKER_HANGS";

const SCOPE: &str = "agent:oak";

/// A process with a dispatcher: this test program again. It is killed with the value.
struct Worker(Child);

impl Worker {
    fn start(board: &TestBoard, hangs: bool) -> Worker {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "calls::worker_process_answers_requests", "--nocapture"]);
        command.env(BOARD, board.scratch().location());
        if hangs {
            command.env(HANGS, "1");
        }
        Worker(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // One that has ended by itself needs no signal.
        let _ = self.0.kill();
        wait_for(&mut self.0);
    }
}

/// The worker, in a process of its own. In the process of the tests it does nothing.
#[test]
fn worker_process_answers_requests() {
    testkit::limit_test();
    let Ok(location) = env::var(BOARD) else { return };
    let board = if location.starts_with("redis") {
        let store = Redis::open(location.parse().unwrap(), &RedisOptions::default()).unwrap();
        let clock = store.clock();
        Board::on(Arc::new(store), clock)
    } else {
        Board::open(Path::new(&location)).unwrap()
    };
    let hangs = env::var_os(HANGS).is_some();
    let handlers = Handlers::new().answer_runs(Some("square"), move |request| {
        request.emit("begun", &Value::of(&std::process::id())?)?;
        if hangs {
            loop {
                std::thread::park();
            }
        }
        Value::of(&request.value.to::<u64>()?.pow(2))
    });
    Dispatcher::open(&board.scope(SCOPE), &Dispatch::new("oak"), handlers).unwrap().run().unwrap();
}

/// Stores the cursor of the workers, so that the first of them misses nothing.
fn store_cursor(board: &Board) {
    let handlers = Handlers::new().answer_runs(Some("square"), |_| Ok(Value::null()));
    Dispatcher::open(&board.scope(SCOPE), &Dispatch::new("oak"), handlers).unwrap();
}

fn request_of_a_killed_worker_is_answered_once_by_the_next_one() {
    let test = TestBoard::new();
    let board = test.library();
    store_cursor(&board);
    let call = ["call", "square", "12", "--id", "7", "--scope", SCOPE, "--timeout", "10m", "--json"];
    let caller = test.start(call);
    let begun = |id: &str| {
        let key = AgentRun::event_key(id, "begun", Some("square")).unwrap();
        board.scope(SCOPE).read(&key).unwrap().map(|value| value.to::<u32>().unwrap())
    };
    let first = Worker::start(&test, true);
    wait_until("the first worker to begin the request", || begun("7").filter(|pid| *pid == first.0.id()));
    drop(first);
    let second = Worker::start(&test, false);
    let ended = end_of(caller);
    assert!(ended.status.success(), "{ended:?}");
    let lines: Vec<serde_json::Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Both workers have begun it, and one of them has answered.
    let [begun_first, begun_again, result] = &lines[..] else { panic!("{ended:?}") };
    assert_ne!(begun_first["entry"]["value"], begun_again["entry"]["value"]);
    assert_eq!((&result["value"], &result["version"]), (&144.into(), &1.into()));
    drop(second);
    test.assert_sound();
}

fn workers_that_are_killed_one_after_the_other_answer_every_request_once() {
    let test = TestBoard::new();
    let board = test.library();
    store_cursor(&board);
    let scope = board.scope(SCOPE);
    let ids: Vec<String> = (0..size(12, 200)).map(|number| number.to_string()).collect();
    for id in &ids {
        let value = Value::parse(id, 1024).unwrap();
        AgentRun::start(&scope, &Call { id: Some(id.clone()), ..Call::new("square", value) }).unwrap();
    }
    let result_key = |id: &String| AgentRun::result_key(id, Some("square")).unwrap();
    let keys: Vec<_> = ids.iter().map(result_key).collect();
    let keys: Vec<_> = keys.iter().map(String::as_str).collect();
    let answered = || scope.read_batch(&keys).unwrap().len();
    let mut workers = 0;
    while answered() < ids.len() {
        let before = answered();
        // It is killed at any moment after its first answer: before its cursor is stored, or in the next request.
        let worker = Worker::start(&test, false);
        wait_until("an answer of a worker", || (answered() > before).then_some(()));
        drop(worker);
        workers += 1;
    }
    for (id, key) in ids.iter().zip(&keys) {
        let history = scope.history(key, 10).unwrap();
        assert_eq!(history.versions.len(), 1, "{key} was answered {} times", history.versions.len());
        let number: u64 = id.parse().unwrap();
        assert_eq!(history.versions[0].entry.value, Value::of(&number.pow(2)).unwrap());
    }
    println!("calls: {} requests answered by {workers} workers", ids.len());
    test.assert_sound();
}
