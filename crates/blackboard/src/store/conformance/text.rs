//! Text of callers: changes are reported, long text is kept, and secrets are refused.

use super::*;
use crate::file::Reserve;
use crate::follow::{Follow, Start};
use crate::lock::Acquire;
use crate::project::RegisterProject;
use crate::protocol::DefineProtocol;
use crate::work::{Block, Edit, Reassign};

on_every_engine![
    text_that_was_changed_is_reported,
    text_that_was_stored_as_given_is_not_reported,
    an_item_keeps_its_summary_until_it_is_reset,
    an_event_keeps_the_full_progress_and_reason,
    secrets_are_refused_in_every_name,
    an_author_is_stored_as_given_or_refused,
];

fn text_that_was_changed_is_reported(fixture: &Fixture) {
    let board = &fixture.board;
    let (long, longer, marked) = (&*"x".repeat(501), &*"y".repeat(4001), "<b>bold</b>");
    let register =
        Register { project: Some(long.to_owned()), work: Some(marked.to_owned()), ..Register::named("Ivy") };
    let registered = board.agents().register(&register).unwrap();
    let session = &registered.agent.session_id;
    let create = Create {
        description: Some("z".repeat(64_001)),
        source_ref: Some(marked.to_owned()),
        ..Create::new("a", long)
    };
    let created = board.work().create(&create).unwrap();
    let claim = Claim { create: Some(Create::new("b", marked)), ..Claim::of("b", session) };
    let claimed = board.work().claim(&claim).unwrap();
    let reason = Some(longer.to_owned());
    fixture.item("c");
    let reassign = Reassign { reason: reason.clone(), ..Reassign::of("c", session, session) };
    let reassigned = board.work().reassign(&reassign).unwrap();
    let edit =
        Edit { title: Some(marked.to_owned()), description: Some("z".repeat(64_001)), ..Edit::of("c") };
    let edited = board.work().edit(&edit).unwrap();
    let block = Block { id: "a".to_owned(), blocked_by: owned(&["b"]), reason, session: None };
    let blocked = board.work().block(&block).unwrap();
    let beat = Heartbeat {
        progress: Some(longer.to_owned()),
        work: Some(marked.to_owned()),
        ..Heartbeat::of(session)
    };
    let beaten = board.agents().heartbeat(&beat).unwrap();
    let completed =
        board.work().complete(&Complete { summary: Some(longer.to_owned()), ..Complete::of("b", session) });
    let project = board.projects().register(&RegisterProject::new("p", marked)).unwrap();
    let define = DefineProtocol { summary: Some(marked.to_owned()), ..DefineProtocol::new("r", "r:{id}") };
    let defined = board.protocols().define(&define).unwrap();
    let acquire = Acquire { note: Some(long.to_owned()), ..Acquire::of("l", session) };
    let acquired = board.locks().acquire(&acquire).unwrap();
    let reserve = Reserve { note: Some(marked.to_owned()), ..Reserve::of("/src", &["a"], session) };
    let reserved = board.files().reserve(&reserve).unwrap();
    for (text, shortened, filtered) in [
        (registered.text, &["project"][..], &["work"][..]),
        (created.text, &["title", "description"], &["source_ref"]),
        (claimed.text, &[], &["title"]),
        (reassigned.text, &["reason"], &[]),
        (edited.text, &["description"], &["title"]),
        (blocked.text, &["reason"], &[]),
        (beaten.text, &["progress"], &["work"]),
        (completed.unwrap().text, &["summary"], &[]),
        (project.text, &[], &["name"]),
        (defined.text, &[], &["summary"]),
        (acquired.text, &["note"], &[]),
        (reserved.text, &[], &["note"]),
    ] {
        assert_eq!((text.shortened, text.filtered), (owned(shortened), owned(filtered)));
    }
    assert_eq!(fixture.work("b").summary.map(|summary| summary.len()), Some(4000));
    assert_eq!(fixture.agent(session).progress.map(|progress| progress.len()), Some(4000));
    assert_eq!(fixture.work("a").title.len(), 500);
}

fn text_that_was_stored_as_given_is_not_reported(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let long = "x".repeat(4000);
    let beat = Heartbeat { progress: Some(long.clone()), ..Heartbeat::of(&session) };
    let beaten = fixture.board.agents().heartbeat(&beat).unwrap();
    assert!(beaten.text.is_empty());
    let json = serde_json::to_value(&beaten).unwrap();
    assert!(json.get("shortened").is_none() && json.get("filtered").is_none(), "{json}");
    fixture.item("x");
    // A title for an existing item changes nothing, so nothing is reported.
    let claim = Claim { create: Some(Create::new("x", &"y".repeat(600))), ..Claim::of("x", &session) };
    assert!(fixture.board.work().claim(&claim).unwrap().text.is_empty());
}

fn an_item_keeps_its_summary_until_it_is_reset(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let summary = "Five tables. ".repeat(100).trim().to_owned();
    fixture.item("x");
    fixture.claim("x", &session);
    let complete = Complete { summary: Some(summary.clone()), ..Complete::of("x", &session) };
    assert_eq!(fixture.board.work().complete(&complete).unwrap().item.summary.as_ref(), Some(&summary));
    assert_eq!(fixture.work("x").summary.as_ref(), Some(&summary));
    let event = fixture.events().pop().unwrap();
    assert_eq!(metadata(&event)["summary"], summary);
    assert!(event.summary.ends_with('…') && event.summary.chars().count() < 560, "{}", event.summary);
    fixture.board.work().reset("x", None).unwrap();
    assert_eq!(fixture.work("x").summary, None);
}

fn an_event_keeps_the_full_progress_and_reason(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let text = "Schema done. ".repeat(100).trim().to_owned();
    fixture
        .board
        .agents()
        .heartbeat(&Heartbeat { progress: Some(text.clone()), ..Heartbeat::of(&session) })
        .unwrap();
    let event = fixture.events().pop().unwrap();
    assert_eq!(metadata(&event), serde_json::json!({ "progress": text }));
    assert!(event.summary.starts_with("Agent \"Ivy\": Schema done. "), "{}", event.summary);
    assert!(event.summary.ends_with('…') && event.summary.chars().count() < 530, "{}", event.summary);
    fixture.item("x");
    let block =
        Block { id: "x".to_owned(), blocked_by: owned(&["y"]), reason: Some(text.clone()), session: None };
    fixture.board.work().block(&block).unwrap();
    assert_eq!(metadata(&fixture.events().pop().unwrap())["reason"], text);
}

fn secrets_are_refused_in_every_name(fixture: &Fixture) {
    let secret = &*format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let session = fixture.session("Ivy");
    let board = &fixture.board;
    let write = a_write("k", "1");
    let escaped = secret.replacen('p', "\\u0070", 1);
    let operation = Actor { operation: Some(secret.to_owned()), ..Actor::default() };
    let tagged = Write { tags: owned(&[secret]), ..write.clone() };
    let in_metadata = Write {
        metadata: Some(Metadata::parse(&format!("{{\"a\":\"{escaped}\"}}")).unwrap()),
        ..write.clone()
    };
    let beat = Heartbeat { operation: Some(secret.to_owned()), ..Heartbeat::of(&session) };
    let cursor =
        Follow { start: Start::Cursor { name: secret.to_owned(), new_after: None }, ..Follow::default() };
    let in_schema = DefineProtocol {
        value_schema: Some(format!("{{\"title\":\"{escaped}\"}}")),
        ..DefineProtocol::new("r", "r:{id}")
    };
    for (what, code) in [
        ("scope", code(board.scope(secret).write(&write))),
        ("scope of append", code(board.scope(secret).append("k", &json("1")))),
        ("operation", code(fixture.scope().acting_as(operation).write(&write))),
        ("operation of a heartbeat", code(board.agents().heartbeat(&beat))),
        ("cursor", board.follow(&cursor).map(drop).unwrap_err().code()),
        ("key", code(fixture.scope().write(&a_write(secret, "1")))),
        ("tag", code(fixture.scope().write(&tagged))),
        ("metadata", code(fixture.scope().write(&in_metadata))),
        ("value", code(fixture.scope().write(&a_write("k", &format!("[\"{escaped}\"]"))))),
        ("appended value", code(fixture.scope().append("k", &json(&format!("\"{escaped}\""))))),
        ("template", code(board.protocols().define(&DefineProtocol::new("r", &format!("r:{secret}"))))),
        ("schema", code(board.protocols().define(&in_schema))),
        ("transaction", code(board.transaction(|tx| tx.scope(secret).write(&write)))),
    ] {
        assert_eq!(code, Code::SecretLooking, "{what}");
    }
    assert_eq!(fixture.events().len(), 1, "nothing but the registration");
    let allowing = fixture.with_settings(|settings| settings.text.allow_secret_looking = true);
    allowing.scope(secret).write(&write).unwrap();
}

fn an_author_is_stored_as_given_or_refused(fixture: &Fixture) {
    let write = |author: &str| fixture.scope().acting_as(Actor::author(author)).write(&a_write("k", "1"));
    for author in ["Ivy\u{200b}", "I\u{ad}vy", "<b>Ivy</b>", &"x".repeat(501), ""] {
        assert_eq!(code(write(author)), Code::InvalidValue, "{author:?}");
    }
    write("Ivy <ivy@example.org>").unwrap();
}
