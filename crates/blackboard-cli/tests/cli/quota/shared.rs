//! A ledger that several machines share.

use blackboard::Code;
use testkit::redis::RedisServer;

use super::{with_quota, write_config};
use crate::scratch::Scratch;

/// A machine whose quota has this server.
fn machine(server: &str) -> Scratch {
    with_quota(&format!(
        r#"{{"server": "{server}", "providers": {{"a": {{"windows": {{"5h": {{"budget": 1000}}}}}}}}}}"#
    ))
}

fn used(machine: &Scratch) -> serde_json::Value {
    machine.json(["quota", "status"])["providers"][0]["windows"][0]["used"].clone()
}

#[test]
fn machines_with_one_server_have_one_ledger() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let url = server.url("token-quota");
    let (one, other) = (machine(&url), machine(&url));
    assert_eq!(used(&one), 0, "a journal that does not exist is empty");
    assert_eq!(server.command(&["DBSIZE"]), ":0\r\n", "and is not created");
    one.run(["quota", "record", "--id", "1", "--input-tokens", "300"]).success();
    assert_eq!(used(&other), 300);
    let again = other.json(["quota", "record", "--id", "1", "--input-tokens", "300"]);
    assert_eq!((&again["recorded"], &again["duplicates"]), (&0.into(), &1.into()));
    other.run(["quota", "check", "--tokens", "600", "--reserve"]).success();
    one.run(["quota", "check", "--tokens", "101", "--json"]).refused(Code::QuotaExceeded);
    assert!(!one.home_file("quota.db").exists(), "the ledger of one machine is not used");
}

#[test]
fn boards_of_two_machines_at_one_path_are_different_ones() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let url = server.url("token-quota");
    let machines = [machine(&url), machine(&url)];
    let directory = testkit::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap().join("repository");
    let file = place.join("board.db");
    let call = |number: usize, call: &[&str]| {
        let call = ["--db", file.to_str().unwrap()].into_iter().chain(call.iter().copied());
        machines[number].run(call.chain(["--json"])).success().json()
    };
    for number in [0, 1] {
        // Each machine has its own disk.
        std::fs::create_dir(&place).unwrap();
        call(number, &["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
        call(number, &["work", "create", "T1", "--title", "Item", "--estimate", "100"]);
        call(number, &["work", "claim", "T1", "--session", "Ivy"]);
        std::fs::rename(&place, directory.path().join(number.to_string())).unwrap();
    }
    std::fs::rename(directory.path().join("1"), &place).unwrap();
    call(1, &["work", "release", "T1", "--session", "Ivy"]);
    call(1, &["work", "delete", "T1"]);
    call(1, &["quota", "record", "--input-tokens", "7", "--item", "T1"]);
    let line = r#"{"id": "1", "board": "/home/ivy/other.db", "usage": {"input": 3}}"#;
    let recorded = crate::scratch::Output::fed(&mut machines[1].command(["quota", "record", "-"]), line);
    assert_eq!(recorded.code, 0, "{recorded:?}");
    let status = machines[0].json(["quota", "status"]);
    let provider = &status["providers"][0];
    assert_eq!(provider["reservations"].as_array().unwrap().len(), 1, "that of the other machine: {status}");
    assert_eq!(provider["windows"][0]["used"], 10);
    let names = status.to_string();
    assert!(!names.contains("repository") && !names.contains("/home/ivy"), "{names}");
}

#[test]
fn journal_has_a_board_of_its_own_on_the_server() {
    let Some(server) = RedisServer::start(&[]) else { return };
    // Without a board, the URL of a server is that of the board that agents use.
    let agents = server.url("default");
    let scratch = machine(agents.split('?').next().unwrap());
    scratch.run(["quota", "record", "--id", "1", "--input-tokens", "300"]).success();
    let boards = server.command(&["KEYS", "*"]);
    assert!(boards.contains("{token-quota}") && !boards.contains("{default}"), "{boards}");
}

#[test]
fn a_server_that_cannot_be_used_is_reported() {
    let scratch = machine("redis://:geheim@127.0.0.1:1");
    let refused = scratch.run(["quota", "status", "--json"]).refused(Code::InvalidValue);
    assert!(!refused.to_string().contains("geheim"), "{refused}");
    assert!(refused["hint"].as_str().unwrap().contains("BLACKBOARD_REDIS_PASSWORD"), "{refused}");
    let wrong = machine("http://127.0.0.1").run(["quota", "status", "--json"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    let scratch = machine(&format!("redis://127.0.0.1:{}", testkit::redis::free_port()));
    let mut command = scratch.command(["quota", "status", "--json"]);
    command.env("BLACKBOARD_REDIS_TIMEOUT", "300ms");
    let failed = crate::scratch::Output::fed(&mut command, "");
    assert_eq!(failed.json()["code"], "server_unavailable", "{failed:?}");
}

#[test]
fn server_of_a_project_is_ignored() {
    let scratch = Scratch::new();
    write_config(&scratch, r#"{"quota": {"providers": {"a": {"windows": {"5h": {"budget": 1000}}}}}}"#);
    let project = scratch.path().join("project/.blackboard");
    std::fs::create_dir_all(&project).unwrap();
    let config = r#"{"quota": {"server": "redis://127.0.0.1:1", "providers": {"a": {}}}}"#;
    std::fs::write(project.join("config.json"), config).unwrap();
    let mut command = scratch.command(["quota", "status"]);
    command.current_dir(project.parent().unwrap()).env_remove("BLACKBOARD_DB");
    let shown = crate::scratch::Output::fed(&mut command, "");
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(shown.stderr.contains("server can be set in the home configuration only"), "{shown:?}");
}

#[test]
fn commands_of_a_board_leave_a_server_alone_that_does_not_answer() {
    let scratch = machine(&format!("redis://127.0.0.1:{}", testkit::redis::free_port()));
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "Ivy"]);
    scratch.json(["work", "create", "one", "--title", "Item", "--estimate", "7"]);
    let claim = || scratch.json(["work", "claim", "one", "--session", "Ivy"])["quota"]["error"].clone();
    let is_left_alone = |error: &serde_json::Value| error.as_str().unwrap().contains("it is tried again in");
    assert!(!is_left_alone(&claim()));
    // The pause is 5 s at first, and longer after each failure: a busy machine may need several attempts.
    let attempt = (0..100).find(|_| is_left_alone(&claim()));
    assert!(attempt.is_some());
    scratch.json(["work", "status", "one"]);
    scratch.json(["work", "complete", "one", "--session", "Ivy"]);
}
