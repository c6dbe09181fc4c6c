//! Transactions: the writes are applied only if everything that was read is still valid.
//!
//! Interleavings are forced: another writer commits from inside the closure.

use std::cell::Cell;

use super::watched::ValuesRead;
use super::*;
use crate::entry::{Order, Query, Transaction};

on_every_engine![
    transaction_increments_a_counter,
    error_leaves_no_change_and_no_event,
    a_conflict_names_the_key_and_both_revisions,
    one_of_two_conflicting_transactions_commits,
    phantom_is_a_conflict_for_every_query,
    query_results_are_validated_without_reading_values,
    entry_visible_again_after_a_clock_change_is_a_conflict,
    unrelated_change_is_not_a_conflict,
    read_only_transaction_sees_one_state,
    error_counts_only_if_its_reads_are_valid,
    concurrent_increments_all_count,
    no_lock_is_held_while_the_closure_runs,
    transaction_reads_its_own_writes,
    transaction_queries_find_its_own_writes,
    blind_write_counts_as_read_once_the_entry_is_read,
    a_key_may_be_changed_more_than_once,
    several_scopes_change_atomically,
    conflicting_transaction_succeeds_on_retry,
    failed_write_condition_is_not_retried,
    the_author_of_a_transaction_is_seen_inside_too,
    entry_that_expires_meanwhile_is_a_conflict,
];

fn write(tx: &mut Transaction<'_>, key: &str, value: &str) -> Result<()> {
    tx.scope("team").write(&a_write(key, value))
}

fn read(tx: &mut Transaction<'_>, key: &str) -> Result<Option<String>> {
    Ok(tx.scope("team").read(key)?.map(|value| value.as_str().to_owned()))
}

fn count_up(tx: &mut Transaction<'_>) -> Result<u64> {
    let mut scope = tx.scope("team");
    let count = scope.read("counter")?.map_or(Ok(0), |value| value.to::<u64>())? + 1;
    scope.write(&Write::new("counter", Value::of(&count)?))?;
    Ok(count)
}

fn transaction_increments_a_counter(fixture: &Fixture) {
    for expected in 1..=3 {
        assert_eq!(fixture.board.transaction(count_up).unwrap(), expected);
    }
    let entry = fixture.entry("counter").unwrap();
    assert_eq!((entry.version, entry.value.as_str()), (3, "3"));
    assert_eq!(fixture.revision(), fixture.id(3));
}

fn error_leaves_no_change_and_no_event(fixture: &Fixture) {
    fixture.write("a", "1");
    let before = fixture.board.export().unwrap();
    let refused: Result<()> = fixture.board.transaction(|tx| {
        write(tx, "a", "2")?;
        write(tx, "b", "1")?;
        tx.scope("other").write(&a_write("c", "1"))?;
        assert!(tx.scope("team").delete("a")?);
        Err(crate::Error::invalid("I changed my mind"))
    });
    assert_eq!(refused.unwrap_err().to_string(), "I changed my mind");
    assert_eq!(fixture.board.export().unwrap(), before);
    assert!(fixture.scope().history("b", 9).unwrap().versions.is_empty());
}

fn a_conflict_names_the_key_and_both_revisions(fixture: &Fixture) {
    let first = fixture.write("a", "1");
    let second = Cell::new(Revision::ZERO);
    let refused = fixture
        .board
        .try_transaction(|tx| {
            read(tx, "a")?;
            second.set(fixture.write("a", "\"theirs\"").revision);
            write(tx, "a", "\"mine\"")
        })
        .unwrap_err();
    assert_eq!(refused.code(), Code::Conflict);
    let details = refused.details().unwrap();
    assert_eq!((&details["scope"], &details["key"]), (&"team".into(), &"a".into()));
    assert_eq!(details["expected"], first.revision.get());
    assert_eq!(details["revision"], second.get().get());
    assert!(refused.hint().is_some());
    assert_eq!(fixture.value("a").as_deref(), Some("\"theirs\""));
}

/// What another writer does to the board from inside a transaction.
type Meddling = fn(&Fixture);
type Closure = fn(&mut Transaction<'_>, &dyn Fn()) -> Result<()>;

fn one_of_two_conflicting_transactions_commits(fixture: &Fixture) {
    let update: Meddling = |fixture| drop(fixture.write("a", "\"theirs\""));
    let create: Meddling = |fixture| drop(fixture.write("new", "\"theirs\""));
    let delete: Meddling = |fixture| drop(fixture.scope().delete("a").unwrap());
    let recreate: Meddling = |fixture| {
        fixture.scope().delete("a").unwrap();
        fixture.write("a", "1");
    };
    let update_mine: Closure = |tx, meddle| {
        read(tx, "a")?;
        meddle();
        write(tx, "a", "\"mine\"")
    };
    let delete_mine: Closure = |tx, meddle| {
        assert!(tx.scope("team").delete("a")?);
        meddle();
        Ok(())
    };
    let create_mine: Closure = |tx, meddle| {
        assert_eq!(read(tx, "new")?, None);
        meddle();
        write(tx, "new", "\"mine\"")
    };
    let skew_mine: Closure = |tx, meddle| {
        // Each reads both keys and writes the other one.
        read(tx, "a")?;
        read(tx, "b")?;
        meddle();
        write(tx, "b", "\"mine\"")
    };
    for (name, mine, theirs) in [
        ("update/update", update_mine, update),
        ("update/delete", update_mine, delete),
        ("update/delete and create", update_mine, recreate),
        ("delete/update", delete_mine, update),
        ("delete/delete", delete_mine, delete),
        ("delete/delete and create", delete_mine, recreate),
        ("create/create", create_mine, create),
        ("write skew", skew_mine, update),
    ] {
        fixture.scope().clear("*").unwrap();
        fixture.write("a", "1");
        fixture.write("b", "1");
        let after = Cell::new(None);
        let outcome = fixture.board.try_transaction(|tx| {
            mine(tx, &|| {
                theirs(fixture);
                after.set(Some(fixture.board.export().unwrap()));
            })
        });
        assert_eq!(code(outcome), Code::Conflict, "{name}");
        assert_eq!(Some(fixture.board.export().unwrap()), after.take(), "{name}: only theirs happened");
    }
}

fn query_results_are_validated_without_reading_values(fixture: &Fixture) {
    let tagged = |key: &str| Write { tags: vec!["hot".to_owned()], ..a_write(key, "1") };
    let scope = fixture.board.scope("team");
    scope.write_batch(&[tagged("a:1"), a_write("a:2", "2"), tagged("b:1")]).unwrap();
    let values = ValuesRead::on(fixture.board.clone(), fixture.clock.clone());
    for query in [
        Query { prefix: Some("a:".to_owned()), ..Query::default() },
        Query { tags: vec!["hot".to_owned()], ..Query::default() },
        Query { author: Some("cli".to_owned()), ..Query::default() },
        Query { author: Some("unknown".to_owned()), ..Query::default() },
    ] {
        let refused = values.board.try_transaction(|tx| {
            tx.scope("team").query(&query)?;
            values.take();
            Ok(())
        });
        assert!(refused.is_ok(), "{query:?}");
        assert_eq!(values.take(), 0, "{query:?}");
    }
}

fn entry_visible_again_after_a_clock_change_is_a_conflict(fixture: &Fixture) {
    let short = Write { ttl: Some(Duration::from_secs(10)), ..a_write("a", "1") };
    fixture.board.scope("team").write(&short).unwrap();
    let began = fixture.now();
    fixture.pass(20);
    let refused = fixture.board.try_transaction(|tx| {
        assert!(tx.scope("team").query(&Query::default())?.is_empty());
        fixture.clock.set(began);
        tx.scope("team").write(&a_write("b", "2"))
    });
    assert_eq!(code(refused), Code::Conflict);
}

fn phantom_is_a_conflict_for_every_query(fixture: &Fixture) {
    let reset = || {
        fixture.scope().clear("*").unwrap();
        let tagged = |key: &str| Write { tags: owned(&["t"]), ..a_write(key, "1") };
        fixture.scope().write_batch(&[tagged("task:a"), tagged("task:b"), a_write("x", "1")]).unwrap();
    };
    let enter: Meddling = |fixture| {
        drop(fixture.scope().write(&Write { tags: owned(&["t"]), ..a_write("task:0", "1") }).unwrap());
    };
    let leave: Meddling = |fixture| drop(fixture.scope().delete("task:b").unwrap());
    let change: Meddling = |fixture| {
        drop(fixture.scope().write(&Write { tags: owned(&["t"]), ..a_write("task:b", "2") }).unwrap());
    };
    let lose_its_tag: Meddling = |fixture| drop(fixture.write("task:a", "1"));
    let gain_the_tag: Meddling = |fixture| {
        drop(fixture.scope().write(&Write { tags: owned(&["t"]), ..a_write("task:c", "1") }).unwrap());
    };
    let queries = [
        Query { prefix: Some("task:".to_owned()), ..Query::default() },
        Query { pattern: Some("task:?".to_owned()), order: Order::Key, ..Query::default() },
        Query { tags: owned(&["t"]), ..Query::default() },
        Query { pattern: Some("*".to_owned()), author: Some("cli".to_owned()), ..Query::default() },
        Query { limit: Some(1), prefix: Some("task:".to_owned()), ..Query::default() },
        Query { updated_since: Some(fixture.now()), ..Query::default() },
    ];
    for query in &queries {
        for (name, meddle) in [
            ("enters", enter),
            ("leaves", leave),
            ("changes", change),
            ("loses its tag", lose_its_tag),
            ("gains the tag", gain_the_tag),
        ] {
            reset();
            let outcome = fixture.board.try_transaction(|tx| {
                let found = tx.scope("team").query(query)?.len();
                meddle(fixture);
                write(tx, "sum", &found.to_string())
            });
            let refused = outcome.unwrap_err();
            assert_eq!(refused.code(), Code::Conflict, "{name}: {query:?}");
            assert!(
                refused.details().unwrap()["key"].as_str().unwrap().starts_with("task:"),
                "{name}: {query:?}"
            );
            assert_eq!(fixture.entry("sum"), None);
        }
    }
}

fn unrelated_change_is_not_a_conflict(fixture: &Fixture) {
    fixture.write("a", "1");
    let mine: Meddling = |fixture| drop(fixture.write("other", "1"));
    let elsewhere: Meddling = |fixture| drop(fixture.board.scope("other").write(&a_write("a", "1")).unwrap());
    let registers: Meddling = |fixture| drop(fixture.session("Other"));
    for meddle in [mine, elsewhere, registers] {
        fixture
            .board
            .try_transaction(|tx| {
                read(tx, "a")?;
                assert!(
                    tx.scope("team")
                        .query(&Query { prefix: Some("b".to_owned()), ..Query::default() })?
                        .is_empty()
                );
                meddle(fixture);
                write(tx, "a", "2")
            })
            .unwrap();
    }
    // A write that depends on nothing cannot conflict.
    fixture
        .board
        .try_transaction(|tx| {
            write(tx, "a", "\"mine\"")?;
            fixture.write("a", "\"theirs\"");
            Ok(())
        })
        .unwrap();
    assert_eq!(fixture.value("a").as_deref(), Some("\"mine\""));
}

fn read_only_transaction_sees_one_state(fixture: &Fixture) {
    fixture.scope().write_batch(&[a_write("a", "1"), a_write("b", "1")]).unwrap();
    let move_both = |value: &str| {
        fixture.scope().write_batch(&[a_write("a", value), a_write("b", value)]).unwrap();
    };
    let runs = Cell::new(0);
    let (a, b) = fixture
        .board
        .transaction(|tx| {
            runs.set(runs.get() + 1);
            let a = read(tx, "a")?;
            if runs.get() == 1 {
                move_both("2");
            }
            Ok((a, read(tx, "b")?))
        })
        .unwrap();
    assert_eq!((a.as_deref(), b.as_deref(), runs.get()), (Some("2"), Some("2"), 2));
    // Within one run a key keeps its first value.
    let refused = fixture.board.try_transaction(|tx| {
        let first = read(tx, "a")?;
        move_both("3");
        assert_eq!(read(tx, "a")?, first);
        Ok(())
    });
    assert_eq!(code(refused), Code::Conflict);
}

fn error_counts_only_if_its_reads_are_valid(fixture: &Fixture) {
    let runs = Cell::new(0);
    let found = fixture.board.transaction(|tx| {
        runs.set(runs.get() + 1);
        let found = read(tx, "a")?;
        if runs.get() == 1 {
            fixture.write("a", "1");
        }
        found.ok_or_else(|| crate::Error::invalid("it is not there"))
    });
    assert_eq!((found.unwrap().as_str(), runs.get()), ("1", 2));
}

fn concurrent_increments_all_count(fixture: &Fixture) {
    let board = &fixture.board;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    board.transaction(count_up).unwrap();
                    board.scope("team").increment("blind", 1).unwrap();
                    board.scope("team").append("list", &Value::null()).unwrap();
                }
            });
        }
    });
    assert_eq!(fixture.value("counter").as_deref(), Some("100"));
    assert_eq!(fixture.value("blind").as_deref(), Some("100"));
    assert_eq!(fixture.scope().read("list").unwrap().unwrap().to::<Vec<()>>().unwrap().len(), 100);
    assert_eq!(fixture.revision(), fixture.id(300), "one event each, and none for what was lost");
}

fn no_lock_is_held_while_the_closure_runs(fixture: &Fixture) {
    let board = &fixture.board;
    board
        .transaction(|tx| {
            read(tx, "a")?;
            write(tx, "a", "1")?;
            // This would never return if the closure blocked other writers.
            std::thread::scope(|scope| {
                scope.spawn(|| board.scope("team").increment("b", 1).unwrap()).join().unwrap();
            });
            assert_eq!(board.scope("team").read("a")?, None, "nothing is visible yet");
            Ok(())
        })
        .unwrap();
    assert_eq!(fixture.value("a").as_deref(), Some("1"));
    assert_eq!(fixture.value("b").as_deref(), Some("1"));
}

fn transaction_reads_its_own_writes(fixture: &Fixture) {
    fixture.write("a", "1");
    fixture
        .board
        .transaction(|tx| {
            write(tx, "a", "2")?;
            assert_eq!(read(tx, "a")?.as_deref(), Some("2"));
            let entry = tx.scope("team").entry("a")?.unwrap();
            assert_eq!((entry.version, entry.revision), (2, Revision::ZERO));
            assert!(tx.scope("team").delete("a")?);
            assert_eq!(read(tx, "a")?, None);
            assert!(!tx.scope("team").delete("a")?);
            write(tx, "a", "3")
        })
        .unwrap();
    let entry = fixture.entry("a").unwrap();
    assert_eq!((entry.version, entry.value.as_str()), (3, "3"));
}

fn transaction_queries_find_its_own_writes(fixture: &Fixture) {
    for key in ["a", "b", "c"] {
        fixture.write(key, "1");
    }
    fixture
        .board
        .transaction(|tx| {
            let mut scope = tx.scope("team");
            scope.delete("a")?;
            scope.write(&Write { tags: owned(&["t"]), ..a_write("d", "1") })?;
            scope.write(&Write { tags: owned(&["t"]), ..a_write("b", "2") })?;
            let mut keys = |query: &Query| -> Result<Vec<String>> {
                Ok(scope.query(query)?.into_iter().map(|entry| entry.key).collect())
            };
            let by_key = Query { order: Order::Key, ..Query::default() };
            assert_eq!(keys(&by_key)?, ["b", "c", "d"]);
            assert_eq!(
                keys(&Query { after: Some("b".to_owned()), limit: Some(1), ..by_key.clone() })?,
                ["c"]
            );
            assert_eq!(keys(&Query { offset: 1, ..by_key.clone() })?, ["c", "d"]);
            assert_eq!(keys(&Query { tags: owned(&["t"]), ..by_key.clone() })?, ["b", "d"]);
            assert_eq!(
                keys(&Query::default())?.last().map(String::as_str),
                Some("c"),
                "its own are the newest"
            );
            Ok(())
        })
        .unwrap();
}

/// A version, a creator and merged tags depend on the entry before, which then has to be valid.
fn blind_write_counts_as_read_once_the_entry_is_read(fixture: &Fixture) {
    fixture.write("a", "1");
    let refused = fixture.board.try_transaction(|tx| {
        write(tx, "a", "2")?;
        let version = tx.scope("team").entry("a")?.unwrap().version;
        fixture.write("a", "3");
        write(tx, "seen", &version.to_string())
    });
    assert_eq!(code(refused), Code::Conflict);
    let refused = fixture.board.try_transaction(|tx| {
        write(tx, "a", "2")?;
        let found = tx.scope("team").query(&Query { prefix: Some("a".to_owned()), ..Query::default() })?;
        fixture.write("a", "3");
        write(tx, "seen", &found[0].version.to_string())
    });
    assert_eq!(code(refused), Code::Conflict);
    assert_eq!(fixture.entry("seen"), None);
    // The value alone does not depend on it.
    fixture
        .board
        .try_transaction(|tx| {
            write(tx, "a", "4")?;
            assert_eq!(read(tx, "a")?.as_deref(), Some("4"));
            fixture.write("a", "5");
            Ok(())
        })
        .unwrap();
    assert_eq!(fixture.value("a").as_deref(), Some("4"));
}

fn a_key_may_be_changed_more_than_once(fixture: &Fixture) {
    let ((), recorded) = fixture.events_of(|| {
        fixture
            .board
            .transaction(|tx| {
                write(tx, "a", "1")?;
                write(tx, "a", "2")?;
                tx.scope("team").delete("a")?;
                write(tx, "b", "1")?;
                tx.scope("team").delete("b").map(drop)
            })
            .unwrap();
    });
    let names: Vec<_> = recorded.iter().map(EventType::as_str).collect();
    let (written, deleted) = ("entry_written", "entry_deleted");
    assert_eq!(names, [written, written, deleted, written, deleted]);
    assert!(fixture.board.export().unwrap().entries.is_empty());
    assert_eq!(fixture.scope().history("a", 9).unwrap().versions.len(), 3);
    assert_eq!(fixture.write("a", "3").version, 3);
}

fn several_scopes_change_atomically(fixture: &Fixture) {
    fixture
        .board
        .transaction(|tx| {
            for scope in ["one", "two", "three"] {
                tx.scope(scope).write(&a_write("a", "1"))?;
            }
            Ok(())
        })
        .unwrap();
    assert!(fixture.events().iter().all(|event| event.commit_id == fixture.id(1)));
    assert_eq!(fixture.board.export().unwrap().entries.len(), 3);
}

fn conflicting_transaction_succeeds_on_retry(fixture: &Fixture) {
    let runs = Cell::new(0);
    let count = fixture
        .board
        .transaction(|tx| {
            runs.set(runs.get() + 1);
            let count = count_up(tx)?;
            if runs.get() <= 3 {
                fixture.scope().increment("counter", 10)?;
            }
            Ok(count)
        })
        .unwrap();
    assert_eq!((count, runs.get()), (31, 4));
}

fn failed_write_condition_is_not_retried(fixture: &Fixture) {
    let first = fixture.write("a", "1");
    fixture.write("a", "2");
    let runs = Cell::new(0);
    let stale = Write { if_revision: Some(first.revision), ..a_write("a", "3") };
    let refused = fixture.board.transaction(|tx| {
        runs.set(runs.get() + 1);
        tx.scope("team").write(&stale)
    });
    assert_eq!((code(refused), runs.get()), (Code::Conflict, 1));
    let refused = fixture.board.transaction(|tx| {
        runs.set(runs.get() + 1);
        read(tx, "a")?;
        fixture.scope().write(&stale).map(drop)
    });
    assert_eq!((code(refused), runs.get()), (Code::Conflict, 2), "the closure's own error is its answer");
    let absent = Write { if_absent: true, ..a_write("a", "3") };
    let refused = fixture.board.transaction(|tx| tx.scope("team").write(&absent));
    assert_eq!(code(refused), Code::AlreadyExists);
    assert_eq!(fixture.value("a").as_deref(), Some("2"));
}

fn the_author_of_a_transaction_is_seen_inside_too(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for (by, author) in
        [(Actor::default(), "cli"), (Actor::session(&session), "Ivy"), (Actor::author("Oak"), "Oak")]
    {
        fixture
            .board
            .transaction(|tx| {
                tx.acting_as(by.clone())?;
                let mut scope = tx.scope("team");
                scope.write(&a_write(author, "1"))?;
                let entry = scope.entry(author)?.unwrap();
                assert_eq!((entry.updated_by.as_str(), entry.created_by.as_str()), (author, author));
                let mine = Query { author: Some(author.to_owned()), ..Query::default() };
                assert_eq!(scope.query(&mine)?.len(), 1);
                Ok(())
            })
            .unwrap();
        assert_eq!(fixture.entry(author).unwrap().updated_by, author);
    }
}

fn entry_that_expires_meanwhile_is_a_conflict(fixture: &Fixture) {
    let short = Write { ttl: Some(Duration::from_secs(5)), ..a_write("a", "1") };
    fixture.scope().write(&short).unwrap();
    let refused = fixture.board.try_transaction(|tx| {
        read(tx, "a")?;
        fixture.pass(5);
        write(tx, "b", "1")
    });
    assert_eq!(code(refused), Code::Conflict);
    // Whether a sweep removed it makes no difference: it was invisible before.
    fixture
        .board
        .try_transaction(|tx| {
            assert_eq!(read(tx, "a")?, None);
            assert_eq!(fixture.sweep().entries_expired, 1);
            write(tx, "b", "1")
        })
        .unwrap();
}
