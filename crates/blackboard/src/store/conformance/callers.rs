//! Callers: what an agent may not see, it does not see in damaged or unusual cases, either.

use super::*;
use crate::entry::Query;
use crate::event::Lines;
use crate::scope::{
    AccessRule, AccessRules, CreateScope, DeleteScope, Effect, Policies, SetScope, Visibility,
};

on_every_engine![
    only_the_operator_sees_an_event_of_an_entry_whose_scope_is_unknown,
    a_session_cannot_lock_others_out_of_what_they_use,
    a_transaction_has_the_rights_of_plain_verbs,
];

fn only_the_operator_sees_an_event_of_an_entry_whose_scope_is_unknown(fixture: &Fixture) {
    let entry = |key: &str| NewEvent::new(EventType::EntryWritten, TargetType::Entry, key, "Damaged");
    let damaged = fixture.commit(|_| {
        let mut changes = Changes::new();
        changes.event(entry("without-metadata"));
        changes.event(entry("without-scope").with("op", "create"));
        changes.event(entry("with-another-type").with("scope", 7));
        Ok(changes)
    });
    damaged.unwrap();
    fixture.write("readable", "1");
    let keys = |board: &Board| -> Vec<_> {
        let newest = board.events().newest(&Lines::default()).unwrap().events;
        newest.into_iter().filter_map(|event| event.target_id).collect()
    };
    let all = ["readable", "with-another-type", "without-scope", "without-metadata"];
    assert_eq!(keys(&fixture.board), all);
    assert_eq!(keys(&fixture.board.with_caller(Actor::author("Oak"))), all[..1]);
}

fn a_session_cannot_lock_others_out_of_what_they_use(fixture: &Fixture) {
    let (ivy, scopes) = (fixture.session("Ivy"), fixture.board.scopes());
    let shared = Policies { visibility: Visibility::Shared, members: owned(&["Ivy"]), ..Policies::default() };
    let rule = AccessRule::parse(Effect::Allow, "Ivy:*").unwrap();
    let rules = Policies { access: AccessRules::new(vec![rule]), ..Policies::default() };
    let by = |session: &str, scope: &str, policies: &Policies| {
        let session = Some(session.to_owned());
        scopes.create(&CreateScope { session, ..CreateScope::new(scope, policies.clone()) })
    };
    let write = |scope: &str, author: &str, key: &str| {
        fixture.board.scope(scope).acting_as(Actor::author(author)).write(&a_write(key, "1")).unwrap();
    };
    write("used", "Ivy", "a");
    write("used", "Oak", "b");
    for policies in [&shared, &rules] {
        assert_eq!(code(by(&ivy, "default", policies)), Code::NotAllowed);
        let refused = by(&ivy, "used", policies).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "scope used has entries of other authors: only the operator may restrict its callers"
        );
    }
    // Policies that lock out no caller are for every session, and do not help to restrict the scope later.
    let limit = Policies { max_entries: Some(9), ..Policies::default() };
    assert!(by(&ivy, "used", &limit).unwrap().created);
    let set = SetScope {
        session: Some(ivy.clone()),
        visibility: Some(Visibility::Shared),
        members: Some(owned(&["Ivy"])),
        ..SetScope::of("used")
    };
    assert_eq!(code(scopes.set(&set)), Code::NotAllowed);
    assert!(scopes.set(&SetScope { session: None, ..set }).unwrap().updated);
    // An entry that another author changed is not only the session's own.
    write("changed", "Ivy", "a");
    write("changed", "Oak", "a");
    assert_eq!(code(by(&ivy, "changed", &shared)), Code::NotAllowed);
    write("own", "Ivy", "a");
    assert!(by(&ivy, "own", &shared).unwrap().created);
    // So many that they are not compared.
    let many: Vec<_> = (0..101).map(|number| a_write(&format!("k{number}"), "1")).collect();
    fixture.board.scope("many").acting_as(Actor::author("Ivy")).write_batch(&many).unwrap();
    assert_eq!(code(by(&ivy, "many", &shared)), Code::NotAllowed);
    assert!(scopes.create(&CreateScope::new("default", rules)).unwrap().created, "the operator may");
    let delete = DeleteScope { name: "default".to_owned(), entries: false, session: None };
    scopes.delete(&delete).unwrap();
}

fn a_transaction_has_the_rights_of_plain_verbs(fixture: &Fixture) {
    let rules = ["oak:read:secret*", "oak:delete:kept*"];
    let rules = rules.map(|rule| AccessRule::parse(Effect::Deny, rule).unwrap());
    let policies = Policies { access: AccessRules::new(rules.into()), ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("team", policies)).unwrap();
    let fill = || {
        for key in ["secret", "kept"] {
            fixture.write(key, "1");
        }
    };
    fill();
    let oak = fixture.board.with_caller(Actor::author("oak"));
    // What may be deleted need not be read, and the other way round.
    assert!(oak.transaction(|tx| tx.scope("team").delete("secret")).unwrap());
    assert!(!oak.transaction(|tx| tx.scope("team").delete("secret")).unwrap());
    assert_eq!(code(oak.transaction(|tx| tx.scope("team").delete("kept"))), Code::NotAllowed);
    assert_eq!(fixture.value("kept").as_deref(), Some("1"));
    fill();
    // A write shows nothing of what it replaces or keeps.
    for merge in [false, true] {
        let write = Write { merge, ..a_write("secret", "2") };
        oak.transaction(|tx| tx.scope("team").write(&write)).unwrap();
        let entry = oak.transaction(|tx| {
            tx.scope("team").write(&write)?;
            tx.scope("team").entry("secret")
        });
        let value = oak.transaction(|tx| {
            tx.scope("team").write(&write)?;
            tx.scope("team").read("secret")
        });
        assert_eq!((code(entry), code(value)), (Code::NotAllowed, Code::NotAllowed));
        let found = oak.transaction(|tx| {
            tx.scope("team").write(&write)?;
            tx.scope("team").query(&Query::default())
        });
        let found: Vec<_> = found.unwrap().into_iter().map(|entry| entry.key).collect();
        assert_eq!(found, ["kept"]);
    }
}
