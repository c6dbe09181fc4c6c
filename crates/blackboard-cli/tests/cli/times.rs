//! Local times: the zone comes from `TZ` or from the system, and is read only where a local time is printed.

use blackboard::store::Range;
use blackboard::work::WorkItem;
use serde_json::Value;
use testkit::process::RunToEnd as _;

use crate::machine::can_trace;
use crate::mcp::client::{Client, Generation};
use crate::scratch::{Output, Scratch};

testkit::on_each_engine![
    details_and_events_have_local_times_and_json_has_utc,
    frequent_commands_do_not_read_the_time_zone,
    a_line_with_the_date_opens_each_new_day,
    events_of_locks_files_and_progress_have_their_own_names,
    today_begins_at_local_midnight_for_status_and_mcp,
];

/// What a call prints in a zone.
fn in_zone(scratch: &Scratch, zone: &str, call: &[&str]) -> String {
    Output::of(scratch.command(call).env("TZ", zone).run_to_end()).success().stdout
}

fn details_and_events_have_local_times_and_json_has_utc() {
    let scratch = Scratch::new();
    scratch.run(["work", "create", "ship", "--title", "Ship it"]).success();
    let json: Value = scratch.json(["work", "status", "ship"]);
    let utc = json["created_at"].as_str().unwrap().to_owned();
    assert!(utc.ends_with('Z') && utc.len() == "2026-02-03T15:30:00.000Z".len(), "{utc}");
    let hour = |text: &str| text[11..13].parse::<u32>().unwrap();
    // A fixed offset, and a rule of a zone that has no summer time.
    for (zone, offset, hours) in [
        ("<+05>-5", "+05:00", 5),
        ("JST-9", "+09:00", 9),
        (":<-03>3", "-03:00", 21),
        ("UTC", "Z", 0),
        ("", "Z", 0),
    ] {
        let details = in_zone(&scratch, zone, &["work", "status", "ship"]);
        let created = details.lines().find_map(|line| line.strip_prefix("Created:")).unwrap().trim();
        let (moment, age) = created.split_once(' ').unwrap();
        assert!(moment.ends_with(offset) && moment.len() == 19 + offset.len(), "{zone}: {created}");
        assert_eq!(hour(moment), (hour(&utc) + hours) % 24, "{zone}: {created}");
        assert!(age.starts_with('(') && age.ends_with(" ago)"), "{created}");
        let events = in_zone(&scratch, zone, &["observe", "--last", "1"]);
        assert!(events.lines().any(|line| line.starts_with(&moment[11..19])), "{zone}: {events}");
    }
    let json =
        Output::of(scratch.command(["work", "status", "ship", "--json"]).env("TZ", "JST-9").run_to_end());
    assert_eq!(json.json()["created_at"].as_str(), Some(utc.as_str()));
}

fn frequent_commands_do_not_read_the_time_zone() {
    if !can_trace("files that a command reads") {
        return;
    }
    let scratch = Scratch::new();
    scratch.run(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]).success();
    for item in ["ship", "test"] {
        scratch.run(["work", "create", item, "--title", "Ship it"]).success();
    }
    let (zone, trace) = (scratch.path().join("zone"), scratch.path().join("trace"));
    let reads_zone = |call: &[&str]| {
        let mut command = scratch.shell("exec strace -f -qq -e trace=%file -o \"$TRACE\" blackboard \"$@\"");
        command.arg("sh").args(call).env("TRACE", &trace).env("TZ", &zone);
        Output::of(command.run_to_end()).success();
        std::fs::read_to_string(&trace).unwrap().contains(zone.to_str().unwrap())
    };
    for call in [
        &["agent", "heartbeat", "--session", "ivy", "--progress", "half way"][..],
        &["work", "claim", "ship", "--session", "ivy"],
        &["work", "claim", "ship", "--session", "ivy"],
        &["work", "list"],
        &["write", "counter", "1"],
        &["agent", "list"],
    ] {
        assert!(!reads_zone(call), "{call:?}");
    }
    assert!(reads_zone(&["work", "status", "ship"]), "a local time needs the zone");
}

fn a_line_with_the_date_opens_each_new_day() {
    use std::sync::Arc;

    use blackboard::clock::FixedClock;
    use blackboard::work::Create;

    let scratch = Scratch::new();
    // Half an hour before and after midnight in UTC: one day in Tokyo, two days in UTC.
    let clock = Arc::new(FixedClock::at("2026-02-03T23:30:00Z").unwrap());
    let board = scratch.board_at(clock.clone());
    board.work().create(&Create::new("one", "One")).unwrap();
    clock.advance(std::time::Duration::from_hours(1));
    board.work().create(&Create::new("two", "Two")).unwrap();
    drop(board);
    let lines = |zone: &str| -> Vec<String> {
        let text = in_zone(&scratch, zone, &["observe", "--last", "2"]);
        text.lines()
            .skip(2)
            .take_while(|line| !line.is_empty())
            .map(|line| line.chars().take(11).collect())
            .collect()
    };
    assert_eq!(lines("UTC"), ["2026-02-03:", "23:30:00  w", "2026-02-04:", "00:30:00  w"]);
    assert_eq!(lines("JST-9"), ["2026-02-04:", "08:30:00  w", "09:30:00  w"]);
}

fn events_of_locks_files_and_progress_have_their_own_names() {
    let scratch = Scratch::new();
    scratch.run(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]).success();
    let session = ["--session", "ivy"];
    for call in [
        &["lock", "acquire", "deploy"][..],
        &["lock", "release", "deploy"],
        &["file", "reserve", "src/**"],
        &["file", "release", "src/**"],
        &["agent", "heartbeat", "--progress", "half way"],
    ] {
        scratch.run(call.iter().chain(&session)).success();
    }
    let shown = scratch.run(["observe", "--last", "5"]).success().stdout;
    for name in ["lock_acquired", "lock_released", "files_reserved", "files_released", "progress"] {
        let line =
            shown.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {shown}"));
        let filtered = scratch.run(["observe", "--last", "5", "--filter", name]).success().stdout;
        assert!(filtered.contains(line) && filtered.contains("\n1 event\n"), "{name}: {filtered}");
    }
    // JSON keeps the stored types.
    let json = scratch.json(["observe", "--last", "5"]);
    assert!(json["items"].as_array().unwrap().iter().any(|event| event["event_type"] == "entry_written"));
}

fn today_begins_at_local_midnight_for_status_and_mcp() {
    let scratch = Scratch::new();
    for hint in ["early", "late"] {
        scratch.run(["agent", "register", "--name", hint, "--session-hint", hint]).success();
        scratch.run(["work", "claim", hint, "--title", hint, "--session", hint]).success();
        scratch.run(["work", "complete", hint, "--session", hint]).success();
        scratch.run(["agent", "deregister", hint]).success();
    }
    let database = rusqlite::Connection::open_in_memory().unwrap();
    let hour: i64 = database.query_row("SELECT strftime('%H', 'now') + 0", [], |row| row.get(0)).unwrap();
    // A zone in which it is 06:00 or 18:00, whichever is further from the time in UTC.
    let local = if (hour - 6).abs() > (hour - 18).abs() { 6 } else { 18 };
    let zone = format!("<HERE>{}", hour - local);
    for (name, hours_ago) in [("early", local + 2), ("late", local - 1)] {
        let ago = std::time::Duration::from_hours(hours_ago.try_into().unwrap());
        scratch.change_rows(&Range::work_items(), |item: &mut WorkItem, now| {
            if item.item_id == name {
                item.completed_at = Some(now.minus(ago));
            }
        });
        scratch.change_agents(|agent, now| {
            if agent.agent_name == name {
                agent.ended_at = Some(now.minus(ago));
            }
        });
    }
    let shown = in_zone(&scratch, &zone, &["status"]);
    assert_eq!(shown.matches(" 1 completed (today)").count(), 2, "{zone}: {shown}");
    let status: Value = serde_json::from_str(&in_zone(&scratch, &zone, &["status", "--json"])).unwrap();
    for group in ["agents", "work_items"] {
        assert_eq!(status[group]["completed_today"], 1, "{zone}: {status}");
    }
    let mut command = scratch.command(["mcp"]);
    command.env("TZ", &zone);
    let mut client = Client::speaking(Generation::Of2025, command);
    let who = client.call("who", serde_json::json!({}));
    assert!(who.to_string().contains("completed_today"), "{who}");
    let board = client.request("resources/read", serde_json::json!({"uri": "blackboard://board"}));
    let board = client.answer(board);
    for answer in [who.to_string(), board.to_string()] {
        let counts = answer.replace(['\\', '"', ' '], "");
        assert!(counts.contains("completed_today:1"), "{zone}: {answer}");
        assert!(!counts.contains("completed_today:0") && !counts.contains("completed_today:2"), "{answer}");
    }
}
