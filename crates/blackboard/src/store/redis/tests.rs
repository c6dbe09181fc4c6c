//! Commits of many rows, and rows that another program has damaged.

#![cfg(unix)]

use std::sync::Arc;
use std::time::Duration;

use testkit::redis::RedisServer;

use super::{Redis, RedisOptions};
use crate::Board;
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::Revision;
use crate::store::{Changes, Commit, Key, OnBusy, Page, Prefetch, Range, Row, Store, Tx};
use crate::work::{Create, Status, WorkItem};

/// More rows than a script passes to one command.
const MANY: usize = 9000;

fn commit(store: &dyn Store, prefetch: &[Prefetch<'_>], f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>) {
    let commit = Commit { name: "test", prefetch, on_busy: OnBusy::Wait, callers: &[] };
    store.commit(&commit, f).unwrap();
}

fn read<T>(store: &dyn Store, f: impl Fn(&dyn Tx) -> Result<T>) -> T {
    let mut answer = None;
    store
        .read(&[], &mut |tx| {
            answer = Some(f(tx)?);
            Ok(())
        })
        .unwrap();
    answer.unwrap()
}

fn patient() -> RedisOptions {
    let (patience, reply_limit) = (Duration::from_mins(1), Duration::from_secs(30));
    RedisOptions { patience, reply_limit, ..RedisOptions::default() }
}

fn board(store: &Arc<Redis>) -> Board {
    Board::on(store.clone(), store.clock())
}

fn event() -> NewEvent {
    NewEvent::new(EventType::WorkCreated, TargetType::WorkItem, "x", "Something happened")
}

#[test]
fn commit_of_thousands_of_rows_is_applied_completely() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let store = Arc::new(Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap());
    let board = board(&store);
    let template = board.work().create(&Create::new("template", "T")).unwrap().item;
    let items: Vec<WorkItem> = (0..MANY)
        .map(|number| WorkItem { item_id: format!("item-{number:05}"), ..template.clone() })
        .collect();
    let keys: Vec<Key> = items.iter().map(|item| Key::WorkItem(item.item_id.clone())).collect();
    let prefetch: Vec<_> = keys.iter().cloned().map(Prefetch::Row).collect();
    commit(&*store, &prefetch, &mut |tx| {
        let mut changes = Changes::new();
        for item in &items {
            assert!(tx.get(&Key::WorkItem(item.item_id.clone()))?.is_none());
            let revision = changes.event(event());
            changes.put(WorkItem { revision, ..item.clone() });
        }
        Ok(changes)
    });
    let log = read(&*store, |tx| tx.events(&Page::after(Revision::ZERO, usize::MAX)));
    assert_eq!(log.len(), MANY + 1);
    let found = read(&*store, |tx| tx.range(&Range::work_items()));
    assert_eq!(found.len(), MANY + 1);
    assert_eq!(read(&*store, |tx| tx.count(&Range::work_queue(Status::Available))), MANY as u64 + 1);
    // Every row of the range is validated, and removed.
    commit(&*store, &[Prefetch::Range(Range::work_items())], &mut |tx| {
        let remove = tx.range(&Range::work_items())?.iter().map(Row::key).collect();
        Ok(Changes { remove, events: vec![event()], ..Changes::new() })
    });
    assert_eq!(read(&*store, |tx| tx.count(&Range::work_items())), 0);
    assert_eq!(server.command(&["EXISTS", "bb:{a}:index"]), ":0\r\n", "no place is left");
    assert!(board.wait(board.revision().unwrap(), Duration::ZERO).is_ok());
}

#[test]
fn damaged_row_is_replaced_and_removed_with_all_its_places() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let store = Arc::new(Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap());
    let board = board(&store);
    let item = board.work().create(&Create::new("x", "X")).unwrap().item;
    let key = Key::WorkItem("x".to_owned());
    let damage = || server.command(&["HSET", "bb:{a}:rows", "rwtx\0", "12345678r1\0damaged"]);
    let places = || server.command(&["ZCARD", "bb:{a}:index"]);
    let before = places();
    damage();
    assert!(board.work().status("x").is_err());
    let claimed = WorkItem { status: Status::Claimed, ..item };
    commit(&*store, &[Prefetch::Row(key.clone())], &mut |tx| {
        assert!(tx.get(&key).is_err());
        Ok(Changes { put: vec![claimed.clone().into()], events: vec![event()], ..Changes::new() })
    });
    assert_eq!(places(), before, "it left its old places");
    assert_eq!(read(&*store, |tx| tx.count(&Range::work_queue(Status::Available))), 0);
    assert_eq!(read(&*store, |tx| tx.count(&Range::work_queue(Status::Claimed))), 1);
    damage();
    commit(&*store, &[Prefetch::Row(key.clone())], &mut |tx| {
        assert!(tx.get(&key).is_err());
        Ok(Changes { remove: vec![key.clone()], events: vec![event()], ..Changes::new() })
    });
    assert_eq!(places(), ":0\r\n");
    board.work().create(&Create::new("x", "X")).unwrap();
}
