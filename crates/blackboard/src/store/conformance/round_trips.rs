//! How many round trips each verb costs on an engine that is far away.
//!
//! `round_trips.snap` lists them. `BLACKBOARD_WRITE_SNAPSHOTS=1 cargo test -p blackboard round_trips` writes the file again;
//! look at what changed, because each round trip more is a delay for every caller.

use std::fmt::Write as _;

use super::announced::RoundTrips;
use super::*;
use crate::agent::Attendance;
use crate::file::{Check, Release as ReleaseFiles, Reserve};
use crate::lock::{Acquire, Release as ReleaseLock};
use crate::project::RegisterProject;
use crate::work::{Block, ClaimNext, WorkFilter};

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
    counted.count("work create", |fixture| fixture.item("a"));
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
    counted.count("work release", |fixture| fixture.release("a", &ivy));
    let next = ClaimNext { session: ivy.clone(), ..ClaimNext::default() };
    counted.count("work claim --next", |fixture| fixture.board.work().claim_next(&next).unwrap());
    counted.count("agent heartbeat", |fixture| fixture.beat(&ivy));
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
        fixture.board.agents().attend(&Attendance::of(&oak)).unwrap()
    });
    counted.count("agent attend, without updates", |fixture| {
        fixture.board.agents().attend(&Attendance::of(&oak)).unwrap()
    });
    counted.count("agent deregister", |fixture| fixture.board.agents().deregister(&oak).unwrap());
    counted.count("project remove", |fixture| fixture.board.projects().remove("p", false, None).unwrap());
}

fn count_entries(counted: &mut Counted) {
    let ivy = counted.fixture.session("Ivy");
    counted.count("write", |fixture| fixture.scope_of(&ivy).write(&a_write("a", "1")).unwrap());
    counted.count("write, with an idempotency key", |fixture| {
        let by = By { operation: Some("once".to_owned()), ..By::session(&ivy) };
        fixture.scope().by(by).write(&a_write("b", "1")).unwrap()
    });
    counted.count("append", |fixture| fixture.scope().append("list", &json("1")).unwrap());
    counted.count("increment", |fixture| fixture.scope().increment("number", 1).unwrap());
    counted.count("delete", |fixture| fixture.scope().delete("a").unwrap());
    counted.count("clear", |fixture| fixture.scope().clear("b*").unwrap());
    counted.count("purge", |fixture| fixture.scope().purge("list").unwrap());
    counted.count("read", |fixture| fixture.entry("number"));
    counted.count("history", |fixture| fixture.scope().history("a", 9).unwrap());
}

fn count_holdings(counted: &mut Counted) {
    let (ivy, oak) = (counted.fixture.session("Ivy"), counted.fixture.session("Oak"));
    let acquire = Acquire::of("deploy", &ivy);
    counted.count("lock acquire", |fixture| fixture.board.locks().acquire(&acquire).unwrap());
    counted.count("lock acquire, of a lock that another session holds", |fixture| {
        fixture.board.locks().acquire(&Acquire::of("deploy", &oak)).unwrap_err()
    });
    let release = ReleaseLock::of("deploy", &ivy);
    counted.count("lock release", |fixture| fixture.board.locks().release(&release).unwrap());
    let reserve = Reserve::of("/project", &["src/**"], &ivy);
    counted.count("file reserve", |fixture| fixture.board.files().reserve(&reserve).unwrap());
    let check = Check::of("/project", &["src/lib.rs"], None);
    counted.count("file check", |fixture| fixture.board.files().check(&check).unwrap());
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
    counted.count("agent list", |fixture| {
        fixture.board.agents().list(&crate::agent::AgentFilter::default()).unwrap()
    });
    counted.count("agent show", |fixture| fixture.agent(&ivy));
    counted.count("work list", |fixture| fixture.board.work().list(&WorkFilter::default()).unwrap());
    counted.count("work status", |fixture| fixture.work("z"));
    counted.count("status", |fixture| fixture.board.status().unwrap());
    counted.count("brief", |fixture| fixture.board.brief(&ivy).unwrap());
    counted.count("sweep automatically, nothing due", |fixture| fixture.board.sweep_in_passing(None));
    counted.count("sweep", Fixture::sweep);
    counted.count("prune, nothing due", |fixture| fixture.board.prune().unwrap());
}
