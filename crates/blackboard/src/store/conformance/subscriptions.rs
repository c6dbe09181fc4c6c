//! Following the event log: every matching event, once, in order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use super::*;
use crate::Error;
use crate::entry::{Actor, Query, Value, Write};
use crate::event::{EntryChange, Filter, Subscription};
use crate::follow::{Follow, Follower, Start, StopHandle};

on_every_engine![
    events_of_entries_have_their_entry_change,
    removal_with_a_session_names_its_agent,
    all_conditions_of_a_filter_have_to_hold,
    agents_are_found_by_the_name_of_the_author_the_session_and_the_agent,
    event_that_matches_two_filters_comes_once,
    custom_condition_runs_last_and_may_use_the_board,
    failing_callback_ends_only_its_subscription,
    slow_subscriber_delays_no_other_and_loses_nothing,
    snapshot_and_its_subscription_have_no_gap_and_no_duplicate,
    pruned_events_are_reported_once_and_the_rest_follows,
    a_start_ahead_of_the_board_is_refused,
    named_cursor_continues_after_the_last_acknowledged_batch,
    named_cursor_advances_over_unwanted_events,
    a_new_named_cursor_misses_nothing_before_it_is_first_moved,
    a_cursor_behind_a_channel_moves_with_its_receiver,
    a_batch_ends_with_a_commit_once_its_values_are_large,
    selective_filter_on_a_long_log_respects_its_timeout,
    a_subscription_that_is_stopped_ends,
    a_subscription_that_is_stopped_in_the_middle_of_a_long_log_ends_there,
    concurrent_writes_reach_all_subscribers_in_the_same_order,
];

/// So long that a test that reaches it has failed.
const LONG: Duration = Duration::from_mins(2);

fn value(value: impl serde::Serialize) -> Value {
    Value::of(&value).unwrap()
}

fn write(fixture: &Fixture, key: &str, number: i64) -> Revision {
    fixture.board.scope("team").write(&Write::new(key, value(number))).unwrap().revision
}

fn request(start: Start, filters: &[Filter]) -> Follow {
    Follow { filters: filters.to_vec(), start, ..Follow::default() }
}

fn subscribe(board: &Board, start: Start, filters: &[Filter]) -> Subscription {
    board.subscribe(&request(start, filters)).unwrap()
}

fn follow_from_the_start(board: &Board, filters: &[Filter]) -> Follower {
    board.follow(&request(Start::Revision(Revision::ZERO), filters)).unwrap()
}

fn from_the_start(board: &Board, filters: &[Filter]) -> Subscription {
    subscribe(board, Start::Revision(Revision::ZERO), filters)
}

/// All events up to the end.
fn drain(subscription: &mut Subscription) -> Vec<Event> {
    std::iter::from_fn(|| subscription.next_within(Duration::ZERO)).map(Result::unwrap).collect()
}

fn ids(fixture: &Fixture, events: &[Event]) -> Vec<i64> {
    events.iter().map(|event| fixture.number(event.id)).collect()
}

fn change(event: &Event) -> &EntryChange {
    event.entry.as_ref().unwrap()
}

fn events_of_entries_have_their_entry_change(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let scope = fixture.board.scope("team").acting_as(Actor::session(&session));
    let first = Write {
        tags: owned(&["urgent", "finance"]),
        metadata: Some(Metadata::parse(r#"{"tries": 1.0}"#).unwrap()),
        ttl: Some(Duration::from_mins(1)),
        ..Write::new("a", Value::parse(r#"{"b": 1.0, "a":2}"#, 100).unwrap())
    };
    scope.write(&first).unwrap();
    fixture
        .board
        .scope("team")
        .acting_as(Actor::author("Oak"))
        .write(&Write::new("a", Value::null()))
        .unwrap();
    fixture.board.scope("team").acting_as(Actor::author("Elm")).delete("a").unwrap();
    let short_lived = Write { ttl: Some(Duration::from_secs(5)), ..Write::new("a", value("again")) };
    scope.write(&short_lived).unwrap();
    fixture.pass(6);
    fixture.sweep();

    let events = drain(&mut from_the_start(&fixture.board, &[]));
    assert!(events[0].entry.is_none(), "a registration is not about an entry");
    let recorded: Vec<_> = events[1..]
        .iter()
        .map(|event| {
            let change = change(event);
            let text = |value: &Option<Value>| value.as_ref().map(|value| value.as_str().to_owned());
            (
                event.event_type.as_str(),
                change.author.as_str(),
                change.version,
                text(&change.old_value),
                text(&change.value),
            )
        })
        .collect();
    let first_value = || Some(r#"{"b": 1.0, "a":2}"#.to_owned());
    let (null, again) = (|| Some("null".to_owned()), || Some("\"again\"".to_owned()));
    assert_eq!(
        recorded,
        [
            ("entry_written", "Ivy", 1, None, first_value()),
            ("entry_written", "Oak", 2, first_value(), null()),
            ("entry_deleted", "Elm", 2, null(), None),
            ("entry_written", "Ivy", 3, None, again()),
            ("entry_expired", "Ivy", 3, again(), None),
        ]
    );
    let event = &events[1];
    let EntryChange { scope, key, tags, metadata, expires_at, session_id, .. } = change(event);
    assert_eq!((scope.as_str(), key.as_str(), &event.actor_id), ("team", "a", &Some(session)));
    assert_eq!(*tags, ["finance", "urgent"]);
    assert_eq!(metadata.as_ref().unwrap().as_str(), r#"{"tries": 1.0}"#);
    assert_eq!(*expires_at, Some(event.timestamp.plus(Duration::from_mins(1))));
    assert_eq!(*session_id, None);
    assert!(fixture.number(event.id) == 2 && event.commit_id == event.id);
}

fn removal_with_a_session_names_its_agent(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let scope = fixture.board.scope("team").acting_as(Actor::session(&session));
    scope.write(&Write { lease: true, ..Write::new("a", value(1)) }).unwrap();
    fixture.board.agents().deregister(&session).unwrap();
    let events = drain(&mut from_the_start(&fixture.board, &[Filter::of_keys("a")]));
    let recorded: Vec<_> = events.iter().map(change).collect();
    assert_eq!(
        (recorded[0].session_id.as_ref(), recorded[0].value.clone()),
        (Some(&session), Some(value(1)))
    );
    assert_eq!(
        (recorded[1].author.as_str(), recorded[1].old_value.clone(), &recorded[1].value),
        ("Ivy", Some(value(1)), &None)
    );
}

/// Two scopes, two authors, writes, changes, and one removal. The ids are 1 to 8.
fn mixed(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let [ivy, oak] = [Actor::session(&session), Actor::author("Oak")];
    let tagged = |key: &str, tags: &[&str]| Write { tags: owned(tags), ..Write::new(key, value(1)) };
    let scope = |name: &str, by: &Actor| fixture.board.scope(name).acting_as(by.clone());
    scope("team", &ivy).write(&tagged("task:1", &["urgent"])).unwrap();
    scope("team", &oak).write(&tagged("task:2", &["urgent", "docs"])).unwrap();
    scope("team", &oak).write(&tagged("task:1", &[])).unwrap();
    scope("other", &oak).write(&tagged("task:1", &["docs"])).unwrap();
    scope("team", &oak).delete("task:2").unwrap();
    fixture.item("x");
    scope("other", &ivy).write(&tagged("result", &[])).unwrap();
}

fn all_conditions_of_a_filter_have_to_hold(fixture: &Fixture) {
    mixed(fixture);
    let filter = |keys: &[&str], types: &[&str], agents: &[&str], tags: &[&str], scopes: &[&str]| Filter {
        keys: owned(keys),
        types: types.iter().map(|name| name.parse().unwrap()).collect(),
        agents: owned(agents),
        tags: owned(tags),
        scopes: owned(scopes),
        custom: None,
    };
    for (wanted, expected) in [
        (filter(&[], &[], &[], &[], &[]), &[1, 2, 3, 4, 5, 6, 7, 8][..]),
        (filter(&["task:*"], &[], &[], &[], &[]), &[2, 3, 4, 5, 6]),
        (filter(&["task:2", "res*"], &[], &[], &[], &[]), &[3, 6, 8]),
        (filter(&["*"], &[], &[], &[], &[]), &[2, 3, 4, 5, 6, 8]),
        (filter(&[], &["write"], &[], &[], &[]), &[2, 3, 4, 5, 8]),
        (filter(&[], &["update"], &[], &[], &[]), &[4]),
        (filter(&[], &["create"], &[], &[], &[]), &[2, 3, 5, 8]),
        (filter(&[], &["delete", "work_created"], &[], &[], &[]), &[6, 7]),
        (filter(&[], &["expire"], &[], &[], &[]), &[]),
        (filter(&[], &[], &["Oak"], &[], &[]), &[3, 4, 5, 6]),
        (filter(&[], &[], &["Oak", "Ivy"], &[], &[]), &[1, 2, 3, 4, 5, 6, 8]),
        (filter(&[], &[], &[], &["urgent"], &[]), &[2, 3, 6]),
        (filter(&[], &[], &[], &["docs", "urgent"], &[]), &[3, 6]),
        (filter(&[], &[], &[], &[], &["other"]), &[5, 8]),
        (filter(&[], &[], &[], &[], &["other", "team"]), &[2, 3, 4, 5, 6, 8]),
        (filter(&["task:*"], &["write"], &["Oak"], &["docs"], &["team"]), &[3]),
        (filter(&["task:*"], &["write"], &["Ivy"], &["docs"], &["team"]), &[]),
    ] {
        let events = drain(&mut from_the_start(&fixture.board, std::slice::from_ref(&wanted)));
        assert_eq!(ids(fixture, &events), expected, "{wanted:?}");
        // The same for an observation.
        let observation = fixture
            .board
            .events()
            .observe_filtered(&crate::event::Since::Revision(Revision::ZERO), &[wanted])
            .unwrap();
        let batch = fixture.board.events().next(&observation, Revision::ZERO, 100).unwrap();
        assert_eq!(batch.map(|batch| batch.events).unwrap_or_default(), events);
    }
    fixture.board.scope("team").clear("task:*").unwrap();
    let cleared = drain(&mut from_the_start(&fixture.board, &[filter(&[], &["clear"], &[], &[], &["team"])]));
    assert_eq!(ids(fixture, &cleared), [10]);
}

fn agents_are_found_by_the_name_of_the_author_the_session_and_the_agent(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.item("x");
    fixture.claim("x", &ivy);
    let by = Actor { author: Some("Fern".to_owned()), ..Actor::session(&oak) };
    fixture.board.scope("team").acting_as(by).write(&Write::new("a", value(1))).unwrap();
    for (agent, expected) in
        [("Ivy", &[1, 4][..]), (&ivy, &[1, 4]), ("Oak", &[2]), (&oak, &[2, 5]), ("Fern", &[5]), ("ivy", &[])]
    {
        let filter = Filter { agents: owned(&[agent]), ..Filter::default() };
        let events = drain(&mut from_the_start(&fixture.board, &[filter]));
        assert_eq!(ids(fixture, &events), expected, "{agent}");
    }
}

fn event_that_matches_two_filters_comes_once(fixture: &Fixture) {
    mixed(fixture);
    let filters =
        [Filter::of_keys("task:*"), Filter::of_keys("task:1"), Filter::of_types([EventType::WorkCreated])];
    assert_eq!(ids(fixture, &drain(&mut from_the_start(&fixture.board, &filters))), [2, 3, 4, 5, 6, 7]);
}

fn custom_condition_runs_last_and_may_use_the_board(fixture: &Fixture) {
    mixed(fixture);
    let asked = Arc::new(AtomicUsize::new(0));
    let (board, count) = (fixture.board.clone(), Arc::clone(&asked));
    let custom = move |event: &Event| {
        // It may even write: no lock on the board is held while it runs.
        let number = count.fetch_add(1, Ordering::Relaxed);
        board.scope("mine").write(&Write::new("seen", value(number))).unwrap();
        event.entry.as_ref().is_some_and(|change| change.old_value.is_some())
    };
    let tasks =
        Filter { scopes: owned(&["team"]), custom: Some(Arc::new(custom)), ..Filter::of_keys("task:*") };
    let events = drain(&mut from_the_start(&fixture.board, std::slice::from_ref(&tasks)));
    assert_eq!((ids(fixture, &events), asked.load(Ordering::Relaxed)), (vec![4, 6], 4));
    let two = [tasks, Filter::of_keys("task:2")];
    assert_eq!(ids(fixture, &drain(&mut from_the_start(&fixture.board, &two))), [3, 4, 6], "each once");
}

fn failing_callback_ends_only_its_subscription(fixture: &Fixture) {
    let (heard, hearing) = mpsc::channel();
    let now = || subscribe(&fixture.board, Start::Now, &[]);
    let good = now()
        .on_thread(move |event| {
            heard.send(event?.id).unwrap();
            Ok(())
        })
        .unwrap();
    let failing = now().on_thread(|event| event.and(Err(Error::invalid("no")))).unwrap();
    let panicking = now().on_thread(|_| panic!("this is what the test is about")).unwrap();
    for round in 1..=3 {
        write(fixture, "a", round);
        assert_eq!(hearing.recv_timeout(LONG), Ok(fixture.id(round)));
    }
    assert_eq!(code(failing.join()), Code::InvalidValue);
    assert_eq!(code(panicking.join()), Code::Internal);
    write(fixture, "a", 4);
    assert_eq!(hearing.recv_timeout(LONG), Ok(fixture.id(4)));
    assert!(!good.is_finished());
    good.stop().unwrap();
}

fn slow_subscriber_delays_no_other_and_loses_nothing(fixture: &Fixture) {
    const EVENTS: i64 = 300;
    let (mut slow, _) = subscribe(&fixture.board, Start::Now, &[]).channel(1).unwrap();
    let (mut quick, _) = subscribe(&fixture.board, Start::Now, &[]).channel(1).unwrap();
    let mut stuck = subscribe(&fixture.board, Start::Now, &[]);
    for round in 1..=EVENTS {
        write(fixture, "a", round);
        assert_eq!(fixture.number(quick.next_within(LONG).unwrap().unwrap().id), round);
    }
    for round in 1..=EVENTS {
        let event = slow.next_within(LONG).unwrap().unwrap();
        assert_eq!((fixture.number(event.id), change(&event).value.clone()), (round, Some(value(round))));
    }
    assert_eq!(ids(fixture, &drain(&mut stuck)), (1..=EVENTS).collect::<Vec<_>>());
}

fn snapshot_and_its_subscription_have_no_gap_and_no_duplicate(fixture: &Fixture) {
    const WRITES: i64 = 200;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=WRITES {
                write(fixture, "a", number);
            }
        });
        loop {
            let snapshot = fixture.board.scope("team").snapshot(&Query::default()).unwrap();
            let seen = snapshot.entries.first().map_or(0, |entry| entry.value.to::<i64>().unwrap());
            let mut tail = subscribe(&fixture.board, Start::Revision(snapshot.revision), &[]);
            if seen == WRITES {
                // The next write is the next event: none was left, and none comes twice.
                write(fixture, "a", WRITES + 1);
                assert_eq!(change(&tail.next_within(LONG).unwrap().unwrap()).value, Some(value(WRITES + 1)));
                break;
            }
            let next = tail.next_within(LONG).unwrap().unwrap();
            assert_eq!(change(&next).value, Some(value(seen + 1)));
            assert_eq!(change(&next).old_value, (seen > 0).then(|| value(seen)));
        }
    });
}

fn trim(fixture: &Fixture, until: i64) {
    fixture.trim(fixture.id(until));
}

fn pruned_events_are_reported_once_and_the_rest_follows(fixture: &Fixture) {
    for number in 1..=6 {
        write(fixture, "a", number);
    }
    trim(fixture, 3);
    let mut late = from_the_start(&fixture.board, &[]);
    let refusal = late.next().unwrap().unwrap_err();
    assert_eq!(
        (refusal.code(), &refusal.details().unwrap()["floor"]),
        (Code::Compacted, &fixture.id(3).get().into())
    );
    let events = drain(&mut late);
    assert_eq!(ids(fixture, &events), [4, 5, 6]);
    assert_eq!(change(&events[0]).old_value, Some(value(3)), "what was current at the floor is still known");
    // The same if pruning overtakes a reader, also one with a named cursor.
    let mut named = subscribe(&fixture.board, Start::cursor("mirror"), &[]);
    for number in 7..=9 {
        write(fixture, "a", number);
    }
    trim(fixture, 8);
    for subscription in [&mut late, &mut named] {
        assert_eq!(code(subscription.next().unwrap()), Code::Compacted);
        assert_eq!(ids(fixture, &drain(subscription)), [9]);
    }
    let mut at_floor = subscribe(&fixture.board, Start::Revision(fixture.id(8)), &[]);
    assert_eq!(ids(fixture, &drain(&mut at_floor)), [9], "who stands at the floor has missed nothing");
}

fn a_start_ahead_of_the_board_is_refused(fixture: &Fixture) {
    write(fixture, "a", 1);
    let start = |start| fixture.board.follow(&request(start, &[])).map(drop);
    assert_eq!(code(start(Start::Revision(fixture.id(2)))), Code::CursorAhead);
    let ahead = Start::Cursor { name: "mirror".to_owned(), new_after: Some(fixture.id(2)) };
    assert_eq!(code(start(ahead)), Code::CursorAhead);
    fixture.board.events().advance("", "mirror", fixture.id(7)).unwrap();
    assert_eq!(code(start(Start::cursor("mirror"))), Code::CursorAhead);
    for name in ["", " a", "a\nb"] {
        assert_eq!(code(start(Start::cursor(name))), Code::InvalidValue, "{name:?}");
    }
}

fn named(fixture: &Fixture) -> Subscription {
    subscribe(&fixture.board, Start::cursor("mirror"), &[])
}

fn named_cursor_continues_after_the_last_acknowledged_batch(fixture: &Fixture) {
    // A reader of a session has the same name: the two cursors are different.
    let session = fixture.session("Ivy");
    fixture.board.events().advance(&session, "mirror", fixture.id(1)).unwrap();
    let mut first = named(fixture);
    for number in 2..=4 {
        write(fixture, "a", number);
    }
    assert_eq!(first.next().unwrap().unwrap().id, fixture.id(2));
    drop(first);
    // No further event was requested: the current one comes again.
    let mut second = named(fixture);
    assert_eq!(ids(fixture, &drain(&mut second)), [2, 3, 4]);
    write(fixture, "a", 5);
    assert_eq!(ids(fixture, &drain(&mut second)), [5], "nothing comes twice");
    drop(second);
    write(fixture, "a", 6);
    assert_eq!(ids(fixture, &drain(&mut named(fixture))), [6]);
    assert_eq!(fixture.revision(), fixture.id(6), "a cursor makes no event");
}

fn named_cursor_advances_over_unwanted_events(fixture: &Fixture) {
    let filters = [Filter::of_keys("rare")];
    let mut first = subscribe(&fixture.board, Start::cursor("mirror"), &filters);
    let many: Vec<_> = (0..2000).map(|number| Write::new(&format!("k{number}"), value(number))).collect();
    fixture.board.scope("team").write_batch(&many).unwrap();
    assert!(first.next_within(Duration::ZERO).is_none());
    drop(first);
    trim(fixture, 1999);
    let mut second = subscribe(&fixture.board, Start::cursor("mirror"), &filters);
    write(fixture, "rare", 1);
    assert_eq!(ids(fixture, &drain(&mut second)), [2001]);
}

fn a_new_named_cursor_misses_nothing_before_it_is_first_moved(fixture: &Fixture) {
    write(fixture, "a", 1);
    drop(named(fixture));
    write(fixture, "a", 2);
    assert_eq!(ids(fixture, &drain(&mut named(fixture))), [2]);
    let start = Start::Cursor { name: "other".to_owned(), new_after: Some(Revision::ZERO) };
    let mut from_the_start = subscribe(&fixture.board, start.clone(), &[]);
    assert_eq!(ids(fixture, &drain(&mut from_the_start)), [1, 2]);
    write(fixture, "a", 3);
    assert_eq!(ids(fixture, &drain(&mut from_the_start)), [3]);
    drop(from_the_start);
    // The cursor is no longer new.
    assert!(drain(&mut subscribe(&fixture.board, start, &[])).is_empty());
}

fn a_cursor_behind_a_channel_moves_with_its_receiver(fixture: &Fixture) {
    let (mut receiver, stop) = named(fixture).channel(100).unwrap();
    write(fixture, "a", 1);
    assert_eq!(receiver.next_within(LONG).unwrap().unwrap().id, fixture.id(1));
    // The second event may be in the channel already, but it is not processed yet.
    write(fixture, "a", 2);
    assert_eq!(receiver.next_within(LONG).unwrap().unwrap().id, fixture.id(2));
    let cursor = || {
        let key = crate::store::Key::Cursor(String::new(), "mirror".to_owned());
        fixture.read(|tx| tx.row::<crate::store::Cursor>(&key)).unwrap().unwrap().revision
    };
    wait_until("the cursor moves", || (cursor() >= fixture.id(1)).then_some(()));
    stop.stop();
    assert!(receiver.next().is_none());
    assert_eq!(cursor(), fixture.id(1));
}

fn a_batch_ends_with_a_commit_once_its_values_are_large(fixture: &Fixture) {
    const MIB: usize = 1024 * 1024;
    let large = |key: &str| Write::new(key, value("x".repeat(MIB - 2)));
    let scope = fixture.board.scope("team");
    let six: Vec<_> = ["a", "b", "c", "d", "e", "f"].iter().map(|key| large(key)).collect();
    for writes in [&six[..3], &six[..], &six[..1]] {
        scope.write_batch(writes).unwrap();
    }
    let mut follower = follow_from_the_start(&fixture.board, &[]);
    let mut batches = Vec::new();
    while let Some(batch) = follower.next_batch(usize::MAX, Duration::ZERO).unwrap() {
        batches.push((batch.events.len(), fixture.number(batch.last)));
    }
    // 3 MiB are not enough yet, and then the second commit is read to its end.
    assert_eq!(batches, [(9, 9), (1, 10)]);
}

/// An event log of more than three reads, in which only the last event is about the key `wanted`.
fn long_log(fixture: &Fixture) {
    for _ in 0..3 {
        fixture.put(&(0..1001).map(|number| an_item(&number.to_string()).into()).collect::<Vec<_>>());
    }
    write(fixture, "wanted", 1);
}

fn selective_filter_on_a_long_log_respects_its_timeout(fixture: &Fixture) {
    long_log(fixture);
    let mut follower = follow_from_the_start(&fixture.board, &[Filter::of_keys("wanted")]);
    let mut looks = 1;
    let batch = loop {
        match follower.next_batch(usize::MAX, Duration::ZERO).unwrap() {
            Some(batch) => break batch,
            None => assert!(!follower.has_caught_up(), "it is there"),
        }
        looks += 1;
    };
    assert_eq!((change(&batch.events[0]).key.as_str(), looks), ("wanted", 4));
    assert!(follower.has_caught_up());
}

fn a_subscription_that_is_stopped_ends(fixture: &Fixture) {
    let mut subscription = subscribe(&fixture.board, Start::Now, &[]);
    let stop = subscription.stop_handle();
    write(fixture, "a", 1);
    write(fixture, "a", 2);
    assert!(subscription.next().is_some());
    std::thread::scope(|scope| {
        let following = scope.spawn(move || subscription.by_ref().count());
        stop.stop();
        assert!(following.join().unwrap() <= 1);
    });
    // Neither a channel nor a callback outlives its handle.
    let (receiver, stop) = subscribe(&fixture.board, Start::Now, &[]).channel(1).unwrap();
    drop(receiver);
    assert!(stop.is_stopped());
    let subscriber = subscribe(&fixture.board, Start::Now, &[]).on_thread(|_| Ok(())).unwrap();
    let stop = subscriber.stop_handle();
    drop(subscriber);
    assert!(stop.is_stopped());
}

fn a_subscription_that_is_stopped_in_the_middle_of_a_long_log_ends_there(fixture: &Fixture) {
    long_log(fixture);
    let (asked, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(std::sync::OnceLock::<StopHandle>::new()));
    let (count, stopping) = (Arc::clone(&asked), Arc::clone(&stop));
    let custom = move |_: &Event| {
        count.fetch_add(1, Ordering::Relaxed);
        stopping.get().unwrap().stop();
        false
    };
    let nothing = Filter { custom: Some(Arc::new(custom)), ..Filter::default() };
    let mut subscription = from_the_start(&fixture.board, &[nothing]);
    stop.set(subscription.stop_handle()).unwrap();
    assert!(subscription.next().is_none());
    assert_eq!(asked.load(Ordering::Relaxed), 1001, "a look is brought to its end");
}

fn concurrent_writes_reach_all_subscribers_in_the_same_order(fixture: &Fixture) {
    const WRITERS: usize = 4;
    const EACH: usize = 25;
    let mut subscriptions: Vec<_> = (0..4).map(|_| subscribe(&fixture.board, Start::Now, &[])).collect();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                for _ in 0..EACH {
                    fixture.board.scope("team").increment(&format!("k{writer}"), 1).unwrap();
                    fixture.board.scope("team").increment("shared", 1).unwrap();
                }
            });
        }
        let following: Vec<_> = subscriptions
            .iter_mut()
            .map(|subscription| {
                scope.spawn(move || {
                    let events: Vec<_> = subscription.take(2 * WRITERS * EACH).map(Result::unwrap).collect();
                    let shared = events.iter().map(change).filter(|change| change.key == "shared");
                    for (number, change) in (1_i64..).zip(shared) {
                        assert_eq!(change.value, Some(value(number)));
                        assert_eq!(change.old_value, (number > 1).then(|| value(number - 1)));
                    }
                    ids(fixture, &events)
                })
            })
            .collect();
        for following in following {
            assert_eq!(following.join().unwrap(), (1..=200).collect::<Vec<_>>());
        }
    });
}
