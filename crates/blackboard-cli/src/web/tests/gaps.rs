//! Tests on a board whose event ids have gaps. SQLite has none, so these tests use an engine that skips ids.

use std::path::Path;
use std::sync::Arc;

use blackboard::agent::Register;
use blackboard::clock::SystemClock;
use blackboard::store::Memory;
use blackboard::work::Create;
use blackboard::{Board, Result, Revision};
use hyper::header::HeaderName;
use serde_json::Value;

use super::InMemory;
use crate::open::ResolvedBoard;
use crate::web::api;
use crate::web::feed::{Feed, Following};
use crate::web::reply::{Body, EVENTS, NEXT, OLDEST, POSITIONS, Reply};
use crate::web::route::ApiRequest;

/// A board with some items and a session, and its feed.
struct Gaps {
    board: Board,
    feed: Arc<Feed>,
    thread: Option<std::thread::JoinHandle<()>>,
    session: String,
}

impl Gaps {
    fn new(directory: &Path) -> Gaps {
        let store = Arc::new(Memory::new(Arc::new(SystemClock)).skipping_revisions());
        let board = Board::on(Arc::<Memory>::clone(&store), Arc::new(SystemClock));
        let engine = Arc::new(InMemory::new(store, directory));
        let resolved = ResolvedBoard { engine, ..ResolvedBoard::unconfigured(&directory.join("local.db")) };
        let (feed, thread) = Feed::start(resolved).unwrap();
        let mut gaps = Gaps { board, feed, thread: Some(thread), session: String::new() };
        gaps.create(0..10);
        gaps.session = gaps.board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
        gaps.create(10..20);
        gaps
    }

    fn create(&self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            self.board.work().create(&Create::new(&format!("item-{number}"), "A task")).unwrap();
        }
    }

    /// The ids of the event log, oldest first.
    fn log(&self) -> Vec<i64> {
        let page = self.board.events().lines(Revision::ZERO, usize::MAX).unwrap();
        page.events.iter().map(|event| event.id.get()).collect()
    }

    fn ask(&self, query: &str) -> Result<Reply> {
        api::events::list(&ApiRequest { board: &self.board, query, id: "", feed: &self.feed, quota: None })
    }

    /// The ids in a response, and the response.
    fn ids(&self, query: &str) -> (Vec<i64>, Reply) {
        let reply = self.ask(query).unwrap();
        let Body::Whole(bytes) = reply.body() else { panic!("the response is a stream") };
        let events: Vec<Value> = serde_json::from_slice(bytes).unwrap();
        (events.iter().map(|event| event["id"].as_i64().unwrap()).collect(), reply)
    }
}

impl Drop for Gaps {
    fn drop(&mut self) {
        self.feed.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn header<'a>(reply: &'a Reply, name: &HeaderName) -> Option<&'a str> {
    reply.headers().get(name).map(|value| value.to_str().unwrap())
}

#[test]
fn the_server_counts_events_and_finds_positions_although_ids_have_gaps() {
    let directory = testkit::tempdir().unwrap();
    let gaps = Gaps::new(directory.path());
    let log = gaps.log();
    let kept = log.len();
    assert!(log[kept - 1] - log[0] > i64::try_from(kept).unwrap(), "ids have gaps: {log:?}");
    let count = kept.to_string();
    for position in 0..=kept + 1 {
        let (ids, reply) = gaps.ids(&format!("position={position}&limit=3"));
        let end = position.min(kept);
        let start = end.saturating_sub(3);
        assert!(ids.iter().rev().eq(&log[start..end]), "{position}: {ids:?} of {log:?}");
        assert_eq!(header(&reply, &EVENTS), Some(count.as_str()));
        assert_eq!(header(&reply, &OLDEST), Some(log[0].to_string().as_str()));
        let positions = (end > 0).then(|| format!("{end},{}", start + 1));
        assert_eq!(header(&reply, &POSITIONS), positions.as_deref());
    }
    // One event in the middle, selected by a filter.
    let (ids, reply) = gaps.ids(&format!("after=0&agent={}", gaps.session));
    assert_eq!((ids, header(&reply, &POSITIONS)), (vec![log[10]], Some("11,11")));
}

#[test]
fn pages_go_both_ways_although_ids_have_gaps() {
    let directory = testkit::tempdir().unwrap();
    let gaps = Gaps::new(directory.path());
    let log = gaps.log();
    for (order, parameter) in [("newest", "before"), ("oldest", "after")] {
        let (mut paged, mut place) = (Vec::new(), "&after=0".to_owned());
        loop {
            let (ids, reply) = gaps.ids(&format!("order={order}&limit=4{place}"));
            paged.extend(ids);
            let Some(next) = header(&reply, &NEXT) else { break };
            place = format!("&{parameter}={next}");
        }
        if order == "newest" {
            paged.reverse();
        }
        assert_eq!(paged, log, "{order}");
    }
    // A revision between two events belongs to no event: its neighbors are found.
    let between = log[5] - 1;
    assert!(!log.contains(&between), "the first id of a commit follows a gap: {log:?}");
    assert_eq!(gaps.ids(&format!("until={between}&limit=1")).0, [log[4]]);
    assert_eq!(gaps.ids(&format!("until={}&limit=1", log[5])).0, [log[5]]);
    assert_eq!(gaps.ids(&format!("after={between}&limit=1&order=oldest")).0, [log[5]]);
    assert_eq!(gaps.ids(&format!("after={}&before={}&order=oldest", log[4], log[5])).0, Vec::<i64>::new());
    assert!(gaps.ask("before=1&until=1").is_err());
    assert!(gaps.ask("order=both").is_err());
}

#[test]
fn a_follower_gets_every_commit_although_ids_have_gaps() {
    let directory = testkit::tempdir().unwrap();
    let gaps = Gaps::new(directory.path());
    let end = Revision::new(*gaps.log().last().unwrap());
    let generation = gaps.feed.position().0;
    let read_to = |end: Revision| {
        testkit::wait_until("the feed has read the log", || (gaps.feed.position().1 == end).then_some(()));
    };
    read_to(end);
    gaps.create(20..30);
    let log = gaps.log();
    let new = &log[log.len() - 10..];
    read_to(Revision::new(new[9]));
    let (mut position, mut received) = (end, Vec::new());
    while let Following::Next(_, last) = gaps.feed.following(generation, position) {
        position = last;
        received.push(last.get());
    }
    assert_eq!(received, new);
}
