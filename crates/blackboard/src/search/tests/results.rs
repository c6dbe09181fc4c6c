//! What is found, and what is shown of it.

use crate::Metadata;
use crate::agent::{Heartbeat, Register};
use crate::board::Board;
use crate::entry::{Value, Write};
use crate::search::{IndexLocation, Kind, Query};
use crate::work::{Create, UpdateMetadata};

fn write(board: &Board, scope: &str, key: &str, text: &str, tags: &[&str]) {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    board.scope(scope).write(&Write { tags, ..Write::new(key, Value::of(text).unwrap()) }).unwrap();
}

fn found(board: &Board, query: &Query) -> Vec<String> {
    let found = board.search(query, &IndexLocation::Memory).unwrap();
    found.results.into_iter().map(|result| result.id).collect()
}

#[test]
fn everything_on_the_board_is_found_by_its_words() {
    testkit::limit_test();
    let board = Board::memory();
    let ivy = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    write(&board, "team", "decision:pool", "Connections are pooled", &["database"]);
    let create = Create {
        description: Some("The migrations lock the table".to_owned()),
        ..Create::new("fix-42", "Repair the nightly job")
    };
    board.work().create(&create).unwrap();
    let metadata = Metadata::parse(r#"{"notes": "ask the vendor about quotas"}"#).unwrap();
    board
        .work()
        .update_metadata(&UpdateMetadata { id: "fix-42".to_owned(), metadata, session: None })
        .unwrap();
    let progress = Heartbeat { progress: Some("Benchmarks are flaky".to_owned()), ..Heartbeat::of(&ivy) };
    let progress = board.agents().heartbeat(&progress).unwrap().revision.to_string();
    for (words, expected) in [
        ("pooling", "decision:pool"),
        ("databases", "decision:pool"),
        ("decision:pool", "decision:pool"),
        ("nightly jobs", "fix-42"),
        ("migration of tables", "fix-42"),
        ("vendor", "fix-42"),
        ("flaky benchmark", &progress),
    ] {
        assert_eq!(found(&board, &Query::new(words)).first().map(String::as_str), Some(expected), "{words}");
    }
    assert_eq!(found(&board, &Query { kinds: vec![Kind::Work], ..Query::new("Ivy flaky pool") }), [""; 0]);
}

#[test]
fn conditions_hold_for_every_result() {
    testkit::limit_test();
    let board = Board::memory();
    write(&board, "one", "a", "retry the login", &["auth"]);
    write(&board, "two", "b", "retry the login", &["auth", "slow"]);
    write(&board, "two", "c", "retry the upload", &[]);
    let query = Query::new("retry login");
    assert_eq!(found(&board, &query).len(), 3);
    let scopes = Query { scopes: Some(vec!["two".to_owned()]), ..query.clone() };
    assert_eq!(found(&board, &scopes), ["b", "c"]);
    assert_eq!(found(&board, &Query { tags: vec!["auth".to_owned()], ..scopes.clone() }), ["b"]);
    assert_eq!(found(&board, &Query { author: Some("nobody".to_owned()), ..scopes.clone() }), [""; 0]);
    assert_eq!(found(&board, &Query { author: Some("cli".to_owned()), ..scopes.clone() }), ["b", "c"]);
    assert_eq!(found(&board, &Query { limit: 1, ..scopes }), ["b"]);
}

#[test]
fn an_empty_result_suggests_what_is_close() {
    testkit::limit_test();
    let board = Board::memory();
    write(&board, "team", "decision:pool", "Connections are pooled by the gateway", &["database"]);
    let found = board.search(&Query::new("gatewya"), &IndexLocation::Memory).unwrap();
    assert!(found.results.is_empty());
    assert_eq!(found.suggestions.words, ["gateway"]);
    assert_eq!(found.suggestions.keys, ["decision:pool"]);
    let found = board.search(&Query::new("databsae"), &IndexLocation::Memory).unwrap();
    assert_eq!(found.suggestions.tags, ["database"]);
}

#[test]
fn locks_and_file_reservations_are_not_found() {
    testkit::limit_test();
    let board = Board::memory();
    let ivy = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    board.locks().acquire(&crate::lock::Acquire::of("deploy-gate", &ivy)).unwrap();
    assert_eq!(found(&board, &Query::new("gate")), [""; 0]);
}
