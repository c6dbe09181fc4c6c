//! The stream has every event once, in order, from any position. A slow client is the same on each engine.

use blackboard::Board;
use blackboard::entry::{Value, Write};
use blackboard::work::Create;

use crate::client::Events;
use crate::scratch::Scratch;
use crate::served::Served;

testkit::on_each_engine![
    message_is_the_complete_event,
    stream_continues_from_every_revision_without_gap_or_repetition,
    last_event_id_overrides_the_after_parameter,
    stream_continues_in_the_middle_of_a_commit,
    a_snapshot_and_the_stream_from_its_revision_miss_nothing,
    clients_continue_where_they_were_after_a_restart,
    stream_refuses_to_continue_from_a_pruned_revision,
    an_event_is_the_same_in_the_list_and_in_the_stream,
];

fn create(board: &Board, count: usize, name: &str) {
    for number in 0..count {
        board.work().create(&Create::new(&format!("{name}-{number}"), "A task")).unwrap();
    }
}

#[track_caller]
fn expect_ids(events: &mut Events, ids: impl IntoIterator<Item = i64>) {
    for id in ids {
        let message = events.next().expect("the stream goes on");
        assert_eq!(
            (message.id, &message.data["id"], &message.data["revision"]),
            (id, &id.into(), &id.into())
        );
    }
}

fn message_is_the_complete_event() {
    let served = Served::furnished();
    let mut events = Events::follow(served.port, Some(0), None).unwrap();
    let said = served.says(&["observe", "--after", "0"]);
    for said in said["items"].as_array().unwrap() {
        let data = events.next().unwrap().data;
        for name in
            ["id", "timestamp", "event_type", "actor_id", "target_id", "target_type", "summary", "metadata"]
        {
            assert_eq!(data[name], said[name], "{name}");
        }
        assert!(data.get("entry").is_none(), "values are asked for, not pushed");
    }
}

fn stream_continues_from_every_revision_without_gap_or_repetition() {
    let scratch = Scratch::new();
    let board = scratch.board();
    create(&board, 1200, "before");
    let served = Served::of(scratch, 0);
    // Long before what the server keeps, in the middle of it, at its end.
    for after in [0, 1, 700, 1199, 1200] {
        let mut events = Events::follow(served.port, Some(after), None).unwrap();
        let end = board.revision().unwrap().get();
        expect_ids(&mut events, after + 1..=end);
        create(&board, 1, &format!("after-{after}"));
        expect_ids(&mut events, [end + 1]);
    }
}

fn last_event_id_overrides_the_after_parameter() {
    let served = Served::new();
    let board = served.scratch.board();
    create(&board, 10, "item");
    let mut events = Events::follow(served.port, Some(2), Some(7)).unwrap();
    expect_ids(&mut events, 8..=10);
    let mut from_now_on = Events::follow(served.port, None, None).unwrap();
    create(&board, 2, "more");
    expect_ids(&mut from_now_on, 11..=12);
    expect_ids(&mut events, 11..=12);
}

fn stream_continues_in_the_middle_of_a_commit() {
    let served = Served::new();
    let board = served.scratch.board();
    create(&board, 1, "item");
    board
        .transaction(|tx| {
            for number in 0..5 {
                tx.scope("team").write(&Write::new(&format!("key:{number}"), Value::of(&number)?))?;
            }
            Ok(())
        })
        .unwrap();
    let mut whole = Events::follow(served.port, Some(1), None).unwrap();
    expect_ids(&mut whole, 2..=6);
    for after in 2..6 {
        let mut rest = Events::follow(served.port, Some(after), None).unwrap();
        expect_ids(&mut rest, after + 1..=6);
    }
}

#[test]
fn slow_client_is_disconnected_and_continues_where_it_was() {
    const COMMITS: i64 = 8;
    const EVENTS: i64 = 1000;
    let served = Served::new();
    let board = served.scratch.board();
    create(&board, 1, "item");
    let mut slow = Events::follow(served.port, Some(0), None).unwrap();
    expect_ids(&mut slow, [1]);
    // Far more than the server keeps and the system holds on the way.
    let long = "x".repeat(1000);
    for _ in 0..COMMITS {
        board
            .transaction(|tx| {
                for number in 0..EVENTS {
                    tx.scope("team").write(&Write::new(&format!("{long}:{number}"), Value::null()))?;
                }
                Ok(())
            })
            .unwrap();
    }
    let last = 1 + COMMITS * EVENTS;
    testkit::wait_until("the server has read everything", || {
        (Events::follow(served.port, None, None).unwrap().start >= last).then_some(())
    });
    let mut seen = 1;
    while let Some(message) = slow.next() {
        assert_eq!(message.id, seen + 1);
        seen = message.id;
    }
    assert!(seen < last, "it was cut off before the end");
    expect_ids(&mut Events::follow(served.port, Some(0), Some(seen)).unwrap(), seen + 1..=last);
}

fn a_snapshot_and_the_stream_from_its_revision_miss_nothing() {
    let served = Served::new();
    let board = served.scratch.board();
    let writer = std::thread::spawn(move || create(&board, 200, "item"));
    let mut known = 0;
    for _ in 0..20 {
        let reply = served.get("/api/work?limit=1000");
        let shown = i64::try_from(reply.json().as_array().unwrap().len()).unwrap();
        // Each item is one event, so that the state of a revision has as many items.
        assert_eq!(shown, reply.revision());
        assert!(shown >= known);
        known = shown;
    }
    let mut events = Events::follow(served.port, Some(known), None).unwrap();
    expect_ids(&mut events, known + 1..=200);
    writer.join().unwrap();
}

fn clients_continue_where_they_were_after_a_restart() {
    let served = Served::new();
    let port = served.port;
    let board = served.scratch.board();
    create(&board, 3, "item");
    let mut events = Events::follow(port, Some(0), None).unwrap();
    expect_ids(&mut events, 1..=3);
    let scratch = served.end();
    assert!(events.next().is_none(), "it is let go in good order");
    create(&board, 3, "meanwhile");
    let served = Served::of(scratch, port);
    let mut events = Events::follow(served.port, Some(0), Some(3)).unwrap();
    expect_ids(&mut events, 4..=6);
}

fn stream_refuses_to_continue_from_a_pruned_revision() {
    let scratch = Scratch::new();
    create(&scratch.board(), 10, "item");
    scratch.prune(5, &[]);
    let served = Served::of(scratch, 0);
    let refused = Events::follow(served.port, Some(3), None).err().unwrap();
    assert_eq!((refused.status, refused.json()["code"].as_str()), (410, Some("compacted")));
    expect_ids(&mut Events::follow(served.port, Some(5), None).unwrap(), 6..=10);
}

fn an_event_is_the_same_in_the_list_and_in_the_stream() {
    let served = Served::furnished();
    let listed = served.json("/api/events?limit=1000");
    let mut events = Events::follow(served.port, Some(0), None).unwrap();
    for event in listed.as_array().unwrap().iter().rev() {
        assert_eq!(&events.next().unwrap().data, event);
    }
    let by_ivy = listed.as_array().unwrap().iter().filter(|event| event["actor_name"] == "Ivy");
    assert!(by_ivy.count() > 2);
    assert!(listed.as_array().unwrap().iter().any(|event| event["metadata"].is_object()));
}
