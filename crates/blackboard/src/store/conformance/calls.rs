//! Calls of other agents, the dispatchers that answer them, and published values.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use serde::{Deserialize, Serialize};

use super::*;
use crate::entry::History;
use crate::error::Error;
use crate::protocol::{
    AgentRun, Call, Dispatch, Dispatcher, Handlers, Publishable, Reply, Request, RequestGone, Run, Template,
};
use crate::scope::{AccessRule, AccessRules, CreateScope, Effect, Policies};

on_every_engine![
    call_gets_its_events_and_exactly_its_result,
    result_of_a_call_is_never_missed,
    call_without_a_result_times_out_and_can_be_repeated,
    repeated_call_with_another_value_is_refused,
    call_of_a_failed_agent_returns_its_error,
    call_finds_its_result_after_pruning,
    call_reports_once_that_its_request_is_gone,
    call_reports_that_its_request_has_expired,
    dispatcher_answers_calls_of_its_namespace,
    dispatcher_handles_again_what_was_not_acknowledged_and_answers_once,
    two_dispatchers_answer_a_request_once,
    answer_that_was_deleted_is_not_written_again,
    failing_handlers_stop_no_others,
    refused_answer_becomes_an_error,
    withdrawn_and_repeated_requests_are_left_out,
    new_dispatcher_can_begin_with_open_requests,
    dispatcher_reports_pruned_events_and_continues,
    dispatcher_ends_when_it_is_stopped,
    dispatcher_needs_handlers_and_a_scope_of_entries,
    published_values_are_found_by_their_type,
    a_call_and_a_dispatcher_get_only_what_their_actor_may_read,
];

const LONG: Duration = Duration::from_mins(2);

fn call(id: &str) -> Call {
    Call { id: Some(id.to_owned()), timeout: Some(LONG), ..Call::new("ns", json("\"ask\"")) }
}

fn start(fixture: &Fixture, id: &str) -> Run {
    AgentRun::start(&fixture.scope(), &call(id)).unwrap()
}

/// A dispatcher whose handler returns the id of the request.
fn answering(fixture: &Fixture, cursor: &str) -> Dispatcher {
    let handlers = Handlers::new().answer_runs(Some("ns"), |request| Value::of(&request.values["id"]));
    Dispatcher::open(&fixture.scope(), &Dispatch::new(cursor), handlers).unwrap()
}

fn handle_all(dispatcher: &mut Dispatcher) -> usize {
    std::iter::repeat_with(|| dispatcher.handle_next(Duration::ZERO).unwrap())
        .take_while(|handled| *handled > 0)
        .sum()
}

/// How often a key was written.
fn writes(fixture: &Fixture, key: &str) -> usize {
    let History { versions, .. } = fixture.scope().history(key, 100).unwrap();
    versions.iter().filter(|version| !version.removed).count()
}

fn a_call_and_a_dispatcher_get_only_what_their_actor_may_read(fixture: &Fixture) {
    let hidden = ["oak:read:request:*", "oak:read:event:*"];
    let rules = hidden.map(|text| AccessRule::parse(Effect::Deny, text).unwrap()).to_vec();
    let policies = Policies { access: AccessRules::new(rules), ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("team", policies)).unwrap();
    let oak = fixture.scope().acting_as(Actor::author("oak"));
    let handlers = || Handlers::new().answer_runs(Some("ns"), |request| Value::of(&request.values["id"]));
    let mut refused = Dispatcher::open(&oak, &Dispatch::new("oak"), handlers()).unwrap();
    let mut run = AgentRun::start(&oak, &call("7")).unwrap();
    fixture.write("event:run:ns:7:progress", "1");
    assert_eq!(handle_all(&mut refused), 0);
    let mut allowed = Dispatcher::open(
        &fixture.scope().acting_as(Actor::author("ivy")),
        &Dispatch { new_after: Some(Revision::ZERO), ..Dispatch::new("ivy") },
        handlers(),
    )
    .unwrap();
    assert_eq!(handle_all(&mut allowed), 1);
    // The result comes first, because the event before it is hidden.
    assert!(matches!(run.next_reply().unwrap(), Reply::Result(entry) if entry.value == json("\"7\"")));
}

fn call_gets_its_events_and_exactly_its_result(fixture: &Fixture) {
    let mut run = start(fixture, "7");
    for (key, value) in [
        ("result:run:ns:8", "\"of another request\""),
        ("result:run:7", "\"of no namespace\""),
        ("result:run:other:7", "\"of another namespace\""),
        ("event:run:ns:8:progress", "0"),
        ("event:run:ns:7:progress", "1"),
        ("event:run:ns:7:progress", "2"),
        ("result:run:ns:7", "\"first\""),
        ("result:run:ns:7", "\"second\""),
    ] {
        fixture.write(key, value);
    }
    fixture.board.scope("elsewhere").write(&a_write("result:run:ns:7", "0")).unwrap();
    for expected in [1, 2] {
        let Reply::Event(event) = run.next_reply().unwrap() else { panic!("the result came too early") };
        assert_eq!((event.name.as_str(), event.value), ("progress", Value::of(&expected).unwrap()));
    }
    let Reply::Result(result) = run.next_reply().unwrap() else { panic!("one event too many") };
    assert_eq!((result.value, result.version), (json("\"first\""), 1));
    assert_eq!(fixture.value("request:run:ns:7").as_deref(), Some("\"ask\""));
    // Without a namespace, the pattern of its events also matches those of others.
    let bare = Call { namespace: None, ..call("9") };
    let mut run = AgentRun::start(&fixture.scope(), &bare).unwrap();
    for key in ["event:run:ns:9:a", "event:run:19:b", "event:run:9:c", "result:run:ns:9", "result:run:9"] {
        fixture.write(key, "1");
    }
    assert!(matches!(run.next_reply().unwrap(), Reply::Event(event) if event.name == "c"));
    assert!(matches!(run.next_reply().unwrap(), Reply::Result(entry) if entry.key == "result:run:9"));
}

fn result_of_a_call_is_never_missed(fixture: &Fixture) {
    const CALLS: usize = 20;
    let mut dispatcher = answering(fixture, "worker");
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut handled = 0;
            while handled < CALLS {
                handled += dispatcher.handle_next(LONG).unwrap();
            }
        });
        for _ in 0..CALLS {
            let call = Call { id: None, ..call("") };
            let result = AgentRun::call(&fixture.scope(), &call, |_| {}).unwrap();
            let id = AgentRun::parse_result_key(&result.key).unwrap().remove("id").unwrap();
            assert_eq!(result.value.to::<String>().unwrap(), id);
        }
        worker.join().unwrap();
    });
}

fn call_without_a_result_times_out_and_can_be_repeated(fixture: &Fixture) {
    let short = Call { timeout: Some(Duration::from_millis(10)), ..call("7") };
    let refused = AgentRun::call(&fixture.scope(), &short, |_| {}).unwrap_err();
    assert_eq!(refused.code(), Code::TimedOut);
    let details = refused.details().unwrap();
    assert_eq!((&details["id"], &details["result_key"]), (&"7".into(), &"result:run:ns:7".into()));
    fixture.write("result:run:ns:7", "\"late\"");
    // The same request, written in another form, is the same call.
    for timeout in [Duration::ZERO, LONG] {
        let again = Call { timeout: Some(timeout), value: json(" \"ask\" "), ..call("7") };
        assert_eq!(AgentRun::call(&fixture.scope(), &again, |_| {}).unwrap().value, json("\"late\""));
    }
    assert_eq!(writes(fixture, "request:run:ns:7"), 1);
}

fn repeated_call_with_another_value_is_refused(fixture: &Fixture) {
    start(fixture, "7");
    let other = Call { value: json("2"), ..call("7") };
    assert_eq!(code(AgentRun::start(&fixture.scope(), &other).map(drop)), Code::AlreadyExists);
    // The result of an earlier request with the same id does not count.
    fixture.write("result:run:ns:7", "\"old\"");
    fixture.scope().delete("request:run:ns:7").unwrap();
    let again = Call { timeout: Some(Duration::ZERO), ..call("7") };
    assert_eq!(code(AgentRun::call(&fixture.scope(), &again, |_| {})), Code::TimedOut);
}

fn call_of_a_failed_agent_returns_its_error(fixture: &Fixture) {
    let mut run = start(fixture, "7");
    let failed = Write {
        metadata: Some(Metadata::parse("{\"failed\": true}").unwrap()),
        ..a_write("result:run:ns:7", "{\"error\": \"no contract\"}")
    };
    fixture.scope().write(&failed).unwrap();
    let error = run.next_reply().unwrap_err();
    assert_eq!(error.code(), Code::CallFailed);
    assert_eq!(error.to_string(), "cli reports that the call failed: no contract");
    assert_eq!(error.details().unwrap()["value"]["error"], "no contract");
}

fn call_reports_once_that_its_request_is_gone(fixture: &Fixture) {
    for (id, gone) in [("7", RequestGone::Deleted), ("8", RequestGone::Evicted)] {
        let mut run = start(fixture, id);
        if gone == RequestGone::Deleted {
            fixture.scope().delete("request:run:ns:7").unwrap();
        } else {
            let policies = Policies { max_entries: Some(1), ..Policies::default() };
            fixture.board.scopes().create(&CreateScope::new("team", policies)).unwrap();
            fixture.write("note", "1");
        }
        assert_eq!(run.next_reply().unwrap(), Reply::RequestGone(gone));
        // An agent that has seen it before answers.
        let result = format!("result:run:ns:{id}");
        fixture.write(&result, "1");
        assert!(matches!(run.next_reply().unwrap(), Reply::Result(_)));
        fixture.scope().delete(&result).unwrap();
    }
    // Without an answer, the error says so.
    let short = Call { timeout: Some(Duration::from_millis(1)), ..call("9") };
    let mut run = AgentRun::start(&fixture.scope(), &short).unwrap();
    fixture.write("note", "1");
    assert_eq!(run.next_reply().unwrap(), Reply::RequestGone(RequestGone::Evicted));
    let error = run.next_reply().unwrap_err();
    assert_eq!((error.code(), &error.details().unwrap()["request"]), (Code::TimedOut, &"evicted".into()));
    assert!(error.to_string().ends_with("no result for request 9, which was evicted"), "{error}");
}

fn call_reports_that_its_request_has_expired(fixture: &Fixture) {
    let soon = Call { ttl: Some(Duration::from_secs(1)), ..call("7") };
    let mut run = AgentRun::start(&fixture.scope(), &soon).unwrap();
    fixture.clock.advance(Duration::from_secs(2));
    assert_eq!(run.next_reply().unwrap(), Reply::RequestGone(RequestGone::Expired));
    fixture.write("result:run:ns:7", "1");
    assert!(matches!(run.next_reply().unwrap(), Reply::Result(_)));
}

fn call_finds_its_result_after_pruning(fixture: &Fixture) {
    let mut run = start(fixture, "7");
    fixture.write("event:run:ns:7:progress", "1");
    fixture.write("result:run:ns:7", "1");
    fixture.trim(fixture.revision());
    fixture.write("other", "1");
    assert!(matches!(run.next_reply().unwrap(), Reply::Result(entry) if entry.key == "result:run:ns:7"));
}

fn dispatcher_answers_calls_of_its_namespace(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let state = Template::new("state:{game}").unwrap();
    let (seen, states) = mpsc::channel();
    let handlers = Handlers::new()
        .answer_runs(Some("ns"), |request| {
            request.emit("progress", &Value::of(&request.author)?)?;
            Value::of(&request.value.to::<String>()?.len())
        })
        .on(&state, &[], move |request| {
            assert_eq!(code(request.emit("progress", &Value::null())), Code::InvalidValue);
            seen.send(request.values["game"].clone()).unwrap();
            Ok(())
        });
    let scope = fixture.scope_of(&session);
    let mut dispatcher = Dispatcher::open(&scope, &Dispatch::new("worker"), handlers).unwrap();
    let mut run = start(fixture, "7");
    let other = Call { namespace: Some("other".to_owned()), ..call("7") };
    AgentRun::start(&fixture.scope(), &other).unwrap();
    for key in ["state:chess", "state:working_set:cluster", "notes"] {
        fixture.write(key, "1");
    }
    assert_eq!(
        handle_all(&mut dispatcher),
        3,
        "a key that matches the pattern and does not parse counts too"
    );
    assert!(matches!(run.next_reply().unwrap(), Reply::Event(event) if event.value == json("\"cli\"")));
    let Reply::Result(result) = run.next_reply().unwrap() else { panic!("one event too many") };
    assert_eq!((result.value.as_str(), result.updated_by.as_str()), ("3", "Ivy"));
    assert_eq!(fixture.entry("result:run:other:7"), None);
    drop(dispatcher);
    assert_eq!(states.iter().collect::<Vec<_>>(), ["chess"]);
}

fn dispatcher_handles_again_what_was_not_acknowledged_and_answers_once(fixture: &Fixture) {
    let calls = Arc::new(AtomicUsize::new(0));
    let stop_in_handler: Arc<Mutex<Option<crate::follow::StopHandle>>> = Arc::default();
    let open = || {
        let (calls, stop) = (calls.clone(), stop_in_handler.clone());
        let handlers = Handlers::new().answer_runs(Some("ns"), move |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            if let Some(stop) = &*stop.lock().unwrap() {
                stop.stop();
            }
            Ok(Value::null())
        });
        Dispatcher::open(&fixture.scope(), &Dispatch::new("worker"), handlers).unwrap()
    };
    let mut first = open();
    for id in ["1", "2"] {
        start(fixture, id);
    }
    // Ends after the first answer, before its cursor is stored.
    *stop_in_handler.lock().unwrap() = Some(first.stop_handle());
    assert_eq!(first.handle_next(LONG).unwrap(), 1);
    drop(first);
    *stop_in_handler.lock().unwrap() = None;
    start(fixture, "3");
    let mut second = open();
    assert_eq!(handle_all(&mut second), 3);
    assert_eq!(calls.load(Ordering::Relaxed), 3, "an answered request is not handled again");
    for id in ["1", "2", "3"] {
        assert_eq!(writes(fixture, &format!("result:run:ns:{id}")), 1, "{id}");
    }
    drop(second);
    assert_eq!(handle_all(&mut open()), 0, "the cursor was stored");
}

fn two_dispatchers_answer_a_request_once(fixture: &Fixture) {
    let mut faster = Some(answering(fixture, "worker"));
    let handlers = Handlers::new().answer_runs(Some("ns"), move |_| {
        // The other one answers between the check of the request and the answer of this one.
        if let Some(mut faster) = faster.take() {
            handle_all(&mut faster);
        }
        Value::of("too late")
    });
    let mut first = Dispatcher::open(&fixture.scope(), &Dispatch::new("worker"), handlers).unwrap();
    start(fixture, "7");
    assert_eq!(handle_all(&mut first), 1);
    assert_eq!(fixture.value("result:run:ns:7").as_deref(), Some("\"7\""));
    assert_eq!(writes(fixture, "result:run:ns:7"), 1);
}

fn answer_that_was_deleted_is_not_written_again(fixture: &Fixture) {
    let mut first = answering(fixture, "worker");
    let mut second = answering(fixture, "another worker");
    start(fixture, "7");
    assert_eq!(handle_all(&mut first), 1);
    fixture.scope().delete("result:run:ns:7").unwrap();
    // The idempotency key of the answer is remembered.
    assert_eq!(handle_all(&mut second), 1);
    assert_eq!(fixture.entry("result:run:ns:7"), None);
    assert_eq!(writes(fixture, "result:run:ns:7"), 1);
}

fn failing_handlers_stop_no_others(fixture: &Fixture) {
    let (failed, failures) = mpsc::channel();
    let signal = Template::new("signal:{agent}").unwrap();
    let handlers = Handlers::new()
        .answer_runs(Some("ns"), |request: &Request<'_>| match request.values["id"].as_str() {
            "error" => Err(Error::invalid("no contract")),
            "panic" => panic!("out of cheese"),
            id => Value::of(id),
        })
        .on(&signal, &[], |_| panic!("again"))
        .on_failure(move |failure| {
            failed.send(format!("{}: {}", failure.key.unwrap_or("-"), failure.error)).unwrap();
        });
    let mut dispatcher = Dispatcher::open(&fixture.scope(), &Dispatch::new("worker"), handlers).unwrap();
    let mut runs: Vec<_> = ["error", "panic", "fine"].map(|id| start(fixture, id)).into();
    fixture.write("signal:ivy", "1");
    assert_eq!(handle_all(&mut dispatcher), 4);
    drop(dispatcher);
    let mut fine = runs.pop().unwrap();
    assert!(matches!(fine.next_reply().unwrap(), Reply::Result(entry) if entry.value == json("\"fine\"")));
    for (mut run, message, failure) in [
        (runs.remove(0), "no contract", "invalid_value"),
        (runs.remove(0), "the handler panicked: out of cheese", "internal"),
    ] {
        let error = run.next_reply().unwrap_err();
        assert_eq!(error.code(), Code::CallFailed);
        assert_eq!(error.to_string(), format!("cli reports that the call failed: {message}"));
        assert_eq!(error.details().unwrap()["value"]["code"], failure);
    }
    assert_eq!(
        failures.iter().collect::<Vec<_>>(),
        [
            "request:run:ns:error: no contract",
            "request:run:ns:panic: the handler panicked: out of cheese",
            "signal:ivy: the handler panicked: again",
        ]
    );
}

fn refused_answer_becomes_an_error(fixture: &Fixture) {
    let large = "x".repeat(fixture.board.settings().max_value_bytes);
    let handlers =
        Handlers::new().answer_runs(Some("ns"), move |request| match request.values["id"].as_str() {
            "large" => Value::of(&large),
            id => Value::of(id),
        });
    let mut dispatcher = Dispatcher::open(&fixture.scope(), &Dispatch::new("worker"), handlers).unwrap();
    let (mut large, mut fine) = (start(fixture, "large"), start(fixture, "fine"));
    assert_eq!(handle_all(&mut dispatcher), 2);
    let error = large.next_reply().unwrap_err();
    assert_eq!(error.code(), Code::CallFailed);
    assert!(error.to_string().contains("bytes; "), "{error}");
    assert!(matches!(fine.next_reply().unwrap(), Reply::Result(entry) if entry.value == json("\"fine\"")));
}

fn withdrawn_and_repeated_requests_are_left_out(fixture: &Fixture) {
    let (seen, values) = mpsc::channel();
    let (task, result) = (Template::new("task:{id}").unwrap(), Template::new("result:{id}").unwrap());
    let handlers = Handlers::new().answer(&task, &[], &result, move |request| {
        seen.send(request.value.as_str().to_owned()).unwrap();
        Ok(request.value.clone())
    });
    let dispatch = Dispatch { result_ttl: Some(Duration::from_mins(1)), ..Dispatch::new("worker") };
    let mut dispatcher = Dispatcher::open(&fixture.scope(), &dispatch, handlers).unwrap();
    fixture.write("task:deleted", "1");
    fixture.scope().delete("task:deleted").unwrap();
    let expiring = Write { ttl: Some(Duration::from_secs(1)), ..a_write("task:expired", "2") };
    fixture.scope().write(&expiring).unwrap();
    fixture.pass(1);
    fixture.write("task:repeated", "3");
    fixture.write("task:repeated", "4");
    handle_all(&mut dispatcher);
    // A request that is written again after its answer is a new one.
    fixture.write("task:repeated", "5");
    handle_all(&mut dispatcher);
    drop(dispatcher);
    assert_eq!(values.iter().collect::<Vec<_>>(), ["4", "5"]);
    assert_eq!((fixture.entry("result:deleted"), fixture.entry("result:expired")), (None, None));
    let answer = fixture.entry("result:repeated").unwrap();
    assert_eq!((answer.value, answer.version), (json("5"), 2));
    assert_eq!(answer.expires_at, Some(answer.updated_at.plus(Duration::from_mins(1))));
}

fn new_dispatcher_can_begin_with_open_requests(fixture: &Fixture) {
    let mut answered = answering(fixture, "first");
    start(fixture, "1");
    handle_all(&mut answered);
    drop(answered);
    start(fixture, "2");
    let (seen, ids) = mpsc::channel();
    let handlers = Handlers::new().answer_runs(Some("ns"), move |request| {
        seen.send(request.values["id"].clone()).unwrap();
        Ok(Value::null())
    });
    let dispatch = Dispatch { new_after: Some(Revision::ZERO), ..Dispatch::new("second") };
    let mut dispatcher = Dispatcher::open(&fixture.scope(), &dispatch, handlers).unwrap();
    assert_eq!(handle_all(&mut dispatcher), 2);
    drop(dispatcher);
    assert_eq!(ids.iter().collect::<Vec<_>>(), ["2"]);
}

fn dispatcher_reports_pruned_events_and_continues(fixture: &Fixture) {
    let (failed, failures) = mpsc::channel();
    let open = || {
        let failed = failed.clone();
        let handlers = Handlers::new()
            .answer_runs(Some("ns"), |_| Ok(Value::null()))
            .on_failure(move |failure| failed.send((failure.key.is_none(), failure.error.code())).unwrap());
        Dispatcher::open(&fixture.scope(), &Dispatch::new("worker"), handlers).unwrap()
    };
    drop(open());
    start(fixture, "1");
    fixture.trim(fixture.revision());
    start(fixture, "2");
    let mut dispatcher = open();
    assert_eq!(dispatcher.handle_next(LONG).unwrap(), 0);
    assert_eq!(failures.try_recv().unwrap(), (true, Code::Compacted));
    assert_eq!(handle_all(&mut dispatcher), 1);
    assert!(fixture.entry("result:run:ns:2").is_some());
}

fn dispatcher_ends_when_it_is_stopped(fixture: &Fixture) {
    let dispatcher = answering(fixture, "worker");
    let running = dispatcher.on_thread().unwrap();
    assert_eq!(AgentRun::call(&fixture.scope(), &call("7"), |_| {}).unwrap().value, json("\"7\""));
    running.stop().unwrap();
    start(fixture, "8");
    // The next one continues.
    let running = answering(fixture, "worker").on_thread().unwrap();
    assert_eq!(AgentRun::call(&fixture.scope(), &call("8"), |_| {}).unwrap().value, json("\"8\""));
    running.stop().unwrap();
}

fn dispatcher_needs_handlers_and_a_scope_of_entries(fixture: &Fixture) {
    let open = |scope: &str, handlers| {
        code(Dispatcher::open(&fixture.board.scope(scope), &Dispatch::new("worker"), handlers).map(drop))
    };
    let handlers = || Handlers::new().answer_runs(None, |_| Ok(Value::null()));
    assert_eq!(open("team", Handlers::new()), Code::InvalidValue);
    let plan = Template::new("plan:{agent_id}").unwrap();
    let answers_itself = Handlers::new().answer(&plan, &[], &plan, |_| Ok(Value::null()));
    assert_eq!(open("team", answers_itself), Code::InvalidValue);
    assert_eq!(open("locks", handlers()), Code::InvalidValue);
    assert_eq!(open("team-*", handlers()), Code::InvalidValue);
    assert!(fixture.events().is_empty());
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Plan {
    agent: String,
    steps: Vec<String>,
}

impl Publishable for Plan {
    const TEMPLATE: &'static str = "plan:{agent_id}";

    fn key_values(&self) -> Vec<(&'static str, String)> {
        vec![("agent_id", self.agent.clone())]
    }

    fn tags(&self) -> Vec<String> {
        owned(&["plan"])
    }

    fn ttl(&self) -> Option<Duration> {
        Some(Duration::from_mins(1))
    }
}

fn published_values_are_found_by_their_type(fixture: &Fixture) {
    let plan = |agent: &str, step: &str| Plan { agent: agent.to_owned(), steps: owned(&[step]) };
    let scope = fixture.scope();
    for plan in [plan("oak", "test"), plan("a:b", "escape"), plan("oak", "test again")] {
        scope.publish(&plan).unwrap();
    }
    // It matches the pattern, and is no key of the type.
    fixture.write("plan:oak:notes", "1");
    let found = scope.published::<Plan>(&[]).unwrap();
    let values: Vec<_> = found.iter().map(|published| &published.value).collect();
    assert_eq!(values, [&plan("a:b", "escape"), &plan("oak", "test again")]);
    assert_eq!((&found[1].entry.tags, found[1].entry.version), (&owned(&["plan"]), 2));
    let of_oak = scope.published::<Plan>(&[("agent_id", "oak")]).unwrap();
    assert_eq!(of_oak[0].value, plan("oak", "test again"));
    assert_eq!(code(scope.published::<Plan>(&[("unknown", "oak")])), Code::InvalidValue);
    fixture.write("plan:ivy", "1");
    let error = scope.published::<Plan>(&[]).unwrap_err();
    assert_eq!(
        (error.code(), &error.details().unwrap()["key"]),
        (Code::ProtocolMismatch, &"plan:ivy".into())
    );
    fixture.scope().delete("plan:ivy").unwrap();
    fixture.pass(60);
    assert_eq!(scope.published::<Plan>(&[]).unwrap(), []);
}
