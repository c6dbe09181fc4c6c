//! Whatever happens to a board and to its index, the index has what a new one would have.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::content::{content, fresh};
use crate::agent::{Heartbeat, Register};
use crate::board::Board;
use crate::clock::{Clock, FixedClock};
use crate::entry::{Value, Write};
use crate::error::{Code, Error, Fault};
use crate::revision::Revision;
use crate::search::index::{Failure, Index};
use crate::search::{CatchUp, IndexLocation, Query};
use crate::store::{Changes, Memory};
use crate::work::{Create, Edit};

/// What happens to the board, or to its index.
#[derive(Clone, Debug)]
enum Happening {
    Write {
        scope: u8,
        key: u8,
        words: Vec<u8>,
        tag: Option<u8>,
    },
    Delete {
        scope: u8,
        key: u8,
    },
    Purge {
        scope: u8,
        key: u8,
    },
    Create(u8),
    Edit {
        item: u8,
        words: Vec<u8>,
    },
    DeleteItem(u8),
    Progress(Vec<u8>),
    Prune,
    /// A search that stops after this many rows.
    Index(usize),
    /// The process that indexes is killed before its commit.
    Kill(usize),
    /// The index is deleted.
    Remove,
}

fn happening() -> impl Strategy<Value = Happening> {
    let words = || prop::collection::vec(0..12_u8, 0..6);
    prop_oneof![
        6 => (0..3_u8, 0..6_u8, words(), prop::option::of(0..3_u8))
            .prop_map(|(scope, key, words, tag)| Happening::Write { scope, key, words, tag }),
        3 => (0..3_u8, 0..6_u8).prop_map(|(scope, key)| Happening::Delete { scope, key }),
        1 => (0..3_u8, 0..6_u8).prop_map(|(scope, key)| Happening::Purge { scope, key }),
        2 => (0..5_u8).prop_map(Happening::Create),
        2 => (0..5_u8, words()).prop_map(|(item, words)| Happening::Edit { item, words }),
        1 => (0..5_u8).prop_map(Happening::DeleteItem),
        2 => words().prop_map(Happening::Progress),
        1 => Just(Happening::Prune),
        4 => (0..8_usize).prop_map(Happening::Index),
        2 => (0..8_usize).prop_map(Happening::Kill),
        1 => Just(Happening::Remove),
    ]
}

fn sentence(words: &[u8]) -> String {
    const WORDS: [&str; 12] = [
        "login",
        "retries",
        "login_retryCount",
        "migrations",
        "deploying",
        "cache",
        "src/auth/login.rs",
        "the",
        "Zürich",
        "日本語",
        "42",
        "caching",
    ];
    words.iter().map(|word| WORDS[usize::from(*word)]).collect::<Vec<_>>().join(" ")
}

fn apply(board: &Board, session: &str, happening: &Happening) -> crate::Result<()> {
    let scope = |scope: &u8| board.scope(&format!("scope-{scope}"));
    match happening {
        Happening::Write { scope: name, key, words, tag } => {
            let tags = tag.iter().map(|tag| format!("tag-{tag}")).collect();
            let write = Write { tags, ..Write::new(&format!("key-{key}"), Value::of(&sentence(words))?) };
            scope(name).write(&write).map(drop)
        }
        Happening::Delete { scope: name, key } => scope(name).delete(&format!("key-{key}")).map(drop),
        Happening::Purge { scope: name, key } => scope(name).purge(&format!("key-{key}")).map(drop),
        Happening::Create(item) => {
            board.work().create(&Create::new(&format!("item-{item}"), "Cache it")).map(drop)
        }
        Happening::Edit { item, words } => {
            let title = Some(format!("Now {}", sentence(words)));
            board.work().edit(&Edit { title, ..Edit::of(&format!("item-{item}")) }).map(drop)
        }
        Happening::DeleteItem(item) => board.work().delete(&format!("item-{item}"), true, None).map(drop),
        Happening::Progress(words) => {
            let progress = Some(format!("did {}", sentence(words)));
            board.agents().heartbeat(&Heartbeat { progress, ..Heartbeat::of(session) }).map(drop)
        }
        Happening::Prune => prune(board),
        Happening::Index(_) | Happening::Kill(_) | Happening::Remove => Ok(()),
    }
}

/// Removes the older half of the event log.
fn prune(board: &Board) -> crate::Result<()> {
    let last = board.revision()?.get();
    board.commit("prune", &[], |tx| {
        let floor = tx.floor()?.get();
        let until = Revision::new(floor + (last - 1 - floor).max(0) / 2);
        Ok((Changes { trim_events: Some(until).filter(|until| until.get() > floor), ..Changes::new() }, ()))
    })
}

fn killed() -> Error {
    Fault::new(Code::Internal, "killed").into()
}

fn open(path: &Path) -> Index {
    Index::open(&IndexLocation::File(path.to_owned())).unwrap()
}

fn board() -> Board {
    let clock: Arc<dyn Clock> = Arc::new(FixedClock::at("2026-02-03T15:30:00Z").unwrap());
    Board::on(Arc::new(Memory::new(clock.clone())), clock)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn an_index_has_what_a_new_one_would_have_whatever_is_killed(
        happenings in prop::collection::vec(happening(), 1..60)
    ) {
        testkit::limit_test();
        let directory = testkit::tempdir().unwrap();
        let path = directory.path().join("search");
        let board = board();
        let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
        for one in &happenings {
            // Refusals, for example of a missing item, change nothing.
            let _ = apply(&board, &session, one);
            match one {
                Happening::Index(rows) => {
                    let limits = CatchUp { rows: *rows, ..CatchUp::COMPLETE };
                    open(&path).update(&board, limits).unwrap();
                }
                Happening::Kill(rows) => {
                    let failed = open(&path).write::<()>(|connection| {
                        crate::search::fold::step(connection, &board, *rows)?;
                        Err(Failure::Board(killed()))
                    });
                    prop_assert_eq!(failed.unwrap_err().to_string(), "killed");
                }
                Happening::Remove => crate::search::index::remove(&path).unwrap(),
                _ => {}
            }
        }
        let index = open(&path);
        prop_assert_eq!(index.update(&board, CatchUp::COMPLETE).unwrap().behind, None);
        prop_assert_eq!(content(&index), fresh(&board));
    }
}

fn write(board: &Board, key: &str, text: &str) {
    board.scope("team").write(&Write::new(key, Value::of(text).unwrap())).unwrap();
}

#[test]
fn an_index_behind_the_oldest_kept_revision_is_made_again() {
    let directory = testkit::tempdir().unwrap();
    let location = IndexLocation::File(directory.path().join("search"));
    let board = Board::memory();
    write(&board, "a", "login");
    board.search(&Query::new("login"), &location).unwrap();
    board.scope("team").delete("a").unwrap();
    for number in 0..10 {
        write(&board, "b", &format!("migration {number}"));
    }
    prune(&board).unwrap();
    let found = board.search(&Query::new("login migration"), &location).unwrap();
    assert_eq!((found.results.len(), found.behind), (1, None));
    assert_eq!(content(&Index::open(&location).unwrap()), fresh(&board));
}

#[test]
fn an_index_of_another_board_is_made_again() {
    let directory = testkit::tempdir().unwrap();
    let location = IndexLocation::File(directory.path().join("search"));
    for name in ["login", "migration"] {
        let board = Board::memory();
        board.agents().register(&Register::named(name)).unwrap();
        write(&board, "a", name);
        let found = board.search(&Query::new("login migration"), &location).unwrap();
        assert_eq!(found.results[0].snippet, name);
        assert_eq!(content(&Index::open(&location).unwrap()), fresh(&board));
    }
}

#[test]
fn a_damaged_index_is_made_again() {
    let directory = testkit::tempdir().unwrap();
    let path = directory.path().join("search");
    let location = IndexLocation::File(path.clone());
    let board = Board::memory();
    for number in 0..200 {
        write(&board, &format!("key-{number}"), &format!("login number {number}"));
    }
    let expected = board.search(&Query::new("login"), &location).unwrap();
    assert_eq!(expected.total, 200);
    let damages: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes.truncate(5000),
        |bytes| bytes.fill(b'x'),
        |bytes| bytes.clear(),
        |bytes| bytes[8192..].fill(0xff),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        Index::open(&location).unwrap().scrub();
        let mut bytes = std::fs::read(&path).unwrap();
        damage(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        for ending in ["-wal", "-shm"] {
            let mut file = path.as_os_str().to_owned();
            file.push(ending);
            let _ = std::fs::remove_file(file);
        }
        let found = board.search(&Query::new("login"), &location).unwrap();
        assert_eq!((found.total, found.not_stored), (200, None), "damage {number}");
        assert_eq!(content(&Index::open(&location).unwrap()), fresh(&board), "damage {number}");
    }
}

#[test]
fn an_index_without_space_is_replaced_by_one_in_memory_and_continues_later() {
    let directory = testkit::tempdir().unwrap();
    let path = directory.path().join("search");
    let board = Board::memory();
    write(&board, "a", "login");
    let index = open(&path);
    index.update(&board, CatchUp::COMPLETE).unwrap();
    for number in 0..300 {
        write(&board, &format!("key-{number}"), &format!("migration number {number}"));
    }
    let limit_pages = |pages: u32| {
        let limit = |connection: &rusqlite::Connection| {
            Ok(connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?)
        };
        index.read(limit).unwrap();
    };
    limit_pages(1);
    let full = index.update(&board, CatchUp::COMPLETE).unwrap_err();
    assert_eq!(full.code(), Code::DiskFull);
    assert!(crate::search::fold::is_about_the_file(&full), "a search continues in memory");
    assert_eq!(content(&index).len(), 1, "nothing is half in the index");
    limit_pages(1 << 20);
    index.update(&board, CatchUp::COMPLETE).unwrap();
    assert_eq!(content(&index), fresh(&board));
}

#[test]
fn a_search_without_a_place_for_its_index_answers_and_says_so() {
    let directory = testkit::tempdir().unwrap();
    let board = Board::memory();
    write(&board, "a", "login");
    // A directory is where the index should be.
    let path = directory.path().join("search");
    std::fs::create_dir(&path).unwrap();
    let found = board.search(&Query::new("login"), &IndexLocation::File(path)).unwrap();
    assert_eq!(found.results.len(), 1);
    assert!(found.not_stored.is_some(), "{found:?}");
}

#[test]
fn several_indexers_at_once_make_one_index() {
    let directory = testkit::tempdir().unwrap();
    let location = IndexLocation::File(directory.path().join("search"));
    let board = Board::memory();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (board, location) = (&board, &location);
            scope.spawn(move || {
                for number in 0..40 {
                    write(board, &format!("key-{thread}-{number}"), &format!("login {thread} {number}"));
                    let limits = CatchUp { rows: 7, ..CatchUp::COMPLETE };
                    board.update_index(location, limits).unwrap();
                }
            });
        }
    });
    assert_eq!(board.update_index(&location, CatchUp::COMPLETE).unwrap().behind, None);
    assert_eq!(content(&Index::open(&location).unwrap()), fresh(&board));
}

#[test]
fn a_search_that_stops_early_says_what_is_missing() {
    let directory = testkit::tempdir().unwrap();
    let location = IndexLocation::File(directory.path().join("search"));
    let board = Board::memory();
    let limited = Query { catch_up: CatchUp { rows: 5, ..CatchUp::COMPLETE }, ..Query::new("login") };
    for number in 0..20 {
        write(&board, &format!("key-{number}"), "login");
    }
    let behind = board.search(&limited, &location).unwrap().behind.unwrap();
    assert!(behind.building);
    assert_eq!(board.search(&Query::new("login"), &location).unwrap().behind, None);
    for number in 20..40 {
        write(&board, &format!("key-{number}"), "login");
    }
    let found = board.search(&limited, &location).unwrap();
    let behind = found.behind.unwrap();
    assert_eq!((behind.building, behind.events, found.total), (false, 15, 25));
    assert_eq!(behind.revision, board.revision().unwrap());
}

#[test]
fn removed_text_leaves_the_files_of_the_index() {
    let directory = testkit::tempdir().unwrap();
    let path = directory.path().join("search");
    let location = IndexLocation::File(path.clone());
    let board = Board::memory();
    write(&board, "a", "xyzzyplugh");
    write(&board, "b", "login");
    board.update_index(&location, CatchUp::COMPLETE).unwrap();
    board.scope("team").purge("a").unwrap();
    board.update_index(&location, CatchUp::COMPLETE).unwrap();
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let file = file.unwrap().path();
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(10).any(|window| window == b"xyzzyplugh"), "{}", file.display());
    }
}

#[cfg(unix)]
#[test]
fn files_of_the_index_are_private_to_the_user() {
    use std::os::unix::fs::PermissionsExt;
    let directory = testkit::tempdir().unwrap();
    let location = IndexLocation::File(directory.path().join("search"));
    let board = Board::memory();
    write(&board, "a", "login");
    board.update_index(&location, CatchUp::COMPLETE).unwrap();
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.path());
    }
}
