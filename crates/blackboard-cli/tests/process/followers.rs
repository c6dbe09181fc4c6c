//! A follower misses nothing: killed and restarted, stuck, among many, or not woken.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use blackboard::Settings;
use blackboard::agent::Register;
use blackboard::entry::{Actor, Value as EntryValue, Write};
use blackboard::store::{Changes, Commit, Cursor, Key, OnBusy, Prefetch, Store};
use serde_json::Value;
use testkit::process::Lines;

use crate::crowd::{at_once, end_of, kill, wait_for, wait_until};
use crate::scale::{Chance, progress, size};
use crate::test_board::TestBoard;

testkit::on_each_engine![
    a_follower_that_is_killed_and_started_again_under_20_writers_and_pruning_has_seen_every_event,
    follower_that_stops_reading_loses_nothing_delays_no_writer_and_keeps_the_log_small,
    no_write_around_the_start_of_a_wait_is_missed,
    a_follower_is_woken_by_every_write,
    two_hundred_followers_all_start_and_all_see_an_event,
    a_follower_with_a_cursor_never_marks_its_own_session,
];

/// The number of concurrent writers.
const WRITERS: usize = 20;

/// The most events that one batch of a follower has, as long as commits are small.
const BATCH: usize = 1000;

/// The most bytes that the write-ahead log may have.
const WAL_LIMIT: u64 = 2 * 1024 * 1024;

/// Commits like the program, but without a wake-up.
const ANOTHER_EVENT: &str =
    "INSERT INTO events (id, timestamp, event_type, target_id, target_type, summary, commit_id)
     SELECT id + 1, timestamp, 'work_created', 'x', 'work_item', summary, id + 1
     FROM events ORDER BY id DESC LIMIT 1";

fn follow(board: &TestBoard, arguments: &[&str]) -> Child {
    let call = ["observe", "--follow", "--json"].iter().chain(arguments);
    board.command(call).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn id_of(line: &str) -> i64 {
    let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    event["id"].as_i64().unwrap_or_else(|| panic!("no event: {line}"))
}

fn written(board: &blackboard::Board, key: &str, number: usize) -> i64 {
    let write = Write::new(key, EntryValue::of(&number).unwrap());
    board.scope("default").acting_as(Actor::author("Oak")).write(&write).unwrap().revision.get()
}

/// Sets a flag when it is dropped.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The state of a follower and of its event log, read together.
struct Look {
    /// The cursor of the follower; 0 if it has none.
    cursor: i64,
    /// The last event.
    newest: i64,
    /// The last event that was pruned.
    floor: i64,
}

fn look(store: &dyn Store) -> Look {
    let key = Key::Cursor(Cursor::OWNERLESS.to_owned(), "mirror".to_owned());
    let mut look = Look { cursor: 0, newest: 0, floor: 0 };
    let read = store.read(&[Prefetch::Row(key.clone()), Prefetch::Revision], &mut |tx| {
        let cursor = tx.get(&key)?.and_then(|row| Cursor::try_from(row).ok());
        let cursor = cursor.map_or(0, |cursor| cursor.revision.get());
        look = Look { cursor, newest: tx.revision()?.get(), floor: tx.floor()?.get() };
        Ok(())
    });
    read.unwrap();
    look
}

fn cursor(board: &TestBoard) -> i64 {
    look(&*board.store()).cursor
}

/// Starts the writers. Each writes this often, mostly through the library and sometimes through the program. They stop while
/// the log is pruned.
fn write_much(board: &TestBoard, each: usize, pruning: &RwLock<()>) {
    at_once(WRITERS, |writer| {
        let library = board.library();
        let key = format!("task:{writer}");
        for number in 0..each {
            let _writing = pruning.read().unwrap();
            if number % 50 == 49 {
                board.run(["write", &key, "0"]).success();
            } else {
                written(&library, &key, number);
            }
        }
    });
}

/// Prunes the event log repeatedly, as retention does, unless the follower is far behind. No writer writes between that
/// look and the pruning, so that it removes nothing that the follower has not read.
fn prune(board: &TestBoard, done: &AtomicBool, pruning: &RwLock<()>) {
    // About 2,000 events of those that are written here are kept.
    let few = Settings { max_log_bytes: 200_000, ..Settings::default() };
    let (library, store) = (board.library().with_settings(few), board.store());
    while !done.load(Ordering::Relaxed) {
        let alone = pruning.write().unwrap();
        let Look { cursor, newest, .. } = look(&*store);
        if cursor > newest - 300 {
            forget_last_prune(&*store);
            // Another process may be writing.
            let _ = library.prune();
        }
        drop(alone);
        thread::sleep(Duration::from_millis(5));
    }
}

/// Lets the next prune run at once.
fn forget_last_prune(store: &dyn Store) {
    let key = Key::BookkeepingRow("prune".into());
    let prefetch = [Prefetch::Row(key.clone())];
    let commit = Commit { name: "test", prefetch: &prefetch, on_busy: OnBusy::Wait, callers: &[] };
    let forgotten = store.commit(&commit, &mut |tx| {
        let mut changes = Changes::new();
        if tx.get(&key)?.is_some() {
            changes.remove(key.clone());
        }
        Ok(changes)
    });
    forgotten.unwrap();
}

/// Runs a follower that is sometimes killed and restarted, until it has read everything. Returns the output of each run. One
/// that is killed before its cursor has moved lives longer the next time: a busy machine may take seconds to start it.
fn lives(board: &TestBoard, done: &AtomicBool) -> Vec<Vec<String>> {
    let mut chance = Chance::new(7);
    let (mut lives, mut factor, mut position) = (Vec::new(), 1, cursor(board));
    while !done.load(Ordering::Relaxed) {
        let follower = follow(board, &["--cursor", "mirror"]);
        let lifetime = factor * Duration::from_millis(50 + chance.below(250) as u64);
        let pid = follower.id();
        let killer = thread::spawn(move || {
            thread::sleep(lifetime);
            kill(pid);
        });
        let ended = end_of(follower);
        killer.join().unwrap();
        assert_eq!(ended.stderr, "");
        lives.push(whole_lines(&ended.stdout));
        let before = std::mem::replace(&mut position, cursor(board));
        factor = if position > before { 1 } else { (2 * factor).min(64) };
    }
    let rest = board.run(["observe", "--follow", "--json", "--cursor", "mirror", "--timeout", "0s"]);
    lives.push(whole_lines(&rest.success().stdout));
    lives
}

/// The output without an incomplete last line.
fn whole_lines(text: &str) -> Vec<String> {
    let end = text.rfind('\n').map_or(0, |end| end + 1);
    text[..end].lines().map(str::to_owned).collect()
}

fn a_follower_that_is_killed_and_started_again_under_20_writers_and_pruning_has_seen_every_event() {
    let each = size(200, 1_000);
    let board = TestBoard::new();
    written(&board.library(), "first", 0);
    // A new cursor starts now; this is before everything that follows.
    board.run(["observe", "--follow", "--cursor", "mirror", "--timeout", "0s"]).success();
    let (start, store) = (cursor(&board), board.store());
    let (written, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let pruning = RwLock::new(());
    let lives = thread::scope(|scope| {
        // The threads end also if this one fails.
        let (all_written, all_done) = (SetOnDrop(&written), SetOnDrop(&done));
        scope.spawn(|| prune(&board, &done, &pruning));
        let following = scope.spawn(|| lives(&board, &written));
        write_much(&board, each, &pruning);
        // The follower catches up, and what it has read is pruned.
        wait_until("the log is pruned", || (look(&*store).floor > start).then_some(()));
        write_much(&board, each, &pruning);
        drop(all_written);
        let lives = following.join().unwrap();
        drop(all_done);
        lives
    });

    let mut seen: BTreeMap<i64, String> = BTreeMap::new();
    let (mut last, mut repeated, mut most_repeated) = (start, 0, 0);
    for life in &lives {
        let mut repeated_now = 0;
        let mut previous = None;
        for line in life {
            let id = id_of(line);
            assert!(previous.is_none_or(|previous| id == previous + 1), "not in order: {previous:?} {line}");
            previous = Some(id);
            assert!(id <= last + 1, "something is missing between {last} and {line}");
            if id <= last {
                repeated_now += 1;
                assert_eq!(seen.get(&id), Some(line), "what comes again is the same");
            } else {
                seen.insert(id, line.clone());
                last = id;
            }
        }
        assert!(repeated_now <= BATCH, "{repeated_now} events came again, more than a batch");
        repeated += repeated_now;
        most_repeated = most_repeated.max(repeated_now);
    }
    let Look { floor, newest, .. } = look(&*store);
    println!(
        "followers: {} events in {} lives, {repeated} came again, {most_repeated} at most; {floor} were pruned",
        seen.len(),
        lives.len()
    );
    assert_eq!(last, newest, "everything was seen");
    assert_eq!(i64::try_from(seen.len()).unwrap(), last - start);
    assert!(last - start >= i64::try_from(2 * WRITERS * each).unwrap());
    assert!(lives.len() > 1, "it was killed");
    board.assert_sound();
}

fn follower_that_stops_reading_loses_nothing_delays_no_writer_and_keeps_the_log_small() {
    let seconds = size(2, 60) as u64;
    let board = TestBoard::new();
    let library = board.library();
    written(&library, "first", 0);
    let mut stuck = follow(&board, &["--cursor", "mirror", "--after", "1"]);
    wait_until("the follower has its cursor", || (cursor(&board) == 1).then_some(()));
    let text = "x".repeat(500);
    let (began, mut number, mut largest) = (Instant::now(), 0, 0);
    // Its output is not read: a pipe holds 64 KiB, and that is soon full.
    while began.elapsed() < Duration::from_secs(seconds) || number < 1_000 {
        let write = Write::new(&format!("task:{}", number % 100), EntryValue::of(&text).unwrap());
        library.scope("default").write(&write).unwrap();
        // A minute without a pause would fill the disk.
        thread::sleep(Duration::from_micros(500));
        number += 1;
        if number % 10 == 0 && !board.is_served() {
            largest = largest.max(std::fs::symlink_metadata(board.beside("-wal")).map_or(0, |wal| wal.len()));
        }
        if number % 50 == 0 {
            board.run(["write", "by-the-program", "1"]).success();
        }
    }
    let Look { cursor, newest: end, .. } = look(&*board.store());
    assert!(cursor < end - 500, "it is stuck at {cursor} of {end}");
    // The writers did not wait for the stuck follower.
    if !board.is_served() {
        let reader = board.sql();
        reader.execute_batch("BEGIN; SELECT count(*) FROM events").unwrap();
        assert!(locks_of(std::process::id()) > 0, "a reader holds a lock, and it is seen here");
        reader.execute_batch("ROLLBACK").unwrap();
        wait_until("the stuck follower holds no lock", || (locks_of(stuck.id()) == 0).then_some(()));
    }
    println!("followers: {number} writes while one was stuck, the log had {largest} bytes at most");
    assert!(largest <= WAL_LIMIT, "{largest} bytes");
    let mut lines = Lines::of(&mut stuck);
    for expected in 2..=end {
        assert_eq!(id_of(&lines.next()), expected);
    }
    kill(stuck.id());
    wait_for(&mut stuck);
    board.assert_sound();
}

/// The bytes of the `-shm` file that SQLite locks for writers, checkpoints and readers. The other locks of an open
/// connection are shared and block no process.
const IN_THE_WAY: std::ops::Range<u64> = 120..128;

/// How many locks a process holds that others may have to wait for, as the kernel sees it.
fn locks_of(pid: u32) -> usize {
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    let is_in_the_way = |line: &&str| {
        let words: Vec<_> = line.split_whitespace().filter(|word| *word != "->").collect();
        let [_, _, _, kind, holder, _, start, _] = words[..] else { panic!("not a lock: {line}") };
        let start = start.parse().unwrap_or(u64::MAX);
        holder == pid.to_string() && (kind == "WRITE" || IN_THE_WAY.contains(&start))
    };
    locks.lines().filter(is_in_the_way).count()
}

fn no_write_around_the_start_of_a_wait_is_missed() {
    let rounds = size(30, 1_000);
    let board = TestBoard::new();
    let library = board.library();
    written(&library, "first", 0);
    let mut chance = Chance::new(3);
    let mut lifetime = Duration::from_millis(20);
    for round in 0..rounds {
        let key = format!("result:{round}");
        let began = Instant::now();
        let waiting = board.start(["wait", &key, "--value"]);
        // At any moment from before it has begun until it sleeps.
        thread::sleep(lifetime * u32::try_from(chance.below(150)).unwrap() / 100);
        written(&library, &key, round);
        let ended = end_of(waiting);
        assert_eq!((ended.status.code(), ended.stdout), (Some(0), format!("{round}\n")), "{}", ended.stderr);
        lifetime = began.elapsed().min(Duration::from_millis(100));
        progress("followers, waits", round + 1, rounds);
    }
}

fn a_follower_is_woken_by_every_write() {
    let rounds = size(500, 10_000);
    let board = TestBoard::new();
    let library = board.library();
    written(&library, "first", 0);
    let mut follower = follow(&board, &["--after", "1"]);
    let mut lines = Lines::of(&mut follower);
    written(&library, "task", 0);
    assert_eq!(id_of(&lines.next()), 2);
    // It does not look from time to time: it sleeps until a writer wakes it.
    board.wait_until_followed();
    let mut latencies = Vec::new();
    for round in 0..rounds {
        let began = Instant::now();
        let id = written(&library, "task", round);
        assert_eq!(id_of(&lines.next()), id);
        latencies.push(began.elapsed());
        // The next write comes before, while and after the follower falls asleep again.
        thread::sleep(Duration::from_micros((round % 500) as u64));
        progress("followers, writes", round + 1, rounds);
    }
    // Only printed, not asserted, because a busy machine wakes processes late. That no wake-up is lost is tested without
    // durations in `ten_thousand_commits_around_the_start_of_a_wait_are_noticed`.
    latencies.sort();
    println!("followers: half of {rounds} writes were heard within {:?}", latencies[rounds / 2]);
    kill(follower.id());
    wait_for(&mut follower);
}

fn two_hundred_followers_all_start_and_all_see_an_event() {
    const FOLLOWERS: usize = 200;
    let board = TestBoard::new();
    let library = board.library();
    written(&library, "first", 0);
    let following: Vec<_> =
        (0..FOLLOWERS).map(|_| follow(&board, &["--after", "1", "--limit", "1"])).collect();
    let id = written(&library, "task", 1);
    for follower in following {
        let ended = end_of(follower);
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
        assert_eq!(id_of(ended.stdout.trim_end()), id);
    }
}

fn a_follower_with_a_cursor_never_marks_its_own_session() {
    for arguments in [&["observe", "--follow", "--cursor", "mirror"][..], &["wait", "never-written"]] {
        let board = TestBoard::new();
        // Without a process, so only the threshold decides.
        let library = board.library();
        let register = |name| library.agents().register(&Register::named(name)).unwrap().agent.session_id;
        let (ivy, oak) = (register("Ivy"), register("Oak"));
        board.make_all_heartbeats_old();
        board.change_agents(|agent, now| {
            if agent.agent_name == "Ivy" {
                agent.last_seen_at = now.minus(Duration::from_hours(2));
            }
        });
        let mut command = board.command(arguments);
        command.env("BLACKBOARD_SESSION_ID", &ivy).stdout(Stdio::null()).stderr(Stdio::null());
        let mut follower = command.spawn().unwrap();
        // One sweep checks both agents, the longest unseen first.
        wait_until("the follower's sweep", || (board.status_of(&oak) == "stale").then_some(()));
        assert_eq!(board.status_of(&ivy), "active", "{arguments:?}");
        kill(follower.id());
        wait_for(&mut follower);
    }
}

/// What depends on the lock of writers, and on a commit without a wake-up.
mod of_a_file {
    use super::*;

    #[test]
    fn follower_continues_when_writers_prevent_storing_its_cursor() {
        let board = TestBoard::new();
        written(&board.library(), "first", 0);
        let mut follower = follow(&board, &["--cursor", "mirror"]);
        wait_until("the follower has its cursor", || (cursor(&board) == 1).then_some(()));
        let mut lines = Lines::of(&mut follower);
        let writer = board.sql();
        // The first writer in line makes this file longer, and holds a lock on it as long as it waits.
        let line = board.beside("-lock");
        let mut shown = 1;
        loop {
            if let Ok(line) = std::fs::File::options().write(true).open(&line) {
                line.set_len(0).unwrap();
            }
            // No process wakes the follower, so the writer usually writes again before it checks.
            writer.execute_batch(ANOTHER_EVENT).unwrap();
            writer.execute_batch("BEGIN IMMEDIATE").unwrap();
            // From here on its cursor cannot be stored. It has to be, before the follower shows another event.
            if cursor(&board) < shown {
                break;
            }
            shown = id_of(&lines.next());
            writer.execute_batch("ROLLBACK").unwrap();
        }
        wait_until("the follower waits in line", || (std::fs::metadata(&line).ok()?.len() > 0).then_some(()));
        // The kernel shows its table of locks in parts: one read may miss a lock.
        let holds_none = || (0..3).all(|_| locks_of(follower.id()) == 0);
        wait_until("the follower has waited in vain", || holds_none().then_some(()));
        assert_eq!(follower.try_wait().unwrap(), None, "it has not ended");
        writer.execute_batch("ROLLBACK").unwrap();
        assert_eq!(id_of(&lines.next()), shown + 1);
        assert!(cursor(&board) >= shown, "one batch at most comes again");
        kill(follower.id());
        wait_for(&mut follower);
    }

    #[test]
    fn followers_see_a_commit_of_a_writer_that_was_killed_before_it_woke_them() {
        let board = TestBoard::new();
        written(&board.library(), "first", 0);
        let mut follower = follow(&board, &["--after", "0"]);
        let mut lines = Lines::of(&mut follower);
        assert_eq!(id_of(&lines.next()), 1);
        for id in 2..=5 {
            // The writer ends before the wake-up.
            board.tamper(ANOTHER_EVENT);
            assert_eq!(id_of(&lines.next()), id);
        }
        kill(follower.id());
        wait_for(&mut follower);
    }
}
