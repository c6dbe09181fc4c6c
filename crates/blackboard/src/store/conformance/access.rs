//! Access rules and visibility: what they allow, to which callers, and what their lists show.

use super::*;
use crate::Refusal;
use crate::entry::{EveryScope, Query};
use crate::event::{Lines, Since};
use crate::follow::{Follow, Start};
use crate::scope::{
    AccessRule, AccessRules, CreateScope, DeleteScope, Effect, Policies, SetScope, Visibility,
};

on_every_engine![
    rules_are_about_operations_and_keys,
    a_list_leaves_out_what_may_not_be_read,
    an_unknown_or_ended_session_is_never_the_operator,
    a_caller_is_searched_for_only_where_it_matters,
    only_the_owner_and_the_operator_change_the_policies,
    a_reader_passes_over_events_that_it_may_not_read,
    a_shown_agent_names_only_leases_that_may_be_read,
    a_change_of_a_value_shows_nothing_that_may_not_be_read,
    a_remembered_answer_is_only_for_callers_that_may_use_the_scope,
    the_order_of_members_and_rules_does_not_matter,
];

fn a_change_of_a_value_shows_nothing_that_may_not_be_read(fixture: &Fixture) {
    let rule = AccessRule::parse(Effect::Deny, "oak:read:secret*").unwrap();
    let policies = Policies { access: AccessRules::new(vec![rule]), ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("team", policies)).unwrap();
    fixture.write("secret", "41");
    fixture.write("secret-text", "\"hidden\"");
    let oak = fixture.scope().acting_as(Actor::author("oak"));
    let refused =
        [oak.increment("secret", 1), oak.increment("secret-text", 1), oak.append("secret-text", &json("1"))];
    for refused in refused {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Code::NotAllowed);
        assert!(!refused.to_string().contains("hidden"), "{refused}");
    }
    assert_eq!(fixture.value("secret").as_deref(), Some("41"));
    oak.write(&a_write("secret", "2")).unwrap();
}

fn a_remembered_answer_is_only_for_callers_that_may_use_the_scope(fixture: &Fixture) {
    let policies =
        Policies { visibility: Visibility::Shared, members: vec!["ivy".to_owned()], ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("team", policies)).unwrap();
    fixture.write("hidden", "1");
    let clear = |author: &str| {
        let actor = Actor { operation: Some("op".to_owned()), ..Actor::author(author) };
        fixture.scope().acting_as(actor).clear("hid*")
    };
    assert_eq!(clear("ivy").unwrap().keys, ["hidden"]);
    assert_eq!(clear("ivy").unwrap().keys, ["hidden"]);
    assert_eq!(clear("oak").unwrap_err().code(), Code::NotAllowed);
    // A member that may not read the keys does not learn them, either.
    let denial = AccessRule::parse(Effect::Deny, "oak:read:hid*").unwrap();
    let set = SetScope {
        members: Some(owned(&["ivy", "oak"])),
        deny: Some(AccessRules::new(vec![denial])),
        ..SetScope::of("team")
    };
    fixture.board.scopes().set(&set).unwrap();
    assert_eq!(clear("oak").unwrap_err().code(), Code::NotAllowed);
    assert_eq!(clear("ivy").unwrap().keys, ["hidden"]);
}

fn the_order_of_members_and_rules_does_not_matter(fixture: &Fixture) {
    let policies = |members: &[&str], rules: &[&str]| Policies {
        visibility: Visibility::Shared,
        members: members.iter().map(|member| (*member).to_owned()).collect(),
        access: AccessRules::new(
            rules.iter().map(|rule| AccessRule::parse(Effect::Allow, rule).unwrap()).collect(),
        ),
        ..Policies::default()
    };
    let create = |policies| fixture.board.scopes().create(&CreateScope::new("team", policies)).unwrap();
    assert!(create(policies(&["ivy", "oak"], &["ivy:read", "oak:write"])).created);
    let again = create(policies(&["oak", "ivy", "oak"], &["oak:write", "ivy:read"]));
    assert_eq!(
        (again.created, again.scope.policies.members),
        (false, vec!["ivy".to_owned(), "oak".to_owned()])
    );
    for invisible in ["o\u{200b}ak", "o\u{202e}ak"] {
        let policies = policies(&[invisible], &[]);
        let refused = fixture.board.scopes().create(&CreateScope::new("other", policies)).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidValue);
    }
}

pub(super) fn delete(fixture: &Fixture, scope: &str) {
    let delete = DeleteScope { name: scope.to_owned(), entries: true, session: None };
    fixture.board.scopes().delete(&delete).unwrap();
}

/// Gives the scope of most tests these rules; those with an exclamation mark deny.
fn restrict(fixture: &Fixture, rules: &[&str]) {
    let parse = |rule: &&str| match rule.strip_prefix('!') {
        Some(denied) => AccessRule::parse(Effect::Deny, denied).unwrap(),
        None => AccessRule::parse(Effect::Allow, rule).unwrap(),
    };
    let policies =
        Policies { access: AccessRules::new(rules.iter().map(parse).collect()), ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("team", policies)).unwrap();
}

fn rules_are_about_operations_and_keys(fixture: &Fixture) {
    restrict(fixture, &["Ivy:write:result:*", "*:read", "!*:delete:result:*"]);
    let ivy = fixture.session("Ivy");
    let (by_ivy, by_oak) = (fixture.scope_of(&ivy), fixture.scope().acting_as(Actor::author("Oak")));
    by_ivy.write(&a_write("result:1", "1")).unwrap();
    assert_eq!(code(by_ivy.write(&a_write("note", "1"))), Code::NotAllowed);
    assert_eq!(code(by_oak.write(&a_write("result:1", "2"))), Code::NotAllowed);
    assert_eq!(by_oak.read("result:1").unwrap(), Some(json("1")));
    assert_eq!(code(by_ivy.delete("result:1")), Code::NotAllowed);
    // No rule allows it to some callers only.
    fixture.write("note", "1");
    by_oak.delete("note").unwrap();
    // The author that a call names counts as well as its session.
    let as_ivy = Actor { author: Some("Ivy".to_owned()), ..Actor::session(&fixture.session("Elm")) };
    fixture.scope().acting_as(as_ivy).write(&a_write("result:2", "1")).unwrap();
    // A rule applies from the commit on that sets it.
    let no_rules = Some(AccessRules::default());
    let none = SetScope { allow: no_rules.clone(), deny: no_rules, ..SetScope::of("team") };
    fixture.board.scopes().set(&none).unwrap();
    by_oak.write(&a_write("result:1", "2")).unwrap();
    let refused = |rule| {
        let access = AccessRules::new(vec![AccessRule::parse(Effect::Allow, rule).unwrap()]);
        code(fixture.board.scopes().set(&SetScope { allow: Some(access), ..SetScope::of("team") }))
    };
    assert_eq!((refused(":read"), refused("a:read:team:*")), (Code::InvalidValue, Code::InvalidValue));
}

fn a_list_leaves_out_what_may_not_be_read(fixture: &Fixture) {
    restrict(fixture, &["!Oak:read:secret:*"]);
    let write =
        |key: &str| fixture.scope().write(&Write { tags: owned(&["t"]), ..a_write(key, "1") }).unwrap();
    for number in 0..40 {
        write(&format!("note:{number:02}"));
        write(&format!("secret:{number:02}"));
    }
    let scope = fixture.scope().acting_as(Actor::author("Oak"));
    let keys = |entries: &[Entry]| entries.iter().map(|entry| entry.key.clone()).collect::<Vec<_>>();
    for order in [crate::entry::Order::Key, crate::entry::Order::Newest] {
        let mut found = Vec::new();
        let mut query = Query { order, limit: Some(7), tags: owned(&["t"]), ..Query::default() };
        loop {
            let page = scope.query(&query).unwrap();
            found.extend(keys(&page.entries));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        assert_eq!(found.len(), 40, "{order:?}: {found:?}");
        assert!(found.iter().all(|key| key.starts_with("note:")), "{found:?}");
    }
    let counted = scope.list_counted(&Query { limit: Some(3), ..Query::default() }).unwrap();
    assert_eq!((counted.keys.len(), counted.total), (3, 40));
    assert_eq!(scope.snapshot(&Query::default()).unwrap().entries.len(), 40);
    assert_eq!(scope.clear("*").unwrap().keys.len(), 40);
    assert_eq!(
        fixture.scope().list(&Query::default()).unwrap().len(),
        40,
        "those that Oak may not read stay"
    );
}

fn an_unknown_or_ended_session_is_never_the_operator(fixture: &Fixture) {
    restrict(fixture, &["*:*"]);
    fixture.write("a", "1");
    fixture.board.scope("plain").write(&a_write("a", "1")).unwrap();
    let ended = fixture.session("Elm");
    fixture.board.agents().deregister(&ended).unwrap();
    for (session, expected) in [("unknown", Code::AgentNotFound), (&*ended, Code::SessionEnded)] {
        let board = fixture.board.with_caller(Actor::session(session));
        for scope in [board.scope("team"), fixture.scope_of(session)] {
            assert_eq!(code(scope.read("a")), expected, "{session}");
            assert_eq!(code(scope.query(&Query::default())), expected, "{session}");
            assert_eq!(code(scope.write(&a_write("a", "2"))), expected, "{session}");
        }
        // A list is refused, too: without the entries that it may not show, it would look complete.
        let observation = board.events().observe(&Since::Revision(Revision::ZERO), &[]).unwrap();
        let follow = Follow { start: Start::Revision(Revision::ZERO), ..Follow::default() };
        let lists = [
            code(board.events().next(&observation, Revision::ZERO, 1000)),
            code(board.events().newest(&Lines::default())),
            code(board.follow(&follow).unwrap().next_batch(1000, Duration::ZERO)),
            code(board.entries(&EveryScope::default())),
            code(board.export()),
            code(board.scopes().list()),
            code(board.scopes().sizes()),
        ];
        assert_eq!(lists, [expected; 7], "{session}");
        // A scope without rules does not ask who reads.
        assert!(board.scope("plain").read("a").unwrap().is_some());
    }
}

fn a_caller_is_searched_for_only_where_it_matters(fixture: &Fixture) {
    restrict(fixture, &["Ivy:*"]);
    fixture.write("a", "1");
    fixture.board.scope("plain").write(&a_write("a", "1")).unwrap();
    let ivy = fixture.session("Ivy");
    let searches = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = || searches.load(std::sync::atomic::Ordering::Relaxed);
    let (counted, session) = (Arc::clone(&searches), ivy.clone());
    let board = fixture.board.with_caller_search(move |board| {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        board.agents().resolve_to_act(&session).map(|agent| Actor::session(&agent.session_id))
    });
    assert!(board.scope("plain").read("a").unwrap().is_some());
    board.scope("plain").write(&a_write("a", "2")).unwrap();
    assert_eq!(count(), 0);
    board.scope("team").write(&a_write("b", "2")).unwrap();
    assert!(board.scope("team").read("a").unwrap().is_some());
    assert!(board.clone().scope("team").read("b").unwrap().is_some());
    assert_eq!(count(), 1);
    // A search that fails refuses the call, and only there.
    let board = fixture.board.with_caller_search(|_| Err(Refusal::new(Code::SessionEnded, "ended").into()));
    assert_eq!(code(board.scope("team").read("a")), Code::SessionEnded);
    assert_eq!(code(board.scope("team").write(&a_write("a", "2"))), Code::SessionEnded);
    assert!(board.scope("plain").read("a").unwrap().is_some());
    // A search that finds neither an agent nor a session has found the operator.
    let board = fixture.board.with_caller_search(|_| Ok(Actor::default()));
    assert!(board.scope("team").read("a").unwrap().is_some());
    let events = board.follow(&Follow { start: Start::Revision(Revision::ZERO), ..Follow::default() });
    assert!(events.unwrap().next_batch(1000, Duration::ZERO).unwrap().is_some());
}

fn only_the_owner_and_the_operator_change_the_policies(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let shared = Policies { visibility: Visibility::Shared, members: owned(&["Oak"]), ..Policies::default() };
    let create = |session: &str| CreateScope {
        session: Some(session.to_owned()),
        ..CreateScope::new("team", shared.clone())
    };
    let scopes = fixture.board.scopes();
    let created = scopes.create(&create(&ivy)).unwrap();
    assert_eq!(created.scope.policies.owner, Some(ivy.clone()));
    assert!(!scopes.create(&create(&oak)).unwrap().created, "a member names the same policies");
    let elm = fixture.session("Elm");
    assert_eq!(code(scopes.create(&create(&elm))), Code::NotAllowed);
    fixture.scope_of(&ivy).write(&a_write("a", "1")).unwrap();
    fixture.scope_of(&oak).write(&a_write("b", "1")).unwrap();
    assert_eq!(code(fixture.scope_of(&elm).write(&a_write("c", "1"))), Code::NotAllowed);
    let by = |session: &str| Some(session.to_owned());
    for session in [&oak, &elm] {
        let set = SetScope { session: by(session), ttl: Some(None), ..SetScope::of("team") };
        assert_eq!(code(scopes.set(&set)), Code::NotAllowed);
        for entries in [true, false] {
            let delete = DeleteScope { name: "team".to_owned(), entries, session: by(session) };
            assert_eq!(code(scopes.delete(&delete)), Code::NotAllowed);
        }
    }
    let sees = |session: &str| {
        let scopes = fixture.board.with_caller(Actor::session(session));
        let scopes = scopes.scopes();
        let listed = scopes.list().unwrap().iter().any(|scope| scope.scope == "team");
        assert_eq!(scopes.sizes().unwrap().iter().any(|scope| scope.scope == "team"), listed);
        assert_eq!(scopes.show("team").is_ok(), listed);
        listed
    };
    assert_eq!((sees(&ivy), sees(&oak), sees(&elm)), (true, true, false));
    let set = SetScope { session: by(&ivy), members: Some(owned(&["Elm"])), ..SetScope::of("team") };
    assert!(scopes.set(&set).unwrap().updated);
    assert_eq!((sees(&ivy), sees(&oak), sees(&elm)), (true, false, true));
    // What is open to every caller has no members.
    let open = SetScope { session: by(&ivy), visibility: Some(Visibility::Global), ..SetScope::of("team") };
    let opened = scopes.set(&open).unwrap().scope.policies;
    assert_eq!((opened.members, opened.owner), (vec![], None));
    assert!(sees(&oak));
}

fn a_reader_passes_over_events_that_it_may_not_read(fixture: &Fixture) {
    restrict(fixture, &["!Oak:read:secret:*"]);
    let start = fixture.revision();
    let oak = fixture.board.with_caller(Actor::author("Oak"));
    let mut follower = oak.follow(&Follow { start: Start::Revision(start), ..Follow::default() }).unwrap();
    fixture.write("secret:1", "\"hidden\"");
    let last = fixture.write("secret:2", "\"hidden\"").revision;
    assert_eq!(follower.next_batch(100, Duration::ZERO).unwrap(), None);
    assert_eq!(follower.position(), last);
    fixture.write("note", "1");
    fixture.write("secret:1", "\"hidden\"");
    let batch = follower.next_batch(100, Duration::ZERO).unwrap().unwrap();
    let keys: Vec<_> = batch.events.iter().filter_map(|event| event.target_id.clone()).collect();
    assert_eq!((keys, batch.last), (owned(&["note"]), fixture.revision()));
    // A cursor moves over them, too.
    let observation = oak.events().observe(&Since::Last(2), &[]).unwrap();
    let batch = oak.events().next(&observation, observation.after, 100).unwrap().unwrap();
    assert_eq!(batch.last, fixture.revision());
    // A scope that is not shared with a reader is not named to it.
    let shared = Policies { visibility: Visibility::Shared, members: owned(&["Ivy"]), ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("private", shared)).unwrap();
    assert_eq!(follower.next_batch(100, Duration::ZERO).unwrap(), None);
    assert_eq!(follower.position(), fixture.revision());
}

fn a_shown_agent_names_only_leases_that_may_be_read(fixture: &Fixture) {
    restrict(fixture, &["!Oak:read"]);
    let ivy = fixture.session("Ivy");
    for scope in ["team", "plain"] {
        let leased = Write { lease: true, ..a_write("a", "1") };
        fixture.board.scope(scope).acting_as(Actor::session(&ivy)).write(&leased).unwrap();
    }
    let leases = |board: &Board| -> Vec<String> {
        board.agents().show(&ivy).unwrap().leases.into_iter().map(|lease| lease.scope).collect()
    };
    assert_eq!(leases(&fixture.board), ["plain", "team"]);
    assert_eq!(leases(&fixture.board.with_caller(Actor::author("Oak"))), ["plain"]);
    // A denied writer still loses its leases when it ends.
    fixture.board.agents().deregister(&ivy).unwrap();
    assert_eq!(fixture.entry("a"), None);
}
