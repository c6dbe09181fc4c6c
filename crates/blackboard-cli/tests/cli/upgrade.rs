//! `upgrade`: a board of ivy-blackboard continues as a board of this program.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use blackboard::Code;
use rusqlite::Connection;
use serde_json::json;
use testkit::process::RunToEnd as _;
use testkit::reference;

use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("upgrade");
}

/// A home board of ivy-blackboard.
fn scratch_with(version: u32) -> Scratch {
    let scratch = Scratch::new();
    put(&scratch, &scratch.database(), version);
    scratch
}

fn put(scratch: &Scratch, file: &Path, version: u32) {
    let home = scratch.path().join(".pai/blackboard");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::create_dir_all(&home).unwrap();
    let keep = r#"{"sweep": {"pruneEventsAfterDays": 3650, "pruneHeartbeatsAfterDays": 3650,
        "pruneCompletedAgentsAfterDays": 3650, "pruneStaleAgentsAfterDays": 3650}}"#;
    fs::write(home.join("config.json"), keep).unwrap();
    Connection::open(file).unwrap().execute_batch(&reference::database(version)).unwrap();
    fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn json_has_counts_and_what_is_kept_in_metadata() {
    let scratch = scratch_with(9);
    let upgraded = scratch.json(["upgrade", "--yes"]);
    is_object(
        &upgraded,
        &[
            "database",
            "upgraded",
            "from_version",
            "copy",
            "agents",
            "projects",
            "work_items",
            "dependencies",
            "heartbeats",
            "events",
            "specflow_features",
            "kept_in_metadata",
            "left_out",
        ],
    );
    assert_eq!((&upgraded["upgraded"], &upgraded["from_version"]), (&json!(true), &json!(9)));
    assert_eq!((&upgraded["work_items"], &upgraded["events"]), (&json!(11), &json!(9)));
    let kept = upgraded["kept_in_metadata"].as_array().unwrap();
    assert!(kept.contains(&json!({"what": "specflow_features", "rows": 2})), "{upgraded}");
    assert!(fs::exists(upgraded["copy"].as_str().unwrap()).unwrap());
    let again = scratch.json(["upgrade"]);
    is_object(&again, &["database", "upgraded"]);
    assert_eq!(again["upgraded"], false);
}

#[test]
fn every_version_is_upgraded_by_its_command_and_can_be_listed() {
    for version in reference::VERSIONS {
        let scratch = scratch_with(version);
        let refusal = scratch.run(["work", "list", "--json"]).refused(Code::UpgradeNeeded);
        let expected = format!("(ivy-blackboard, schema version {version})");
        assert!(refusal["error"].as_str().unwrap().ends_with(&expected), "{refusal}");
        // Without a terminal there is no question, and no upgrade.
        let before = fs::read(scratch.database()).unwrap();
        let refusal = scratch.run(["upgrade", "--json"]).refused(Code::Usage);
        assert!(refusal["hint"].as_str().unwrap().starts_with("pass --yes"), "{refusal}");
        assert_eq!(fs::read(scratch.database()).unwrap(), before);
        scratch.run(["upgrade", "--yes"]).success();
        let listed = scratch.json(["work", "list", "--all"]);
        let items = [5, 5, 5, 6, 7, 7, 9, 11, 11][version as usize - 1];
        assert_eq!(listed["count"], items, "version {version}");
        for item in listed["items"].as_array().unwrap() {
            scratch.json(["work", "status", item["item_id"].as_str().unwrap()]);
        }
        assert_eq!(scratch.json(["agent", "list", "--all"])["count"], 4);
    }
}

#[test]
fn sessions_that_were_last_seen_long_ago_are_stale_at_once() {
    testkit::limit_test();
    for upgrades_on_the_way in [false, true] {
        let scratch = scratch_with(9);
        let held = "SELECT count(*) FROM agents WHERE status IN ('active', 'idle')";
        let live: u32 =
            Connection::open(scratch.database()).unwrap().query_row(held, [], |row| row.get(0)).unwrap();
        assert!(live > 0, "the sample has live sessions");
        let mut list = scratch.command(["agent", "list", "--json"]);
        if upgrades_on_the_way {
            list.env("BLACKBOARD_UPGRADE", "1");
        } else {
            scratch.run(["upgrade", "--yes"]).success();
        }
        assert_eq!(Output::of(list.run_to_end()).success().json()["count"], 0);
        let claimed = scratch.json(["work", "list", "--status", "claimed"]);
        assert_eq!(claimed["count"], 0, "their items are released: {claimed}");
    }
}

#[test]
fn a_board_with_an_object_of_another_program_is_named_by_every_command() {
    testkit::limit_test();
    let scratch = scratch_with(9);
    Connection::open(scratch.database()).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
    for call in [&["work", "list", "--json"][..], &["upgrade", "--yes", "--json"]] {
        let refused = scratch.run(call).refused(Code::ForeignDatabase);
        assert!(refused["error"].as_str().unwrap().contains("the table \"mine\""), "{refused}");
    }
}

#[test]
fn dependency_cycles_are_left_out_and_listed() {
    testkit::limit_test();
    let scratch = scratch_with(9);
    let items =
        "INSERT INTO work_items (item_id, title, source, status, created_at, depends_on, blocked_by) VALUES
        ('cyc1', 'One', 'local', 'blocked', '2026-02-01T09:21:00.000Z', 'cyc2', 'cyc2'),
        ('cyc2', 'Two', 'local', 'blocked', '2026-02-01T09:21:00.000Z', 'cyc1', 'cyc1')";
    Connection::open(scratch.database()).unwrap().execute_batch(items).unwrap();
    let shown = scratch.run(["upgrade", "--yes"]).success().stdout;
    assert!(shown.contains("because of a dependency cycle: cyc2 by cyc1\n"), "{shown}");
    let item = |id: &str| scratch.json(["work", "status", id]);
    assert_eq!((&item("cyc1")["status"], &item("cyc2")["status"]), (&json!("blocked"), &json!("available")));
    assert_eq!(item("cyc2")["metadata"]["ivy_blackboard"]["depends_on"], "cyc1");
}

#[test]
fn first_command_upgrades_if_the_environment_says_so() {
    let scratch = scratch_with(3);
    let mut command = scratch.command(["work", "list"]);
    let listed = Output::of(command.env("BLACKBOARD_UPGRADE", "1").run_to_end()).success();
    assert!(
        listed.stderr.contains("note: upgraded ") && listed.stderr.contains("from version 3"),
        "{listed:?}"
    );
    assert!(listed.stdout.contains("gh:owner/pai#78"), "{listed:?}");
    let other = scratch_with(3);
    for value in ["", "0", "no"] {
        let mut command = other.command(["work", "list", "--json"]);
        Output::of(command.env("BLACKBOARD_UPGRADE", value).run_to_end()).refused(Code::UpgradeNeeded);
    }
}

#[test]
fn a_refused_upgrade_leaves_every_file_unchanged() {
    for mode in ["WAL", "DELETE"] {
        let scratch = Scratch::new();
        let file = scratch.path().join(".blackboard/local.db");
        put(&scratch, &file, 9);
        fs::set_permissions(file.parent().unwrap(), Permissions::from_mode(0o700)).unwrap();
        let connection = Connection::open(&file).unwrap();
        connection.execute_batch("UPDATE schema_version SET version = 10 WHERE version = 9").unwrap();
        connection.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(())).unwrap();
        drop(connection);
        let before = scratch.contents();
        for call in [&["upgrade", "--yes", "--json"][..], &["init", "--yes", "--json"]] {
            let refusal = scratch.run(call).refused(Code::NewerSchema);
            assert!(refusal["error"].as_str().unwrap().contains("schema version 10"), "{refusal}");
        }
        assert!(scratch.contents() == before, "{mode}");
    }
}

#[test]
fn hooks_leave_it_untouched_and_log_it() {
    let scratch = scratch_with(9);
    let before = fs::read(scratch.database()).unwrap();
    let payload =
        r#"{"hook_event_name": "SessionStart", "session_id": "abc", "cwd": "/", "source": "startup"}"#;
    let mut command = scratch.command(["hook", "claude"]);
    let answer = Output::fed(command.env("BLACKBOARD_UPGRADE", "1"), payload);
    assert_eq!((answer.code, answer.stdout.as_str(), answer.stderr.as_str()), (0, "", ""));
    assert_eq!(fs::read(scratch.database()).unwrap(), before);
    let log = fs::read_to_string(scratch.path().join(".pai/blackboard/hook.log")).unwrap();
    assert!(log.contains("ivy-blackboard"), "{log}");
}

#[test]
fn init_upgrades_only_if_it_is_told_so() {
    let scratch = Scratch::new();
    let file = scratch.path().join(".blackboard/local.db");
    put(&scratch, &file, 5);
    fs::set_permissions(file.parent().unwrap(), Permissions::from_mode(0o700)).unwrap();
    let refusal = scratch.run(["init", "--json"]).refused(Code::UpgradeNeeded);
    assert!(refusal["hint"].as_str().unwrap().ends_with("blackboard upgrade"), "{refusal}");
    assert_eq!(scratch.json(["init", "--yes"])["created"], false);
    assert_eq!(scratch.json(["work", "list", "--all"])["count"], 7);
}

#[test]
fn init_names_the_board_of_ivy_blackboard_that_it_replaces() {
    let scratch = scratch_with(9);
    let before = fs::read(scratch.database()).unwrap();
    fs::create_dir(scratch.path().join("project")).unwrap();
    let mut command = scratch.command(["init"]);
    let created = Output::of(command.current_dir(scratch.path().join("project")).run_to_end()).success();
    let command = format!("blackboard upgrade --db {}", scratch.database().display());
    assert!(created.stderr.contains(&format!("to upgrade it: {command}\n")), "{created:?}");
    assert_eq!(fs::read(scratch.database()).unwrap(), before);
    // The second time, the new board is the one that commands use already.
    let mut command = scratch.command(["init"]);
    let again = Output::of(command.current_dir(scratch.path().join("project")).run_to_end()).success();
    assert_eq!(again.stderr, "");
}

#[test]
fn setup_offers_the_upgrade() {
    let scratch = scratch_with(9);
    fs::create_dir(scratch.path().join(".claude")).unwrap();
    let shown = scratch.run(["setup", "claude", "--dry-run"]).success();
    assert!(shown.stderr.contains("to upgrade it: blackboard upgrade"), "{shown:?}");
    scratch.run(["work", "list", "--json"]).refused(Code::UpgradeNeeded);
    let done = scratch.run(["setup", "claude", "--yes"]).success();
    assert!(done.stderr.contains("note: upgraded "), "{done:?}");
    scratch.json(["work", "list"]);
}
