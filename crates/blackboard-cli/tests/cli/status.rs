use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::shapes::{AGENT, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_shape_of_the_proposal,
    json_lists_the_claimed_work_items,
    status_counts_many_agents_and_does_not_list_them,
];

fn human_output_matches_transcript() {
    transcript::check("status");
}

fn json_has_the_shape_of_the_proposal() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let status = scratch.json(["status"]);
    is_object(
        &status,
        &["database", "database_size_bytes", "agents", "projects", "work_items", "events_24h"],
    );
    for (group, counts) in [
        ("agents", &["active", "idle", "stale", "completed_today"][..]),
        ("projects", &["registered"]),
        ("work_items", &["available", "claimed", "blocked", "completed_today"]),
    ] {
        for count in counts {
            assert!(status[group][count].is_u64(), "{group}.{count} is missing: {status}");
        }
    }
    for field in AGENT {
        assert!(status["active_agents"][0].get(field).is_some(), "{field} is missing: {status}");
    }
    assert!(status.get("room").is_none(), "a small board needs no report");
}

fn json_lists_the_claimed_work_items() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    assert_eq!(scratch.json(["status"])["claimed_work"], serde_json::json!([]));
    for number in 0..22 {
        let id = format!("item-{number:02}");
        scratch.json(["work", "claim", &id, "--title", "Item", "--session", "ivy"]);
    }
    scratch.json(["work", "create", "free", "--title", "Free"]);
    let claimed = scratch.json(["status"])["claimed_work"].clone();
    let ids: Vec<_> = claimed.as_array().unwrap().iter().map(|item| item["item_id"].clone()).collect();
    assert_eq!(ids, (0..22).map(|number| format!("item-{number:02}")).collect::<Vec<_>>());
    assert_eq!((&claimed[0]["claimed_by_name"], &claimed[0]["status"]), (&"Ivy".into(), &"claimed".into()));
}

fn status_counts_many_agents_and_does_not_list_them() {
    let scratch = Scratch::new();
    for number in 0..22 {
        let name = format!("Agent {number}");
        scratch.json(["agent", "register", "--name", &name, "--work", "Design the schema"]);
    }
    let shown = scratch.run(["status"]).success().stdout;
    let listed = shown.lines().filter(|line| line.ends_with(" -- Design the schema")).count();
    assert_eq!(listed, 20, "{shown}");
    assert!(shown.ends_with("\n  … and 2 more\n"), "{shown}");
    assert_eq!(scratch.json(["status"])["active_agents"].as_array().map(Vec::len), Some(22));
}

/// What is about the file, or the home board.
mod of_a_file {
    use super::*;

    #[test]
    fn status_of_a_large_board_shows_what_uses_the_space() {
        let scratch = Scratch::new();
        scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
        let database = rusqlite::Connection::open(scratch.database()).unwrap();
        let many =
            "WITH RECURSIVE counting(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM counting WHERE n < 20000)
                INSERT INTO heartbeats (session_id, timestamp, progress)
                SELECT session_id, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', -n || ' seconds'), 'still here'
                FROM agents, counting";
        database.execute(many, []).unwrap();
        assert!(!scratch.run(["status"]).success().stdout.contains("warning"), "256 MB are fine");

        std::fs::write(
            scratch.path().join(".pai/blackboard/config.json"),
            r#"{"database": {"warnSizeMb": 1}}"#,
        )
        .unwrap();
        let shown = scratch.run(["status"]).success().stdout;
        let (_, warning) = shown.split_once("warning: ").unwrap_or_else(|| panic!("no warning: {shown}"));
        let lines: Vec<&str> = warning.lines().collect();
        assert_eq!(lines[0], "the database is larger than 1 MB (database.warnSizeMb)");
        assert!(lines[1].ends_with("MB  heartbeats"), "the largest first: {warning}");
        assert!(lines.iter().any(|line| line.ends_with("  events")), "{warning}");
        assert!(warning.contains("sweep.pruneHeartbeatsAfterDays"), "{warning}");
        let room = scratch.json(["status"])["room"].clone();
        assert_eq!(room[0]["what"], "heartbeats");
        assert!(room[0]["bytes"].as_u64().unwrap() > 1024 * 1024);
    }

    #[test]
    fn home_board_in_a_repository_is_reported() {
        let scratch = Scratch::new();
        scratch.run(["write", "key", "1"]).success();
        let note = "note: no board exists for this repository; showing your home board. Create one: blackboard init\n";
        assert_eq!(scratch.run(["status"]).success().stderr, "", "not a repository");
        let repository = scratch.path().join("repository");
        std::fs::create_dir_all(repository.join(".git")).unwrap();
        let database = scratch.database();
        let run = |arguments: &[&str]| {
            let mut command = scratch.command(arguments);
            Output::of(command.current_dir(&repository).run_to_end()).success()
        };
        for call in [&["status"][..], &["agent", "list"], &["work", "list"], &["lock", "list"]] {
            let with = |more: &[&str]| run(&[call, more].concat());
            assert_eq!(with(&[]).stderr, note, "{call:?}");
            let json = with(&["--json"]);
            assert_eq!((json.stderr.as_str(), &json.json()["home_board"]), ("", &true.into()), "{call:?}");
            let named = ["--db", database.to_str().unwrap()];
            assert_eq!(with(&named).stderr, "", "the caller named it");
            assert_eq!(with(&[&named[..], &["--json"]].concat()).json().get("home_board"), None);
        }
        let status = |arguments: &[&str]| run(&[&["status"][..], arguments].concat()).stderr;
        let mut init = scratch.command(["init"]);
        Output::of(init.current_dir(&repository).run_to_end()).success();
        assert_eq!(status(&[]), "");
    }
}
