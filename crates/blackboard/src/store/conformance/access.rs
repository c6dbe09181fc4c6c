//! Access: every path that shows or changes entries obeys the policies of their scope, for every caller.
//!
//! [`PATHS`] is the table of paths. Each runs under every rule of [`RULES`], for the operator, for a caller that the rule allows
//! and for one that it does not. A test compares the table with the functions of the library, so that a new path is added
//! here or in [`OTHER_VERBS`], with the reason why it shows no entry.

use super::*;
use crate::Refusal;
use crate::agent::CheckIn;
use crate::entry::{Comparison, EveryScope, Expected, Import, Operation, Query, Txn, WaitFor};
use crate::event::{Filter, Lines, Since};
use crate::follow::{Follow, Start};
use crate::import;
use crate::scope::{
    AccessRule, AccessRules, CreateScope, DeleteScope, Effect, Policies, ScopePolicies, SetScope, Visibility,
};
use crate::store::{BookkeepingRow, Key, Prefetch};

on_every_engine![
    every_path_obeys_every_rule,
    rules_are_about_operations_and_keys,
    a_list_leaves_out_what_may_not_be_read,
    an_unknown_or_ended_session_is_never_the_operator,
    a_caller_is_searched_for_only_where_it_matters,
    only_the_owner_and_the_operator_change_the_policies,
    a_reader_passes_over_events_that_it_may_not_read,
    a_shown_agent_names_only_leases_that_may_be_read,
    a_local_scope_is_for_its_session_and_ends_with_it,
    a_scope_ends_with_its_work_item,
    a_scope_that_was_not_deleted_completely_is_deleted_by_the_next_sweep,
    an_automatic_sweep_ends_scopes_a_batch_at_a_time,
    a_damaged_list_of_ended_scopes_does_not_stop_the_others,
    a_session_or_item_has_a_limited_number_of_scopes,
    only_a_scope_that_still_ends_with_a_session_is_deleted,
    a_scope_that_ends_begins_without_entries,
    a_change_of_a_value_shows_nothing_that_may_not_be_read,
    a_remembered_answer_is_only_for_callers_that_may_use_the_scope,
    the_order_of_members_and_rules_does_not_matter,
];

/// One path under one rule.
struct Case {
    /// The board of the caller.
    board: Board,
    /// The session of the caller; that of an allowed one for the operator.
    session: String,
    scope: String,
    key: String,
    /// The value of the entry, which nothing else contains.
    secret: String,
    /// The revision of the board before the entry was written, and that of the entry.
    before: Revision,
    written: Revision,
}

impl Case {
    fn scope(&self) -> Scope<'_> {
        self.board.scope(&self.scope)
    }

    fn write(&self) -> Write {
        a_write(&self.key, "\"new\"")
    }

    /// Whether a text shows the entry.
    fn is_shown_by(&self, text: &str) -> bool {
        text.contains(&self.key) || text.contains(&self.secret)
    }
}

/// What a path does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It shows the entry of a key that the caller names.
    Reads,
    /// It shows entries or events, and leaves out what the caller may not read.
    Lists,
    /// It changes the entry of a key that the caller names.
    Changes,
}

struct Path {
    verb: &'static str,
    kind: Kind,
    run: fn(&Case) -> Result<String>,
}

const fn path(verb: &'static str, kind: Kind, run: fn(&Case) -> Result<String>) -> Path {
    Path { verb, kind, run }
}

/// What was found, as text.
fn shown<T: std::fmt::Debug>(found: Result<T>) -> Result<String> {
    found.map(|found| format!("{found:?}"))
}

fn all() -> Query {
    Query { limit: Some(1000), ..Query::default() }
}

fn following(case: &Case, without_values: bool) -> Follow {
    Follow { start: Start::Revision(case.before), without_values, without_sweep: true, ..Follow::default() }
}

/// Every path of the library that shows or changes entries.
const PATHS: &[Path] = &[
    path("Scope::read", Kind::Reads, |case| shown(case.scope().read(&case.key))),
    path("Scope::entry", Kind::Reads, |case| shown(case.scope().entry(&case.key))),
    path("Scope::read_batch", Kind::Reads, |case| shown(case.scope().read_batch(&[&case.key]))),
    path("Scope::history", Kind::Reads, |case| shown(case.scope().history(&case.key, 9))),
    path("Scope::history_within", Kind::Reads, |case| shown(case.scope().history_within(&case.key, 9, 1000))),
    path("Scope::entry_as_of", Kind::Reads, |case| shown(case.scope().entry_as_of(&case.key, case.written))),
    path("Scope::wait", Kind::Reads, |case| {
        let wait = WaitFor { timeout: Some(Duration::from_millis(1)), after: None };
        shown(case.scope().wait(&case.key, &wait))
    }),
    path("Scope::check_key", Kind::Reads, |case| {
        case.scope().check_key(&case.key, None).map(|check| match check {
            crate::follow::Check::Done(entry) => format!("{entry:?}"),
            crate::follow::Check::After(_) => String::new(),
        })
    }),
    path("TransactionScope::read", Kind::Reads, |case| {
        shown(case.board.transaction(|tx| tx.scope(&case.scope).read(&case.key)))
    }),
    path("TransactionScope::entry", Kind::Reads, |case| {
        shown(case.board.transaction(|tx| tx.scope(&case.scope).entry(&case.key)))
    }),
    path("Board::txn", Kind::Reads, |case| {
        let read = Operation::Read { scope: case.scope.clone(), key: case.key.clone() };
        shown(case.board.txn(&Txn { then: vec![read], ..Txn::default() }, &Actor::default()))
    }),
    path("Board::txn", Kind::Reads, |case| {
        let (scope, key) = (case.scope.clone(), case.key.clone());
        let compared = Comparison { scope, key, expected: Expected::Exists(false) };
        let failed =
            case.board.txn(&Txn { comparisons: vec![compared], ..Txn::default() }, &Actor::default());
        match failed {
            Err(error) if error.code() == Code::Conflict => Ok(error.to_string()),
            found => shown(found),
        }
    }),
    path("Scope::list", Kind::Lists, |case| shown(case.scope().list(&all()))),
    path("Scope::list_counted", Kind::Lists, |case| shown(case.scope().list_counted(&all()))),
    path("Scope::query", Kind::Lists, |case| shown(case.scope().query(&all()))),
    path("Scope::query", Kind::Lists, |case| {
        let narrow = Query { prefix: Some("task:".to_owned()), tags: owned(&["tag"]), ..all() };
        shown(case.scope().query(&narrow))
    }),
    path("Scope::query_counted", Kind::Lists, |case| shown(case.scope().query_counted(&all()))),
    path("Scope::snapshot", Kind::Lists, |case| shown(case.scope().snapshot(&Query::default()))),
    path("TransactionScope::query", Kind::Lists, |case| {
        shown(case.board.transaction(|tx| tx.scope(&case.scope).query(&all())))
    }),
    path("Scope::plan_clear", Kind::Lists, |case| shown(case.scope().plan_clear("*"))),
    path("Board::entries", Kind::Lists, |case| {
        let wanted = EveryScope { limit: Some(10_000), ..EveryScope::default() };
        shown(case.board.entries(&wanted))
    }),
    path("Board::export", Kind::Lists, |case| shown(case.board.export())),
    path("Board::export_scope", Kind::Lists, |case| shown(case.board.export_scope(&case.scope))),
    path("Board::swarm_view", Kind::Lists, |case| shown(case.board.swarm_view(&case.scope))),
    path("Board::brief", Kind::Lists, |case| shown(case.board.brief(&case.session))),
    path("Agents::check_in", Kind::Lists, |case| {
        shown(case.board.agents().check_in(&CheckIn::of(&case.session)))
    }),
    path("Events::next", Kind::Lists, |case| {
        let events = case.board.events();
        let observation = events.observe(&Since::Revision(case.before), &[])?;
        shown(events.next(&observation, observation.after, 1000))
    }),
    path("Events::next", Kind::Lists, |case| {
        let events = case.board.events();
        let keys = [Filter::of_keys("task:*")];
        let observation = events.observe_filtered(&Since::Revision(case.before), &keys)?;
        shown(events.next(&observation, observation.after, 1000))
    }),
    path("Events::newest", Kind::Lists, |case| shown(case.board.events().newest(&Lines::default()))),
    path("Events::oldest", Kind::Lists, |case| {
        shown(case.board.events().oldest(&Lines { after: Some(case.before), ..Lines::default() }))
    }),
    path("Events::lines", Kind::Lists, |case| shown(case.board.events().lines(case.before, 1000))),
    path("Follower::next_batch", Kind::Lists, |case| {
        shown(case.board.follow(&following(case, false))?.next_batch(1000, Duration::ZERO))
    }),
    path("Follower::next_batch", Kind::Lists, |case| {
        shown(case.board.follow(&following(case, true))?.next_batch(1000, Duration::ZERO))
    }),
    path("Subscription::next_within", Kind::Lists, |case| {
        let mut subscription = case.board.subscribe(&following(case, false))?;
        let events = std::iter::from_fn(|| subscription.next_within(Duration::ZERO));
        shown(events.collect::<Result<Vec<_>>>())
    }),
    path("Scope::write", Kind::Changes, |case| shown(case.scope().write(&case.write()))),
    path("Scope::write_batch", Kind::Changes, |case| shown(case.scope().write_batch(&[case.write()]))),
    path("Scope::append", Kind::Changes, |case| shown(case.scope().append(&case.key, &json("1")))),
    path("Scope::increment", Kind::Changes, |case| shown(case.scope().increment(&case.key, 1))),
    path("Scope::delete", Kind::Changes, |case| shown(case.scope().delete(&case.key))),
    path("Scope::delete_if_revision", Kind::Changes, |case| {
        shown(case.scope().delete_if_revision(&case.key, case.written))
    }),
    path("Scope::clear", Kind::Lists, |case| shown(case.scope().clear("*"))),
    path("Scope::plan_purge", Kind::Changes, |case| shown(case.scope().plan_purge(&case.key))),
    path("Scope::purge", Kind::Changes, |case| shown(case.scope().purge(&case.key))),
    path("Scope::import", Kind::Changes, |case| import_into(case, false)),
    path("Scope::import", Kind::Changes, |case| import_into(case, true)),
    path("Scope::import_file", Kind::Changes, |case| import_export_into(case, false)),
    path("Scope::import_file", Kind::Changes, |case| import_export_into(case, true)),
    path("Board::txn", Kind::Changes, |case| {
        let write = Operation::Write { scope: case.scope.clone(), write: case.write() };
        shown(case.board.txn(&Txn { then: vec![write], ..Txn::default() }, &Actor::default()))
    }),
    path("Board::txn", Kind::Changes, |case| {
        let delete = Operation::Delete { scope: case.scope.clone(), key: case.key.clone() };
        shown(case.board.txn(&Txn { then: vec![delete], ..Txn::default() }, &Actor::default()))
    }),
    path("TransactionScope::write", Kind::Changes, |case| {
        shown(case.board.transaction(|tx| tx.scope(&case.scope).write(&case.write())))
    }),
    path("TransactionScope::delete", Kind::Changes, |case| {
        shown(case.board.transaction(|tx| tx.scope(&case.scope).delete(&case.key)))
    }),
];

fn import_into(case: &Case, dry_run: bool) -> Result<String> {
    let text = format!(r#"{{"{0}": {{"key": "{0}", "value": "imported"}}}}"#, case.key);
    let file = import::read(&text)?;
    outcome_of(&case.scope().import(&file.content.entries, &replacing(dry_run))?)
}

fn import_export_into(case: &Case, dry_run: bool) -> Result<String> {
    let entry = format!(r#"{{"scope": "{}", "key": "{}", "value": "imported"}}"#, case.scope, case.key);
    let file = import::read(&format!(r#"{{"entries": [{entry}]}}"#))?;
    outcome_of(&case.board.scope("other").import_file(&file, &replacing(dry_run))?)
}

fn replacing(dry_run: bool) -> Import {
    Import { keep: crate::entry::Keep::Theirs, dry_run, ..Import::default() }
}

fn outcome_of(report: &crate::entry::ImportReport) -> Result<String> {
    match &report.entries[0].outcome {
        crate::entry::ImportOutcome::Refused { code, reason } => {
            Err(Refusal::new(*code, reason.clone()).into())
        }
        outcome => Ok(format!("{outcome:?}")),
    }
}

/// The verbs that show no entry and change none, each with the reason.
#[cfg(test)]
const OTHER_VERBS: &[(&str, &str)] = &[
    ("Files::check", "reservations are in a scope that has no policies"),
    ("Files::conflicts", "reservations are in a scope that has no policies"),
    ("Files::list", "reservations are in a scope that has no policies"),
    ("Files::release", "reservations are in a scope that has no policies"),
    ("Files::reserve", "reservations are in a scope that has no policies"),
    ("Locks::acquire", "locks are in a scope that has no policies"),
    ("Locks::acquire_waiting", "locks are in a scope that has no policies"),
    ("Locks::acquire_waiting_while", "locks are in a scope that has no policies"),
    ("Locks::can_acquire", "locks are in a scope that has no policies"),
    ("Locks::list", "locks are in a scope that has no policies"),
    ("Locks::release", "locks are in a scope that has no policies"),
    ("Projects::activity", "agents, work items and progress notes"),
    ("Work::append_event", "work items"),
    ("Work::block", "work items"),
    ("Work::claim", "work items"),
    ("Work::claim_next", "work items"),
    ("Work::complete", "work items"),
    ("Work::complete_project", "work items"),
    ("Work::create", "work items"),
    ("Work::create_with_generated_id", "work items"),
    ("Work::delete", "work items"),
    ("Work::edit", "work items"),
    ("Work::export", "work items"),
    ("Work::force_complete", "work items"),
    ("Work::import", "work items"),
    ("Work::lanes", "work items"),
    ("Work::last_completed", "work items"),
    ("Work::list", "work items"),
    ("Work::list_counted", "work items"),
    ("Work::list_scored", "work items"),
    ("Work::newest", "work items"),
    ("Work::reassign", "work items"),
    ("Work::release", "work items"),
    ("Work::reset", "work items"),
    ("Work::status", "work items"),
    ("Work::unblock", "work items"),
    ("Work::update_metadata", "work items"),
    ("Work::wait", "work items"),
    ("Projects::at_path", "projects"),
    ("Projects::list", "projects"),
    ("Projects::register", "projects"),
    ("Projects::remove", "projects"),
    ("Projects::status", "projects"),
    ("Protocols::check", "protocols, and keys that the caller names"),
    ("Protocols::define", "protocols, and keys that the caller names"),
    ("Protocols::key", "protocols, and keys that the caller names"),
    ("Protocols::list", "protocols, and keys that the caller names"),
    ("Protocols::parse", "protocols, and keys that the caller names"),
    ("Protocols::pattern", "protocols, and keys that the caller names"),
    ("Protocols::remove", "protocols, and keys that the caller names"),
    ("Protocols::show", "protocols, and keys that the caller names"),
    ("Scopes::create", "policies; see `only_the_owner_and_the_operator_change_the_policies`"),
    ("Scopes::set", "policies; see `only_the_owner_and_the_operator_change_the_policies`"),
    ("Scopes::delete", "see `only_the_owner_and_the_operator_change_the_policies`"),
    ("Scopes::list", "policies, and only those of scopes that the caller sees"),
    ("Scopes::show", "policies, and only those of a scope that the caller sees"),
    ("Scopes::sizes", "numbers, and only those of scopes that the caller sees"),
    ("Agents::active_names", "agents"),
    ("Agents::deregister", "ends the caller, and names what that session itself leased"),
    ("Agents::announce_task", "delegates"),
    ("Agents::take_task", "delegates"),
    ("Agents::watch_instead", "agents"),
    ("Agents::get", "agents"),
    ("Agents::heartbeat", "names what the caller itself leased, if it was stale"),
    ("Agents::list", "agents"),
    ("Agents::names_of", "agents"),
    ("Agents::of_first_process", "agents"),
    ("Agents::of_process", "agents"),
    ("Agents::overview", "agents"),
    ("Agents::reader", "agents"),
    ("Agents::register", "agents"),
    ("Agents::resolve", "agents"),
    ("Agents::resolve_to_act", "agents"),
    ("Agents::show", "see `a_shown_agent_names_only_leases_that_may_be_read`"),
    ("Board::counts", "numbers"),
    ("Board::follow", "see `Follower::next_batch`"),
    ("Board::for_call", "the same board"),
    ("Board::prune", "counts what it removes"),
    ("Board::record_brief", "a cursor"),
    ("Board::sealed", "the state of the engine"),
    ("Board::space_usage", "sizes of tables"),
    ("Board::set_policies", "policies"),
    ("Board::status", "numbers, agents and work"),
    ("Board::status_since", "numbers, agents and work"),
    ("Board::subscribe", "see `Subscription::next_within`"),
    ("Board::sweep", "names the keys that a session leased which is gone, never values"),
    ("Board::sweep_if_deferred", "reports nothing about entries"),
    ("Board::sweep_with_next_call", "reports nothing about entries"),
    ("Board::transaction", "see `TransactionScope`"),
    ("Board::try_prune", "counts what it removes"),
    ("Board::try_sweep", "as `Board::sweep`"),
    ("Board::try_transaction", "see `TransactionScope`"),
    ("Board::work_counts", "numbers"),
    ("Dispatcher::handle_next", "see `a_call_and_a_dispatcher_get_only_what_their_actor_may_read`"),
    ("Dispatcher::on_thread", "see `a_call_and_a_dispatcher_get_only_what_their_actor_may_read`"),
    ("Dispatcher::open", "see `a_call_and_a_dispatcher_get_only_what_their_actor_may_read`"),
    ("Dispatcher::run", "see `a_call_and_a_dispatcher_get_only_what_their_actor_may_read`"),
    ("Dispatcher::stop_handle", "a handle"),
    ("Events::advance", "a cursor"),
    ("Events::observe", "see `Events::next`"),
    ("Events::observe_filtered", "see `Events::next`"),
    ("Follower::acknowledge", "a cursor"),
    ("Follower::board", "the same board"),
    ("Follower::has_caught_up", "a position"),
    ("Follower::position", "a position"),
    ("Follower::set_caller", "a session for sweeps"),
    ("Follower::stop_handle", "a handle"),
    ("Request::emit", "calls `Scope::write`"),
    ("Request::scope", "the same scope"),
    ("Run::id", "an id that the caller has"),
    ("Run::request", "what the caller wrote"),
    ("Run::result_key", "a key that the caller has"),
    ("Run::next_reply", "see `a_call_and_a_dispatcher_get_only_what_their_actor_may_read`"),
    ("Scope::acting_as", "the same scope"),
    ("Scope::name", "its name"),
    ("Scope::publish", "calls `Scope::write`"),
    ("Scope::published", "calls `Scope::snapshot`"),
    ("Subscription::channel", "calls `Follower::next_batch`"),
    ("Subscription::on_thread", "calls `Subscription::next_within`"),
    ("Subscription::stop_handle", "a handle"),
    ("Transaction::acting_as", "the same transaction"),
    ("Transaction::scope", "see `TransactionScope`"),
];

#[cfg(test)]
#[test]
fn no_verb_of_the_library_escapes_the_table_of_paths() {
    testkit::limit_test();
    let verbs = super::round_trips::verbs_of_library();
    let in_table: std::collections::BTreeSet<_> = PATHS.iter().map(|path| path.verb).collect();
    let is_excused = |verb: &str| OTHER_VERBS.iter().any(|(excused, _)| *excused == verb);
    let escaped: Vec<_> =
        verbs.iter().filter(|verb| !in_table.contains(verb.as_str()) && !is_excused(verb)).collect();
    assert!(escaped.is_empty(), "add a path, or a reason why it shows no entry: {escaped:#?}");
    let excused = OTHER_VERBS.iter().map(|(verb, _)| verb);
    let unknown: Vec<_> = in_table.iter().chain(excused).filter(|verb| !verbs.contains(**verb)).collect();
    assert!(unknown.is_empty(), "no handle has {unknown:?}");
}

fn a_scope_that_ends_begins_without_entries(fixture: &Fixture) {
    let (ivy, scopes) = (fixture.session("Ivy"), fixture.board.scopes());
    fixture.item("item");
    fixture.write("a", "1");
    let local = Policies { visibility: Visibility::Local, ..Policies::default() };
    let of_item = Policies { work_item: Some("item".to_owned()), ..Policies::default() };
    for policies in [local.clone(), of_item] {
        let create = CreateScope { session: Some(ivy.clone()), ..CreateScope::new("team", policies) };
        assert_eq!(scopes.create(&create).unwrap_err().code(), Code::InUse);
    }
    assert!(fixture.value("a").is_some());
    fixture.scope().delete("a").unwrap();
    let create = CreateScope { session: Some(ivy), ..CreateScope::new("team", local) };
    assert!(scopes.create(&create).unwrap().created);
}

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

/// The rules, which allow everything to Ivy and nothing to Oak.
fn rules() -> [(&'static str, Policies); 4] {
    let access = |rules: &[(Effect, &str)]| {
        let rules = rules.iter().map(|(effect, rule)| AccessRule::parse(*effect, rule).unwrap());
        Policies { access: AccessRules::new(rules.collect()), ..Policies::default() }
    };
    [
        ("a denial", access(&[(Effect::Deny, "Oak:*:task:*")])),
        ("a permission", access(&[(Effect::Allow, "I?y:*")])),
        ("both", access(&[(Effect::Allow, "*:*"), (Effect::Deny, "Oa*:*:*hidden*")])),
        (
            "members",
            Policies { visibility: Visibility::Shared, members: owned(&["Ivy"]), ..Policies::default() },
        ),
    ]
}

fn every_path_obeys_every_rule(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let mut number = 0;
    let callers = [
        (Actor::session(&ivy), &ivy, true),
        (Actor::session(&oak), &oak, false),
        (Actor::default(), &ivy, true),
        (Actor::author("Ivy"), &ivy, true),
        (Actor::author("Oak"), &oak, false),
    ];
    for (place, (rule, policies)) in rules().into_iter().enumerate() {
        for path in PATHS {
            // Every kind of caller under one rule, and sessions under all of them.
            let callers = if place == 0 { &callers[..] } else { &callers[..2] };
            for &(ref caller, session, is_allowed) in callers {
                number += 1;
                let case = a_case(fixture, number, &policies, (caller, session), path);
                let outcome = (path.run)(&case);
                let what = format!("{} by {caller:?}, {rule}", path.verb);
                match (outcome, is_allowed) {
                    (Ok(text), true) => {
                        assert!(path.kind == Kind::Changes || case.is_shown_by(&text), "{what}: {text}");
                    }
                    (Ok(text), false) => {
                        assert!(path.kind == Kind::Lists && !case.is_shown_by(&text), "{what}: {text}");
                    }
                    (Err(error), true) => panic!("{what}: {error}"),
                    (Err(error), false) => assert_eq!(error.code(), Code::NotAllowed, "{what}: {error}"),
                }
                // What was refused has not happened.
                let now = fixture.board.scope(&case.scope).entry(&case.key).unwrap();
                let is_unchanged = now.is_some_and(|entry| entry.revision == case.written);
                assert!(is_unchanged || is_allowed, "{what}");
                delete(fixture, &case.scope);
            }
        }
    }
}

/// A scope with these policies, and an entry that is for Ivy and Oak by its key.
fn a_case(
    fixture: &Fixture,
    number: usize,
    policies: &Policies,
    (caller, session): (&Actor, &String),
    path: &Path,
) -> Case {
    let scope = format!("case-{number}");
    let operator = &fixture.board;
    let create = CreateScope::new(&scope, policies.clone());
    operator.scopes().create(&create).unwrap();
    let before = fixture.revision();
    let key = format!("task:Ivy:Oak:hidden-{number}");
    let secret = format!("secret-{number}");
    let value = match path.verb {
        "Scope::append" => "[]".to_owned(),
        "Scope::increment" => "0".to_owned(),
        _ => format!("\"{secret}\""),
    };
    let write = Write { tags: owned(&["tag"]), ..a_write(&key, &value) };
    let written = operator.scope(&scope).write(&write).unwrap().revision;
    Case {
        board: operator.with_caller(caller.clone()),
        session: session.clone(),
        scope,
        key,
        secret,
        before,
        written,
    }
}

fn delete(fixture: &Fixture, scope: &str) {
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

fn create_local(fixture: &Fixture, name: &str, session: &str) {
    let policies = Policies { visibility: Visibility::Local, ..Policies::default() };
    let create = CreateScope { session: Some(session.to_owned()), ..CreateScope::new(name, policies) };
    assert!(fixture.board.scopes().create(&create).unwrap().created);
}

/// How many entries of a scope are stored, and whether the scope exists or waits for its deletion.
fn rest_of(fixture: &Fixture, scope: &str) -> (u64, bool) {
    let policies = Key::ScopePolicies(scope.to_owned());
    let listed = Range::bookkeeping_rows("ended-scopes:");
    let rest = fixture.read(|tx| {
        let row = tx.row::<ScopePolicies>(&policies)?;
        let mut listed = tx.rows::<BookkeepingRow>(&listed)?.into_iter();
        let waits = listed.any(|list| list.value.contains(&format!("\"{scope}\"")));
        let exists = row.is_some_and(|row| row.is_live());
        Ok((tx.count(&Range::entries(scope, ""))?, exists || waits))
    });
    rest.unwrap()
}

fn a_local_scope_is_for_its_session_and_ends_with_it(fixture: &Fixture) {
    let local = Policies { visibility: Visibility::Local, ..Policies::default() };
    let scopes = fixture.board.scopes();
    assert_eq!(code(scopes.create(&CreateScope::new("team", local))), Code::NoSession);
    for ends_by_itself in [true, false] {
        let ivy = fixture.session_of_process("Ivy", 100);
        let oak = fixture.session("Oak");
        create_local(fixture, "team", &ivy);
        for batch in 0..3 {
            let write = |number| Write { lease: number == 7, ..a_write(&format!("{batch}-{number}"), "1") };
            let writes: Vec<_> = (0..400).map(write).collect();
            fixture.scope_of(&ivy).write_batch(&writes).unwrap();
        }
        assert_eq!(code(fixture.scope_of(&oak).read("0-0")), Code::NotAllowed);
        assert_eq!(code(fixture.scope().acting_as(Actor::author("Ivy")).read("0-0")), Code::NotAllowed);
        assert!(fixture.scope_of(&ivy).read("0-0").unwrap().is_some());
        let global = SetScope { visibility: Some(Visibility::Global), ..SetScope::of("team") };
        assert_eq!(code(scopes.set(&global)), Code::InvalidValue);
        fixture.board.agents().deregister(&oak).unwrap();
        let before = fixture.revision();
        if ends_by_itself {
            fixture.board.agents().deregister(&ivy).unwrap();
        } else {
            fixture.processes.end(100);
            fixture.pass(3600);
            fixture.sweep();
            fixture.pass(8 * 24 * 3600);
            fixture.board.prune().unwrap();
            fixture.sweep();
        }
        assert_eq!(rest_of(fixture, "team"), (0, false), "by itself: {ends_by_itself}");
        let events = fixture.events_after(before);
        let removed = events.iter().filter(|event| event.event_type == EventType::EntryDeleted);
        assert_eq!(removed.count(), 1200);
        let largest = events
            .iter()
            .map(|event| events.iter().filter(|other| other.commit_id == event.commit_id).count());
        assert!(largest.max().unwrap() <= 510, "a commit is not larger than a batch");
        let ended = events.iter().filter(|event| event.event_type == EventType::ScopeDeleted);
        assert_eq!(ended.count(), 1);
    }
}

fn a_scope_ends_with_its_work_item(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let create = |scope: &str, item: &str| {
        let policies =
            Policies { work_item: Some(item.to_owned()), max_entries: Some(9), ..Policies::default() };
        fixture.board.scopes().create(&CreateScope::new(scope, policies))
    };
    assert_eq!(code(create("team", "none")), Code::WorkNotFound);
    for item in ["done", "deleted", "open"] {
        fixture.item(item);
        create(item, item).unwrap();
        create(&format!("{item}-2"), item).unwrap();
        fixture.board.scope(item).write(&a_write("a", "1")).unwrap();
        fixture.board.scope(item).write(&a_write("b", "1")).unwrap();
    }
    fixture.claim("done", &ivy);
    fixture.complete("done", &ivy);
    fixture.board.work().delete("deleted", false, None).unwrap();
    for (scope, expected) in [
        ("done", (0, false)),
        ("done-2", (0, false)),
        ("deleted", (0, false)),
        ("deleted-2", (0, false)),
        ("open", (2, true)),
        ("open-2", (0, true)),
    ] {
        assert_eq!(rest_of(fixture, scope), expected, "{scope}");
    }
    assert_eq!(code(create("late", "done")), Code::AlreadyCompleted);
}

fn a_scope_that_was_not_deleted_completely_is_deleted_by_the_next_sweep(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    create_local(fixture, "team", &ivy);
    fixture.scope_of(&ivy).write(&a_write("a", "1")).unwrap();
    end_without_deletion(fixture, &ivy);
    assert_eq!(rest_of(fixture, "team"), (1, true));
    let swept = fixture.board.sweep(&Sweep::default()).unwrap();
    assert_eq!((swept.deleted_scopes, swept.skipped_scopes), (vec!["team".to_owned()], Vec::new()));
    assert_eq!(rest_of(fixture, "team"), (0, false));
    assert_eq!(lists(fixture, "ended-scopes:"), 0);
}

/// The commit that ends a session, without what follows it.
fn end_without_deletion(fixture: &Fixture, session: &str) {
    let ended = fixture.commit(|tx| {
        let mut changes = Changes::new();
        assert!(crate::scope::EndsWith::Session(session).end(tx, &mut changes)?);
        changes.event(an_event());
        Ok(changes)
    });
    ended.unwrap();
}

/// How many lists of scopes there are.
fn lists(fixture: &Fixture, prefix: &str) -> u64 {
    fixture.read(|tx| tx.count(&Range::bookkeeping_rows(prefix))).unwrap()
}

fn an_automatic_sweep_ends_scopes_a_batch_at_a_time(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session_of_process("Oak", 100));
    create_local(fixture, "team", &ivy);
    for batch in 0..2 {
        let writes: Vec<_> = (0..300).map(|number| a_write(&format!("{batch}-{number}"), "1")).collect();
        fixture.scope_of(&ivy).write_batch(&writes).unwrap();
    }
    create_local(fixture, "other", &oak);
    end_without_deletion(fixture, &ivy);
    // Nothing else is due: each sweep finds that there is something left.
    for (expected, deleted) in [((100, true), 0), ((0, true), 0), ((0, false), 1), ((0, false), 0)] {
        let swept = fixture.board.try_sweep(None);
        assert_eq!((rest_of(fixture, "team"), swept.deleted_scopes.len()), (expected, deleted));
    }
    // A session that is marked stale may recover. It ends when it is pruned.
    fixture.processes.end(100);
    fixture.pass(3600);
    fixture.board.try_sweep(None);
    assert_eq!((rest_of(fixture, "other"), lists(fixture, "scopes:")), ((0, true), 1));
    fixture.pass(8 * 24 * 3600);
    fixture.board.prune().unwrap();
    fixture.board.try_sweep(None);
    assert_eq!((rest_of(fixture, "other"), lists(fixture, "scopes:")), ((0, false), 0));
    assert_eq!(lists(fixture, "ended-scopes:"), 0);
}

fn a_damaged_list_of_ended_scopes_does_not_stop_the_others(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    create_local(fixture, "team", &ivy);
    end_without_deletion(fixture, &ivy);
    let damaged = fixture.commit(|tx| {
        let mut changes = Changes::new();
        for name in ["ended-scopes:other", "ended-scopes:session:"] {
            let key = Key::BookkeepingRow(name.into());
            tx.prefetch(&[Prefetch::Row(key.clone())])?;
            assert!(tx.get(&key)?.is_none());
            changes.put(BookkeepingRow { name: name.into(), value: "{".to_owned() });
        }
        changes.event(an_event());
        Ok(changes)
    });
    damaged.unwrap();
    for left in [2, 1, 0] {
        fixture.board.try_sweep(None);
        assert_eq!(lists(fixture, "ended-scopes:"), left);
    }
    assert_eq!(rest_of(fixture, "team"), (0, false));
}

fn a_session_or_item_has_a_limited_number_of_scopes(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("task");
    let scopes = fixture.board.scopes();
    let local = Policies { visibility: Visibility::Local, ..Policies::default() };
    let of_item = Policies { work_item: Some("task".to_owned()), ..Policies::default() };
    for (kind, policies) in [("local", local), ("item", of_item)] {
        let create = |number: usize| {
            let name = format!("{kind}-{number}");
            let session = Some(ivy.clone());
            scopes.create(&CreateScope { session, ..CreateScope::new(&name, policies.clone()) })
        };
        for number in 0..100 {
            create(number).unwrap();
        }
        assert_eq!(code(create(100)), Code::InvalidValue, "{kind}");
        assert!(!create(99).unwrap().created, "{kind}");
        delete(fixture, &format!("{kind}-7"));
        create(100).unwrap();
        assert_eq!(code(create(7)), Code::InvalidValue, "{kind}");
        for number in (0..101).filter(|number| *number != 7) {
            delete(fixture, &format!("{kind}-{number}"));
        }
        assert_eq!(lists(fixture, "scopes:"), 0, "{kind}");
    }
}

fn only_a_scope_that_still_ends_with_a_session_is_deleted(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    for scope in ["team", "other", "plain"] {
        create_local(fixture, scope, &ivy);
        delete(fixture, scope);
    }
    create_local(fixture, "team", &oak);
    create_local(fixture, "other", &ivy);
    for (scope, session) in [("team", &oak), ("other", &ivy), ("plain", &oak)] {
        let scope = fixture.board.scope(scope);
        scope.acting_as(Actor::session(session)).write(&a_write("a", "1")).unwrap();
    }
    fixture.board.agents().deregister(&ivy).unwrap();
    assert_eq!(rest_of(fixture, "team"), (1, true));
    assert_eq!(rest_of(fixture, "other"), (0, false));
    assert_eq!(rest_of(fixture, "plain"), (1, false));
}
