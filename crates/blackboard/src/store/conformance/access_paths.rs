//! Access: every path that shows or changes entries obeys the policies of their scope, for every caller.
//!
//! [`PATHS`] is the table of paths. Each runs under every rule of [`rules`], for the operator, for a caller that the rule allows
//! and for one that it does not. A test compares the table with the functions of the library, so that a new path is added
//! here or in [`OTHER_VERBS`], with the reason why it shows no entry.

use super::access::delete;
use super::*;
use crate::Refusal;
use crate::agent::CheckIn;
use crate::entry::{Comparison, EveryScope, Expected, Import, Operation, Query, Txn, WaitFor};
use crate::event::{Filter, Lines, Since};
use crate::follow::{Follow, Start};
use crate::import;
use crate::memory::{Compact, Define, LevelRules, Promote, Recall, Remember, Usefulness};
use crate::page::{Grouping, MapScope};
use crate::scope::{AccessRule, AccessRules, CreateScope, Effect, Policies, Visibility};
use crate::search::IndexLocation;

on_every_engine![every_path_obeys_every_rule];

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

    /// The level of memory that the scope is.
    fn level(&self) -> String {
        self.scope.trim_start_matches("memory:").to_owned()
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
    path("Board::search", Kind::Lists, |case| {
        shown(case.board.search(&crate::search::Query::new(&case.key), &crate::search::IndexLocation::Memory))
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
    path("Pages::list", Kind::Lists, |case| {
        map(case)?;
        // A page of an entry that may be read names its group.
        shown(case.board.pages().list(None))
            .map(|text| text.replace(&format!("{}:task:", case.scope), &case.key))
    }),
    path("Pages::show", Kind::Lists, |case| {
        map(case)?;
        let listed = case.board.pages().list(None)?;
        let shown: Result<Vec<_>> =
            listed.pages.iter().map(|page| case.board.pages().show(&page.id)).collect();
        shown.map(|shown| format!("{shown:?}"))
    }),
    path("Memories::recall", Kind::Lists, |case| {
        let all = Recall { limit: Some(10_000), ..Recall::default() };
        shown(case.board.memories().recall(&all, &IndexLocation::Memory))
    }),
    path("Memories::recall", Kind::Lists, |case| {
        let words = Recall { words: Some(case.secret.clone()), limit: Some(1000), ..Recall::default() };
        shown(case.board.memories().recall(&words, &IndexLocation::Memory))
    }),
    path("Memories::recall", Kind::Lists, |case| {
        let level = vec![case.level()];
        let named = Recall { levels: level, limit: Some(1000), ..Recall::default() };
        shown(case.board.memories().recall(&named, &IndexLocation::Memory))
    }),
    path("Memories::remember", Kind::Changes, |case| {
        let remember = Remember {
            level: Some(case.level()),
            key: Some(case.key.clone()),
            ..Remember::text("another text")
        };
        shown(case.board.memories().remember(&remember))
    }),
    path("Memories::feedback", Kind::Changes, |case| {
        let (level, rating) = (case.level(), Usefulness::Useful);
        shown(case.board.memories().feedback(&case.key, Some(&level), rating, &Actor::default()))
    }),
    path("Memories::delete", Kind::Changes, |case| {
        let (keys, level) = ([case.key.clone()], case.level());
        shown(case.board.memories().delete(&keys, Some(&level), &Actor::default()))
    }),
    path("Memories::promote", Kind::Changes, |case| {
        let (keys, from) = (vec![case.key.clone()], Some(case.level()));
        let promote = Promote { keys, from, to: "other".to_owned(), actor: Actor::default() };
        shown(case.board.memories().promote(&promote))
    }),
    path("Memories::compact", Kind::Changes, |case| {
        let compact = Compact {
            level: case.level(),
            into: Some("other".to_owned()),
            summary: "a summary".to_owned(),
            of: vec![case.key.clone()],
            ..Compact::default()
        };
        shown(case.board.memories().compact(&compact))
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

/// Maps the scope as the operator does.
fn map(case: &Case) -> Result<()> {
    let by_prefix = MapScope { grouping: Some(Grouping::Prefix), ..MapScope::of(&case.scope) };
    case.board.with_caller(Actor::default()).pages().map(&by_prefix).map(drop)
}

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
    ("Work::check_claimable", "work items"),
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
    ("Work::next", "work items"),
    ("Work::reassign", "work items"),
    ("Work::release", "work items"),
    ("Work::reset", "work items"),
    ("Work::show", "work items"),
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
    ("Pages::map", "numbers, and only for a scope that the caller sees"),
    ("Pages::unmap", "numbers, and only for a scope that the caller sees"),
    ("Pages::update", "numbers of pages, which it stores for all callers"),
    (
        "Memories::define",
        "policies; a level that restricts its callers is changed by its owner and the operator",
    ),
    ("Memories::define_seed", "creates what does not exist"),
    ("Memories::drain", "see `moves_by_rule_ask_no_caller_and_moves_by_call_do`"),
    ("Memories::for_brief", "calls `Memories::recall` for the session of the brief"),
    ("Memories::levels", "policies, and only those of levels that the caller sees"),
    ("Memories::map", "numbers of records that the caller may read, in levels that it sees"),
    ("Memories::pending", "see `a_level_that_the_caller_may_not_use_is_left_out`"),
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
    ("Board::search", "see `search/tests/access.rs`"),
    ("Board::update_index", "numbers"),
    ("Board::space_usage", "sizes of tables"),
    ("Board::set_policies", "policies"),
    ("Board::status", "numbers, agents and work"),
    ("Board::status_since", "numbers, agents and work"),
    ("Board::subscribe", "see `Subscription::next_within`"),
    ("Board::sweep", "names the keys that a session leased which is gone, never values"),
    ("Board::sweep_gone", "reports nothing about entries"),
    ("Board::sweep_if_deferred", "reports nothing about entries"),
    ("Board::sweep_upgraded", "as `Board::sweep`"),
    ("Board::sweep_with_next_call", "reports nothing about entries"),
    ("Board::transaction", "see `TransactionScope`"),
    ("Board::try_prune", "counts what it removes"),
    ("Board::try_sweep", "as `Board::sweep`"),
    ("Board::try_transaction", "see `TransactionScope`"),
    ("Board::update_index", "numbers"),
    ("Board::work_counts", "numbers"),
    ("Dispatcher::handle_next", "see `a_call_and_a_dispatcher_get_only_what_their_actor_may_read`"),
    ("Dispatcher::on_thread", "see `a_call_and_a_dispatcher_get_only_what_their_actor_may_read`"),
    ("Dispatcher::open", "see `a_call_and_a_dispatcher_get_only_what_their_actor_may_read`"),
    ("Dispatcher::run", "see `a_call_and_a_dispatcher_get_only_what_their_actor_may_read`"),
    ("Dispatcher::stop_handle", "a handle"),
    ("Events::advance", "a cursor"),
    ("Events::observe", "see `Events::next`"),
    ("Events::observe_filtered", "see `Events::next`"),
    ("Events::warn_of_quota", "an event without an entry"),
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
    let is_level = path.verb.starts_with("Memories::");
    let scope = if is_level { format!("memory:case-{number}") } else { format!("case-{number}") };
    let operator = &fixture.board;
    let level = is_level.then(LevelRules::default);
    let create = CreateScope::new(&scope, Policies { level, ..policies.clone() });
    if is_level {
        let rules = LevelRules::default();
        operator.memories().define(&Define { name: "other".to_owned(), rules, session: None }).unwrap();
    }
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
