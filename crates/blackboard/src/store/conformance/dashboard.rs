//! What a dashboard shows: pages of work, events and entries, the agents, and their activity.

use super::*;
use crate::entry::EveryScope;
use crate::event::{Lines, LogView};
use crate::work::{LastCompleted, NewestWork, SpanEnd};

on_every_engine![
    work_is_paged_by_priority_and_the_newest_first,
    work_of_several_statuses_is_merged_in_order,
    completed_work_is_paged_by_completion_time,
    blocked_items_are_listed_with_all_blockers,
    event_log_is_paged_backwards_with_and_without_filters,
    event_log_is_paged_forwards_and_from_a_position,
    event_log_is_continued_in_complete_commits_or_refused,
    entries_are_paged_through_every_scope_except_locks_and_files,
    overview_lists_agents_with_their_holdings,
    everything_is_counted_by_its_status,
    activity_lists_the_items_that_sessions_held,
];

fn ids(items: &[WorkItem]) -> Vec<&str> {
    items.iter().map(|item| item.item_id.as_str()).collect()
}

fn a_prioritized(fixture: &Fixture, id: &str, priority: Priority) {
    let create = Create { priority: Some(priority), ..Create::new(id, "A task") };
    fixture.board.work().create(&create).unwrap();
}

fn work_is_paged_by_priority_and_the_newest_first(fixture: &Fixture) {
    for (id, priority) in [
        ("a", Priority::P2),
        ("b", Priority::P1),
        ("c", Priority::P2),
        ("d", Priority::P2),
        ("e", Priority::P3),
    ] {
        a_prioritized(fixture, id, priority);
        // Two of them have the same timestamp.
        fixture.pass(u64::from(id != "c"));
    }
    let all = fixture.board.work().newest(&NewestWork::default()).unwrap();
    assert_eq!((ids(&all.items), all.next), (vec!["b", "d", "c", "a", "e"], None));
    assert_eq!(all.revision, fixture.revision());
    let query = NewestWork { limit: Some(2), ..NewestWork::default() };
    let first = fixture.board.work().newest(&query).unwrap();
    assert_eq!(ids(&first.items), ["b", "d"]);
    // An item that is created meanwhile is not on a later page, and shifts nothing on it.
    a_prioritized(fixture, "new", Priority::P1);
    a_prioritized(fixture, "newer", Priority::P2);
    let second = fixture.board.work().newest(&NewestWork { after: first.next, ..query.clone() }).unwrap();
    assert_eq!(ids(&second.items), ["c", "a"]);
    let third = fixture.board.work().newest(&NewestWork { after: second.next, ..query }).unwrap();
    assert_eq!((ids(&third.items), third.next), (vec!["e"], None));
}

fn work_of_several_statuses_is_merged_in_order(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    for &status in Status::ALL {
        fixture.item_that_is(status.as_str(), status, &ivy);
        fixture.pass(1);
    }
    let of = |statuses: &[Status]| {
        let query = NewestWork { statuses: statuses.to_vec(), ..NewestWork::default() };
        fixture.board.work().newest(&query).unwrap().items
    };
    assert_eq!(ids(&of(Status::OPEN)), ["blocked", "claimed", "available"]);
    assert_eq!(ids(&of(Status::ALL)), ["completed", "blocked", "claimed", "available"]);
    assert_eq!(ids(&of(&[Status::Completed])), ["completed"]);
    assert!(of(&[]).is_empty());
}

fn completed_work_is_paged_by_completion_time(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    // The item that was created first is completed last; two are completed at the same moment.
    let order = ["e", "c", "d", "b", "a"];
    for id in ["a", "b", "c", "d", "e"] {
        a_prioritized(fixture, id, if id == "d" { Priority::P1 } else { Priority::P3 });
        fixture.pass(1);
    }
    for id in order {
        fixture.claim(id, &ivy);
        fixture.complete(id, &ivy);
        fixture.pass(u64::from(id != "c"));
    }
    let all = fixture.board.work().last_completed(&LastCompleted::default()).unwrap();
    assert_eq!((ids(&all.items), all.next), (vec!["a", "b", "d", "c", "e"], None));
    a_prioritized(fixture, "late", Priority::P1);
    for limit in 1..6 {
        let (mut paged, mut after) = (Vec::new(), None);
        loop {
            let query = LastCompleted { limit: Some(limit), after, ..LastCompleted::default() };
            let page = fixture.board.work().last_completed(&query).unwrap();
            assert!(page.items.len() <= limit);
            paged.extend(page.items.into_iter().map(|item| item.item_id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(paged, ["a", "b", "d", "c", "e"], "pages of {limit}");
    }
    for wrong in ["", "yesterday a", "2026-02-03T15:30:00.000Z"] {
        let query = LastCompleted { after: Some(wrong.to_owned()), ..LastCompleted::default() };
        assert!(fixture.board.work().last_completed(&query).is_err(), "{wrong}");
    }
}

fn blocked_items_are_listed_with_all_blockers(fixture: &Fixture) {
    for id in ["a", "b", "c"] {
        fixture.item(id);
    }
    fixture.blocked_item("d", &["b", "a"]);
    let page = fixture.board.work().newest(&NewestWork::default()).unwrap();
    let mut waiting: Vec<_> = page.open_blockers.into_iter().collect();
    waiting[0].1.sort();
    assert_eq!(waiting, [("d".to_owned(), vec!["a".to_owned(), "b".to_owned()])]);
}

fn event_log_is_paged_forwards_and_from_a_position(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    for number in 0..8 {
        fixture.item(&format!("x{number}"));
        fixture.claim(&format!("x{number}"), &ivy);
    }
    let shown = |page: LogView| {
        let ids: Vec<_> = page.events.iter().map(|event| fixture.number(event.id)).collect();
        (ids, page.next.map(|next| fixture.number(next)), page.positions)
    };
    let newest = |lines: Lines| shown(fixture.board.events().newest(&lines).unwrap());
    let oldest = |lines: Lines| shown(fixture.board.events().oldest(&lines).unwrap());
    let revision = |number| Some(fixture.id(number));
    let limited = |limit| Lines { limit, ..Lines::default() };

    assert_eq!(oldest(limited(3)), (vec![1, 2, 3], Some(3), Some((1, 3))));
    assert_eq!(oldest(Lines { after: revision(15), ..limited(3) }), (vec![16, 17], None, Some((16, 17))));
    assert_eq!(oldest(Lines { after: revision(17), ..limited(3) }), (vec![], None, None));
    let short = Lines { most_bytes: Some(1), ..limited(3) };
    assert_eq!(oldest(short), (vec![1], Some(1), Some((1, 1))), "a page ends by its bytes");
    let before = Some(fixture.id(6).next());
    assert_eq!(oldest(Lines { after: revision(4), before, ..limited(9) }), (vec![5, 6], None, Some((5, 6))));
    let claims = Lines { types: vec![EventType::WorkClaimed], after: revision(4), ..limited(2) };
    assert_eq!(oldest(claims.clone()), (vec![5, 7], Some(7), Some((5, 7))));
    let hers = Lines { session: Some(ivy), types: vec![EventType::AgentRegistered], ..limited(2) };
    assert_eq!(oldest(hers), (vec![1], None, Some((1, 1))));

    let at = |position| Lines { position: Some(position), ..limited(2) };
    assert_eq!(newest(at(5)), (vec![5, 4], Some(4), Some((5, 4))));
    assert_eq!(newest(at(0)), (vec![], None, None));
    for end in [17, 18, u64::MAX] {
        assert_eq!(newest(at(end)), (vec![17, 16], Some(16), Some((17, 16))), "{end}");
    }
    assert_eq!(newest(Lines { before: revision(4), ..at(9) }), (vec![3, 2], Some(2), Some((3, 2))));
    assert_eq!(
        newest(Lines { position: Some(8), after: None, ..claims }),
        (vec![7, 5], Some(5), Some((7, 5)))
    );

    let extent = || {
        let page = fixture.board.events().newest(&limited(1)).unwrap();
        (page.kept, page.oldest.map(|oldest| fixture.number(oldest)))
    };
    assert_eq!(extent(), (17, Some(1)));
    fixture.trim(fixture.id(10));
    assert_eq!(extent(), (7, Some(11)));
    assert_eq!(newest(at(2)), (vec![12, 11], None, Some((2, 1))), "positions count what is kept");
    assert_eq!(oldest(limited(2)), (vec![11, 12], Some(12), Some((1, 2))));
}

fn event_log_is_paged_backwards_with_and_without_filters(fixture: &Fixture) {
    let start = fixture.now();
    let ivy = fixture.session("Ivy");
    for number in 0..8 {
        fixture.item(&format!("x{number}"));
        fixture.claim(&format!("x{number}"), &ivy);
        fixture.pass(10);
    }
    let page = |lines: Lines| {
        let page = fixture.board.events().newest(&lines).unwrap();
        let ids: Vec<_> = page.events.iter().map(|event| fixture.number(event.id)).collect();
        (ids, page.next.map(|next| fixture.number(next)))
    };
    let revision = |number| Some(fixture.id(number));
    assert_eq!(page(Lines { limit: 3, ..Lines::default() }), (vec![17, 16, 15], Some(15)));
    let short = Lines { limit: 3, most_bytes: Some(1), ..Lines::default() };
    assert_eq!(page(short), (vec![17], Some(17)), "a page ends by its bytes, with one line at least");
    assert_eq!(page(Lines { limit: 3, before: revision(3), ..Lines::default() }), (vec![2, 1], None));
    let between = Lines { after: revision(4), before: revision(7), ..Lines::default() };
    assert_eq!(page(between), (vec![6, 5], None));
    let claims = Lines { types: vec![EventType::WorkClaimed], limit: 2, ..Lines::default() };
    assert_eq!(page(claims.clone()), (vec![17, 15], Some(15)));
    assert_eq!(page(Lines { before: revision(4), ..claims }), (vec![3], None));
    let hers = Lines { session: Some(ivy), types: vec![EventType::AgentRegistered], ..Lines::default() };
    assert_eq!(page(hers), (vec![1], None));
    let since = Some(start.plus(Duration::from_mins(1)));
    assert_eq!(page(Lines { since, ..Lines::default() }).0, [17, 16, 15, 14]);
    fixture.trim(fixture.id(10));
    assert_eq!(page(Lines { before: revision(13), ..Lines::default() }), (vec![12, 11], None));
}

fn event_log_is_continued_in_complete_commits_or_refused(fixture: &Fixture) {
    for count in [1, 3, 1] {
        let rows: Vec<Row> = (0..count).map(|number| an_item(&format!("x{number}")).into()).collect();
        fixture.put(&rows);
    }
    let lines = |after, limit| {
        let page = fixture.board.events().lines(fixture.id(after), limit)?;
        Ok((
            page.events.iter().map(|event| fixture.number(event.id)).collect::<Vec<_>>(),
            page.next.map(|next| fixture.number(next)),
        ))
    };
    assert_eq!(lines(0, 2).unwrap(), (vec![1, 2, 3, 4], Some(4)));
    assert_eq!(
        lines(2, 1).unwrap(),
        (vec![3, 4], Some(4)),
        "a reader inside of a commit gets the rest of it"
    );
    assert_eq!(lines(4, 9).unwrap(), (vec![5], None));
    assert_eq!(lines(5, 9).unwrap(), (vec![], None));
    assert_eq!(code(lines(6, 9)), Code::CursorAhead);
    fixture.trim(fixture.id(4));
    assert_eq!(code(lines(3, 9)), Code::Compacted);
    assert_eq!(lines(4, 9).unwrap(), (vec![5], None));
}

fn entries_are_paged_through_every_scope_except_locks_and_files(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.board.locks().acquire(&crate::lock::Acquire::of("deploy", &ivy)).unwrap();
    for (scope, keys) in [("a", &["1", "2"][..]), ("a b", &["1"]), ("ab", &["3"]), ("m", &["1", "2", "3"])] {
        for key in keys {
            fixture.board.scope(scope).write(&a_write(key, "1")).unwrap();
        }
    }
    let sizes: Vec<_> =
        fixture.board.scopes().sizes().unwrap().into_iter().map(|size| (size.scope, size.entries)).collect();
    let expected = [("a", 2), ("a b", 1), ("ab", 1), ("m", 3)];
    assert_eq!(sizes, expected.map(|(scope, entries)| (scope.to_owned(), entries)));
    let pages = |limit, prefix: Option<&str>| {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let prefix = prefix.map(str::to_owned);
            let wanted = EveryScope { prefix, after, limit: Some(limit), ..EveryScope::default() };
            let page = fixture.board.entries(&wanted).unwrap();
            assert!(page.entries.len() <= limit && page.revision == fixture.revision());
            let places = page.entries.iter().map(|entry| (entry.scope.clone(), entry.key.clone()));
            found.extend(places);
            if !page.more {
                return found.iter().map(|(scope, key)| format!("{scope}/{key}")).collect::<Vec<_>>();
            }
            after = found.last().cloned();
        }
    };
    for limit in 1..9 {
        assert_eq!(pages(limit, None), ["a/1", "a/2", "a b/1", "ab/3", "m/1", "m/2", "m/3"], "{limit}");
        assert_eq!(pages(limit, Some("3")), ["ab/3", "m/3"], "{limit}");
    }
}

fn overview_lists_agents_with_their_holdings(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.pass(1);
    let helper =
        fixture.register(&Register { parent: Some(ivy.clone()), ..Register::named("Helper") }).session_id;
    fixture.pass(1);
    let gone = fixture.session("Gone");
    for (id, status) in [("x", Status::Claimed), ("y", Status::Claimed), ("z", Status::Completed)] {
        fixture.item_that_is(id, status, &ivy);
    }
    fixture.board.agents().deregister(&gone).unwrap();
    fixture.pass(301);
    fixture.beat(&helper);
    let seen = |statuses: &[AgentStatus]| -> Vec<_> {
        let overview = fixture.board.agents().overview(statuses).unwrap();
        assert_eq!(overview.revision, fixture.revision());
        let agents = overview.agents.into_iter();
        agents
            .map(|seen| (seen.agent.agent_name, seen.claimed_items, seen.parent_name, seen.overdue))
            .collect()
    };
    let of = |name: &str, items, parent: Option<&str>, overdue| {
        (name.to_owned(), items, parent.map(str::to_owned), overdue)
    };
    assert_eq!(seen(&[AgentStatus::Active]), [of("Helper", 0, Some("Ivy"), false), of("Ivy", 2, None, true)]);
    assert_eq!(seen(AgentStatus::ALL)[0], of("Gone", 0, None, false));
}

fn everything_is_counted_by_its_status(fixture: &Fixture) {
    assert_eq!(fixture.board.counts().unwrap().agents, []);
    let (ivy, gone) = (fixture.session("Ivy"), fixture.session("Gone"));
    fixture.board.agents().deregister(&gone).unwrap();
    for &status in Status::ALL {
        fixture.item_that_is(status.as_str(), status, &ivy);
    }
    fixture.item("another");
    let counts = fixture.board.counts().unwrap();
    let recorded = |counts: &[crate::status::StatusCount]| -> Vec<_> {
        counts.iter().map(|count| (count.status, count.count)).collect()
    };
    assert_eq!(recorded(&counts.agents), [("active", 1), ("completed", 1)]);
    assert_eq!(recorded(&counts.work), [("available", 2), ("blocked", 1), ("claimed", 1), ("completed", 1)]);
    assert_eq!((counts.revision, counts.projects), (fixture.revision(), 0));
    fixture.pass_days(2);
    assert_eq!(fixture.board.counts().unwrap().events_24h, 0);
}

fn activity_lists_the_items_that_sessions_held(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session_of_process("Oak", 7));
    for id in ["old", "given", "done", "lost", "kept"] {
        fixture.item(id);
    }
    fixture.claim("old", &ivy);
    fixture.pass(7200);
    let start = fixture.now();
    fixture.beat(&ivy);
    fixture.beat(&oak);
    for (id, session) in [("given", &ivy), ("done", &ivy), ("kept", &ivy), ("lost", &oak)] {
        fixture.claim(id, session);
    }
    fixture.pass(60);
    fixture.release("given", &ivy);
    fixture.complete("done", &ivy);
    fixture.processes.end(7);
    fixture.pass(301);
    fixture.beat(&ivy);
    fixture.sweep();
    let lanes = fixture.board.work().lanes(Duration::from_hours(1)).unwrap().lanes;
    let recorded: Vec<_> = lanes
        .iter()
        .map(|lane| {
            let spans = lane
                .spans
                .iter()
                .map(|span| (span.item_id.as_str(), span.to.map(|to| to.since(start).as_secs()), span.ended));
            (lane.agent_name.as_deref().unwrap(), spans.collect::<Vec<_>>())
        })
        .collect();
    let hers = vec![
        ("old", None, None),
        ("done", Some(60), Some(SpanEnd::Completed)),
        ("given", Some(60), Some(SpanEnd::Released)),
        ("kept", None, None),
    ];
    assert_eq!(recorded, [("Ivy", hers), ("Oak", vec![("lost", Some(361), Some(SpanEnd::Stale))])]);
    assert_eq!(lanes[0].spans[0].title.as_deref(), Some("Title of old"));
}
