//! The complete board: its status and its export.

use super::*;
use crate::entry::{Value, Write};
use crate::project::RegisterProject;
use crate::status::EntryCounts;
use crate::work::{Claim, Create, Priority, WorkFilter};

on_every_engine![
    an_empty_board_counts_nothing,
    status_counts_everything,
    status_has_the_first_claimed_items_in_order,
    an_export_has_everything,
];

fn an_empty_board_counts_nothing(fixture: &Fixture) {
    let status = fixture.board.status().unwrap();
    assert_eq!((status.revision, status.events_24h, status.events_kept), (Revision::ZERO, 0, 0));
    assert!(status.active_agents.is_empty());
    assert_eq!(fixture.board.export().unwrap().revision, Revision::ZERO);
}

fn status_counts_everything(fixture: &Fixture) {
    let counts = || {
        let status = fixture.board.status().unwrap();
        let agents = status.agents;
        let work = status.work_items;
        (
            [agents.active, agents.idle, agents.stale, agents.completed_today],
            [work.available, work.claimed, work.blocked, work.completed_today],
        )
    };
    let (stale, ended) = (fixture.session("Stale"), fixture.session("Ended"));
    fixture.item_that_is("stale's", Status::Claimed, &stale);
    fixture.board.agents().deregister(&ended).unwrap();
    fixture.pass(301);
    let (ivy, idle) = (fixture.session("Ivy"), fixture.session("Idle"));
    fixture
        .board
        .agents()
        .heartbeat(&Heartbeat { status: Some(AgentStatus::Idle), ..Heartbeat::of(&idle) })
        .unwrap();
    fixture.sweep();
    for &status in Status::ALL {
        fixture.item_that_is(status.as_str(), status, &ivy);
    }
    fixture.board.projects().register(&RegisterProject::new("p", "P")).unwrap();
    assert_eq!(counts(), ([1, 1, 1, 1], [2, 1, 1, 1]));
    let status = fixture.board.status().unwrap();
    assert_eq!(status.projects.registered, 1);
    assert_eq!(status.claimed_work, fixture.board.work().list(&claimed_items()).unwrap());
    assert_eq!(
        status.active_agents.iter().map(|listed| listed.agent.agent_name.as_str()).collect::<Vec<_>>(),
        ["Ivy", "Idle"]
    );
    assert_eq!(status.events_24h, fixture.events().len() as u64);
    assert_eq!(status.events_kept, status.events_24h);

    // It is 15:35. A session that ended before midnight did not end today.
    fixture.pass(9 * 3600);
    assert_eq!(counts(), ([1, 1, 1, 0], [2, 1, 1, 0]));
    assert_eq!(fixture.board.status().unwrap().events_24h, status.events_24h);
    fixture.pass_days(1);
    assert_eq!(fixture.board.status().unwrap().events_24h, 0);
}

fn claimed_items() -> WorkFilter {
    WorkFilter { statuses: vec![Status::Claimed], ..WorkFilter::default() }
}

/// The rows and their count come from one read, so that they agree.
fn status_has_the_first_claimed_items_in_order(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    for number in 0..101 {
        let priority = Some(if number == 70 { Priority::P1 } else { Priority::P2 });
        let id = format!("item {number:03}");
        fixture.board.work().create(&Create { priority, ..Create::new(&id, "Item") }).unwrap();
        fixture.board.work().claim(&Claim::of(&id, &ivy)).unwrap();
    }
    let status = fixture.board.status().unwrap();
    assert_eq!((status.work_items.claimed, status.claimed_work.len()), (101, 100));
    let listed = fixture.board.work().list(&claimed_items()).unwrap();
    assert_eq!(listed[0].item.item_id, "item 070");
    assert_eq!(status.claimed_work, listed[..100]);
}

fn an_export_has_everything(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let ended = fixture.session("Oak");
    fixture.board.agents().deregister(&ended).unwrap();
    fixture.board.projects().register(&RegisterProject::new("p", "P")).unwrap();
    fixture.item_that_is("done", Status::Completed, &session);
    fixture.blocked_item("x", &["b", "a"]);
    for scope in ["two", "one"] {
        let write = Write::new("k", Value::parse("1.0", 10).unwrap());
        fixture.board.scope(scope).write(&write).unwrap();
    }
    let exported = fixture.board.export().unwrap();
    assert_eq!(exported.revision, fixture.revision());
    assert_eq!(exported.agents, [fixture.agent(&session), fixture.agent(&ended)]);
    assert_eq!(exported.projects.len(), 1);
    assert_eq!(exported.work_items, [fixture.work("done"), fixture.work("x")]);
    let waits: Vec<_> =
        exported.work_dependencies.iter().map(|dependency| dependency.blocked_by.as_str()).collect();
    assert_eq!(waits, ["a", "b"]);
    let entries: Vec<_> = exported.entries.iter().map(|entry| (&entry.scope[..], &entry.key[..])).collect();
    assert_eq!(entries, [("one", "k"), ("two", "k")]);
    assert_eq!(fixture.board.status().unwrap().entries, EntryCounts { shared: 2, locks: 0, files: 0 });
    // The library's value is the same as the JSON output.
    let json = serde_json::to_value(&exported).unwrap();
    assert_eq!(json["work_items"][1]["status"], "blocked");
    assert_eq!(json["agents"][0]["started_at"], "2026-02-03T15:30:00.000Z");
}
