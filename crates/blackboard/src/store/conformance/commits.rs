//! A commit is atomic, with its events, and ids only grow.

use std::collections::BTreeSet;

use super::*;
use crate::agent::HeartbeatRow;
use crate::entry::{EntryVersion, Tombstone};
use crate::file::Edit;
use crate::store::{BookkeepingRow, Cursor, Key, Range, RememberedCall, TABLES};
use crate::work::Dependency;

on_every_engine![
    rows_and_events_of_a_commit_appear_together,
    a_refusal_leaves_nothing,
    event_ids_grow_and_have_no_gap_inside_a_commit,
    pending_revisions_become_the_ids_of_their_events,
    a_commit_that_changes_nothing_writes_nothing,
    row_that_was_not_read_cannot_be_written,
    candidate_does_not_count_as_read,
    head_does_not_count_as_read,
    an_entry_is_put_only_as_the_version_of_an_event,
    a_row_is_changed_once_in_one_commit,
    every_kind_of_row_round_trips_unchanged,
    rows_may_come_in_any_order_though_one_refers_to_the_other,
    event_times_stay_monotonic_unless_the_clock_was_a_day_ahead,
    a_read_sees_one_time,
    a_row_that_is_appended_is_put_and_removed_without_being_read,
];

fn rows_and_events_of_a_commit_appear_together(fixture: &Fixture) {
    let committed = fixture.put(&[an_agent("a").into(), an_item("x").into()]);
    assert_eq!(committed.first, fixture.id(1));
    let (revision, agent, item, events) = fixture
        .read(|tx| {
            let agent = tx.get(&Key::Agent("a".to_owned()))?;
            let item = tx.get(&Key::WorkItem("x".to_owned()))?;
            Ok((tx.revision()?, agent, item, tx.events(&Page::after(Revision::ZERO, 10))?))
        })
        .unwrap();
    assert_eq!((revision, events.len()), (fixture.id(2), 2));
    assert_eq!(agent, Some(an_agent("a").into()));
    assert_eq!(item, Some(an_item("x").into()));
}

fn a_refusal_leaves_nothing(fixture: &Fixture) {
    fixture.put(&[an_item("x").into()]);
    let refused = fixture.commit(|tx| {
        tx.get(&Key::WorkItem("x".to_owned()))?;
        Err(crate::Error::invalid("no"))
    });
    assert_eq!(code(refused), Code::InvalidValue);
    // A row that was put before an invalid row is not stored either.
    let broken = fixture.commit(|tx| {
        let mut changes = Changes::new();
        tx.get(&Key::WorkItem("y".to_owned()))?;
        changes.put(an_item("y"));
        changes.put(an_item("never read"));
        changes.event(an_event());
        Ok(changes)
    });
    assert_eq!(code(broken), Code::Internal);
    let items = fixture.board.export().unwrap().work_items;
    assert_eq!(items.iter().map(|item| item.item_id.as_str()).collect::<Vec<_>>(), ["x"]);
    assert_eq!(fixture.revision(), fixture.id(1));
    fixture.put(&[an_item("y").into()]);
    assert_eq!(fixture.revision(), fixture.id(2), "the ids of what was refused are not used up");
}

fn event_ids_grow_and_have_no_gap_inside_a_commit(fixture: &Fixture) {
    for count in [1, 3, 2] {
        let rows: Vec<Row> = (0..count).map(|number| an_item(&format!("x{number}")).into()).collect();
        fixture.put(&rows);
    }
    let events = fixture.events();
    let commits: Vec<_> = events.iter().map(|event| fixture.number(event.commit_id)).collect();
    assert_eq!(commits, [1, 2, 2, 2, 5, 5]);
    for pair in events.windows(2) {
        assert!(pair[0].id < pair[1].id);
        if pair[0].commit_id == pair[1].commit_id {
            assert_eq!(pair[0].id.next(), pair[1].id);
        }
    }
}

fn pending_revisions_become_the_ids_of_their_events(fixture: &Fixture) {
    fixture.put(&[an_item("x").into()]);
    fixture
        .commit(|tx| {
            let mut changes = Changes::new();
            tx.get(&Key::WorkItem("y".to_owned()))?;
            let mut item = an_item("y");
            item.fence = Some(changes.event(an_event()));
            item.revision = changes.event(an_event());
            changes.put(item);
            Ok(changes)
        })
        .unwrap();
    let item = fixture.work("y");
    assert_eq!((item.fence, item.revision), (Some(fixture.id(2)), fixture.id(3)));
}

fn a_commit_that_changes_nothing_writes_nothing(fixture: &Fixture) {
    fixture.put(&[an_item("x").into()]);
    let committed = fixture.commit(|_| Ok(Changes::new())).unwrap();
    assert!(committed.first > fixture.id(1), "the id that its first event would have had");
    assert_eq!(fixture.revision(), fixture.id(1));
}

fn row_that_was_not_read_cannot_be_written(fixture: &Fixture) {
    fixture.put(&[an_item("x").into()]);
    let put = fixture.commit(|_| Ok(Changes { put: vec![an_item("x").into()], ..Changes::new() }));
    assert_eq!(code(put), Code::Internal);
    let remove =
        fixture.commit(|_| Ok(Changes { remove: vec![Key::WorkItem("x".to_owned())], ..Changes::new() }));
    assert_eq!(code(remove), Code::Internal);
    assert_eq!(fixture.work("x"), an_item("x"));
}

fn head_does_not_count_as_read(fixture: &Fixture) {
    fixture.write("a", "1");
    let entry = fixture.scope().entry("a").unwrap().unwrap();
    let key = Row::from(entry).key();
    let remove = fixture.commit(|tx| {
        assert_eq!(tx.heads(&Range::entries("team", ""), 10)?.len(), 1);
        Ok(Changes { remove: vec![key.clone()], ..Changes::new() })
    });
    assert_eq!(code(remove), Code::Internal);
    assert_eq!(fixture.value("a").as_deref(), Some("1"));
}

fn an_entry_is_put_only_as_the_version_of_an_event(fixture: &Fixture) {
    let entry = Entry { revision: Revision::of_event(0), ..an_entry("team", "a") };
    let version = EntryVersion { entry: entry.clone(), previous: None, removed: false };
    let other = Entry { value: json("\"another\""), ..entry.clone() };
    for (version, expected) in [
        (None, Some(Code::Internal)),
        (Some(EntryVersion { removed: true, ..version.clone() }), Some(Code::Internal)),
        (Some(EntryVersion { entry: other, ..version.clone() }), Some(Code::Internal)),
        (Some(version), None),
    ] {
        let put = fixture.commit(|tx| {
            let mut changes = Changes::new();
            tx.get(&Row::from(entry.clone()).key())?;
            changes.put(entry.clone());
            changes.event(match version.clone() {
                Some(version) => an_event().of_version(version),
                None => an_event(),
            });
            Ok(changes)
        });
        assert_eq!(put.as_ref().err().map(crate::Error::code), expected, "{version:?}");
    }
}

fn a_row_is_changed_once_in_one_commit(fixture: &Fixture) {
    fixture.put(&[an_agent("a").into(), an_item("x").into()]);
    let heartbeat: Row =
        HeartbeatRow { session_id: "a".to_owned(), timestamp: at(5), progress: None, work_item_id: None }
            .into();
    let new: Row = an_item("new").into();
    for row in [an_item("x").into(), new, heartbeat] {
        for (puts, removals) in [(1, 1), (2, 0), (0, 2)] {
            let twice = fixture.commit(|tx| {
                tx.get(&row.key())?;
                tx.get(&Key::Agent("a".to_owned()))?;
                let mut put = vec![row.clone(); puts];
                put.push(Agent { agent_name: "Changed".to_owned(), ..an_agent("a") }.into());
                let remove = vec![row.key(); removals];
                Ok(Changes { put, remove, events: vec![an_event()], ..Changes::new() })
            });
            assert_eq!(code(twice), Code::Internal, "{puts} puts and {removals} removals of {row:?}");
        }
    }
    assert_eq!(fixture.agent("a"), an_agent("a"), "nothing of such a commit is applied");
    assert_eq!(fixture.revision(), fixture.id(2));
}

fn candidate_does_not_count_as_read(fixture: &Fixture) {
    fixture.put(&[an_item("x").into()]);
    let put = fixture.commit(|tx| {
        let hinted = tx.candidates(&Range::work_items(), 10)?;
        Ok(Changes { put: hinted, ..Changes::new() })
    });
    assert_eq!(code(put), Code::Internal);
    let put = fixture.commit(|tx| {
        let read = tx.range(&Range::work_items())?;
        Ok(Changes { put: read, ..Changes::new() })
    });
    assert!(put.is_ok());
}

/// A row of every kind except an entry, which needs its version. Every optional column has a value.
pub(crate) fn every_kind_of_row() -> Vec<Row> {
    let parent = an_agent("parent");
    let agent = Agent {
        pid: Some(u32::MAX),
        parent_id: Some("parent".to_owned()),
        project: Some("anything".to_owned()),
        current_work: Some("Something".to_owned()),
        status: AgentStatus::Stale,
        ended_at: Some(at(9)),
        progress: Some("Half done".to_owned()),
        metadata: Some(Metadata::parse(r#"{"tries": 1.0}"#).unwrap()),
        revision: Revision::new(7),
        joined: Revision::new(3),
        process: Some("host/boot/4026531836/59235".parse().unwrap()),
        shares_process: true,
        ..an_agent("agent")
    };
    let project = crate::project::Project {
        project_id: "p".to_owned(),
        display_name: "Quote ' and \u{1f980}".to_owned(),
        local_path: Some("/tmp".to_owned()),
        remote_repo: Some("owner/p".to_owned()),
        registered_at: at(2),
        metadata: None,
        revision: Revision::new(1),
    };
    let protocol = crate::protocol::CustomProtocol {
        name: "review".to_owned(),
        template: crate::protocol::Template::new("review:{ns?}:{id}").unwrap(),
        level: crate::protocol::Level::Session,
        summary: "Reviews".to_owned(),
        value_schema: Some(crate::protocol::Schema::parse("{\"type\":\n \"object\"}").unwrap()),
        defined_at: at(2),
        revision: Revision::new(1),
    };
    let item = WorkItem {
        project_id: Some("p".to_owned()),
        description: Some("At\nlength".to_owned()),
        source_ref: Some("#78".to_owned()),
        status: Status::Completed,
        priority: Priority::P1,
        claimed_by: Some("agent".to_owned()),
        claimed_by_name: Some("Other".to_owned()),
        claimed_at: Some(at(3)),
        fence: Some(Revision::new(4)),
        completed_at: Some(at(5)),
        blocked_by: Some("y".to_owned()),
        metadata: Some(Metadata::parse("{}").unwrap()),
        ..an_item("gh:owner/repo#78")
    };
    vec![
        parent.into(),
        agent.into(),
        project.into(),
        protocol.into(),
        item.into(),
        dependency("gh:owner/repo#78", "y", 6).into(),
        Cursor {
            owner: "agent".to_owned(),
            reader: "observe".to_owned(),
            revision: Revision::new(2),
            updated_at: at(7),
        }
        .into(),
        RememberedCall {
            operation_id: "op".to_owned(),
            verb: "agent heartbeat".to_owned(),
            answer: "{}".to_owned(),
            revision: Revision::new(1),
            created_at: at(8),
        }
        .into(),
        HeartbeatRow {
            session_id: "agent".to_owned(),
            timestamp: at(4),
            progress: Some("Half done".to_owned()),
            work_item_id: Some("gh:owner/repo#78".to_owned()),
        }
        .into(),
        BookkeepingRow { name: "prune".into(), value: "{}".to_owned() }.into(),
        Tombstone {
            scope: "team".to_owned(),
            key: "gone".to_owned(),
            version: 3,
            revision: Revision::new(4),
        }
        .into(),
        policies_with_every_value().into(),
        a_page().into(),
        Edit {
            worktree: "/src".to_owned(),
            path: "README.md".to_owned(),
            session_id: "agent".to_owned(),
            tool: Some("Edit".to_owned()),
            edited_at: Some(at(8)),
            denied_at: Some(at(9)),
        }
        .into(),
    ]
}

fn a_page() -> crate::page::ContextPage {
    let entry =
        |key: &str| crate::page::PackedEntry { key: key.to_owned(), revision: Revision::new(3), tokens: 12 };
    crate::page::ContextPage {
        scope: "team".to_owned(),
        locality: "task \"1\"".to_owned(),
        hash: "0123456789abcdef".to_owned(),
        content: crate::page::PageContent::new(
            Revision::new(2),
            vec![entry("task \"1\":a"), entry("task \"1\":b")],
        ),
    }
}

fn level_with_every_rule() -> crate::memory::LevelRules {
    let some = |seconds| Some(std::time::Duration::from_millis(seconds));
    crate::memory::LevelRules {
        patterns: owned(&["memory_record:*"]),
        session: true,
        ttl: some(1501),
        max_entries: Some(100),
        tokens: Some(8000),
        half_life: some(4_138_054),
        min_relevance: Some(crate::memory::Relevance::new(0.3).unwrap()),
        without_tags: owned(&["skill"]),
        takes_at: Some(5),
        takes_after: some(120_001),
        by_summary: true,
        next: owned(&["long-term"]),
        at_end: Some("collective".to_owned()),
    }
}

fn policies_with_every_value() -> crate::scope::ScopePolicies {
    crate::scope::ScopePolicies {
        scope: "team".to_owned(),
        policies: crate::scope::Policies {
            members: owned(&["Oak"]),
            owner: Some("session".to_owned()),
            work_item: Some("item".to_owned()),
            access: crate::scope::AccessRules::new(vec![
                crate::scope::AccessRule::parse(crate::scope::Effect::Deny, "Oak:read,write:a*").unwrap(),
            ]),
            visibility: crate::scope::Visibility::Persistent,
            ttl: Some(std::time::Duration::from_millis(1501)),
            max_entries: Some(100),
            eviction: crate::scope::Eviction::Lfu,
            validation: crate::scope::ValueRules::new(vec!["a.*=dict".parse().unwrap()]),
            level: Some(level_with_every_rule()),
            status: crate::scope::ScopeStatus::Ended,
            hidden_until: Some(Revision::new(3)),
        },
        entries: Some(7),
        created_at: at(1),
        created_by: "Ivy".to_owned(),
        updated_at: at(2),
        updated_by: "Oak".to_owned(),
        revision: Revision::new(5),
        evicting_since: Revision::new(4),
    }
}

fn every_kind_of_row_round_trips_unchanged(fixture: &Fixture) {
    let rows = every_kind_of_row();
    let tables: BTreeSet<_> = rows.iter().map(|row| row.table().name).chain(["entries"]).collect();
    assert_eq!(tables.len(), TABLES.len(), "every kind of row is here");
    fixture.put(&rows);
    for row in &rows {
        let found = fixture.read(|tx| tx.get(&row.key())).unwrap();
        assert_eq!(found.as_ref(), Some(row));
    }
    // Everything that can be removed is removed.
    fixture.put(&[an_agent("agent").into(), an_item("gh:owner/repo#78").into()]);
    assert_eq!(fixture.agent("agent"), an_agent("agent"));
    assert_eq!(fixture.work("gh:owner/repo#78"), an_item("gh:owner/repo#78"));
}

fn rows_may_come_in_any_order_though_one_refers_to_the_other(fixture: &Fixture) {
    let mut item = an_item("x");
    item.claimed_by = Some("a".to_owned());
    let mut rows: Vec<Row> = vec![dependency("x", "y", 1).into(), item.into(), an_agent("a").into()];
    fixture.put(&rows);
    rows.reverse();
    let keys: Vec<_> = rows.iter().map(Row::key).collect();
    fixture
        .commit(|tx| {
            for key in &keys {
                tx.get(key)?;
            }
            Ok(Changes { remove: keys.clone(), events: vec![an_event()], ..Changes::new() })
        })
        .unwrap();
    let exported = fixture.board.export().unwrap();
    assert!(exported.agents.is_empty() && exported.work_items.is_empty());
}

fn event_times_stay_monotonic_unless_the_clock_was_a_day_ahead(fixture: &Fixture) {
    let start = fixture.now();
    let day = Duration::from_hours(24);
    let hour = Duration::from_hours(1);
    let moments = [start, start.minus(hour), start.plus(hour), start.plus(3 * day), start, start.minus(hour)];
    for moment in moments {
        fixture.clock.set(moment);
        fixture.put(&[an_item("x").into()]);
    }
    let times: Vec<_> = fixture.events().iter().map(|event| event.timestamp).collect();
    assert_eq!(times, [start, start, start.plus(hour), start.plus(3 * day), start, start]);
}

fn a_read_sees_one_time(fixture: &Fixture) {
    let before = fixture.now();
    let (first, second) = fixture
        .read(|tx| {
            let first = tx.now();
            fixture.pass(10);
            Ok((first, tx.now()))
        })
        .unwrap();
    assert_eq!((first, second), (before, before));
}

fn a_row_that_is_appended_is_put_and_removed_without_being_read(fixture: &Fixture) {
    fixture.put(&[an_agent("a").into(), an_item("x").into()]);
    let heartbeat = |progress: Option<&str>| HeartbeatRow {
        session_id: "a".to_owned(),
        timestamp: at(5),
        progress: progress.map(str::to_owned),
        work_item_id: Some("x".to_owned()),
    };
    for progress in [Some("Half done"), None] {
        let put = || Ok(Changes { put: vec![heartbeat(progress).into()], ..Changes::new() });
        fixture.commit(|_| put()).unwrap();
        let rows = fixture.read(|tx| tx.range(&Range::heartbeats_of("a"))).unwrap();
        assert_eq!(rows, [heartbeat(progress).into()]);
    }
    let key = Row::from(heartbeat(None)).key();
    fixture.commit(|_| Ok(Changes { remove: vec![key.clone()], ..Changes::new() })).unwrap();
    assert_eq!(fixture.heartbeats("a"), 0);
}

fn dependency(item: &str, blocked_by: &str, seconds: u64) -> Dependency {
    Dependency { item_id: item.to_owned(), blocked_by: blocked_by.to_owned(), created_at: at(seconds) }
}
