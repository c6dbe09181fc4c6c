//! Copies between SQLite and Redis, in every direction.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use testkit::redis::{RedisServer, shared_redis};

use super::*;
use crate::agent::Register;
use crate::board::Board;
use crate::clock::{Clock, SystemClock};
use crate::entry::{Value, Write};
use crate::error::Error;
use crate::event::{EventType, NewEvent, TargetType};
use crate::store::conformance::commits::every_kind_of_row;
use crate::store::redis::{Redis, RedisOptions};
use crate::store::sqlite::{Sqlite, SqliteOptions};
use crate::store::{BookkeepingRow, Changes, Commit, OnBusy, TABLES, Tx};
use crate::work::{Claim, Complete, Create};

/// A location of a board.
#[derive(Clone, Debug)]
enum TestLocation {
    File(std::path::PathBuf),
    Server(String),
}

impl TestLocation {
    fn file(directory: &Path, name: &str) -> TestLocation {
        TestLocation::File(directory.join(name))
    }

    fn server() -> Option<TestLocation> {
        shared_redis().map(TestLocation::Server)
    }

    fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(match self {
            TestLocation::File(path) => {
                Arc::new(Sqlite::open(path, Arc::new(SystemClock), &SqliteOptions::default())?)
            }
            TestLocation::Server(url) => Arc::new(Redis::open(url.parse()?, &options())?),
        })
    }

    fn board(&self) -> Board {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Board::on(self.open().unwrap(), clock)
    }

    fn create_to_load(&self, replaces: bool) -> Result<Box<dyn LoadingBoard>> {
        Ok(match self {
            TestLocation::File(path) => {
                let options = SqliteOptions::default();
                Box::new(Sqlite::create_to_load(path, Arc::new(SystemClock), &options, replaces)?)
            }
            TestLocation::Server(url) => Box::new(Redis::create_to_load(url.parse()?, &options(), replaces)?),
        })
    }
}

fn options() -> RedisOptions {
    let (patience, reply_limit) = (Duration::from_mins(1), Duration::from_secs(30));
    RedisOptions { patience, reply_limit, ..RedisOptions::default() }
}

fn copy_to(source: &dyn Store, target: &TestLocation) -> Copied {
    let mut loading = target.create_to_load(false).unwrap();
    let copied = copy(source, &mut *loading, &mut |_| {}).unwrap();
    loading.open().unwrap();
    copied
}

/// Every part of a board, sorted.
#[derive(Default)]
struct Parts {
    extent: Extent,
    list: Vec<String>,
}

impl Recipient for Parts {
    fn begin(&mut self, extent: &Extent) -> Result<()> {
        self.extent = *extent;
        Ok(())
    }

    fn part(&mut self, part: Part) -> Result<()> {
        self.list.push(format!("{part:?}"));
        Ok(())
    }
}

fn parts_of(store: &dyn Store) -> (Extent, Vec<String>) {
    let mut parts = Parts::default();
    store.dump(&mut parts).unwrap();
    parts.list.sort();
    (parts.extent, parts.list)
}

fn commit(store: &dyn Store, f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>) {
    let commit = Commit { name: "test", prefetch: &[], on_busy: OnBusy::Wait, callers: &[] };
    store.commit(&commit, f).unwrap();
}

fn event() -> NewEvent {
    NewEvent::new(EventType::WorkCreated, TargetType::WorkItem, "x", "Something happened")
}

/// What a reader finds out about the event log by counting.
fn counts(store: &dyn Store) -> Vec<String> {
    let mut found = Vec::new();
    store
        .read(&[], &mut |tx| {
            found = vec![format!("{} {}", tx.floor()?, tx.revision()?)];
            let revision = tx.revision()?;
            found.push(tx.count_events(Revision::ZERO, revision)?.to_string());
            for back in 0..20 {
                let at = tx.revision_back(revision, back)?;
                found.push(format!("{at} {}", tx.count_events(at, revision)?));
            }
            Ok(())
        })
        .unwrap();
    found
}

/// Puts rows of every table, versions, gaps, and entries whose events are pruned on a board.
fn fill(store: &Arc<dyn Store>) {
    let board = Board::on(store.clone(), Arc::new(SystemClock));
    let scope = board.scope("default");
    let write = |key: &str, value: i32| {
        let write = Write { tags: vec!["tag".to_owned()], ..Write::new(key, Value::of(&value).unwrap()) };
        scope.write(&write).unwrap()
    };
    write("old", 1);
    write("replaced", 1);
    let floor = write("pruned", 1).revision;
    scope.delete("pruned").unwrap();
    for value in 2..5 {
        write("replaced", value);
        write("new", value);
    }
    scope
        .write(&Write { ttl: Some(Duration::from_hours(1)), ..Write::new("expires", Value::null()) })
        .unwrap();
    write("deleted", 1);
    scope.delete("deleted").unwrap();
    commit(&**store, &mut |tx| {
        let mut changes = Changes::new();
        for row in every_kind_of_row() {
            tx.get(&row.key())?;
            changes.put(row);
        }
        let clock = BookkeepingRow { name: "clock:elsewhere".into(), value: "{}".to_owned() };
        tx.get(&Row::from(clock.clone()).key())?;
        changes.put(clock);
        changes.events.extend([event(), event()]);
        Ok(changes)
    });
    let ivy = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    board.work().create(&Create::new("x", "X")).unwrap();
    board.work().claim(&Claim::of("x", &ivy)).unwrap();
    commit(&**store, &mut |tx| {
        let mut changes = Changes::new();
        crate::prune::cut_log(tx, floor, &mut changes)?;
        Ok(changes)
    });
}

fn export(store: &Arc<dyn Store>) -> crate::export::Exported {
    Board::on(store.clone(), Arc::new(SystemClock)).export().unwrap()
}

#[test]
fn board_is_equal_after_it_was_copied_there_and_back() {
    let directory = testkit::tempdir().unwrap();
    let Some(server) = TestLocation::server() else { return };
    let source = directory.path().join("source.db");
    let skipping = Sqlite::open(&source, Arc::new(SystemClock), &SqliteOptions::default()).unwrap();
    let source: Arc<dyn Store> = Arc::new(skipping.skipping_revisions());
    fill(&source);
    let (extent, mut expected) = parts_of(&*source);
    let all = expected.len();
    expected.retain(|part| !part.contains("clock:"));
    assert!(extent.floor > Revision::ZERO && all > expected.len(), "{extent:?}");
    let mut from = source.clone();
    let on_file = |name: &str| TestLocation::file(directory.path(), name);
    let targets = [
        server,
        on_file("back.db"),
        on_file("again.db"),
        TestLocation::server().unwrap(),
        TestLocation::server().unwrap(),
    ];
    for (round, target) in targets.into_iter().enumerate() {
        let copied = copy_to(&*from, &target);
        for table in TABLES {
            assert!(copied.copied.contains_key(table.name), "no row of {} was copied", table.name);
        }
        assert_eq!(copied.left_out > 0, round == 0, "{copied:?}");
        let to = target.open().unwrap();
        let (found_extent, found) = parts_of(&*to);
        assert_eq!(found, expected, "{target:?}");
        assert_eq!(found_extent, Extent { rows: found_extent.rows, ..extent });
        assert_eq!(counts(&*to), counts(&*source), "{target:?}");
        assert_eq!(export(&to), export(&source), "{target:?}");
        from = to;
    }
    // The copies accept commits, whose ids come after those of the source.
    let board = Board::on(from, Arc::new(SystemClock));
    let written = board.scope("default").write(&Write::new("next", Value::null())).unwrap();
    assert!(written.revision > extent.revision);
    assert_eq!(board.scope("default").history("replaced", 10).unwrap().versions.len(), 4);
}

#[test]
fn old_fence_token_is_refused_after_a_copy_and_the_current_one_is_valid() {
    let directory = testkit::tempdir().unwrap();
    let Some(server) = TestLocation::server() else { return };
    let source = TestLocation::file(directory.path(), "source.db");
    let board = source.board();
    let agents =
        ["Ivy", "Oak"].map(|name| board.agents().register(&Register::named(name)).unwrap().agent.session_id);
    let [ivy, oak] = &agents;
    board.work().create(&Create::new("x", "X")).unwrap();
    let old = board.work().claim(&Claim::of("x", ivy)).unwrap().item.fence;
    board.work().reset("x", None).unwrap();
    let fence = board.work().claim(&Claim::of("x", oak)).unwrap().item.fence;
    copy_to(board.store(), &server);
    let copy = server.board();
    let complete = |fence, session| Complete { fence, ..Complete::of("x", session) };
    let refused = |result: Result<_, Error>| result.map(drop).unwrap_err().code();
    assert_eq!(refused(copy.work().complete(&complete(old, oak))), Code::StaleFence);
    assert_eq!(refused(copy.work().complete(&complete(old, ivy))), Code::NotHolder);
    copy.work().complete(&complete(fence, oak)).unwrap();
}

#[test]
fn target_refuses_every_call_until_it_is_opened_and_can_be_replaced_only_then() {
    let directory = testkit::tempdir().unwrap();
    let source = TestLocation::file(directory.path(), "source.db");
    source.board().work().create(&Create::new("x", "X")).unwrap();
    let code = |result: Result<Arc<dyn Store>>| result.map(drop).unwrap_err().code();
    let targets = [Some(TestLocation::file(directory.path(), "target.db")), TestLocation::server()];
    for target in targets.into_iter().flatten() {
        let mut interrupted = target.create_to_load(false).unwrap();
        interrupted.begin(&Extent::default()).unwrap();
        assert_eq!(code(target.open()), Code::BeingCopied);
        assert_eq!(target.create_to_load(false).map(drop).unwrap_err().code(), Code::BeingCopied);
        let mut loading = target.create_to_load(true).unwrap();
        // The one that was replaced can store nothing more, or at least is not opened.
        assert!(interrupted.load(Vec::new()).and_then(|()| interrupted.open()).is_err());
        drop(interrupted);
        copy(&*source.open().unwrap(), &mut *loading, &mut |_| {}).unwrap();
        assert_eq!(code(target.open()), Code::BeingCopied);
        loading.open().unwrap();
        assert_eq!(target.board().export().unwrap(), source.board().export().unwrap());
        for replaces in [false, true] {
            assert_eq!(target.create_to_load(replaces).map(drop).unwrap_err().code(), Code::InUse);
        }
    }
}

#[test]
fn sealed_board_refuses_commits_of_every_session_and_can_be_read() {
    let directory = testkit::tempdir().unwrap();
    let places = [Some(TestLocation::file(directory.path(), "source.db")), TestLocation::server()];
    for place in places.into_iter().flatten() {
        let earlier = place.board();
        earlier.work().create(&Create::new("x", "X")).unwrap();
        assert!(place.open().unwrap().seal("elsewhere").unwrap());
        assert!(!place.open().unwrap().seal("elsewhere").unwrap());
        for board in [&earlier, &place.board()] {
            let refused = board.work().create(&Create::new("y", "Y")).unwrap_err();
            assert_eq!(refused.code(), Code::BoardSealed);
            assert!(refused.to_string().contains("elsewhere"), "{refused}");
            assert_eq!(board.export().unwrap().work_items.len(), 1);
        }
        // What it is sealed for.
        let copy = TestLocation::file(directory.path(), &format!("{}.db", uuid::Uuid::new_v4().simple()));
        copy_to(&*place.open().unwrap(), &copy);
        copy.board().work().create(&Create::new("y", "Y")).unwrap();
        assert!(place.open().unwrap().unseal().unwrap());
        assert!(!place.open().unwrap().unseal().unwrap());
        earlier.work().create(&Create::new("y", "Y")).unwrap();
    }
}

#[test]
fn copy_is_of_one_revision_while_the_source_changes_and_leaves_nothing_on_the_server() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let directory = testkit::tempdir().unwrap();
    let file = TestLocation::file(directory.path(), "file.db");
    for (name, source) in [("file", file), ("server", TestLocation::Server(server.url("source")))] {
        let board = source.board();
        for number in 0..3 {
            board.work().create(&Create::new(&format!("before-{number}"), "X")).unwrap();
        }
        let (revision, expected) = (board.revision().unwrap(), board.export().unwrap());
        let target = TestLocation::file(directory.path(), &format!("copy-of-{name}.db"));
        let mut loading = target.create_to_load(false).unwrap();
        let mut number = 0;
        let mut observe = |_| {
            number += 1;
            board.work().create(&Create::new(&format!("later-{number}"), "X")).unwrap();
        };
        let copied = copy(board.store(), &mut *loading, &mut observe).unwrap();
        loading.open().unwrap();
        assert!(number > 0);
        assert_eq!((copied.revision, target.board().export().unwrap()), (revision, expected));
    }
    assert_eq!(server.command(&["DBSIZE"]), ":3\r\n", "the snapshot is gone");
}

#[test]
fn restarted_server_assigns_no_id_of_the_copied_board_again() {
    let settings = [("appendonly", "yes"), ("appendfsync", "always")];
    let Some(mut server) = RedisServer::start(&settings) else { return };
    let directory = testkit::tempdir().unwrap();
    let path = directory.path().join("source.db");
    let skipping = Sqlite::open(&path, Arc::new(SystemClock), &SqliteOptions::default()).unwrap();
    let source: Arc<dyn Store> = Arc::new(skipping.skipping_revisions());
    fill(&source);
    let target = TestLocation::Server(server.url("copy"));
    let copied = copy_to(&*source, &target);
    server.kill();
    server.start_again();
    let board = target.board();
    assert_eq!(board.revision().unwrap(), copied.revision);
    let next = board.scope("default").write(&Write::new("next", Value::null())).unwrap().revision;
    // It is as old as its revision requires, and not much older: ids last for thousands of years.
    assert!(next > copied.revision && next.get() < copied.revision.get() + (1 << 30), "{next}");
}
