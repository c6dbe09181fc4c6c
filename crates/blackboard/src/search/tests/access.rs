//! A caller finds what it may read, and nothing tells it about the rest.

use crate::board::Board;
use crate::entry::{Actor, Value, Write};
use crate::scope::{AccessRule, AccessRules, CreateScope, Effect, Policies};
use crate::search::{Found, IndexLocation, Query, Suggestions};

fn board_with(rules: &[&str], hidden: bool) -> Board {
    let board = Board::memory();
    let access =
        AccessRules::new(rules.iter().map(|rule| AccessRule::parse(Effect::Allow, rule).unwrap()).collect());
    board.scopes().create(&CreateScope::new("private", Policies { access, ..Policies::default() })).unwrap();
    for number in 0..20 {
        let text = format!("retries of the login number {number}");
        board.scope("team").write(&Write::new(&format!("open-{number}"), Value::of(&text).unwrap())).unwrap();
        let text = if hidden { "retries retries retrial secretword login" } else { "x" };
        let key = format!("{}-{number}", if hidden { "secret" } else { "other" });
        board.scope("private").write(&Write::new(&key, Value::of(text).unwrap())).unwrap();
    }
    board
}

/// The answer without what depends on the time.
fn comparable(found: Found) -> (usize, Suggestions, Vec<(String, String, f64)>) {
    let results = found.results.into_iter().map(|one| (one.id, one.snippet, one.words_score));
    (found.total, found.suggestions, results.collect())
}

#[test]
fn entries_that_a_caller_may_not_read_change_no_result_score_count_or_suggestion() {
    testkit::limit_test();
    let with = board_with(&["ivy:*"], true);
    let without = board_with(&["ivy:*"], false);
    let oak = |board: &Board, words: &str| {
        let board = board.with_caller(Actor::author("oak"));
        board.search(&Query::new(words), &IndexLocation::Memory).unwrap()
    };
    for words in ["retry login", "secretword", "secretwrod", "retr*", "number 7", "logni"] {
        let (one, other) = (oak(&with, words), oak(&without, words));
        assert_eq!(comparable(one), comparable(other), "{words}");
    }
    let ivy = with.with_caller(Actor::author("ivy"));
    let found = ivy.search(&Query::new("secretword"), &IndexLocation::Memory).unwrap();
    assert_eq!(found.total, 20);
    let named = Query { scopes: Some(vec!["private".to_owned()]), ..Query::new("secretword") };
    let oak = with.with_caller(Actor::author("oak"));
    let found = oak.search(&named, &IndexLocation::Memory).unwrap();
    assert!(found.results.is_empty() && found.suggestions.is_empty() && found.total == 0);
}

#[test]
fn rules_for_keys_apply_to_each_entry() {
    testkit::limit_test();
    let board = board_with(&["ivy:*", "oak:read:secret-1*"], true);
    let oak = board.with_caller(Actor::author("oak"));
    let found = oak.search(&Query::new("secretword"), &IndexLocation::Memory).unwrap();
    assert_eq!(found.total, 11);
    assert!(found.results.iter().all(|result| result.id.starts_with("secret-1")));
}
