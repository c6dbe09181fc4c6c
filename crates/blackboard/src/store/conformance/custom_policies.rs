//! Policies of a program that embeds the library: they apply to its reads and changes of entries, and can be replaced.

use std::sync::Arc;

use super::*;
use crate::entry::{Comparison, EveryScope, Expected, Operation, Query, Txn, WaitFor};
use crate::follow::{Follow, Start};
use crate::lock::{self, Acquire};
use crate::scope::{
    AccessPolicy, Caller, CreateScope, CustomPolicies, EVICTION_CANDIDATES, Eviction, EvictionPolicy,
    LfuEvictionPolicy, LruEvictionPolicy, MAX_CUSTOM_ENTRIES, Policies, TypeValidationPolicy, Visibility,
};

on_every_engine![
    a_caller_reads_only_what_the_access_policy_allows,
    a_caller_changes_only_what_the_access_policy_allows,
    the_access_policy_is_not_about_locks,
    values_are_what_the_validation_policy_allows,
    policies_can_be_replaced_and_belong_to_one_board_value,
    a_full_scope_evicts_what_the_eviction_policy_chooses,
    an_eviction_policy_chooses_from_a_bounded_list,
    the_limit_of_a_program_is_not_exceeded_by_its_writes,
    a_stored_policy_that_evicts_nothing_wins,
];

/// Keys that begin with `secret` belong to Ivy.
struct SecretsOfIvy;

impl AccessPolicy for SecretsOfIvy {
    fn can_read(&self, caller: Caller<'_>, scope: &str, key: &str) -> bool {
        self.can_delete(caller, scope, key)
    }

    fn can_write(&self, caller: Caller<'_>, scope: &str, key: &str, value: &Value) -> bool {
        self.can_delete(caller, scope, key) && value.as_str() != "\"forbidden\""
    }

    fn can_delete(&self, caller: Caller<'_>, scope: &str, key: &str) -> bool {
        scope != "team" || !key.starts_with("secret") || caller.author == Some("ivy")
    }
}

fn set(fixture: &Fixture, policies: CustomPolicies) {
    fixture.board.set_policies(policies).unwrap();
}

fn with_access() -> CustomPolicies {
    CustomPolicies { access: Arc::new(SecretsOfIvy), ..CustomPolicies::default() }
}

fn acting_as<'f>(fixture: &'f Fixture, author: &str) -> Scope<'f> {
    fixture.scope().acting_as(Actor::author(author))
}

fn a_caller_reads_only_what_the_access_policy_allows(fixture: &Fixture) {
    fixture.write("open", "1");
    let written = fixture.write("secret", "2");
    set(fixture, with_access());
    let (ivy, oak) = (acting_as(fixture, "ivy"), acting_as(fixture, "oak"));
    assert_eq!(ivy.read("secret").unwrap(), Some(json("2")));
    let refused = oak.read("secret").unwrap_err();
    assert_eq!(refused.code(), Code::NotAllowed);
    assert_eq!(refused.to_string(), "the access policy of the program denies read access to secret");
    // What does not exist is hidden in the same way.
    assert_eq!(code(oak.read("secret-2")), Code::NotAllowed);
    assert_eq!(code(oak.read_batch(&["open", "secret"])), Code::NotAllowed);
    assert_eq!(code(oak.history("secret", 5)), Code::NotAllowed);
    assert_eq!(code(oak.entry_as_of("secret", written.revision)), Code::NotAllowed);
    assert_eq!(code(oak.wait("secret", &WaitFor::default())), Code::NotAllowed);
    let transaction = |author: &'static str| {
        fixture.board.transaction(|tx| {
            tx.acting_as(Actor::author(author))?;
            tx.scope("team").read("secret")
        })
    };
    assert_eq!(code(transaction("oak")), Code::NotAllowed);
    assert_eq!(transaction("ivy").unwrap(), Some(json("2")));
    let secret = || ("team".to_owned(), "secret".to_owned());
    let (scope, key) = secret();
    let read = Txn { then: vec![Operation::Read { scope, key }], ..Txn::default() };
    let (scope, key) = secret();
    let comparison = Comparison { scope, key, expected: Expected::Value(json("2")) };
    let compare = Txn { comparisons: vec![comparison], ..Txn::default() };
    for txn in [read, compare] {
        assert_eq!(code(fixture.board.txn(&txn, &Actor::author("oak"))), Code::NotAllowed);
        fixture.board.txn(&txn, &Actor::author("ivy")).unwrap();
    }

    let all = Query::default();
    let keys = |entries: Vec<Entry>| entries.into_iter().map(|entry| entry.key).collect::<Vec<_>>();
    assert_eq!(keys(ivy.query(&all).unwrap().entries).len(), 2);
    assert_eq!(keys(oak.query(&all).unwrap().entries), ["open"]);
    assert_eq!(oak.query_counted(&all).unwrap().total, 1);
    assert_eq!(oak.list(&all).unwrap().len(), 1);
    assert_eq!(oak.list_counted(&all).unwrap().total, 1);
    assert_eq!(keys(oak.snapshot(&all).unwrap().entries), ["open"]);
    let found = fixture.board.transaction(|tx| {
        tx.acting_as(Actor::author("oak"))?;
        tx.scope("team").query(&all)
    });
    assert_eq!(keys(found.unwrap()), ["open"]);
    assert_eq!(keys(fixture.board.entries(&EveryScope::default()).unwrap().entries), ["open"]);
}

fn a_caller_changes_only_what_the_access_policy_allows(fixture: &Fixture) {
    fixture.write("secret", "[1]");
    set(fixture, with_access());
    let (ivy, oak) = (acting_as(fixture, "ivy"), acting_as(fixture, "oak"));
    let (refused, events) = fixture.events_of(|| oak.write(&a_write("secret", "2")).unwrap_err());
    assert_eq!((refused.code(), events), (Code::NotAllowed, vec![]));
    assert_eq!(code(oak.write_batch(&[a_write("open", "1"), a_write("secret", "1")])), Code::NotAllowed);
    assert_eq!(code(oak.append("secret", &json("2"))), Code::NotAllowed);
    assert_eq!(code(oak.delete("secret")), Code::NotAllowed);
    for (author, is_shown) in [("ivy", true), ("oak", false)] {
        let board = fixture.board.with_caller(Actor::author(author));
        let start = Start::Revision(Revision::ZERO);
        let mut follower = board.follow(&Follow { start, ..Follow::default() }).unwrap();
        let batch = follower.next_batch(100, Duration::ZERO).unwrap();
        let events = batch.map(|batch| batch.events).unwrap_or_default();
        assert_eq!(events.iter().any(|event| event.target_id.as_deref() == Some("secret")), is_shown);
    }
    // What a caller may not read does not exist for it.
    assert!(oak.clear("*").unwrap().keys.is_empty());
    assert_eq!(code(oak.purge("secret")), Code::NotAllowed);
    let change = |delete: bool| {
        fixture.board.transaction(|tx| {
            let mut scope = tx.scope("team");
            if delete { scope.delete("secret").map(drop) } else { scope.write(&a_write("secret", "1")) }
        })
    };
    assert_eq!((code(change(true)), code(change(false))), (Code::NotAllowed, Code::NotAllowed));
    assert_eq!(code(oak.write(&a_write("open", "\"forbidden\""))), Code::NotAllowed);
    oak.write(&a_write("open", "1")).unwrap();
    ivy.append("secret", &json("2")).unwrap();
    ivy.delete("secret").unwrap();
    assert_eq!(ivy.read("secret").unwrap(), None);
}

fn the_access_policy_is_not_about_locks(fixture: &Fixture) {
    struct Nothing;
    impl AccessPolicy for Nothing {
        fn can_read(&self, _: Caller<'_>, _: &str, _: &str) -> bool {
            false
        }
        fn can_write(&self, _: Caller<'_>, _: &str, _: &str, _: &Value) -> bool {
            false
        }
        fn can_delete(&self, _: Caller<'_>, _: &str, _: &str) -> bool {
            false
        }
    }
    set(fixture, CustomPolicies { access: Arc::new(Nothing), ..CustomPolicies::default() });
    let ivy = fixture.session("Ivy");
    fixture.board.locks().acquire(&Acquire::of("build", &ivy)).unwrap();
    assert_eq!(fixture.board.locks().list().unwrap().len(), 1);
    fixture.board.locks().release(&lock::Release::of("build", &ivy)).unwrap();
    assert_eq!(code(fixture.scope().write(&a_write("a", "1"))), Code::NotAllowed);
}

fn values_are_what_the_validation_policy_allows(fixture: &Fixture) {
    let policy = TypeValidationPolicy::new(["config.*=dict", "count.*=int"]).unwrap();
    set(fixture, CustomPolicies { validation: Arc::new(policy), ..CustomPolicies::default() });
    fixture.write("count.a", "1");
    let refused = fixture.scope().write(&a_write("config.a", "1")).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidValue);
    assert_eq!(refused.details().unwrap()["rule"], "config.*=object");
    assert_eq!(code(fixture.scope().append("count.b", &json("1"))), Code::InvalidValue);
    fixture.write("other", "null");
}

fn policies_can_be_replaced_and_belong_to_one_board_value(fixture: &Fixture) {
    let clone = fixture.board.clone();
    let secret = |board: &Board| board.scope("team").write(&a_write("secret", "1")).map(drop);
    secret(&fixture.board).unwrap();
    set(fixture, with_access());
    assert_eq!(code(secret(&clone)), Code::NotAllowed);
    clone.set_policies(CustomPolicies::default()).unwrap();
    secret(&fixture.board).unwrap();
    for limit in [0, MAX_CUSTOM_ENTRIES + 1] {
        let policies = CustomPolicies { max_entries: Some(limit), ..CustomPolicies::default() };
        assert_eq!(code(clone.set_policies(policies)), Code::InvalidValue);
    }
}

/// The keys of the scope.
fn keys(fixture: &Fixture) -> Vec<String> {
    let listed = fixture.scope().list(&Query::default()).unwrap();
    listed.into_iter().map(|listed| listed.key).collect()
}

fn counted(key: &str, count: u64) -> Write {
    let metadata = Metadata::parse(&format!(r#"{{"access_count": {count}}}"#)).unwrap();
    Write { metadata: Some(metadata), ..a_write(key, "1") }
}

fn a_full_scope_evicts_what_the_eviction_policy_chooses(fixture: &Fixture) {
    let with = |eviction: Arc<dyn EvictionPolicy>| CustomPolicies {
        eviction: Some(eviction),
        ..CustomPolicies::default()
    };
    let limit = Policies { max_entries: Some(3), ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("team", limit)).unwrap();
    for (key, count) in [("a", 5), ("b", 1), ("c", 3)] {
        fixture.scope().write(&counted(key, count)).unwrap();
    }
    set(fixture, with(Arc::new(LfuEvictionPolicy)));
    let (written, events) = fixture.events_of(|| fixture.scope().write(&counted("d", 9)).unwrap());
    assert_eq!(written.evicted.as_deref(), Some("b"));
    assert_eq!(events, [EventType::EntryEvicted, EventType::EntryWritten]);
    set(fixture, with(Arc::new(LruEvictionPolicy)));
    assert_eq!(fixture.scope().write(&counted("e", 0)).unwrap().evicted.as_deref(), Some("a"));
    assert_eq!(keys(fixture), ["c", "d", "e"]);
    // Several at once, and none of them twice.
    let batch: Vec<_> = ["x", "y", "z"].map(|key| counted(key, 1)).into();
    fixture.scope().write_batch(&batch).unwrap();
    assert_eq!(keys(fixture), ["x", "y", "z"]);
    assert_eq!(fixture.board.scopes().show("team").unwrap().entries, 3);
}

/// Evicts the newest entry that it is offered, and records how many there were.
#[derive(Default)]
struct Newest(std::sync::Mutex<Vec<usize>>);

impl EvictionPolicy for Newest {
    fn candidates(&self, entries: &[Entry], count: usize) -> Vec<String> {
        self.0.lock().unwrap().push(entries.len());
        entries.iter().rev().take(count).map(|entry| entry.key.clone()).collect()
    }
}

fn an_eviction_policy_chooses_from_a_bounded_list(fixture: &Fixture) {
    let many = 2 * EVICTION_CANDIDATES;
    let ivy = fixture.session("Ivy");
    fixture.scope_of(&ivy).write(&Write { lease: true, ..a_write("leased", "1") }).unwrap();
    let writes: Vec<_> = (0..many).map(|number| a_write(&format!("k{number:03}"), "1")).collect();
    fixture.scope().write_batch(&writes).unwrap();
    let policy = Arc::new(Newest::default());
    set(
        fixture,
        CustomPolicies {
            eviction: Some(policy.clone()),
            max_entries: Some(many as u64 + 1),
            ..CustomPolicies::default()
        },
    );
    let last = format!("k{:03}", EVICTION_CANDIDATES - 1);
    assert_eq!(fixture.write("new", "1").evicted, Some(last));
    let offered = policy.0.lock().unwrap().clone();
    assert!(offered.iter().all(|count| *count == EVICTION_CANDIDATES), "{offered:?}");
    assert!(fixture.entry("leased").is_some());
}

fn the_limit_of_a_program_is_not_exceeded_by_its_writes(fixture: &Fixture) {
    for key in ["a", "b", "c"] {
        fixture.write(key, "1");
    }
    set(fixture, CustomPolicies { max_entries: Some(2), ..CustomPolicies::default() });
    // It had more: one is evicted for one.
    assert_eq!(fixture.write("d", "1").evicted.as_deref(), Some("a"));
    fixture.scope().clear("*").unwrap();
    assert_eq!((fixture.write("a", "1").evicted, fixture.write("b", "1").evicted), (None, None));
    assert_eq!(fixture.write("a", "2").evicted, None);
    fixture.scope().write_batch(&[a_write("c", "1"), a_write("d", "1")]).unwrap();
    assert_eq!(keys(fixture), ["c", "d"]);
    let three = ["e", "f", "g"].map(|key| a_write(key, "1"));
    assert_eq!(code(fixture.scope().write_batch(&three)), Code::ScopeFull);
    fixture.board.scope("other").write(&a_write("a", "1")).unwrap();
    assert_eq!(keys(fixture), ["c", "d"]);
}

fn a_stored_policy_that_evicts_nothing_wins(fixture: &Fixture) {
    let refuse = Policies { max_entries: Some(1), eviction: Eviction::Refuse, ..Policies::default() };
    let persistent = Policies { visibility: Visibility::Persistent, ..Policies::default() };
    for (name, policies) in [("queue", refuse), ("plans", persistent)] {
        fixture.board.scopes().create(&CreateScope::new(name, policies)).unwrap();
        fixture.board.scope(name).write(&a_write("a", "1")).unwrap();
    }
    let eviction: Arc<dyn EvictionPolicy> = Arc::new(LruEvictionPolicy);
    set(
        fixture,
        CustomPolicies { eviction: Some(eviction), max_entries: Some(1), ..CustomPolicies::default() },
    );
    for name in ["queue", "plans"] {
        assert_eq!(code(fixture.board.scope(name).write(&a_write("b", "1"))), Code::ScopeFull, "{name}");
    }
}
