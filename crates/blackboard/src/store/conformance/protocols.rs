//! Protocols: defined once, found by name, and removed.

use super::*;
use crate::protocol::{CheckedKey, DefineProtocol, Level, MAX_PROTOCOLS};

on_every_engine![
    protocol_is_defined_with_an_event_and_found_by_name,
    definition_is_repeated_or_refused_but_never_changed,
    definitions_are_validated,
    protocols_are_bounded,
    removed_protocol_is_not_found_and_can_be_defined_again,
    key_belongs_to_the_most_specific_protocol_first,
];

const SCHEMA: &str = "{\"type\": \"object\",\n \"required\": [\"verdict\"]}";

fn review() -> DefineProtocol {
    DefineProtocol {
        level: Some(Level::Session),
        summary: Some("Reviews of changes".to_owned()),
        value_schema: Some(SCHEMA.to_owned()),
        ..DefineProtocol::new("review", "review:{repo}:{id}")
    }
}

fn protocol_is_defined_with_an_event_and_found_by_name(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let protocols = fixture.board.protocols();
    let request = DefineProtocol { session: Some(session.clone()), ..review() };
    let (defined, recorded) = fixture.events_of(|| protocols.define(&request).unwrap());
    assert_eq!((defined.created, recorded), (true, vec![EventType::ProtocolDefined]));
    let event = fixture.events().pop().unwrap();
    assert_eq!(event.summary, "Protocol \"review\" defined: review:{repo}:{id}");
    assert_eq!((event.target_type, event.actor_id), (Some(TargetType::Protocol), Some(session)));
    assert_eq!((event.id, event.target_id.as_deref()), (defined.protocol.revision, Some("review")));
    let shown = protocols.show("review").unwrap();
    assert_eq!(
        (shown.level, shown.summary.as_str(), shown.built_in),
        (Level::Session, "Reviews of changes", false)
    );
    assert_eq!(shown.messages[0].value_schema.as_ref().unwrap().as_str(), SCHEMA);
    assert_eq!(shown.revision, Some(event.id));
    assert_eq!(protocols.list().unwrap().last(), Some(&shown));
    assert_eq!(fixture.board.export().unwrap().protocols, [defined.protocol]);
    let key = protocols.key("review", &[("repo", "owner/pai"), ("id", "7:8")]).unwrap().key;
    assert_eq!(key, "review:owner/pai:7%3A8");
    assert_eq!(protocols.parse("review", &key).unwrap().values["id"], "7:8");
    assert_eq!(protocols.pattern("review", &[("repo", "a")]).unwrap().pattern, "review:a:*");
}

fn definition_is_repeated_or_refused_but_never_changed(fixture: &Fixture) {
    let protocols = fixture.board.protocols();
    let first = protocols.define(&review()).unwrap();
    fixture.pass(10);
    let (again, recorded) = fixture.events_of(|| protocols.define(&review()).unwrap());
    assert_eq!((again.created, &again.protocol, recorded.len()), (false, &first.protocol, 0));
    for other in [
        DefineProtocol { template: "review:{id}".to_owned(), ..review() },
        DefineProtocol { level: None, ..review() },
        DefineProtocol { summary: None, ..review() },
        DefineProtocol { value_schema: None, ..review() },
    ] {
        let error = protocols.define(&other).unwrap_err();
        assert_eq!(error.code(), Code::AlreadyExists);
        assert_eq!(error.details().unwrap()["template"], "review:{repo}:{id}");
    }
    assert_eq!(protocols.show("review").unwrap().revision, Some(first.protocol.revision));
}

fn definitions_are_validated(fixture: &Fixture) {
    let schema = |text: &str| DefineProtocol { value_schema: Some(text.to_owned()), ..review() };
    for request in [
        DefineProtocol::new("", "review:{id}"),
        DefineProtocol::new("a.b", "review:{id}"),
        DefineProtocol::new("AgentRun", "review:{id}"),
        DefineProtocol::new("agentrun", "review:{id}"),
        DefineProtocol::new("review", "{id}"),
        DefineProtocol::new("review", ""),
        schema("{\"pattern\": \"x\"}"),
        schema("true"),
        schema("no JSON"),
    ] {
        assert_eq!(code(fixture.board.protocols().define(&request)), Code::InvalidValue, "{request:?}");
    }
    assert_eq!(code(fixture.board.protocols().remove("AgentRun", None)), Code::InvalidValue);
    assert!(fixture.events().is_empty());
}

fn protocols_are_bounded(fixture: &Fixture) {
    let stored = fixture.board.protocols().define(&review()).unwrap().protocol;
    let others: Vec<Row> = (1..MAX_PROTOCOLS)
        .map(|number| crate::protocol::CustomProtocol { name: format!("n{number}"), ..stored.clone() }.into())
        .collect();
    fixture.put(&others);
    assert_eq!(
        code(fixture.board.protocols().define(&DefineProtocol::new("more", "more:{id}"))),
        Code::InvalidValue
    );
    assert!(!fixture.board.protocols().define(&review()).unwrap().created);
}

fn removed_protocol_is_not_found_and_can_be_defined_again(fixture: &Fixture) {
    let protocols = fixture.board.protocols();
    assert_eq!(code(protocols.remove("review", None)), Code::ProtocolNotFound);
    protocols.define(&review()).unwrap();
    let (removed, recorded) = fixture.events_of(|| protocols.remove("review", None).unwrap());
    assert_eq!((removed.protocol.name.as_str(), recorded), ("review", vec![EventType::ProtocolRemoved]));
    assert_eq!(code(protocols.show("review")), Code::ProtocolNotFound);
    assert_eq!(code(protocols.key("review", &[])), Code::ProtocolNotFound);
    assert!(protocols.define(&DefineProtocol::new("review", "review:{id}")).unwrap().created);
}

fn key_belongs_to_the_most_specific_protocol_first(fixture: &Fixture) {
    let protocols = fixture.board.protocols();
    let strict = DefineProtocol {
        value_schema: Some("{\"type\": \"string\"}".to_owned()),
        ..DefineProtocol::new("review-task", "task:review:{id}")
    };
    protocols.define(&strict).unwrap();
    let names = |checked: &CheckedKey| -> Vec<String> {
        checked.protocols.iter().map(|found| found.protocol.clone()).collect()
    };
    for (key, expected) in [
        ("task:review:7", &["review-task", "Task"][..]),
        ("task:other", &["Task"]),
        ("result:run:ns:7", &["AgentRun", "Result"]),
        ("result:game_complete:g", &["GameState", "Result"]),
        ("state:working_set:cluster", &["WorkingSetState"]),
        ("notes", &[]),
    ] {
        assert_eq!(names(&protocols.check(key, None).unwrap()), expected, "{key}");
    }
    let checked = protocols.check("task:review:7", Some(&json("\"text\""))).unwrap();
    assert_eq!(checked.value_checked_by.as_deref(), Some("review-task"));
    let refused = protocols.check("task:review:7", Some(&json("{}"))).unwrap_err();
    assert_eq!(refused.code(), Code::ProtocolMismatch);
    assert_eq!(refused.details().unwrap()["mismatches"][0]["problem"], "expected string, found an object");
    assert_eq!(protocols.check("notes", Some(&json("1"))).unwrap().value_checked_by, None);
    assert_eq!(code(protocols.check("task:*", None)), Code::InvalidValue);
}
