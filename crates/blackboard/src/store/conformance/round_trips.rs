//! The round trips of each verb on a remote engine.
//!
//! `round_trips.snap` lists them. `BLACKBOARD_WRITE_SNAPSHOTS=1 cargo test -p blackboard round_trips` writes the file
//! again. Review the changes: each additional round trip delays every caller.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::*;
use crate::agent::{AgentFilter, CheckIn};
use crate::entry::{
    Comparison, EveryScope, Expected, FenceToken, Import, Operation, Query, TransactionScope, Txn, WaitFor,
};
use crate::event::{Filter, Lines, QuotaWarning, Since};
use crate::file::{Check, FileFilter, Release as ReleaseFiles, Reserve};
use crate::follow::{Follow, Start};
use crate::lock::{Acquire, Release as ReleaseLock};
use crate::memory::{Compact, Define, Drain, LevelRules, Promote, Recall, Remember, Usefulness};
use crate::page::MapScope;
use crate::project::{ProjectSelection, RegisterProject};
use crate::protocol::{AgentRun, Call, DefineProtocol, Dispatch, Dispatcher, Handlers, Publishable};
use crate::scope::{CreateScope, DeleteScope, Policies, SetScope, ValueRule, ValueRules};
use crate::search::IndexLocation;
use crate::work::{
    AppendEvent, Block, ClaimNext, Edit, ExportItems, ForceComplete, ImportItems, LastCompleted, NewestWork,
    OutsideItem, Reassign, Status, UpdateMetadata, WaitForItem, WorkFilter,
};

/// Verbs that have no line of their own, and why.
const NOT_COUNTED: &[(&str, &str)] = &[
    ("Board::for_call", "`Board::sweep_with_next_call`, on a clone"),
    ("Board::update_index", "reads what changed since the last search, page by page"),
    ("Board::sealed", "asks the engine, and reads no state"),
    ("Board::search", "brings its index up to date, in as many reads as that needs"),
    ("Board::space_usage", "asks the engine, and reads no state"),
    ("Board::subscribe", "`Board::follow`, one event at a time"),
    ("Board::sweep_if_deferred", "`Board::try_sweep`, if no other call was"),
    ("Board::sweep_upgraded", "runs once in the life of a board, in a file"),
    ("Board::sweep_with_next_call", "is part of the next call, as of every line here"),
    ("Board::try_prune", "calls `Board::prune`"),
    ("Board::try_transaction", "`Board::transaction`, once"),
    ("Board::update_index", "reads as much as the index needs"),
    ("Dispatcher::on_thread", "calls `Dispatcher::handle_next`"),
    ("Dispatcher::open", "calls `Board::follow`"),
    ("Dispatcher::run", "calls `Dispatcher::handle_next`"),
    ("Dispatcher::stop_handle", "reads nothing"),
    ("Follower::board", "reads nothing"),
    ("Follower::has_caught_up", "reads nothing"),
    ("Follower::position", "reads nothing"),
    ("Follower::set_caller", "reads nothing"),
    ("Follower::stop_handle", "reads nothing"),
    ("Locks::acquire_waiting", "calls `Locks::acquire` until it succeeds"),
    ("Locks::acquire_waiting_while", "calls `Locks::acquire` until it succeeds"),
    ("Request::emit", "calls `Scope::write`"),
    ("Request::scope", "reads nothing"),
    ("Run::id", "reads nothing"),
    ("Run::request", "reads nothing"),
    ("Run::result_key", "reads nothing"),
    ("Scope::acting_as", "reads nothing"),
    ("Scope::check_key", "one check of `Scope::wait`"),
    ("Scope::name", "reads nothing"),
    ("Subscription::channel", "calls `Follower::next_batch`"),
    ("Subscription::next_within", "calls `Follower::next_batch`"),
    ("Subscription::on_thread", "calls `Follower::next_batch`"),
    ("Subscription::stop_handle", "reads nothing"),
    ("Transaction::acting_as", "reads nothing"),
    ("Transaction::scope", "reads nothing"),
    ("Board::set_policies", "changes the value of this program"),
    ("Work::complete_project", "calls `Work::list`, and `Work::force_complete` for each item"),
    ("Work::list_scored", "calls `Work::list_counted`"),
];

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/conformance/round_trips.snap");

/// The lines of the snapshot.
struct Counted {
    fixture: Fixture,
    round_trips: Arc<RoundTrips>,
    lines: String,
    /// The verbs that have a line.
    verbs: BTreeSet<&'static str>,
}

impl Counted {
    fn new() -> Counted {
        let (fixture, round_trips) = Fixture::announced();
        Counted { fixture, round_trips, lines: String::new(), verbs: BTreeSet::new() }
    }

    /// Adds the round trips of a call of a verb, which is named with its handle.
    fn count<T>(&mut self, verb: &'static str, call: &str, f: impl FnOnce(&Fixture) -> T) -> T {
        self.verbs.insert(verb);
        // As every command does: the reads of the automatic sweep and of expiry are part of its first read.
        self.fixture.board.sweep_with_next_call(None);
        self.round_trips.take();
        let answer = f(&self.fixture);
        let (reads, commits) = self.round_trips.take();
        // A call that reads nothing leaves them to the next one.
        self.fixture.board.sweep_if_deferred();
        writeln!(self.lines, "{call:<50} {reads:>2} read {commits:>2} commit").unwrap();
        answer
    }

    /// Counts the calls of all verbs.
    fn all() -> Counted {
        let mut counted = Counted::new();
        count_sessions_and_work(&mut counted);
        count_protocols(&mut counted);
        count_entries(&mut counted);
        count_holdings(&mut counted);
        count_readers(&mut counted);
        count_claims(&mut counted);
        count_heartbeats(&mut counted);
        count_calls(&mut counted);
        count_pages(&mut counted);
        count_trackers(&mut counted);
        count_memory(&mut counted);
        counted
    }
}

fn count_memory(counted: &mut Counted) {
    let ivy = counted.fixture.session("Ivy");
    counted.count("Memories::define_seed", "memory define", |fixture| {
        fixture.board.memories().define_seed(Some(&ivy)).unwrap()
    });
    counted.count("Memories::define", "memory define, of one level", |fixture| {
        let define = Define { name: "notes".to_owned(), rules: LevelRules::default(), session: None };
        fixture.board.memories().define(&define).unwrap()
    });
    let mut keys = Vec::new();
    for (call, text) in [
        ("memory remember", "first"),
        ("memory remember, the second", "second"),
        ("memory remember, the third", "third"),
    ] {
        let remember = Remember { actor: Actor::session(&ivy), ..Remember::text(text) };
        keys.push(
            counted
                .count("Memories::remember", call, |fixture| {
                    fixture.board.memories().remember(&remember).unwrap()
                })
                .key,
        );
    }
    let recall = |fixture: &Fixture, recall: Recall| {
        fixture.board.memories().recall(&recall, &IndexLocation::Memory).unwrap()
    };
    counted.count("Memories::recall", "memory recall", |fixture| recall(fixture, Recall::default()));
    counted.count("Memories::recall", "memory recall, with words", |fixture| {
        recall(fixture, Recall { words: Some("first".to_owned()), ..Recall::default() })
    });
    counted.count("Memories::for_brief", "memory, for a brief", |fixture| {
        let brief = fixture.board.brief(&ivy).unwrap();
        fixture.board.memories().for_brief(&brief, &IndexLocation::Memory).unwrap()
    });
    counted.count("Memories::levels", "memory list", |fixture| fixture.board.memories().levels().unwrap());
    counted.count("Memories::map", "memory map", |fixture| fixture.board.memories().map().unwrap());
    counted.count("Memories::pending", "memory pending", |fixture| {
        fixture.board.memories().pending(None).unwrap()
    });
    let actor = Actor::session(&ivy);
    counted.count("Memories::feedback", "memory feedback", |fixture| {
        fixture.board.memories().feedback(&keys[0], None, Usefulness::Useful, &actor).unwrap()
    });
    counted.count("Memories::promote", "memory promote", |fixture| {
        let (keys, to) = (vec![keys[0].clone()], "semantic".to_owned());
        fixture.board.memories().promote(&Promote { keys, from: None, to, actor: actor.clone() }).unwrap()
    });
    counted.count("Memories::compact", "memory compact", |fixture| {
        let compact = Compact {
            level: "working".to_owned(),
            summary: "summary".to_owned(),
            of: keys[1..].to_vec(),
            ..Compact::default()
        };
        fixture.board.memories().compact(&compact).unwrap()
    });
    counted.count("Memories::delete", "memory delete", |fixture| {
        fixture.board.memories().delete(&keys[..1], Some("semantic"), &actor).unwrap()
    });
    counted.count("Memories::drain", "memory drain, of one level", |fixture| {
        let drain = Drain { level: Some("working".to_owned()), ..Drain::default() };
        fixture.board.memories().drain(&drain).unwrap()
    });
    let remember = Remember { actor, ..Remember::text("last") };
    counted.fixture.board.memories().remember(&remember).unwrap();
    counted.count("Agents::deregister", "agent deregister, with a working memory", |fixture| {
        fixture.board.agents().deregister(&ivy).unwrap()
    });
}

#[test]
fn round_trips_match_the_snapshot() {
    testkit::limit_test();
    let counted = Counted::all();
    if std::env::var_os("BLACKBOARD_WRITE_SNAPSHOTS").is_some() {
        std::fs::write(SNAPSHOT, &counted.lines).unwrap();
    }
    let expected = std::fs::read_to_string(SNAPSHOT).unwrap_or_default();
    assert_eq!(counted.lines, expected, "BLACKBOARD_WRITE_SNAPSHOTS=1 writes the file again");
    for verb in ["work claim", "agent heartbeat", "write", "work release", "work complete", "lock acquire"] {
        let line = counted.lines.lines().find(|line| line.starts_with(&format!("{verb:<50}"))).unwrap();
        assert!(line.ends_with("1 read  1 commit"), "{line}");
    }
}

/// Imports: their round trips do not depend on the number of items, but on the number of batches.
fn count_trackers(counted: &mut Counted) {
    let session = counted.fixture.session("Fern");
    counted.fixture.item("edited");
    let edit = Edit { title: Some("New".to_owned()), ..Edit::of("edited") };
    counted.count("Work::edit", "work edit", |fixture| fixture.board.work().edit(&edit).unwrap());
    counted.count("Work::check_claimable", "whether an item can be claimed", |fixture| {
        fixture.board.work().check_claimable("edited").is_ok()
    });
    counted.count("Work::show", "a work item", |fixture| fixture.board.work().show("edited").unwrap());
    counted.count("Board::sweep_gone", "sweep, of a session that is live", |fixture| {
        fixture.board.sweep_gone(std::iter::once(session.as_str()))
    });
    let warning = QuotaWarning { provider: "a".to_owned(), ..QuotaWarning::default() };
    counted.count("Events::warn_of_quota", "a warning of the token quota", |fixture| {
        fixture.board.events().warn_of_quota(&warning).unwrap()
    });
    let item = |number: usize| OutsideItem {
        id: format!("n{number}"),
        title: format!("Title {number}"),
        blocked_by: Some((number > 0).then(|| format!("n{}", number - 1)).into_iter().collect()),
        ..OutsideItem::default()
    };
    let mut import = ImportItems {
        items: (0..400).map(item).collect(),
        from: "jsonl".to_owned(),
        session: Some(session),
        ..ImportItems::default()
    };
    counted.count("Work::import", "work import, of 400 new items in a chain", |fixture| {
        fixture.board.work().import(&import).unwrap()
    });
    counted.count("Work::import", "work import, of the same items", |fixture| {
        fixture.board.work().import(&import).unwrap()
    });
    import.items[0].is_closed = true;
    import.items[7].title = "New".to_owned();
    counted.count("Work::import", "work import, of one closed and one changed item", |fixture| {
        fixture.board.work().import(&import).unwrap()
    });
    counted.count("Work::export", "work export", |fixture| {
        fixture.board.work().export(&ExportItems::default()).unwrap()
    });
}

fn count_sessions_and_work(counted: &mut Counted) {
    let ivy = counted.count("Agents::register", "agent register", |fixture| fixture.session("Ivy"));
    let oak = counted.fixture.session("Oak");
    counted.count("Projects::register", "project register", |fixture| {
        fixture.board.projects().register(&RegisterProject::new("p", "Project")).unwrap()
    });
    counted.count("Work::create", "work create", |fixture| {
        fixture.board.work().create(&Create::new("a", "A")).unwrap()
    });
    counted.count("Work::create", "work create, blocked by another item", |fixture| {
        fixture.blocked_item("b", &["a"])
    });
    counted.count("Work::claim", "work claim", |fixture| fixture.claim("a", &ivy));
    counted.count("Work::claim", "work claim, of an item that another session holds", |fixture| {
        fixture.board.work().claim(&Claim::of("a", &oak)).unwrap_err()
    });
    counted.count("Work::claim", "work claim, of a blocked item", |fixture| {
        fixture.board.work().claim(&Claim::of("b", &oak)).unwrap_err()
    });
    counted.count("Work::reassign", "work reassign", |fixture| {
        fixture.board.work().reassign(&Reassign::of("a", &ivy, &oak)).unwrap()
    });
    counted.count("Work::reassign", "work reassign --force", |fixture| {
        let reassign = Reassign { force: true, ..Reassign::of("a", &ivy, &ivy) };
        fixture.board.work().reassign(&reassign).unwrap()
    });
    counted.count("Work::release", "work release", |fixture| fixture.release("a", &ivy));
    let next = next_for(&ivy);
    counted.count("Work::next", "the item that is next", |fixture| fixture.board.work().next(&next).unwrap());
    counted.count("Work::claim_next", "work claim --next", |fixture| {
        fixture.board.work().claim_next(&next).unwrap()
    });
    counted.count("Agents::heartbeat", "agent heartbeat", |fixture| {
        fixture.board.agents().heartbeat(&Heartbeat::of(&ivy)).unwrap()
    });
    counted.count("Work::complete", "work complete, of an item that blocks another", |fixture| {
        fixture.complete("a", &ivy);
    });
    counted.fixture.claim("b", &ivy);
    counted.count("Work::complete", "work complete", |fixture| fixture.complete("b", &ivy));
    counted.count("Work::claim_next", "work claim --next, of nothing", |fixture| {
        fixture.board.work().claim_next(&next).unwrap_err()
    });
    counted.count("Work::reset", "work reset", |fixture| fixture.board.work().reset("b", None).unwrap());
    let block = Block { id: "b".to_owned(), blocked_by: owned(&["later"]), ..Block::default() };
    counted.count("Work::block", "work block", |fixture| fixture.board.work().block(&block).unwrap());
    counted.count("Work::unblock", "work unblock", |fixture| {
        fixture.board.work().unblock("b", &[], None).unwrap()
    });
    let metadata = Metadata::parse("{\"a\": 1}").unwrap();
    let update = UpdateMetadata { id: "b".to_owned(), metadata, session: Some(ivy.clone()) };
    counted.count("Work::update_metadata", "work update-metadata", |fixture| {
        fixture.board.work().update_metadata(&update).unwrap()
    });
    let append = AppendEvent {
        id: "b".to_owned(),
        event_type: "built".to_owned(),
        summary: "Build 7".to_owned(),
        metadata: None,
        session: Some(ivy.clone()),
    };
    counted.count("Work::append_event", "work append-event", |fixture| {
        fixture.board.work().append_event(&append).unwrap()
    });
    let force = ForceComplete { id: "b".to_owned(), session: None, summary: None };
    counted.count("Work::force_complete", "work complete --force", |fixture| {
        fixture.board.work().force_complete(&force).unwrap()
    });
    counted.count("Work::delete", "work delete", |fixture| {
        fixture.board.work().delete("b", false, None).unwrap()
    });
    counted.count("Agents::check_in", "agent attend, with updates", |fixture| {
        fixture.board.agents().check_in(&CheckIn::of(&oak)).unwrap()
    });
    counted.count("Agents::check_in", "agent attend, without updates", |fixture| {
        fixture.board.agents().check_in(&CheckIn::of(&oak)).unwrap()
    });
    counted.count("Agents::deregister", "agent deregister", |fixture| {
        fixture.board.agents().deregister(&oak).unwrap()
    });
    counted.count("Projects::list", "project list", |fixture| fixture.board.projects().list().unwrap());
    counted.count("Projects::at_path", "project of a directory", |fixture| {
        fixture.board.projects().at_path(&[std::path::Path::new("/srv")]).unwrap()
    });
    counted
        .count("Projects::status", "project status", |fixture| fixture.board.projects().status("p").unwrap());
    counted.count("Projects::activity", "project activity", |fixture| {
        fixture.board.projects().activity(&ProjectSelection::All).unwrap()
    });
    counted.count("Projects::remove", "project remove", |fixture| {
        fixture.board.projects().remove("p", false, None).unwrap()
    });
}

fn count_protocols(counted: &mut Counted) {
    let review = DefineProtocol::new("review", "review:{id}");
    counted.count("Protocols::define", "protocol define", |fixture| {
        fixture.board.protocols().define(&review).unwrap()
    });
    counted.count("Protocols::list", "protocol list", |fixture| fixture.board.protocols().list().unwrap());
    counted.count("Protocols::show", "protocol show", |fixture| {
        fixture.board.protocols().show("review").unwrap()
    });
    counted.count("Protocols::key", "protocol key", |fixture| {
        fixture.board.protocols().key("review", &[("id", "1")]).unwrap()
    });
    counted.count("Protocols::pattern", "protocol pattern", |fixture| {
        fixture.board.protocols().pattern("AgentRun.request", &[]).unwrap()
    });
    counted.count("Protocols::parse", "protocol parse", |fixture| {
        fixture.board.protocols().parse("review", "review:1").unwrap()
    });
    counted.count("Protocols::check", "protocol check", |fixture| {
        fixture.board.protocols().check("review:1", None).unwrap()
    });
    counted.count("Protocols::remove", "protocol remove", |fixture| {
        fixture.board.protocols().remove("review", None).unwrap()
    });
}

fn count_pages(counted: &mut Counted) {
    let pages = |fixture: &Fixture| fixture.board.clone();
    let map = MapScope::of("paged");
    let scope = |fixture: &Fixture, key: &str| {
        fixture.board.scope("paged").write(&a_write(key, "1")).unwrap();
    };
    counted.count("Pages::map", "page map", |fixture| pages(fixture).pages().map(&map).unwrap());
    counted.count("Pages::map", "page map, again", |fixture| pages(fixture).pages().map(&map).unwrap());
    scope(&counted.fixture, "a");
    scope(&counted.fixture, "b");
    counted.count("Pages::list", "page list, of what is not stored", |fixture| {
        pages(fixture).pages().list(Some("paged")).unwrap()
    });
    counted.count("Pages::update", "page update", |fixture| pages(fixture).pages().update("paged").unwrap());
    counted.count("Pages::update", "page update, of nothing", |fixture| {
        pages(fixture).pages().update("paged").unwrap()
    });
    let listed =
        counted.count("Pages::list", "page list", |fixture| pages(fixture).pages().list(None).unwrap());
    counted.count("Pages::show", "page show", |fixture| {
        pages(fixture).pages().show(&listed.pages[0].id).unwrap()
    });
    counted
        .count("Pages::unmap", "page unmap", |fixture| pages(fixture).pages().unmap("paged", None).unwrap());
}

/// A call, from the request to the result, and published values.
fn count_calls(counted: &mut Counted) {
    let handlers = Handlers::new().answer_runs(Some("ns"), |_| Ok(Value::null()));
    let board = counted.fixture.board.clone();
    let scope = board.scope("calls");
    let mut dispatcher = Dispatcher::open(&scope, &Dispatch::new("worker"), handlers).unwrap();
    let call = Call { id: Some("7".to_owned()), ..Call::new("ns", Value::null()) };
    let mut run = AgentRun::start(&scope, &call).unwrap();
    counted.count("Dispatcher::handle_next", "dispatcher, one request", |_| {
        dispatcher.handle_next(Duration::ZERO).unwrap()
    });
    counted.count("Run::next_reply", "call, of its result", |_| run.next_reply().unwrap());
    let signal = Signal { agent: "ivy".to_owned() };
    counted
        .count("Scope::publish", "publish", |fixture| fixture.board.scope("calls").publish(&signal).unwrap());
    counted.count("Scope::published", "published", |fixture| {
        fixture.board.scope("calls").published::<Signal>(&[]).unwrap()
    });
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Signal {
    agent: String,
}

impl Publishable for Signal {
    const TEMPLATE: &'static str = "signal:{agent}";

    fn key_values(&self) -> Vec<(&'static str, String)> {
        vec![("agent", self.agent.clone())]
    }
}

/// Claims that read more than the item and the session.
fn count_claims(counted: &mut Counted) {
    let session = &counted.fixture.session("Ash");
    counted.fixture.board.projects().register(&RegisterProject::new("p", "Project")).unwrap();
    counted.count("Work::claim", "work claim --title, of a new item", |fixture| {
        let create = Some(Create::new("titled", "Titled"));
        fixture.board.work().claim(&Claim { create, ..Claim::of("titled", session) }).unwrap()
    });
    counted.fixture.item("for-a-new-session");
    let register = Register::named("Elm");
    counted.count("Work::claim", "work claim, that registers its session", |fixture| {
        let claim = Claim::registering("for-a-new-session", register.clone());
        fixture.board.work().claim(&claim).unwrap()
    });
    // More items of others than a call reads.
    for number in 0..70 {
        counted.fixture.item(&format!("other-{number}"));
    }
    let (project, priority) = (Some("p".to_owned()), Some(Priority::P3));
    let create = Create { project: project.clone(), priority, ..Create::new("of-p", "Of p") };
    counted.fixture.board.work().create(&create).unwrap();
    let next = next_for(session);
    for (call, next) in [
        ("work claim --next --project", ClaimNext { project: project.clone(), ..next.clone() }),
        ("work claim --next --priority", ClaimNext { priority, ..next.clone() }),
        ("work claim --next --project --priority", ClaimNext { project, priority, ..next }),
    ] {
        let claimed = counted
            .count("Work::claim_next", call, |fixture| fixture.board.work().claim_next(&next).unwrap());
        assert_eq!(claimed.item.item_id, "of-p", "{call}");
        counted.fixture.release("of-p", session);
    }
    counted.fixture.claim("of-p", session);
    for (call, next) in [
        ("work claim --next --priority, of nothing", ClaimNext { priority, ..next_for(session) }),
        (
            "work claim --next --project, of nothing",
            ClaimNext { project: Some("p".to_owned()), ..next_for(session) },
        ),
    ] {
        counted
            .count("Work::claim_next", call, |fixture| fixture.board.work().claim_next(&next).unwrap_err());
    }
}

fn next_for(session: &str) -> ClaimNext {
    ClaimNext { session: session.to_owned(), ..ClaimNext::default() }
}

/// Heartbeats that read more than the session.
fn count_heartbeats(counted: &mut Counted) {
    let session = &counted.fixture.session("Fir");
    counted.count("Agents::heartbeat", "agent heartbeat --progress", |fixture| {
        let beat = Heartbeat { progress: Some("Half".to_owned()), ..Heartbeat::of(session) };
        fixture.board.agents().heartbeat(&beat).unwrap()
    });
    let stale = counted.fixture.session("Yew");
    counted.fixture.item("lost");
    counted.fixture.claim("lost", &stale);
    counted.fixture.scope_of(&stale).write(&Write { lease: true, ..a_write("lost", "1") }).unwrap();
    counted.fixture.pass_days(1);
    counted.fixture.beat(session);
    assert!(counted.fixture.sweep().stale_agents.iter().any(|agent| agent.session_id == stale));
    counted.count("Agents::heartbeat", "agent heartbeat, of a stale session", |fixture| fixture.beat(&stale));
    let orphan = counted.fixture.session_of_process("Ash", 20);
    counted.fixture.processes.end(20);
    counted.fixture.processes.start(21);
    counted.count("Agents::watch_instead", "another process, for a session whose own is gone", |fixture| {
        fixture.board.agents().watch_instead(&orphan, 21).unwrap()
    });
    counted.count("Agents::reader", "agent of a session id, to read", |fixture| {
        fixture.board.agents().reader(&orphan).unwrap()
    });
}

/// Writes into scopes whose rules name a protocol.
fn write_by_protocol(counted: &mut Counted) {
    let value_schema = Some("{\"type\": \"object\"}".to_owned());
    let review = DefineProtocol { value_schema, ..DefineProtocol::new("checked", "checked:{id}") };
    counted.fixture.board.protocols().define(&review).unwrap();
    for (protocol, call) in [
        ("Task", "write, by a rule with a built-in protocol"),
        ("checked", "write, by a rule with a protocol of the board"),
    ] {
        let rules = ValueRules::new(vec![ValueRule::protocol("task:*", protocol)]);
        let policies = Policies { validation: rules, ..Policies::default() };
        counted.fixture.board.scopes().create(&CreateScope::new(protocol, policies)).unwrap();
        counted.count("Scope::write", call, |fixture| {
            fixture.board.scope(protocol).write(&a_write("other", "{}")).unwrap()
        });
    }
}

fn count_entries(counted: &mut Counted) {
    let ivy = counted.fixture.session("Ivy");
    counted
        .count("Scope::write", "write", |fixture| fixture.scope_of(&ivy).write(&a_write("a", "1")).unwrap());
    counted.count("Scope::write", "write, with an idempotency key", |fixture| {
        let by = Actor { operation: Some("once".to_owned()), ..Actor::session(&ivy) };
        fixture.scope().acting_as(by).write(&a_write("b", "1")).unwrap()
    });
    let fence = counted.fixture.board.locks().acquire(&Acquire::of("guard", &ivy)).unwrap().lock.fence;
    counted.count("Scope::write", "write, with a fence token", |fixture| {
        let fences = vec![FenceToken::Lock { name: "guard".to_owned(), fence }];
        let by = Actor { fences, ..Actor::session(&ivy) };
        fixture.scope().acting_as(by).write(&a_write("fenced", "1")).unwrap()
    });
    counted.fixture.scope().delete("fenced").unwrap();
    counted.fixture.board.locks().release(&ReleaseLock::of("guard", &ivy)).unwrap();
    counted.count("Scope::write_batch", "write, of two keys", |fixture| {
        fixture.scope().write_batch(&[a_write("c", "1"), a_write("d", "1")]).unwrap()
    });
    counted.count("Scope::append", "append", |fixture| fixture.scope().append("list", &json("1")).unwrap());
    counted.count("Scope::increment", "increment", |fixture| fixture.scope().increment("number", 1).unwrap());
    let revision = counted.fixture.entry("c").unwrap().revision;
    counted.count("Scope::delete_if_revision", "delete --if-revision", |fixture| {
        fixture.scope().delete_if_revision("c", revision).unwrap()
    });
    counted.count("Scope::delete", "delete", |fixture| fixture.scope().delete("a").unwrap());
    count_transactions(counted, &ivy);
    counted
        .count("Scope::plan_clear", "clear --dry-run", |fixture| fixture.scope().plan_clear("b*").unwrap());
    counted.count("Scope::clear", "clear", |fixture| fixture.scope().clear("b*").unwrap());
    counted
        .count("Scope::plan_purge", "purge --dry-run", |fixture| fixture.scope().plan_purge("list").unwrap());
    counted.count("Scope::purge", "purge", |fixture| fixture.scope().purge("list").unwrap());
    counted.count("Scope::entry", "read", |fixture| fixture.scope().entry("number").unwrap());
    counted
        .count("Scope::read", "read, of the value alone", |fixture| fixture.scope().read("number").unwrap());
    counted.count("Scope::read_batch", "read, of two keys", |fixture| {
        fixture.scope().read_batch(&["number", "d"]).unwrap()
    });
    counted.count("Scope::entry_as_of", "read --as-of", |fixture| {
        fixture.scope().entry_as_of("number", fixture.revision()).unwrap()
    });
    counted.count("Scope::wait", "wait, for a key that exists", |fixture| {
        fixture.scope().wait("number", &WaitFor::default()).unwrap()
    });
    counted
        .count("Scope::list", "list, of entries", |fixture| fixture.scope().list(&Query::default()).unwrap());
    counted.count("Scope::query", "query, that finds 3 entries", |fixture| {
        let found = fixture.scope().query(&Query::default()).unwrap();
        assert_eq!(found.entries.len(), 3);
    });
    counted.count("Scope::list_counted", "list, one of 3 entries, with their number", |fixture| {
        let found = fixture.scope().list_counted(&Query { limit: Some(1), ..Query::default() }).unwrap();
        assert_eq!((found.keys.len(), found.total), (1, 3));
    });
    counted.count("Scope::query_counted", "query, one of 3 entries, with their number", |fixture| {
        let found = fixture.scope().query_counted(&Query { limit: Some(1), ..Query::default() }).unwrap();
        assert_eq!((found.page.entries.len(), found.total), (1, 3));
    });
    counted.count("Scope::snapshot", "snapshot, of 3 entries", |fixture| {
        fixture.scope().snapshot(&Query::default()).unwrap()
    });
    let limit = Policies { max_entries: Some(9), ..Policies::default() };
    counted.count("Scopes::create", "scope create", |fixture| {
        fixture.board.scopes().create(&CreateScope::new("cache", limit.clone())).unwrap()
    });
    counted.count("Scopes::set", "scope set", |fixture| {
        let set = SetScope { max_entries: Some(Some(1)), ..SetScope::of("cache") };
        fixture.board.scopes().set(&set).unwrap()
    });
    for (key, call) in [("a", "write, in a scope with a limit"), ("b", "write, that evicts an entry")] {
        counted.count("Scope::write", call, |fixture| {
            fixture.board.scope("cache").write(&a_write(key, "1")).unwrap()
        });
    }
    let caller = Actor::author("Oak");
    counted.count("Scope::entry", "read, by a caller", |fixture| {
        fixture.board.with_caller(caller.clone()).scope("team").entry("number").unwrap()
    });
    counted.count("Scope::query", "query, by a caller", |fixture| {
        fixture.board.with_caller(caller.clone()).scope("team").query(&Query::default()).unwrap()
    });
    counted.count("Scopes::show", "scope show", |fixture| fixture.board.scopes().show("cache").unwrap());
    counted.count("Scopes::list", "scope list", |fixture| fixture.board.scopes().list().unwrap());
    for (entries, call) in [(true, "scope delete --entries"), (false, "scope delete")] {
        counted.count("Scopes::delete", call, |fixture| {
            let name = "cache".to_owned();
            let deleted = fixture.board.scopes().delete(&DeleteScope { name, entries, session: None });
            assert!(deleted.is_ok() == entries);
        });
    }
    counted.count("Scopes::sizes", "scopes", |fixture| fixture.board.scopes().sizes().unwrap());
    counted.count("Board::entries", "entries, of every scope", |fixture| {
        fixture.board.entries(&EveryScope::default()).unwrap()
    });
    counted.count("Scope::history", "history", |fixture| fixture.scope().history("a", 9).unwrap());
    counted.count("Scope::history_within", "history, within some bytes", |fixture| {
        fixture.scope().history_within("a", 9, 1000).unwrap()
    });
    write_by_protocol(counted);
}

fn count_transactions(counted: &mut Counted, session: &str) {
    let txn = Txn {
        comparisons: vec![Comparison {
            scope: "team".to_owned(),
            key: "d".to_owned(),
            expected: Expected::Exists(true),
        }],
        then: vec![Operation::Write { scope: "team".to_owned(), write: a_write("e", "1") }],
        otherwise: None,
    };
    counted.count("Board::txn", "txn", |fixture| fixture.board.txn(&txn, &Actor::session(session)).unwrap());
    counted.count("Board::transaction", "transaction, that reads and writes a key", |fixture| {
        fixture
            .board
            .transaction(|tx| {
                let known = tx.scope("team").read("d")?.is_some();
                assert!(known);
                tx.scope("team").write(&a_write("d", "2"))
            })
            .unwrap();
    });
    count_in_transaction(counted, "TransactionScope::read", "transaction, that reads a key", |scope| {
        scope.read("d").map(drop)
    });
    count_in_transaction(counted, "TransactionScope::entry", "transaction, that reads an entry", |scope| {
        scope.entry("d").map(drop)
    });
    count_in_transaction(counted, "TransactionScope::write", "transaction, that writes a key", |scope| {
        scope.write(&a_write("gone", "1"))
    });
    count_in_transaction(counted, "TransactionScope::delete", "transaction, that deletes a key", |scope| {
        assert!(scope.delete("gone")?);
        Ok(())
    });
    counted.count("TransactionScope::query", "transaction, that queries and writes a key", |fixture| {
        fixture
            .board
            .transaction(|tx| {
                let query = Query { prefix: Some("d".to_owned()), ..Query::default() };
                assert_eq!(tx.scope("team").query(&query)?.len(), 1);
                tx.scope("team").write(&a_write("d", "3"))
            })
            .unwrap();
    });
}

fn count_in_transaction(
    counted: &mut Counted,
    verb: &'static str,
    call: &str,
    f: impl Fn(&mut TransactionScope<'_, '_>) -> Result<()>,
) {
    counted.count(verb, call, |fixture| fixture.board.transaction(|tx| f(&mut tx.scope("team"))).unwrap());
}

fn count_holdings(counted: &mut Counted) {
    let (ivy, oak) = (counted.fixture.session("Ivy"), counted.fixture.session("Oak"));
    let acquire = Acquire::of("deploy", &ivy);
    counted
        .count("Locks::acquire", "lock acquire", |fixture| fixture.board.locks().acquire(&acquire).unwrap());
    counted.count("Locks::acquire", "lock acquire, of a lock that another session holds", |fixture| {
        fixture.board.locks().acquire(&Acquire::of("deploy", &oak)).unwrap_err()
    });
    let release = ReleaseLock::of("deploy", &ivy);
    counted.count("Locks::can_acquire", "lock acquire --wait, checked again", |fixture| {
        fixture.board.locks().can_acquire(&Acquire::of("deploy", &oak), true).unwrap()
    });
    counted.count("Locks::list", "lock list", |fixture| fixture.board.locks().list().unwrap());
    counted
        .count("Locks::release", "lock release", |fixture| fixture.board.locks().release(&release).unwrap());
    let reserve = Reserve::of("/project", &["src/**"], &ivy);
    counted
        .count("Files::reserve", "file reserve", |fixture| fixture.board.files().reserve(&reserve).unwrap());
    let check = Check::of("/project", &["src/lib.rs"], None);
    counted.count("Files::check", "file check", |fixture| fixture.board.files().check(&check).unwrap());
    let before_edit = Check::of("/project", &["src/lib.rs"], Some(&oak));
    counted.count("Files::conflicts", "file check, before an edit", |fixture| {
        fixture.board.files().conflicts(&before_edit).unwrap()
    });
    counted.count("Files::list", "file list", |fixture| {
        fixture.board.files().list(&FileFilter::default()).unwrap()
    });
    counted.count("Files::release", "file release --all", |fixture| {
        fixture.board.files().release(&ReleaseFiles::all(&ivy)).unwrap()
    });
    counted.fixture.board.locks().acquire(&acquire).unwrap();
    counted.count("Agents::deregister", "agent deregister, with a lock", |fixture| {
        fixture.board.agents().deregister(&ivy).unwrap()
    });
}

fn count_readers(counted: &mut Counted) {
    let ivy = counted.fixture.session("Ivy");
    counted.fixture.item("z");
    counted.count("Agents::announce_task", "agent announce task", |fixture| {
        fixture.board.agents().announce_task(&ivy, "explore", "Look").unwrap();
    });
    counted.count("Agents::take_task", "agent take task", |fixture| {
        fixture.board.agents().take_task(&ivy, "explore").unwrap().unwrap()
    });
    counted.count("Agents::list", "agent list", |fixture| {
        fixture.board.agents().list(&AgentFilter::default()).unwrap()
    });
    counted.count("Agents::overview", "agent overview", |fixture| {
        fixture.board.agents().overview(&[AgentStatus::Active]).unwrap()
    });
    counted.count("Agents::show", "agent show", |fixture| fixture.board.agents().show(&ivy).unwrap());
    counted.count("Agents::get", "agent row", |fixture| fixture.board.agents().get(&ivy).unwrap().unwrap());
    counted.count("Agents::active_names", "names of active agents", |fixture| {
        fixture.board.agents().active_names().unwrap()
    });
    counted.count("Agents::names_of", "names of 3 sessions", |fixture| {
        fixture.board.agents().names_of(["a", "b", &ivy]).unwrap()
    });
    counted.count("Agents::resolve", "agent of a session id", |fixture| {
        fixture.board.agents().resolve(&ivy).unwrap()
    });
    counted.count("Agents::resolve_to_act", "agent of a session id, to act", |fixture| {
        fixture.board.agents().resolve_to_act(&ivy).unwrap()
    });
    counted.count("Agents::of_process", "agents of a process", |fixture| {
        fixture.board.agents().of_process(1).unwrap()
    });
    counted.count("Agents::of_first_process", "agents of the first of two processes", |fixture| {
        fixture.board.agents().of_first_process(&[1, 2]).unwrap()
    });
    counted.count("Work::list", "work list", |fixture| {
        fixture.board.work().list(&WorkFilter::default()).unwrap()
    });
    counted.count("Work::list_counted", "work list, with its number of items", |fixture| {
        fixture.board.work().list_counted(&WorkFilter::default()).unwrap()
    });
    counted.count("Work::newest", "work list, newest first", |fixture| {
        fixture.board.work().newest(&NewestWork::default()).unwrap()
    });
    for (item, blocker) in [("x1", "y1"), ("x2", "y2"), ("x3", "y3")] {
        counted.fixture.blocked_item(item, &[blocker]);
    }
    counted.count("Work::list_counted", "work list, with the number of items", |fixture| {
        fixture.board.work().list_counted(&WorkFilter { limit: Some(1), ..WorkFilter::default() }).unwrap()
    });
    counted.count("Work::list", "work list, with 3 blocked items", |fixture| {
        fixture.board.work().list(&WorkFilter::default()).unwrap()
    });
    counted.count("Work::newest", "work list, newest first, with 3 blocked items", |fixture| {
        fixture.board.work().newest(&NewestWork::default()).unwrap()
    });
    for item in ["x1", "x2", "x3"] {
        counted.fixture.board.work().delete(item, false, None).unwrap();
    }
    counted.count("Work::last_completed", "work list, last completed first", |fixture| {
        fixture.board.work().last_completed(&LastCompleted::default()).unwrap()
    });
    counted.count("Work::lanes", "work lanes", |fixture| {
        fixture.board.work().lanes(Duration::from_hours(1)).unwrap()
    });
    counted.count("Work::create_with_generated_id", "work create, with a generated id", |fixture| {
        fixture.board.work().create_with_generated_id(&Create::new("", "Generated")).unwrap()
    });
    counted.count(
        "Work::create_with_generated_id",
        "work create, with a generated id that is taken",
        |fixture| fixture.board.work().create_with_generated_id(&Create::new("", "Generated")).unwrap(),
    );
    counted.count("Work::wait", "work wait, for a status that it has", |fixture| {
        let statuses = Status::ALL.to_vec();
        fixture.board.work().wait(&WaitForItem { statuses, ..WaitForItem::completed("z") }).unwrap()
    });
    counted.count("Work::status", "work status", |fixture| fixture.board.work().status("z").unwrap());
    counted.count("Board::status", "status", |fixture| fixture.board.status().unwrap());
    counted.count("Board::status_since", "status since local midnight", |fixture| {
        fixture.board.status_since(fixture.clock.now().midnight()).unwrap()
    });
    counted.count("Board::counts", "status, counts alone", |fixture| fixture.board.counts().unwrap());
    counted.count("Board::work_counts", "status, counts of work", |fixture| {
        fixture.board.work_counts(fixture.clock.now().midnight()).unwrap()
    });
    count_exports(counted);
    let brief = counted.count("Board::brief", "brief", |fixture| fixture.board.brief(&ivy).unwrap());
    counted.count("Board::record_brief", "brief, noted as shown", |fixture| {
        fixture.board.record_brief(&brief, Duration::ZERO).unwrap()
    });
    count_log(counted, &ivy);
    counted.count("Board::try_sweep", "sweep automatically, nothing due", |fixture| {
        fixture.board.try_sweep(None)
    });
    counted.count("Board::sweep", "sweep", |fixture| fixture.board.sweep(&Sweep::default()).unwrap());
    counted.count("Board::prune", "prune, nothing due", |fixture| fixture.board.prune().unwrap());
    counted.count("Board::prune", "prune, an hour has not passed", |fixture| fixture.board.prune().unwrap());
    count_files(counted);
}

fn count_exports(counted: &mut Counted) {
    counted.count("Board::export", "export", |fixture| fixture.board.export().unwrap());
    counted.count("Board::export_scope", "export --scope", |fixture| {
        fixture.board.export_scope("team").unwrap()
    });
}

fn count_files(counted: &mut Counted) {
    let file = crate::import::read(r#"{"imported": {"key": "imported", "value": 1, "source_agent": "Ivy"}}"#)
        .unwrap();
    for (call, dry_run) in [("import, a dry run", true), ("import", false), ("import, nothing is new", false)]
    {
        counted.count("Scope::import", call, |fixture| {
            let import = Import { dry_run, ..Import::default() };
            fixture.scope().import(&file.content.entries, &import).unwrap()
        });
    }
    let definitions = r#"{"entries": [], "protocols": [{"name": "imported", "template": "imported:{id}", "level": "colony"}],
        "scopes": [{"scope": "imported", "max_entries": 5}]}"#;
    let file = crate::import::read(definitions).unwrap();
    for (call, dry_run) in [("import of policies, a dry run", true), ("import of policies", false)] {
        counted.count("Scope::import_file", call, |fixture| {
            fixture.scope().import_file(&file, &Import { dry_run, ..Import::default() }).unwrap()
        });
    }
    counted.count("Board::swarm_view", "render", |fixture| fixture.board.swarm_view("team").unwrap());
}

fn count_log(counted: &mut Counted, session: &str) {
    let since = Since::Cursor { session: session.to_owned(), reader: "observe".to_owned() };
    let observation = counted.count("Events::observe", "observe, from a cursor", |fixture| {
        fixture.board.events().observe(&since, &[]).unwrap()
    });
    counted.count("Events::observe_filtered", "observe, with filters", |fixture| {
        fixture.board.events().observe_filtered(&Since::Revision(Revision::ZERO), &[]).unwrap()
    });
    counted.count("Events::next", "observe, a batch", |fixture| {
        fixture.board.events().next(&observation, observation.after, 100).unwrap()
    });
    counted.count("Events::advance", "observe, moves the cursor", |fixture| {
        fixture.board.events().advance(session, "observe", fixture.revision()).unwrap();
    });
    counted.count("Events::newest", "events, newest first", |fixture| {
        fixture.board.events().newest(&Lines { limit: 10, ..Lines::default() }).unwrap()
    });
    counted.count("Events::oldest", "events, oldest first", |fixture| {
        fixture.board.events().oldest(&Lines { limit: 10, ..Lines::default() }).unwrap()
    });
    counted.count("Events::lines", "events, after a revision", |fixture| {
        fixture.board.events().lines(Revision::ZERO, 10).unwrap()
    });
    let mut follower = counted.count("Board::follow", "observe --follow, begins", |fixture| {
        let start = Start::Revision(Revision::ZERO);
        fixture.board.follow(&Follow { start, without_sweep: true, ..Follow::default() }).unwrap()
    });
    counted.count("Follower::next_batch", "observe --follow, a batch", |_| {
        follower.next_batch(100, Duration::ZERO).unwrap().unwrap()
    });
    // The old values are in versions that are not part of the batch.
    let start = Start::Revision(counted.fixture.revision());
    for _ in 0..3 {
        counted.fixture.write("d", "4");
        counted.fixture.write("number", "4");
    }
    let by_agent = Filter { agents: vec!["Ivy".to_owned(), "unknown".to_owned()], ..Filter::default() };
    for (call, filters) in [
        ("observe --follow, a batch with values before", vec![]),
        ("observe --follow, a batch by the names of agents", vec![by_agent]),
    ] {
        let start = if filters.is_empty() { start.clone() } else { Start::Revision(Revision::ZERO) };
        let follow = Follow { start, filters, without_sweep: true, ..Follow::default() };
        let mut follower = counted.fixture.board.follow(&follow).unwrap();
        counted.count("Follower::next_batch", call, |_| {
            follower.next_batch(100, Duration::ZERO).unwrap().unwrap()
        });
    }
    let mut follower =
        counted.count("Board::follow", "observe --follow, begins with a new named cursor", |fixture| {
            let start = Start::Cursor { name: "mirror".to_owned(), new_after: Some(Revision::ZERO) };
            fixture.board.follow(&Follow { start, without_sweep: true, ..Follow::default() }).unwrap()
        });
    let batch = counted.count("Follower::next_batch", "observe --follow, a batch of a named cursor", |_| {
        follower.next_batch(100, Duration::ZERO).unwrap().unwrap()
    });
    counted.count("Follower::acknowledge", "observe --follow, acknowledges a batch", |_| {
        follower.acknowledge(batch.last).unwrap();
    });
}

#[test]
fn values_that_a_page_of_entries_skips_are_not_announced() {
    testkit::limit_test();
    let (fixture, round_trips) = Fixture::announced();
    let scope = fixture.board.scope("team");
    for number in 0..200 {
        scope.write(&Write::new(&format!("k{number:03}"), Value::of(&number).unwrap())).unwrap();
    }
    let whole = Query { limit: Some(1000), ..Query::default() };
    for (what, query, expected) in [
        ("an offset", Query { offset: 150, limit: Some(5), ..Query::default() }, (5, 5)),
        ("a size", Query { most_bytes: Some(20), ..whole.clone() }, (64, 64)),
        (
            "a comparison",
            Query { author: Some("cli".to_owned()), limit: Some(5), ..Query::default() },
            (64, 64),
        ),
        ("all", whole, (200, 200)),
    ] {
        round_trips.take_values();
        let found = scope.query(&query).unwrap().entries;
        assert_eq!(round_trips.take_values(), expected, "{what}, {} found", found.len());
    }
    let counted = scope.query_counted(&Query { limit: Some(5), ..Query::default() }).unwrap();
    assert_eq!((counted.page.entries.len(), counted.total), (5, 200));
    assert_eq!(round_trips.take_values(), (5, 5), "others are counted without their values");
}

#[test]
fn values_of_events_are_announced_in_groups_until_they_are_enough() {
    testkit::limit_test();
    let (fixture, round_trips) = Fixture::announced();
    let ivy = fixture.session("Ivy");
    let scope = fixture.board.scope("team");
    for number in 0..100 {
        let value = Value::of(&"x".repeat(100_000)).unwrap();
        scope.write(&Write::new(&format!("task:Ivy:{number}"), value)).unwrap();
    }
    let observation = fixture.board.events().observe(&Since::Revision(Revision::ZERO), &[]).unwrap();
    round_trips.take_values();
    let batch = fixture.board.events().next(&observation, Revision::ZERO, 1000).unwrap().unwrap();
    assert_eq!(round_trips.take_values(), (64, 64), "a batch of {} events", batch.events.len());
    let checked_in = fixture.board.agents().check_in(&CheckIn::of(&ivy)).unwrap();
    assert_eq!((checked_in.updates.events.len(), checked_in.updates.left_out), (10, 90));
    let (_, at_once) = round_trips.take_values();
    assert_eq!(at_once, 64, "updates");
}

#[test]
fn every_verb_of_the_library_has_a_line_in_the_snapshot() {
    testkit::limit_test();
    let verbs = verbs_of_library();
    let counted = Counted::all().verbs;
    let excused: BTreeSet<&str> = NOT_COUNTED.iter().map(|(verb, _)| *verb).collect();
    let named: BTreeSet<&str> = counted.union(&excused).copied().collect();
    let forgotten: Vec<_> = verbs.iter().filter(|verb| !named.contains(verb.as_str())).collect();
    assert!(forgotten.is_empty(), "count the round trips of {forgotten:?}");
    let unknown: Vec<_> = named.iter().filter(|verb| !verbs.contains(**verb)).collect();
    assert!(unknown.is_empty(), "no handle has {unknown:?}");
    let twice: Vec<_> = counted.intersection(&excused).collect();
    assert!(twice.is_empty(), "{twice:?} have a line, and need no excuse");
}

/// The public functions of all handles.
pub(super) fn verbs_of_library() -> BTreeSet<String> {
    let sources = sources();
    let handles = handles(&sources);
    for handle in ["Agents", "Follower", "Scope", "TransactionScope"] {
        assert!(handles.contains(handle), "{handle} is not among {handles:?}");
    }
    sources.iter().flat_map(|source| verbs(source, &handles)).collect()
}

/// The files of the library, without the engines, and without `board.rs`, which opens boards and returns handles.
fn sources() -> Vec<String> {
    let mut sources = Vec::new();
    let mut directories = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() && !entry.ends_with("store") {
                directories.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs")
                && !entry.ends_with("board.rs")
            {
                sources.push(std::fs::read_to_string(&entry).unwrap());
            }
        }
    }
    sources
}

/// The name at the beginning of a text.
fn name(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
    &text[..end]
}

/// The types whose public functions are verbs: `Board`, and every public type that has a field of such a type.
fn handles(sources: &[String]) -> BTreeSet<String> {
    let mut handles = BTreeSet::from(["Board".to_owned()]);
    loop {
        let known = handles.len();
        for source in sources {
            let mut current = None;
            for line in source.lines() {
                if let Some(rest) = line.strip_prefix("pub struct ") {
                    current = Some(name(rest));
                } else if line == "}" {
                    current = None;
                } else if let (Some(current), Some((_, field))) = (current, line.split_once(": "))
                    && !line.trim_start().starts_with("//")
                    && field
                        .split(|letter: char| !letter.is_alphanumeric())
                        .any(|word| handles.contains(word))
                {
                    handles.insert(current.to_owned());
                }
            }
        }
        if handles.len() == known {
            return handles;
        }
    }
}

/// The public functions that a file adds to handles.
fn verbs<'s>(source: &'s str, handles: &'s BTreeSet<String>) -> impl Iterator<Item = String> + 's {
    let mut handle = None;
    source.lines().filter_map(move |line| {
        if let Some(rest) = line.strip_prefix("impl") {
            let rest = if rest.starts_with('<') { rest.split_once("> ")?.1 } else { rest.trim_start() };
            handle = Some(name(rest)).filter(|name| handles.contains(*name) && !rest.contains(" for "));
        }
        let verb = line.strip_prefix("    pub fn ")?;
        Some(format!("{}::{}", handle?, name(verb)))
    })
}
