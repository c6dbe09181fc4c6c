use std::process::Stdio;
use std::time::{Duration, Instant};

use blackboard::Code;
use blackboard::entry::Value;
use blackboard::protocol::{Dispatch, Dispatcher, Handlers};
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::shapes::{ENTRY, has_fields};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_a_line_for_each_event_and_the_result,
    call_gets_the_answer_of_a_dispatcher,
    value_is_read_from_standard_input,
    timeout_after_an_event_is_the_last_line,
    evicted_request_is_noted,
    hint_of_a_timeout_does_not_find_an_earlier_result,
    rest_of_a_ttl_counts_from_the_end_of_the_wait,
];

fn human_output_matches_transcript() {
    transcript::check("call");
}

fn json_has_a_line_for_each_event_and_the_result() {
    let scratch = Scratch::new();
    for (key, value) in [
        ("request:run:compliance:7", "\"the contract\""),
        ("event:run:compliance:7:progress", "50"),
        ("event:run:compliance:8:progress", "0"),
        ("result:run:compliance:7", "\"fine\""),
    ] {
        scratch.json(["write", key, value]);
    }
    let call = ["call", "compliance", "\"the contract\"", "--id", "7"];
    let output = scratch.run(call.iter().chain(&["--json"])).success();
    let lines: Vec<serde_json::Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [event, result] = &lines[..] else { panic!("{output:?}") };
    assert_eq!((&event["event_type"], &event["entry"]["value"]), (&"entry_written".into(), &50.into()));
    assert_eq!((&result["key"], &result["value"]), (&"result:run:compliance:7".into(), &"fine".into()));
    has_fields(result, ENTRY);
    let output = scratch.run(call.iter().chain(&["--raw"])).success();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("fine\n", "progress: 50\n"));
    let output = scratch.run(call.iter().chain(&["--value", "--json"])).success();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("\"fine\"\n", "progress: 50\n"));
}

fn call_gets_the_answer_of_a_dispatcher() {
    let scratch = Scratch::new();
    scratch.json(["write", "first", "0"]);
    let board = scratch.board();
    let handlers = Handlers::new().answer_runs(Some("square"), |request| {
        request.emit("progress", &Value::of("half")?)?;
        Value::of(&request.value.to::<u64>()?.pow(2))
    });
    let scope = board.scope("agent:oak");
    let worker = Dispatcher::open(&scope, &Dispatch::new("oak"), handlers).unwrap().on_thread().unwrap();
    let call = |value: &str| {
        scratch.run(["call", "square", value, "--scope", "agent:oak", "--timeout", "2m", "--json", "--value"])
    };
    let output = call("12").success();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("144\n", "progress: \"half\"\n"));
    let refused = call("twelve").refused(Code::CallFailed);
    assert_eq!(refused["value"]["code"], "invalid_value", "{refused}");
    worker.stop().unwrap();
}

fn value_is_read_from_standard_input() {
    let scratch = Scratch::new();
    scratch.json(["write", "first", "0"]);
    let call = "echo '{\"a\": 1}' | blackboard call compliance - --id 7 --timeout 10ms";
    assert_eq!(Output::of(scratch.shell(call).run_to_end()).code, 6);
    assert_eq!(scratch.json(["read", "request:run:compliance:7"])["value"]["a"], 1);
}

fn timeout_after_an_event_is_the_last_line() {
    let scratch = Scratch::new();
    scratch.json(["write", "request:run:compliance:7", "1"]);
    scratch.json(["write", "event:run:compliance:7:progress", "50"]);
    let call = ["call", "compliance", "1", "--id", "7", "--timeout", "10ms", "--json"];
    let output = Output::of(scratch.command(call).stderr(Stdio::piped()).run_to_end());
    let last: serde_json::Value = serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((output.code, output.stdout.lines().count(), output.stderr.as_str()), (6, 2, ""));
    assert_eq!((&last["ok"], &last["code"]), (&false.into(), &"timed_out".into()), "{output:?}");
    let hint = "the request stays; wait for its result: blackboard wait result:run:compliance:7 --after 1";
    assert_eq!(last["hint"], hint);
    assert_eq!((&last["id"], &last["result_key"]), (&"7".into(), &"result:run:compliance:7".into()));
}

fn evicted_request_is_noted() {
    let scratch = Scratch::new();
    scratch.json(["scope", "create", "small", "--max-entries", "1"]);
    let call = ["call", "z", "1", "--id", "5", "--timeout", "2m", "--scope", "small", "--raw"];
    let caller = scratch.command(call).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    scratch.run(["wait", "request:run:z:5", "--scope", "small", "--timeout", "1m"]).success();
    scratch.json(["write", "note", "1", "--scope", "small"]);
    // An agent that has seen it answers.
    scratch.json(["write", "result:run:z:5", "1", "--scope", "small"]);
    let output = Output::of(caller.run_to_end()).success();
    let note = "note: request 5 was evicted: only an agent that has seen it before can answer\n";
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("1\n", note));
}

fn hint_of_a_timeout_does_not_find_an_earlier_result() {
    let scratch = Scratch::new();
    scratch.json(["write", "request:run:z:5", "1"]);
    scratch.json(["write", "result:run:z:5", "\"old\""]);
    scratch.json(["delete", "request:run:z:5"]);
    let refused = scratch.run(["call", "z", "2", "--id", "5", "--timeout", "1ms", "--json"]);
    let hint = refused.refused(Code::TimedOut)["hint"].as_str().unwrap().to_owned();
    let (_, command) = hint.split_once(": ").unwrap();
    let waited = Output::of(scratch.shell(&format!("{command} --timeout 1ms --json")).run_to_end());
    waited.refused(Code::TimedOut);
    scratch.json(["write", "result:run:z:5", "\"new\""]);
    let waited = Output::of(scratch.shell(&format!("{command} --timeout 1m --raw")).run_to_end());
    assert_eq!(waited.success().stdout, "new\n");
}

fn rest_of_a_ttl_counts_from_the_end_of_the_wait() {
    let scratch = Scratch::new();
    scratch.json(["write", "first", "0"]);
    let started = Instant::now();
    let mut call = scratch.command(["call", "z", "1", "--id", "5", "--timeout", "2m"]);
    let caller = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    scratch.run(["wait", "request:run:z:5", "--timeout", "1m"]).success();
    // A rest that counts from the start of the command would be longer than the TTL.
    testkit::wait_until("two seconds are over", || {
        (started.elapsed() > Duration::from_secs(2)).then_some(())
    });
    scratch.json(["write", "result:run:z:5", "1", "--ttl", "60s"]);
    let output = Output::of(caller.run_to_end()).success();
    let (_, rest) = output.stdout.split_once("TTL:       1m (").unwrap_or_else(|| panic!("{output:?}"));
    let seconds: u64 = rest.split_once("s left)").unwrap().0.parse().unwrap();
    assert!(seconds <= 60, "{output:?}");
}
