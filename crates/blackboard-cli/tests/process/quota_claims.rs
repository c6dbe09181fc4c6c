//! Claims within the token quota: many processes claim what fits together, and killed ones keep nothing for long.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use blackboard::clock::{Clock, SystemClock, Timestamp};
use blackboard::work::Create;
use serde_json::Value;
use testkit::process::wait_for;

use crate::crowd::{at_once, end_of, kill};
use crate::scale::{Chance, progress, size};
use crate::test_board::TestBoard;

testkit::on_each_engine![
    of_fifty_claims_as_many_succeed_as_fit_together,
    of_fifty_claims_of_the_next_item_as_many_succeed_as_fit_together,
    claims_of_the_next_item_take_items_of_different_estimates_that_fit_together,
    as_many_runs_start_as_agents_may_be_active,
    an_item_that_sessions_pass_on_is_always_reserved_for_its_holder,
    killed_claims_keep_no_tokens_for_longer_than_a_minute,
    a_claim_gets_the_tokens_of_a_killed_session,
    a_claim_of_the_next_item_gets_that_of_a_killed_session,
    a_check_gets_the_tokens_of_a_killed_session,
];

/// How long tokens are reserved before an item is claimed.
const BEFORE_CLAIM: Duration = Duration::from_mins(1);

/// A board with a quota that refuses claims. The budget is in thousands of tokens.
fn denying(budget: u64, caps: &str) -> TestBoard {
    let board = TestBoard::new();
    board.configure(&format!(
        r#"{{"quota": {{"enforce": "deny", "providers": {{"a": {{"windows": {{"5h": {{"budget": {budget}000}}}},
            "reservation": {{"agents": {caps}}}}}}}}}}}"#
    ));
    board
}

/// Adds items with these estimates in thousands of tokens: item-0, item-1, ….
fn add_items(board: &TestBoard, estimates: impl IntoIterator<Item = u64>) {
    let library = board.library();
    for (number, estimate) in estimates.into_iter().enumerate() {
        let create = Create::new(&format!("item-{number}"), "Item");
        library.work().create(&Create { estimate: Some(estimate * 1_000), ..create }).unwrap();
    }
}

fn provider(board: &TestBoard) -> Value {
    board.json(&["quota", "status"])["providers"][0].clone()
}

fn reserved(board: &TestBoard) -> u64 {
    provider(board)["windows"][0]["reserved"].as_u64().unwrap()
}

/// The claimed items and their holders, as the board has them.
fn holders(board: &TestBoard) -> BTreeMap<String, String> {
    let listed = board.json(&["work", "list", "--status", "claimed", "--limit", "1000"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let items = listed["items"].as_array().unwrap().iter();
    items.map(|item| (text(&item["item_id"]), text(&item["claimed_by"]))).collect()
}

/// Checks that each claimed item is reserved for its holder and that all of them fit, and that nothing else is reserved for
/// longer than the time before a claim. Returns how many reservations will soon expire and how many claimed items have none.
fn assert_sound(board: &TestBoard, budget: u64) -> usize {
    let provider = provider(board);
    let now = SystemClock.now();
    let holders = holders(board);
    let (mut claimed, mut short) = (0, 0);
    for reservation in provider["reservations"].as_array().unwrap() {
        let holder = holders.get(reservation["item"].as_str().unwrap());
        if holder.map(String::as_str) == reservation["session"].as_str() {
            claimed += reservation["tokens"].as_u64().unwrap();
        }
        let expires: Timestamp = reservation["expires_at"].as_str().unwrap().parse().unwrap();
        let is_short = expires <= now.plus(BEFORE_CLAIM);
        assert!(is_short || holder.is_some(), "it lasts too long: {reservation} {holders:?}");
        short += usize::from(is_short);
    }
    assert!(claimed <= budget * 1_000, "{claimed} tokens are reserved: {provider}");
    board.assert_sound();
    let is_reserved = |(item, holder): &(&String, &String)| {
        let reservations = provider["reservations"].as_array().unwrap();
        reservations.iter().any(|held| held["item"] == item.as_str() && held["session"] == holder.as_str())
    };
    short + holders.iter().filter(|holder| !is_reserved(holder)).count()
}

fn start(board: &TestBoard, what: &str, session: &str) -> Child {
    board.start(["work", "claim", what, "--json", "--session", session])
}

/// Claims by all sessions at once: how many succeed, and how many are refused with exit 4. `codes` are those of refusals.
fn claim_at_once(
    board: &TestBoard,
    sessions: &[String],
    codes: &[&str],
    what: impl Fn(usize) -> String + Sync,
) -> [usize; 2] {
    let answers = at_once(sessions.len(), |number| end_of(start(board, &what(number), &sessions[number])));
    for ended in answers.iter().filter(|ended| ended.status.code() != Some(0)) {
        let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(codes.contains(&answer["code"].as_str().unwrap()), "{ended:?}");
    }
    assert!(answers.iter().all(|ended| ended.stderr.is_empty()), "{answers:?}");
    [0, 4].map(|code| answers.iter().filter(|ended| ended.status.code() == Some(code)).count())
}

fn of_fifty_claims_as_many_succeed_as_fit_together() {
    let board = denying(75, "{}");
    let sessions = board.sessions("agent", 50);
    add_items(&board, [10; 50]);
    assert_eq!(
        claim_at_once(&board, &sessions, &["quota_exceeded"], |number| format!("item-{number}")),
        [7, 43]
    );
    assert_eq!((reserved(&board), holders(&board).len()), (70_000, 7));
    assert_eq!(assert_sound(&board, 75), 0, "nothing is left of the others");
}

fn of_fifty_claims_of_the_next_item_as_many_succeed_as_fit_together() {
    let board = denying(75, "{}");
    let sessions = board.sessions("agent", 50);
    add_items(&board, [10; 50]);
    assert_eq!(claim_at_once(&board, &sessions, &["quota_exceeded"], |_| "--next".to_owned()), [7, 43]);
    assert_eq!((reserved(&board), holders(&board).len()), (70_000, 7));
    assert_eq!(assert_sound(&board, 75), 0, "nothing is left of the others");
}

fn claims_of_the_next_item_take_items_of_different_estimates_that_fit_together() {
    let board = denying(100, "{}");
    let sessions = board.sessions("agent", 20);
    let estimates = |number: usize| [30, 7, 12, 1][number % 4];
    add_items(&board, (0..40).map(estimates));
    claim_at_once(&board, &sessions, &["quota_exceeded", "already_claimed"], |number| match number % 2 {
        0 => "--next".to_owned(),
        _ => format!("item-{number}"),
    });
    let holders = holders(&board);
    let sum: u64 = holders.keys().map(|item| estimates(item[5..].parse().unwrap()) * 1_000).sum();
    assert_eq!(reserved(&board), sum, "{holders:?}");
    assert!((30_000..=100_000).contains(&sum), "{sum}: {holders:?}");
    assert_eq!(assert_sound(&board, 100), 0);
}

fn as_many_runs_start_as_agents_may_be_active() {
    let board = denying(1_000, r#"{"maxConcurrent": 3}"#);
    add_items(&board, [10; 12]);
    // A run lasts until all of them have answered.
    let go_on = board.path().join("go-on");
    let script = "echo started; while [ ! -e go-on ]; do sleep 0.05; done";
    let mut runs: Vec<_> = (0..12)
        .map(|number| {
            let item = format!("item-{number}");
            board.start(["run", "--work-item", &item, "--json", "--", "sh", "-c", script])
        })
        .collect();
    testkit::wait_until("the end of nine refused runs", || {
        let ended = runs.iter_mut().filter_map(|run| run.try_wait().unwrap()).count();
        (ended == 9).then_some(())
    });
    assert_eq!(holders(&board).len(), 3);
    std::fs::write(go_on, "").unwrap();
    let ended: Vec<_> = runs.into_iter().map(end_of).collect();
    assert_eq!(ended.iter().filter(|run| run.status.code() == Some(0)).count(), 3, "{ended:?}");
    assert_eq!(ended.iter().filter(|run| run.stdout.contains("quota_exceeded")).count(), 9, "{ended:?}");
    assert_eq!(reserved(&board), 0);
}

fn an_item_that_sessions_pass_on_is_always_reserved_for_its_holder() {
    let board = denying(1_000, "{}");
    let sessions = board.sessions("agent", 4);
    add_items(&board, [10]);
    let claims: usize = at_once(sessions.len(), |number| {
        let session = sessions[number].as_str();
        let mut claims = 0;
        for _ in 0..size(25, 250) {
            let ended = end_of(start(&board, "item-0", session));
            if ended.status.code() != Some(0) {
                continue;
            }
            claims += 1;
            let provider = provider(&board);
            let own = provider["reservations"].as_array().unwrap().iter().filter(|reservation| {
                reservation["session"] == session && reservation["tokens"].as_u64() == Some(10_000)
            });
            assert_eq!(own.count(), 1, "{provider}");
            board.json(&["work", "release", "item-0", "--session", session]);
        }
        claims
    })
    .into_iter()
    .sum();
    assert!(claims > 1, "{claims}");
    assert_eq!(reserved(&board), 0);
}

fn killed_claims_keep_no_tokens_for_longer_than_a_minute() {
    const BUDGET: u64 = 75;
    let board = denying(BUDGET, "{}");
    let (mut chance, rounds) = (Chance::new(9), size(30, 300));
    let sessions = board.sessions("agent", 8);
    add_items(&board, std::iter::repeat_n(10, 40));
    // How long the last complete call took.
    let mut complete = Duration::from_millis(20);
    let (mut killed, mut left) = (0, 0);
    for round in 0..10 * rounds {
        if round >= rounds && killed > 0 && left > 0 {
            break;
        }
        let session = &sessions[chance.below(sessions.len())];
        let item = format!("item-{}", chance.below(40));
        let what = if chance.below(2) == 0 { "--next" } else { &item };
        let started = Instant::now();
        let mut claim = start(&board, what, session);
        // At any moment: while it starts, between reservation and claim, or before it keeps the reservation. One of four is
        // not killed.
        if chance.below(4) > 0 {
            std::thread::sleep(complete * u32::try_from(20 + chance.below(80)).unwrap() / 100);
            if claim.try_wait().unwrap().is_none() {
                kill(claim.id());
                killed += 1;
            }
        }
        if end_of(claim).status.code().is_some() {
            complete = started.elapsed();
        }
        left += assert_sound(&board, BUDGET);
        // What a killed process has claimed without an answer is released, so that there is something to claim.
        if chance.below(3) == 0 {
            for (item, session) in holders(&board) {
                board.json(&["work", "release", &item, "--session", &session]);
            }
        }
        progress("killed claims", round + 1, rounds);
    }
    println!("killed claims: {killed} killed in time, {left} short reservations seen");
    assert!(left > 0, "none was killed between its reservation and the end of its claim");
    for session in &sessions {
        board.json(&["agent", "deregister", session]);
    }
    assert_eq!(reserved(&board), 0, "reservations end with their sessions");
}

/// A session that holds an item, all of the budget, and whose process was killed.
fn killed_holder(board: &TestBoard) -> String {
    let mut process = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap();
    let pid = process.id().to_string();
    let registered = board.json(&["agent", "register", "--name", "Ivy", "--pid", &pid]);
    let session = registered["session_id"].as_str().unwrap().to_owned();
    board.json(&["work", "claim", "item-0", "--session", &session]);
    kill(process.id());
    wait_for(&mut process);
    board.make_all_heartbeats_recent();
    session
}

fn a_claim_gets_the_tokens_of_a_killed_session() {
    for item in ["item-0", "item-1"] {
        let board = denying(80, "{}");
        add_items(&board, [80, 80]);
        let ivy = killed_holder(&board);
        let oak = board.session("Oak");
        board.refusal(4, &["work", "claim", item, "--session", &oak]);
        assert_eq!((board.status_of(&ivy).as_str(), reserved(&board)), ("active", 80_000));
        board.make_all_heartbeats_eleven_seconds_old();
        board.json(&["work", "claim", item, "--session", &oak]);
        assert_eq!((board.status_of(&ivy).as_str(), reserved(&board)), ("stale", 80_000));
        assert_eq!(assert_sound(&board, 80), 0);
    }
}

fn a_claim_of_the_next_item_gets_that_of_a_killed_session() {
    let board = denying(80, "{}");
    add_items(&board, [80]);
    let ivy = killed_holder(&board);
    let oak = board.session("Oak");
    let next = ["work", "claim", "--next", "--session", &oak];
    assert_eq!(board.refusal(3, &next)["code"], "nothing_available");
    board.make_all_heartbeats_eleven_seconds_old();
    assert_eq!(board.json(&next)["item_id"], "item-0");
    assert_eq!((board.status_of(&ivy).as_str(), reserved(&board)), ("stale", 80_000));
}

fn a_check_gets_the_tokens_of_a_killed_session() {
    let board = denying(80, "{}");
    add_items(&board, [80]);
    let ivy = killed_holder(&board);
    let check = ["quota", "check", "--tokens", "80k"];
    board.refusal(4, &check);
    board.make_all_heartbeats_eleven_seconds_old();
    board.json(&check);
    assert_eq!((board.status_of(&ivy).as_str(), reserved(&board)), ("stale", 0));
}
