use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use blackboard::Code;

use super::{configured, with_quota};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_reason_and_when_it_fits,
    a_reservation_ends_with_its_session,
    a_wait_ends_when_another_process_releases_tokens,
    the_provider_must_be_known,
];

fn human_output_matches_transcript() {
    transcript::check("quota check");
}

fn json_has_the_reason_and_when_it_fits() {
    let scratch = configured();
    let fits = scratch.json(["quota", "check", "--tokens", "800"]);
    is_object(&fits, &["fits", "provider", "tokens", "available", "reason", "fits_at", "reservation"]);
    assert_eq!((&fits["fits"], &fits["available"]), (&true.into(), &800.into()));
    scratch.json(["quota", "record", "--input-tokens", "300"]);
    let refused = scratch.run(["quota", "check", "--tokens", "501", "--json"]).refused(Code::QuotaExceeded);
    assert_eq!((&refused["available"], &refused["tokens"]), (&500.into(), &501.into()));
    assert_eq!((&refused["reason"]["kind"], &refused["reason"]["window"]), (&"window".into(), &"5h".into()));
    assert!(refused["fits_at"].is_string(), "{refused}");
    let never =
        scratch.run(["quota", "check", "--tokens", "801", "--wait", "--json"]).refused(Code::QuotaExceeded);
    assert_eq!(never["fits_at"], serde_json::Value::Null, "{never}");
}

fn a_reservation_ends_with_its_session() {
    let scratch = configured();
    scratch.run(["agent", "register", "--name", "Ivy"]).success();
    let reserved = scratch.json(["quota", "check", "--tokens", "700", "--reserve", "--session", "Ivy"]);
    assert_eq!(reserved["reservation"]["tokens"], 700);
    scratch.run(["quota", "check", "--tokens", "101", "--json"]).refused(Code::QuotaExceeded);
    scratch.run(["agent", "deregister", "Ivy"]).success();
    scratch.json(["quota", "check", "--tokens", "800"]);
}

fn a_wait_ends_when_another_process_releases_tokens() {
    let scratch = configured();
    let held = scratch.json(["quota", "check", "--tokens", "800", "--reserve"])["reservation"]["id"].clone();
    let mut waiting = scratch.command(["quota", "check", "--tokens", "10", "--reserve", "--wait"]);
    let mut waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut notes = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let is_refused = |note: &String| note.starts_with("note: waiting: 10 tokens of a do not fit");
    assert!(notes.any(|note| is_refused(&note.unwrap())), "it ended without a wait");
    let released = scratch.json(["quota", "release", held.as_str().unwrap()]);
    assert_eq!(released["released"], 1);
    let ended = testkit::process::end_of(waiting);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}

fn the_provider_must_be_known() {
    let scratch = with_quota(
        r#"{"providers": {"a": {}, "b": {"windows": {"1h": {"budget": 5}}}}, "models": {"gpt*": "b"}}"#,
    );
    let unnamed = scratch.run(["quota", "check", "--tokens", "1", "--json"]).refused(Code::InvalidValue);
    assert_eq!(unnamed["error"], "several providers are configured, and none is named");
    assert_eq!(unnamed["hint"], "configured: a, b");
    scratch.run(["quota", "check", "--tokens", "1", "--provider", "c", "--json"]).refused(Code::InvalidValue);
    assert_eq!(scratch.json(["quota", "check", "--tokens", "1", "--model", "gpt-5"])["provider"], "b");
    let unlimited = scratch.json(["quota", "check", "--tokens", "9", "--provider", "a"]);
    assert_eq!(unlimited["available"], serde_json::Value::Null);
}
