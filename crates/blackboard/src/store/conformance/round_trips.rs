//! How many round trips each verb costs on an engine that is far away.
//!
//! `round_trips.snap` lists them. `BLACKBOARD_WRITE_SNAPSHOTS=1 cargo test -p blackboard round_trips` writes the file again;
//! look at what changed, because each round trip more is a delay for every caller.

use std::fmt::Write as _;

use super::announced::RoundTrips;
use super::*;
use crate::agent::{AgentFilter, CheckIn};
use crate::entry::{Comparison, EveryScope, Expected, Operation, Query, Txn, WaitFor};
use crate::event::{Lines, Since};
use crate::file::{Check, FileFilter, Release as ReleaseFiles, Reserve};
use crate::follow::{Follow, Start};
use crate::lock::{Acquire, Release as ReleaseLock};
use crate::project::RegisterProject;
use crate::work::{Block, ClaimNext, LastCompleted, NewestWork, Reassign, Status, WaitForItem, WorkFilter};

/// Public functions of the handles that have no line of their own, and why.
const NOT_COUNTED: [(&str, &str); 9] = [
    ("acquire_waiting", "calls `acquire` until it succeeds"),
    ("acquire_waiting_while", "calls `acquire` until it succeeds"),
    ("for_call", "`sweep_with_next_call`, on a clone"),
    ("prune_in_passing", "calls `prune`"),
    ("room", "asks the engine, and reads no state"),
    ("subscribe", "`follow`, one event at a time"),
    ("sweep_if_deferred", "`sweep_in_passing`, if no other call was"),
    ("sweep_with_next_call", "is part of the next call, as of `work claim` here"),
    ("try_transaction", "`transaction`, once"),
];

/// Types whose public functions are verbs. `board.rs` has none: it opens boards and hands out these.
const HANDLES: [&str; 8] = [
    "impl Agents<'_> {",
    "impl Projects<'_> {",
    "impl Work<'_> {",
    "impl Events<'_> {",
    "impl Scope<'_> {",
    "impl Locks<'_> {",
    "impl Files<'_> {",
    "impl Board {",
];

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/conformance/round_trips.snap");

/// The lines of the snapshot.
struct Counted {
    fixture: Fixture,
    round_trips: Arc<RoundTrips>,
    lines: String,
}

impl Counted {
    fn new() -> Counted {
        let mut round_trips = None;
        let fixture = Fixture::on(|clock| {
            let store = Announced::new(Arc::new(Memory::new(clock)));
            round_trips = Some(store.round_trips());
            (Arc::new(store), None)
        });
        Counted { fixture, round_trips: round_trips.unwrap(), lines: String::new() }
    }

    /// Adds the round trips of a verb.
    fn count<T>(&mut self, verb: &str, f: impl FnOnce(&Fixture) -> T) -> T {
        self.round_trips.take();
        let answer = f(&self.fixture);
        let (reads, commits) = self.round_trips.take();
        writeln!(self.lines, "{verb:<50} {reads:>2} read {commits:>2} commit").unwrap();
        answer
    }
}

#[test]
fn round_trips_of_every_verb_are_those_of_the_snapshot() {
    testkit::limit_test();
    let mut counted = Counted::new();
    count_sessions_and_work(&mut counted);
    count_entries(&mut counted);
    count_holdings(&mut counted);
    count_readers(&mut counted);
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

fn count_sessions_and_work(counted: &mut Counted) {
    let ivy = counted.count("agent register", |fixture| fixture.session("Ivy"));
    let oak = counted.fixture.session("Oak");
    counted.count("project register", |fixture| {
        fixture.board.projects().register(&RegisterProject::new("p", "Project")).unwrap()
    });
    counted.count("work create", |fixture| fixture.board.work().create(&Create::new("a", "A")).unwrap());
    counted.count("work create, blocked by another item", |fixture| fixture.blocked_item("b", &["a"]));
    counted.count("work claim", |fixture| {
        // As every command does: the probes of the automatic sweep are part of the read.
        fixture.board.sweep_with_next_call(Some(&ivy));
        fixture.claim("a", &ivy)
    });
    counted.count("work claim, of an item that another session holds", |fixture| {
        fixture.board.work().claim(&Claim::of("a", &oak)).unwrap_err()
    });
    counted.count("work claim, of a blocked item", |fixture| {
        fixture.board.work().claim(&Claim::of("b", &oak)).unwrap_err()
    });
    counted.count("work reassign", |fixture| {
        fixture.board.work().reassign(&Reassign::of("a", &ivy, &oak)).unwrap()
    });
    counted.count("work reassign --force", |fixture| {
        let reassign = Reassign { force: true, ..Reassign::of("a", &ivy, &ivy) };
        fixture.board.work().reassign(&reassign).unwrap()
    });
    counted.count("work release", |fixture| fixture.release("a", &ivy));
    let next = ClaimNext { session: ivy.clone(), ..ClaimNext::default() };
    counted.count("work claim --next", |fixture| fixture.board.work().claim_next(&next).unwrap());
    counted
        .count("agent heartbeat", |fixture| fixture.board.agents().heartbeat(&Heartbeat::of(&ivy)).unwrap());
    counted.count("work complete, of an item that blocks another", |fixture| fixture.complete("a", &ivy));
    counted.fixture.claim("b", &ivy);
    counted.count("work complete", |fixture| fixture.complete("b", &ivy));
    counted.count("work claim --next, of nothing", |fixture| {
        fixture.board.work().claim_next(&next).unwrap_err()
    });
    counted.count("work reset", |fixture| fixture.board.work().reset("b", None).unwrap());
    let block = Block { id: "b".to_owned(), blocked_by: owned(&["later"]), ..Block::default() };
    counted.count("work block", |fixture| fixture.board.work().block(&block).unwrap());
    counted.count("work unblock", |fixture| fixture.board.work().unblock("b", &[], None).unwrap());
    counted.count("work delete", |fixture| fixture.board.work().delete("b", false, None).unwrap());
    counted.count("agent attend, with updates", |fixture| {
        fixture.board.agents().check_in(&CheckIn::of(&oak)).unwrap()
    });
    counted.count("agent attend, without updates", |fixture| {
        fixture.board.agents().check_in(&CheckIn::of(&oak)).unwrap()
    });
    counted.count("agent deregister", |fixture| fixture.board.agents().deregister(&oak).unwrap());
    counted.count("project list", |fixture| fixture.board.projects().list().unwrap());
    counted.count("project status", |fixture| fixture.board.projects().status("p").unwrap());
    counted.count("project remove", |fixture| fixture.board.projects().remove("p", false, None).unwrap());
}

fn count_entries(counted: &mut Counted) {
    let ivy = counted.fixture.session("Ivy");
    counted.count("write", |fixture| fixture.scope_of(&ivy).write(&a_write("a", "1")).unwrap());
    counted.count("write, with an idempotency key", |fixture| {
        let by = Actor { operation: Some("once".to_owned()), ..Actor::session(&ivy) };
        fixture.scope().acting_as(by).write(&a_write("b", "1")).unwrap()
    });
    counted.count("write, of two keys", |fixture| {
        fixture.scope().write_batch(&[a_write("c", "1"), a_write("d", "1")]).unwrap()
    });
    counted.count("append", |fixture| fixture.scope().append("list", &json("1")).unwrap());
    counted.count("increment", |fixture| fixture.scope().increment("number", 1).unwrap());
    let revision = counted.fixture.entry("c").unwrap().revision;
    counted
        .count("delete --if-revision", |fixture| fixture.scope().delete_if_revision("c", revision).unwrap());
    counted.count("delete", |fixture| fixture.scope().delete("a").unwrap());
    count_transactions(counted, &ivy);
    counted.count("clear", |fixture| fixture.scope().clear("b*").unwrap());
    counted.count("purge --dry-run", |fixture| fixture.scope().plan_purge("list").unwrap());
    counted.count("purge", |fixture| fixture.scope().purge("list").unwrap());
    counted.count("read", |fixture| fixture.scope().entry("number").unwrap());
    counted.count("read, of the value alone", |fixture| fixture.scope().read("number").unwrap());
    counted.count("read, of two keys", |fixture| fixture.scope().read_batch(&["number", "d"]).unwrap());
    counted
        .count("read --as-of", |fixture| fixture.scope().entry_as_of("number", fixture.revision()).unwrap());
    counted.count("wait, for a key that exists", |fixture| {
        fixture.scope().wait("number", &WaitFor::default()).unwrap()
    });
    counted.count("list, of entries", |fixture| fixture.scope().list(&Query::default()).unwrap());
    counted.count("query, that finds 3 entries", |fixture| {
        let found = fixture.scope().query(&Query::default()).unwrap();
        assert_eq!(found.entries.len(), 3);
    });
    counted.count("snapshot, of 3 entries", |fixture| fixture.scope().snapshot(&Query::default()).unwrap());
    counted.count("scopes", |fixture| fixture.board.scopes().unwrap());
    counted
        .count("entries, of every scope", |fixture| fixture.board.entries(&EveryScope::default()).unwrap());
    counted.count("history", |fixture| fixture.scope().history("a", 9).unwrap());
    counted
        .count("history, within some bytes", |fixture| fixture.scope().history_within("a", 9, 1000).unwrap());
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
    counted.count("txn", |fixture| fixture.board.txn(&txn, &Actor::session(session)).unwrap());
    counted.count("transaction, that reads and writes a key", |fixture| {
        fixture
            .board
            .transaction(|tx| {
                let known = tx.scope("team").read("d")?.is_some();
                assert!(known);
                tx.scope("team").write(&a_write("d", "2"))
            })
            .unwrap();
    });
    counted.count("transaction, that queries and writes a key", |fixture| {
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

fn count_holdings(counted: &mut Counted) {
    let (ivy, oak) = (counted.fixture.session("Ivy"), counted.fixture.session("Oak"));
    let acquire = Acquire::of("deploy", &ivy);
    counted.count("lock acquire", |fixture| fixture.board.locks().acquire(&acquire).unwrap());
    counted.count("lock acquire, of a lock that another session holds", |fixture| {
        fixture.board.locks().acquire(&Acquire::of("deploy", &oak)).unwrap_err()
    });
    let release = ReleaseLock::of("deploy", &ivy);
    counted.count("lock acquire --wait, checked again", |fixture| {
        fixture.board.locks().can_acquire(&Acquire::of("deploy", &oak), true).unwrap()
    });
    counted.count("lock list", |fixture| fixture.board.locks().list().unwrap());
    counted.count("lock release", |fixture| fixture.board.locks().release(&release).unwrap());
    let reserve = Reserve::of("/project", &["src/**"], &ivy);
    counted.count("file reserve", |fixture| fixture.board.files().reserve(&reserve).unwrap());
    let check = Check::of("/project", &["src/lib.rs"], None);
    counted.count("file check", |fixture| fixture.board.files().check(&check).unwrap());
    let before_edit = Check::of("/project", &["src/lib.rs"], Some(&oak));
    counted.count("file check, before an edit", |fixture| {
        fixture.board.files().conflicts(&before_edit).unwrap()
    });
    counted.count("file list", |fixture| fixture.board.files().list(&FileFilter::default()).unwrap());
    counted.count("file release --all", |fixture| {
        fixture.board.files().release(&ReleaseFiles::all(&ivy)).unwrap()
    });
    counted.fixture.board.locks().acquire(&acquire).unwrap();
    counted
        .count("agent deregister, with a lock", |fixture| fixture.board.agents().deregister(&ivy).unwrap());
}

fn count_readers(counted: &mut Counted) {
    let ivy = counted.fixture.session("Ivy");
    counted.fixture.item("z");
    counted.count("agent announce task", |fixture| {
        fixture.board.agents().announce_task(&ivy, "explore", "Look").unwrap();
    });
    counted.count("agent take task", |fixture| {
        fixture.board.agents().take_task(&ivy, "explore").unwrap().unwrap()
    });
    counted.count("agent list", |fixture| fixture.board.agents().list(&AgentFilter::default()).unwrap());
    counted
        .count("agent overview", |fixture| fixture.board.agents().overview(&[AgentStatus::Active]).unwrap());
    counted.count("agent show", |fixture| fixture.board.agents().show(&ivy).unwrap());
    counted.count("agent row", |fixture| fixture.board.agents().get(&ivy).unwrap().unwrap());
    counted.count("agent of a session id", |fixture| fixture.board.agents().resolve(&ivy).unwrap());
    counted.count("agent of a session id, to act", |fixture| {
        fixture.board.agents().resolve_to_act(&ivy).unwrap()
    });
    counted.count("agents of a process", |fixture| fixture.board.agents().of_process(1).unwrap());
    counted.count("work list", |fixture| fixture.board.work().list(&WorkFilter::default()).unwrap());
    counted.count("work list, newest first", |fixture| {
        fixture.board.work().newest(&NewestWork::default()).unwrap()
    });
    counted.count("work list, last completed first", |fixture| {
        fixture.board.work().last_completed(&LastCompleted::default()).unwrap()
    });
    counted.count("work lanes", |fixture| fixture.board.work().lanes(Duration::from_hours(1)).unwrap());
    counted.count("work create, with a generated id", |fixture| {
        fixture.board.work().create_with_generated_id(&Create::new("", "Generated")).unwrap()
    });
    counted.count("work create, with a generated id that is taken", |fixture| {
        fixture.board.work().create_with_generated_id(&Create::new("", "Generated")).unwrap()
    });
    counted.count("work wait, for a status that it has", |fixture| {
        let statuses = Status::ALL.to_vec();
        fixture.board.work().wait(&WaitForItem { statuses, ..WaitForItem::completed("z") }).unwrap()
    });
    counted.count("work status", |fixture| fixture.board.work().status("z").unwrap());
    counted.count("status", |fixture| fixture.board.status().unwrap());
    counted.count("status, counts alone", |fixture| fixture.board.counts().unwrap());
    counted.count("status, counts of work", |fixture| fixture.board.work_counts().unwrap());
    counted.count("export", |fixture| fixture.board.export().unwrap());
    let brief = counted.count("brief", |fixture| fixture.board.brief(&ivy).unwrap());
    counted
        .count("brief, noted as shown", |fixture| fixture.board.note_brief(&brief, Duration::ZERO).unwrap());
    count_log(counted, &ivy);
    counted.count("sweep automatically, nothing due", |fixture| fixture.board.try_sweep(None));
    counted.count("sweep", |fixture| fixture.board.sweep(&Sweep::default()).unwrap());
    counted.count("prune, nothing due", |fixture| fixture.board.prune().unwrap());
    counted.count("prune, an hour has not passed", |fixture| fixture.board.prune().unwrap());
}

fn count_log(counted: &mut Counted, session: &str) {
    let since = Since::Cursor { session: session.to_owned(), reader: "observe".to_owned() };
    let observation = counted
        .count("observe, from a cursor", |fixture| fixture.board.events().observe(&since, &[]).unwrap());
    counted.count("observe, with filters", |fixture| {
        fixture.board.events().observe_filtered(&Since::Revision(Revision::ZERO), &[]).unwrap()
    });
    counted.count("observe, a batch", |fixture| {
        fixture.board.events().next(&observation, observation.after, 100).unwrap()
    });
    counted.count("observe, moves the cursor", |fixture| {
        fixture.board.events().advance(session, "observe", fixture.revision()).unwrap();
    });
    counted.count("events, newest first", |fixture| {
        fixture.board.events().newest(&Lines { limit: 10, ..Lines::default() }).unwrap()
    });
    counted.count("events, after a revision", |fixture| {
        fixture.board.events().lines(Revision::ZERO, 10).unwrap()
    });
    let mut follower = counted.count("observe --follow, begins", |fixture| {
        let start = Start::Revision(Revision::ZERO);
        fixture.board.follow(&Follow { start, without_sweep: true, ..Follow::default() }).unwrap()
    });
    counted
        .count("observe --follow, a batch", |_| follower.next_batch(100, Duration::ZERO).unwrap().unwrap());
}

#[test]
fn every_verb_of_the_library_has_a_line_in_the_snapshot() {
    let this = include_str!("round_trips.rs");
    let mut forgotten = Vec::new();
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut directories = vec![source.clone()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() && !entry.ends_with("store") {
                directories.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs")
                && !entry.ends_with("board.rs")
            {
                let text = std::fs::read_to_string(&entry).unwrap();
                let is_counted = |verb: &&str| {
                    this.contains(&format!(".{verb}(")) || NOT_COUNTED.iter().any(|(name, _)| name == verb)
                };
                forgotten.extend(verbs(&text).filter(|verb| !is_counted(verb)).map(str::to_owned));
            }
        }
    }
    assert!(forgotten.is_empty(), "count the round trips of {forgotten:?}");
}

/// The public functions that a file adds to a handle.
fn verbs(text: &str) -> impl Iterator<Item = &str> {
    let mut is_handle = false;
    text.lines().filter_map(move |line| {
        if line.starts_with("impl") {
            is_handle = HANDLES.contains(&line);
        }
        let name = line.strip_prefix("    pub fn ").filter(|_| is_handle)?;
        name.split(['(', '<']).next()
    })
}
