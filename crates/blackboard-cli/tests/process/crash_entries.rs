//! Writers that are killed at any moment: acknowledged writes are stored, and no write is stored partly.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::{Duration, Instant};

use blackboard::event::{EventType, Since};
use blackboard::{Board, Revision};
use serde_json::{Value, json};

use crate::crowd::{at_once, end_of, kill};
use crate::scale::{Chance, progress, size};
use crate::test_board::TestBoard;

testkit::on_each_engine![acknowledged_entries_survive_kill_9,];

/// How many of a hundred calls are killed.
const KILLED: usize = 30;

/// How many keys a batch has.
const BATCH: usize = 5;

fn acknowledged_entries_survive_kill_9() {
    let (writers, rounds) = (size(20, 100), size(15, 50));
    let board = TestBoard::new();
    board.json(&["increment", "shared:count"]);
    for writer in 0..writers {
        let part = |part| json!({"write": {"key": format!("batch:{writer}:{part}"), "value": writer}});
        let batch = json!({"then": (0..BATCH).map(part).collect::<Vec<_>>()});
        std::fs::write(board.path().join(format!("batch-{writer}.json")), batch.to_string()).unwrap();
    }
    let calls = at_once(writers, |writer| {
        let mut chance = Chance::new(writer);
        let mut lifetime = Duration::from_millis(20);
        let (mut calls, library) = (Vec::new(), board.library());
        for round in 0..rounds {
            calls.push(write_and_perhaps_die(&board, &library, writer, &mut lifetime, &mut chance));
            if writer == 0 {
                progress("crash-entries, rounds of the first writer", round + 1, rounds);
            }
        }
        calls
    });

    board.assert_sound();
    let versions = versions(&board);
    let (mut acknowledged, mut by_survivors, mut aimed_at, mut killed) = (0, 0, 0, 0);
    for call in calls.iter().flatten() {
        aimed_at += usize::from(call.was_aimed_at);
        killed += usize::from(call.was_killed);
        for (revision, key, version) in &call.acknowledged {
            assert_eq!(versions.get(revision), Some(&(key.clone(), *version)), "acknowledged and lost");
            acknowledged += 1;
            by_survivors += usize::from(!call.was_killed);
        }
    }
    // Survivors report what they did. Killed processes did everything else on the board, except the first row.
    let by_killed = versions.len() - 1 - by_survivors;
    println!(
        "crash-entries: {} calls, {killed} of {aimed_at} killed in time, {acknowledged} versions acknowledged, {} on \
         the board, {by_killed} of them by the killed, none by half",
        writers * rounds,
        versions.len(),
    );
    assert!(killed >= aimed_at / 5, "{killed} of {aimed_at} were killed before they ended");
    assert!(by_killed > 0, "none of {killed} was killed after its commit");
    assert!(acknowledged > 0, "no process survived");
    batches_are_whole(&board, writers);
    counts_are_exact(&board);
    let history = board.json(&["history", "shared:count", "--limit", "100000"]);
    let told: Vec<_> =
        history["items"].as_array().unwrap().iter().map(|item| item["version"].as_u64()).collect();
    let expected: Vec<_> = (1..=told.len() as u64).rev().map(Some).collect();
    assert_eq!(told, expected, "a history has no gaps");
}

/// The result of a call.
struct Call {
    was_aimed_at: bool,
    was_killed: bool,
    /// Revision, key and version of the write that it reported.
    acknowledged: Vec<(i64, String, i64)>,
}

/// Writes, and may be killed: after a random part of the duration of the last complete call, or when its commit is visible.
fn write_and_perhaps_die(
    board: &TestBoard,
    library: &Board,
    writer: usize,
    lifetime: &mut Duration,
    chance: &mut Chance,
) -> Call {
    let (own, file) = (format!("own:{writer}"), format!("batch-{writer}.json"));
    let value = chance.below(1_000).to_string();
    let calls: [&[&str]; 6] = [
        &["write", &own, &value],
        &["write", "shared", &value],
        &["append", "shared:list", &value],
        &["increment", "shared:count"],
        &["txn", "--file", &file],
        &["txn", "--file", &file],
    ];
    let author = format!("writer-{writer}");
    let call = calls[chance.below(calls.len())].iter().copied().chain(["--json", "--agent", &author]);
    let before = library.revision().unwrap();
    let started = Instant::now();
    let mut child = board.start(call);
    let was_aimed_at = chance.below(100) < KILLED;
    if was_aimed_at {
        if chance.below(2) == 0 {
            thread::sleep(*lifetime * u32::try_from(chance.below(100)).unwrap() / 100);
        } else {
            while !has_written(library, before, &author) && child.try_wait().unwrap().is_none() {
                thread::yield_now();
            }
        }
        // The PID of a process that was waited for can be reused.
        if child.try_wait().unwrap().is_none() {
            kill(child.id());
        }
    }
    let ended = end_of(child);
    assert_eq!(ended.stderr, "", "{ended:?}");
    if let Some(code) = ended.status.code() {
        assert_eq!(code, 0, "{ended:?}");
        *lifetime = started.elapsed();
    }
    // A complete line is an answer, also if its process was killed before it could exit.
    let answer: Option<Value> =
        ended.stdout.ends_with('\n').then(|| serde_json::from_str(&ended.stdout).unwrap());
    let acknowledged = answer.map_or_else(Vec::new, |answer| match answer["results"].as_array() {
        Some(results) => results.iter().map(|result| written(&result["write"])).collect(),
        None => vec![written(&answer)],
    });
    Call { was_aimed_at, was_killed: ended.status.signal().is_some(), acknowledged }
}

fn written(answer: &Value) -> (i64, String, i64) {
    let number = |name: &str| answer[name].as_i64().unwrap_or_else(|| panic!("{answer}"));
    (number("revision"), answer["key"].as_str().unwrap().to_owned(), number("version"))
}

/// Whether an author has written after a revision.
fn has_written(library: &Board, after: Revision, author: &str) -> bool {
    let events = library.events();
    let observation = events.observe(&Since::Revision(after), &[EventType::EntryWritten]).unwrap();
    let batch = events.next(&observation, after, usize::MAX).unwrap();
    let changes = batch.iter().flat_map(|batch| &batch.events).filter_map(|event| event.entry.as_ref());
    changes.into_iter().any(|change| change.author == author)
}

/// Key and version of every revision.
fn versions(board: &TestBoard) -> BTreeMap<i64, (String, i64)> {
    let connection = board.tables();
    let mut statement = connection.prepare("SELECT revision, key, version FROM entry_versions").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))));
    rows.unwrap().map(Result::unwrap).collect()
}

/// Every commit that wrote one key of a batch wrote all of them, and nothing else.
fn batches_are_whole(board: &TestBoard, writers: usize) {
    let mut batches: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for line in board.log() {
        batches.entry(line.commit).or_default().extend(line.target);
    }
    let mut whole = vec![0; writers];
    for keys in batches.into_values().filter(|keys| keys.iter().any(|key| key.starts_with("batch:"))) {
        let writer: usize = keys[0].split(':').nth(1).unwrap().parse().unwrap();
        let expected: Vec<_> = (0..BATCH).map(|part| format!("batch:{writer}:{part}")).collect();
        assert_eq!(keys, expected, "a batch is whole");
        whole[writer] += 1;
    }
    for (writer, whole) in whole.into_iter().enumerate().filter(|(_, whole)| *whole > 0) {
        let entry = board.json(&["read", &format!("batch:{writer}:{}", BATCH - 1)]);
        assert_eq!(entry["version"], whole);
    }
}

/// Counters and lists have as many increments and elements as they have versions.
fn counts_are_exact(board: &TestBoard) {
    let count = board.json(&["read", "shared:count"]);
    assert_eq!(count["value"], count["version"]);
    let list = board.json(&["read", "shared:list"]);
    assert_eq!(list["value"].as_array().unwrap().len() as u64, list["version"].as_u64().unwrap());
}
