//! Ranges: every index has its rows, in its order, within its bounds.

use super::*;
use crate::agent::HeartbeatRow;
use crate::store::{Cursor, Key, Range, RememberedCall};
use crate::work::Dependency;

on_every_engine![
    every_index_returns_its_rows_in_order,
    bounds_include_the_start_and_exclude_the_end,
    candidates_are_the_first_rows_of_a_range,
    rows_leave_a_range_when_they_change_or_are_removed,
    no_id_sorts_behind_a_range,
    entries_are_in_all_their_indexes,
    heads_agree_with_entries,
    entries_move_within_indexes,
];

fn keys(fixture: &Fixture, range: &Range) -> Vec<Key> {
    let rows = fixture.read(|tx| tx.range(range)).unwrap();
    let count = fixture.read(|tx| tx.count(range)).unwrap();
    assert_eq!(count, rows.len() as u64, "{range:?}");
    rows.iter().map(Row::key).collect()
}

fn names(fixture: &Fixture, range: &Range) -> Vec<String> {
    keys(fixture, range)
        .into_iter()
        .map(|key| match key {
            Key::Agent(id)
            | Key::Project(id)
            | Key::CustomProtocol(id)
            | Key::ScopePolicies(id)
            | Key::WorkItem(id)
            | Key::RememberedCall(id) => id,
            Key::HeartbeatRow(session, timestamp) => format!("{session} {}", timestamp.millis() / 1000),
            Key::Dependency(item, blocker) => format!("{item}<{blocker}"),
            Key::Cursor(_, reader) => reader,
            Key::BookkeepingRow(name) => name.into_owned(),
            Key::Entry(scope, key) | Key::Tombstone(scope, key) => format!("{scope}/{key}"),
            Key::ContextPage(scope, locality, hash) => format!("{scope}/{locality}/{hash}"),
            Key::Edit(worktree, path, session) => format!("{worktree}/{path}/{session}"),
        })
        .collect()
}

/// Rows in every index, more than one in each.
fn fill(fixture: &Fixture) {
    let agent = |id: &str, status, seen, ended: Option<u64>, parent: Option<&str>| Agent {
        status,
        last_seen_at: at(seen),
        ended_at: ended.map(at),
        parent_id: parent.map(str::to_owned),
        ..an_agent(id)
    };
    let item = |id: &str, priority, created, status, by: Option<&str>, completed: Option<u64>| WorkItem {
        priority,
        created_at: at(created),
        status,
        claimed_by: by.map(str::to_owned),
        completed_at: completed.map(at),
        project_id: by.map(|_| "p".to_owned()),
        ..an_item(id)
    };
    let project = |id: &str| crate::project::Project {
        project_id: id.to_owned(),
        display_name: id.to_owned(),
        local_path: None,
        remote_repo: None,
        registered_at: at(1),
        metadata: None,
        revision: Revision::ZERO,
    };
    let protocol = |name: &str| crate::protocol::CustomProtocol {
        name: name.to_owned(),
        template: crate::protocol::Template::new("review:{id}").unwrap(),
        level: crate::protocol::Level::Colony,
        summary: String::new(),
        value_schema: None,
        defined_at: at(1),
        revision: Revision::ZERO,
    };
    let dependency = |blocker: &str, created| Dependency {
        item_id: "w1".to_owned(),
        blocked_by: blocker.to_owned(),
        created_at: at(created),
    };
    let operation = |id: &str, created| RememberedCall {
        operation_id: id.to_owned(),
        verb: String::new(),
        answer: String::new(),
        revision: Revision::ZERO,
        created_at: at(created),
    };
    let heartbeat = |session: &str, sent, item: Option<&str>| HeartbeatRow {
        session_id: session.to_owned(),
        timestamp: at(sent),
        progress: None,
        work_item_id: item.map(str::to_owned),
    };
    let cursor = |reader: &str| Cursor {
        owner: "a1".to_owned(),
        reader: reader.to_owned(),
        revision: Revision::ZERO,
        updated_at: at(1),
    };
    fixture.put(&[
        agent("a1", AgentStatus::Active, 50, None, None).into(),
        agent("a3", AgentStatus::Idle, 40, None, Some("a1")).into(),
        agent("a2", AgentStatus::Active, 40, None, Some("a1")).into(),
        agent("b1", AgentStatus::Stale, 10, Some(30), None).into(),
        agent("b2", AgentStatus::Completed, 20, Some(20), None).into(),
        project("p").into(),
        project("o").into(),
        protocol("review").into(),
        protocol("Review").into(),
        item("w4", Priority::P1, 9, Status::Available, None, None).into(),
        item("w3", Priority::P2, 1, Status::Available, None, None).into(),
        item("w2", Priority::P2, 1, Status::Available, None, None).into(),
        item("w1", Priority::P3, 0, Status::Available, None, None).into(),
        item("w6", Priority::P1, 1, Status::Claimed, Some("a1"), None).into(),
        item("w5", Priority::P2, 1, Status::Completed, Some("a1"), Some(60)).into(),
        item("w7", Priority::P2, 1, Status::Completed, Some("b1"), Some(55)).into(),
        dependency("late", 30).into(),
        dependency("early", 10).into(),
        Dependency { item_id: "w2".to_owned(), ..dependency("early", 5) }.into(),
        operation("second", 20).into(),
        operation("first", 10).into(),
        cursor("observe").into(),
        cursor("hook").into(),
        heartbeat("a1", 20, Some("w1")).into(),
        heartbeat("a1", 10, None).into(),
        heartbeat("a2", 10, Some("w1")).into(),
    ]);
}

fn every_index_returns_its_rows_in_order(fixture: &Fixture) {
    fill(fixture);
    for (range, expected) in [
        (Range::agents(), &["a1", "a2", "a3", "b1", "b2"][..]),
        (Range::live_agents(), &["a2", "a3", "a1"]),
        (Range::agents_ended_since(at(0)), &["b2", "b1"]),
        (Range::delegates_of("a1"), &["a2", "a3"]),
        (Range::delegates_of("a2"), &[]),
        (Range::projects(), &["o", "p"]),
        (Range::protocols(), &["Review", "review"]),
        (Range::work_items(), &["w1", "w2", "w3", "w4", "w5", "w6", "w7"]),
        (Range::work_queue(Status::Available), &["w4", "w2", "w3", "w1"]),
        (Range::work_queue(Status::Claimed), &["w6"]),
        (Range::work_queue(Status::Blocked), &[]),
        (Range::work_queue(Status::Completed), &["w5", "w7"]),
        (Range::work_queue_of(Status::Available, Priority::P1), &["w4"]),
        (Range::work_queue_of(Status::Available, Priority::P2), &["w2", "w3"]),
        (Range::work_queue_of(Status::Available, Priority::P3), &["w1"]),
        (Range::work_queue_of(Status::Claimed, Priority::P3), &[]),
        (Range::newest_work(Status::Available, Priority::P2), &["w3", "w2"]),
        (Range::last_completed(), &["w5", "w7"]),
        (Range::project_queue(Status::Completed, "p"), &["w5", "w7"]),
        (Range::project_queue(Status::Claimed, "p"), &["w6"]),
        (Range::project_queue(Status::Available, "p"), &[]),
        (Range::project_queue_of(Status::Completed, "p", Priority::P2), &["w5", "w7"]),
        (Range::project_queue_of(Status::Completed, "p", Priority::P1), &[]),
        (Range::claimed_by("a1"), &["w5", "w6"]),
        (Range::work_of_project("p"), &["w5", "w6", "w7"]),
        (Range::completed_since(at(0)), &["w7", "w5"]),
        (Range::blockers_of("w1"), &["w1<early", "w1<late"]),
        (Range::dependencies(), &["w1<early", "w1<late", "w2<early"]),
        (Range::dependents_of("early"), &["w1<early", "w2<early"]),
        (Range::operations_before(at(100)), &["first", "second"]),
        (Range::cursors_of("a1"), &["hook", "observe"]),
        (Range::cursors_of("a2"), &[]),
        (Range::heartbeats_of("a1"), &["a1 10", "a1 20"]),
        (Range::heartbeats_about("w1"), &["a2 10", "a1 20"]),
    ] {
        assert_eq!(names(fixture, &range), expected, "{range:?}");
    }
}

fn bounds_include_the_start_and_exclude_the_end(fixture: &Fixture) {
    fill(fixture);
    for (range, expected) in [
        (Range::live_agents_seen_until(at(39)), &[][..]),
        (Range::live_agents_seen_until(at(40)), &["a2", "a3"]),
        (Range::agents_ended_before(at(30)), &["b2"]),
        (Range::agents_ended_since(at(30)), &["b1"]),
        (Range::completed_since(at(55)), &["w7", "w5"]),
        (Range::completed_since(at(56)), &["w5"]),
        (Range::operations_before(at(20)), &["first"]),
        (Range::heartbeats_of("a1").before(at(20)), &["a1 10"]),
        (Range::live_agents().aged(at(100), Duration::from_mins(1)), &["a2", "a3"]),
        (Range::live_agents().aged(at(100), Duration::from_secs(61)), &[]),
        (Range::agents_with_prefix("a"), &["a1", "a2", "a3"]),
        (Range::agents_with_prefix("b1"), &["b1"]),
        (Range::agents_with_prefix("c"), &[]),
        (Range::work_items().from("w2").before("w4"), &["w2", "w3"]),
        (Range::projects().from("o").before("p"), &["o"]),
        (Range::projects().after("o").up_to("p"), &["p"]),
    ] {
        assert_eq!(names(fixture, &range), expected, "{range:?}");
    }
}

fn candidates_are_the_first_rows_of_a_range(fixture: &Fixture) {
    fill(fixture);
    for limit in [0, 1, 2, 100, usize::MAX] {
        let range = Range::work_queue(Status::Available);
        let hinted = fixture.read(|tx| tx.candidates(&range, limit)).unwrap();
        let mut whole = fixture.read(|tx| tx.range(&range)).unwrap();
        whole.truncate(limit);
        assert_eq!(hinted, whole, "limit {limit}");
    }
}

fn rows_leave_a_range_when_they_change_or_are_removed(fixture: &Fixture) {
    fill(fixture);
    fixture.put(&[
        WorkItem { status: Status::Claimed, ..an_item("w4") }.into(),
        Agent { last_seen_at: at(99), ..an_agent("a2") }.into(),
    ]);
    assert_eq!(names(fixture, &Range::work_queue(Status::Available)), ["w2", "w3", "w1"]);
    assert_eq!(names(fixture, &Range::work_queue(Status::Claimed)), ["w6", "w4"]);
    assert_eq!(names(fixture, &Range::live_agents()), ["a3", "a1", "a2"]);
    assert_eq!(names(fixture, &Range::delegates_of("a1")), ["a3"]);
    let key = Key::WorkItem("w3".to_owned());
    fixture
        .commit(|tx| {
            tx.get(&key)?;
            Ok(Changes { remove: vec![key.clone()], events: vec![an_event()], ..Changes::new() })
        })
        .unwrap();
    assert_eq!(names(fixture, &Range::work_queue(Status::Available)), ["w2", "w1"]);
    assert_eq!(names(fixture, &Range::work_items()), ["w1", "w2", "w4", "w5", "w6", "w7"]);
}

/// The last character is an ordinary one: an id that begins with it is found.
fn no_id_sorts_behind_a_range(fixture: &Fixture) {
    fixture.put(&[an_item("\u{10ffff} last").into(), an_item("first").into()]);
    assert_eq!(names(fixture, &Range::work_items()), ["first", "\u{10ffff} last"]);
}

/// Entries with tags, leases and times, in several scopes. Their revisions are 1 to 6.
fn fill_with_entries(fixture: &Fixture) {
    let (first, second) = (fixture.session("Ivy"), fixture.session("Oak"));
    let write = |scope: &str, by: Option<&str>, key: &str, tags: &[&str], seconds: Option<u64>| {
        let write = Write {
            tags: owned(tags),
            ttl: seconds.map(Duration::from_secs),
            lease: by.is_some(),
            ..a_write(key, "1")
        };
        let by = by.map(Actor::session).unwrap_or_default();
        fixture.board.scope(scope).acting_as(by).write(&write).unwrap();
    };
    write("t", Some(&second), "b", &["x", "y"], Some(20));
    write("t", None, "a:2", &["x"], None);
    write("t", Some(&first), "a:1", &[], Some(10));
    write("t u", Some(&first), "a", &["x"], Some(10));
    write("s", Some(&first), "z", &["x"], Some(30));
    write("t", None, "c", &["x z"], Some(10));
    write("t", None, "a", &[], None);
}

fn entries_are_in_all_their_indexes(fixture: &Fixture) {
    fill_with_entries(fixture);
    let session = |name: &str| {
        let agents = fixture.board.export().unwrap().agents;
        agents.into_iter().find(|agent| agent.agent_name == name).unwrap().session_id
    };
    let moment = |seconds| fixture.now().plus(Duration::from_secs(seconds));
    let just_before = fixture.now().plus(Duration::from_millis(9_999));
    for (range, expected) in [
        (Range::all_entries(), &["s/z", "t/a", "t/a:1", "t/a:2", "t/b", "t/c", "t u/a"][..]),
        (Range::entries("t", ""), &["t/a", "t/a:1", "t/a:2", "t/b", "t/c"]),
        (Range::entries("t", "a"), &["t/a", "t/a:1", "t/a:2"]),
        (Range::entries("t", "a:"), &["t/a:1", "t/a:2"]),
        (Range::entries("t", "a:").after("a:1"), &["t/a:2"]),
        (Range::entries("t", "a").after("a"), &["t/a:1", "t/a:2"]),
        (Range::entries("t", "a").after("z"), &[]),
        (Range::entries("t", "").after("A"), &["t/a", "t/a:1", "t/a:2", "t/b", "t/c"]),
        (Range::entries("nothing", ""), &[]),
        (Range::newest_entries("t", None), &["t/a", "t/c", "t/a:1", "t/a:2", "t/b"]),
        (Range::newest_entries("t", Some(fixture.id(8))), &["t/a:1", "t/a:2", "t/b"]),
        (Range::newest_entries("t", Some(fixture.id(1))), &[]),
        (Range::entries_tagged("t", "x", ""), &["t/a:2", "t/b"]),
        (Range::entries_tagged("t", "x", "a"), &["t/a:2"]),
        (Range::entries_tagged("t", "x", "").after("a:2"), &["t/b"]),
        (Range::entries_tagged("t", "x z", ""), &["t/c"]),
        (Range::entries_tagged("t u", "x", ""), &["t u/a"]),
        (Range::entries_tagged("t", "z", ""), &[]),
        (Range::entries_expired_at(just_before), &[]),
        (Range::entries_expired_at(moment(10)), &["t/a:1", "t/c", "t u/a"]),
        (Range::entries_expired_at(moment(25)), &["t/a:1", "t/c", "t u/a", "t/b"]),
        (Range::leased_by(&session("Ivy")), &["s/z", "t/a:1", "t u/a"]),
        (Range::leased_by(&session("Oak")), &["t/b"]),
        (Range::leased_by("unknown"), &[]),
    ] {
        assert_eq!(names(fixture, &range), expected, "{range:?}");
        let any = fixture.read(|tx| tx.any(&range)).unwrap();
        assert_eq!(any, !expected.is_empty(), "{range:?}");
    }
}

fn heads_agree_with_entries(fixture: &Fixture) {
    fill_with_entries(fixture);
    let agents = fixture.board.export().unwrap().agents;
    for range in [
        Range::entries("t", ""),
        Range::entries("t", "a:").after("a:1"),
        Range::newest_entries("t", None),
        Range::newest_entries("t", Some(fixture.id(7))),
        Range::entries_tagged("t", "x", ""),
        Range::entries_tagged("t", "x", "a"),
        Range::entries_expired_at(fixture.now().plus(Duration::from_secs(15))),
        Range::leased_by(&agents[0].session_id),
    ] {
        let rows = fixture.read(|tx| tx.rows::<Entry>(&range)).unwrap();
        assert!(!rows.is_empty(), "{range:?}");
        for limit in [0, 1, 2, usize::MAX] {
            let heads = fixture.read(|tx| tx.heads(&range, limit)).unwrap();
            let heads: Vec<_> =
                heads.into_iter().map(|head| (head.key, head.revision, head.expires_at)).collect();
            let expected = rows.iter().take(limit);
            let expected: Vec<_> =
                expected.map(|entry| (entry.key.clone(), entry.revision, entry.expires_at)).collect();
            assert_eq!(heads, expected, "{range:?}, limit {limit}");
        }
    }
}

fn entries_move_within_indexes(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let write =
        Write { tags: owned(&["x"]), ttl: Some(Duration::from_secs(10)), lease: true, ..a_write("a", "1") };
    fixture.scope_of(&session).write(&write).unwrap();
    fixture.write("b", "1");
    let later = fixture.now().plus(Duration::from_hours(1));
    let places = || {
        [
            Range::entries_tagged("team", "x", ""),
            Range::entries_tagged("team", "y", ""),
            Range::entries_expired_at(later),
            Range::leased_by(&session),
            Range::newest_entries("team", None),
        ]
        .map(|range| names(fixture, &range).join(" "))
    };
    assert_eq!(places(), ["team/a", "", "team/a", "team/a", "team/b team/a"]);
    let changed = Write { tags: owned(&["y"]), ..a_write("a", "2") };
    fixture.scope_of(&session).write(&changed).unwrap();
    assert_eq!(places(), ["", "team/a", "", "team/a", "team/a team/b"]);
    fixture.scope_of(&session).delete("a").unwrap();
    assert_eq!(places(), ["", "", "", "", "team/b"]);
}
