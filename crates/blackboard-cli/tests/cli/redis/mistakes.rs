//! Mistakes in the address of a server, and what the program says about each.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use blackboard::Code;
use testkit::process::{RunToEnd as _, wait_for};
use testkit::redis::{RedisServer, free_port};

use crate::machine::can;
use crate::mcp::client::{Client, Generation};
use crate::scratch::{Output, Scratch};

/// A call with this board in its environment.
fn run(scratch: &Scratch, board: &str, call: &[&str]) -> Output {
    Output::of(scratch.command(call).env("BLACKBOARD_DB", board).run_to_end())
}

#[test]
fn mistyped_url_is_no_file_and_its_password_is_not_printed() {
    let scratch = Scratch::new();
    let before = scratch.contents().len();
    for url in [
        "\"redis://:s3cr3t@localhost:7401?board=x\"",
        " redis://:s3cr3t@localhost:7401?board=x",
        "redis:/:s3cr3t@localhost",
        "redis::s3cr3t@localhost",
        "redis+unix:/run/redis.sock",
        "REDIS://:s3cr3t@localhost",
        "valkey://:s3cr3t@localhost",
        "redis//ivy:s3cr3t@localhost",
        "redis;//ivy:s3cr3t@localhost",
    ] {
        for output in [
            run(&scratch, url, &["write", "k", "1"]),
            scratch.run(["write", "k", "1", "--db", url]),
            scratch.run(["copy", "x.db", url]),
            scratch.run(["setup", "claude", "--yes", "--db", url]),
        ] {
            assert_eq!(output.code, 2, "{url}: {output:?}");
            assert!(output.stderr.contains("hint: "), "{output:?}");
            assert!(!output.stdout.contains("s3cr3t") && !output.stderr.contains("s3cr3t"), "{output:?}");
        }
    }
    for call in [&["redis://:s3cr3t@host", "status"][..], &["status", "redis://:s3cr3t@host"]] {
        for json in [&[][..], &["--json"]] {
            let output = scratch.run(call.iter().chain(json));
            assert_eq!(output.code, 2, "{output:?}");
            assert!(!output.stdout.contains("s3cr3t") && !output.stderr.contains("s3cr3t"), "{output:?}");
        }
    }
    assert_eq!(scratch.contents().len(), before, "nothing was created");
}

#[test]
fn password_on_the_command_line_is_noted_once() {
    let Some(server) = RedisServer::start(&[("requirepass", "s3cr3t")]) else { return };
    let (scratch, url) = (Scratch::new(), server.url("team"));
    let with_password = url.replacen("://", "://:s3cr3t@", 1);
    let count = |output: Output| output.stderr.matches("can see a password on the command line").count();
    assert_eq!(count(scratch.run(["write", "k", "1", "--db", &with_password]).success()), 1);
    assert_eq!(count(run(&scratch, &with_password, &["read", "k"]).success()), 0);
    let mut command = scratch.command(["read", "k", "--db", &url]);
    command.env("BLACKBOARD_REDIS_PASSWORD", "s3cr3t");
    assert_eq!(count(Output::of(command.run_to_end()).success()), 0);
    let second = with_password.replace("team", "second");
    assert_eq!(count(scratch.run(["copy", &with_password, &second]).success()), 1);
}

#[test]
fn no_edge_prints_the_login_that_a_server_repeats() {
    let directory = testkit::tempdir().unwrap();
    let file = directory.path().join("redis.conf");
    fs::write(&file, "rename-command AUTH hidden-auth\n").unwrap();
    let Some(server) = RedisServer::start_with_file(&file, &[]) else { return };
    let (scratch, url) = (Scratch::new(), server.url("team").replacen("://", "://ivy:s3cr3tpw@", 1));
    let is_silent = |text: &str| !text.contains("s3cr") && !text.contains("ivy");
    for call in [&["write", "k", "1"][..], &["write", "k", "1", "--json"], &["status"], &["setup", "status"]]
    {
        let output = run(&scratch, &url, call);
        assert!(is_silent(&output.stdout) && is_silent(&output.stderr), "{output:?}");
    }
    let refused = run(&scratch, &url, &["write", "k", "1", "--json"]).refused(Code::AccessDenied);
    assert!(refused["error"].as_str().unwrap().contains("does not accept a login"), "{refused}");
    // The hook log is in a directory that exists.
    fs::create_dir_all(scratch.path().join(".pai/blackboard")).unwrap();
    let mut hook = scratch.command(["hook", "claude"]);
    hook.env("BLACKBOARD_DB", &url).env("BLACKBOARD_HOOK_DEADLINE", "20000");
    let input = r#"{"session_id":"1","hook_event_name":"SessionStart","source":"startup"}"#;
    let output = Output::fed(&mut hook, input).success();
    assert!(is_silent(&output.stdout) && is_silent(&output.stderr), "{output:?}");
    let log = scratch.contents().into_iter().filter(|(path, ..)| path.ends_with("hook.log"));
    let log: String = log.map(|(_, _, text)| String::from_utf8(text).unwrap()).collect();
    assert!(log.contains("does not accept a login") && is_silent(&log), "{log}");
    let mut mcp = scratch.command(["mcp"]);
    mcp.env("BLACKBOARD_DB", &url);
    let mut client = Client::speaking(Generation::Of2025, mcp);
    let refused = client.refused("entry_read", serde_json::json!({"key": "k"}), Code::AccessDenied);
    assert!(is_silent(&refused.to_string()), "{refused}");
    client.kill();
}

#[test]
fn password_file_that_others_can_read_is_used_with_a_warning() {
    let Some(server) = RedisServer::start(&[("requirepass", "s3cr3t")]) else { return };
    let (scratch, url) = (Scratch::new(), server.url("team"));
    let file = scratch.path().join("password");
    fs::write(&file, "s3cr3t\r\n").unwrap();
    for (mode, is_warned) in [(0o644, true), (0o600, false), (0o400, false), (0o440, true), (0o444, false)] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let mut command = scratch.command(["write", "k", "1", "--db", &url]);
        command.env("BLACKBOARD_REDIS_PASSWORD_FILE", &file);
        let output = Output::of(command.run_to_end()).success();
        assert_eq!(output.stderr.contains("other users can read the password file"), is_warned, "{output:?}");
    }
}

#[test]
fn guard_does_not_keep_a_commit_waiting_for_a_server() {
    if !can("a commit", "git", &["--version"]) {
        return;
    }
    let scratch = Scratch::new();
    Output::of(scratch.shell("git init -q").run_to_end()).success();
    let url = format!("redis://127.0.0.1:{}", free_port());
    let mut other = scratch.command(["read", "key"]);
    let mut other = other.env("BLACKBOARD_DB", &url).stderr(Stdio::null()).spawn().unwrap();
    let checked = run(&scratch, &url, &["guard", "check"]).success();
    assert!(other.try_wait().unwrap().is_none(), "another command that began before waits longer");
    other.kill().unwrap();
    wait_for(&mut other);
    assert!(checked.stderr.contains("staged files were not checked"), "{checked:?}");
    let waiting = format!("note: waiting for the server of {url}: it refuses connections");
    assert_eq!(checked.stderr.matches(&waiting).count(), 1, "{checked:?}");
    let json = run(&scratch, &url, &["guard", "check", "--json"]).success();
    assert_eq!((json.stderr.as_str(), &json.json()["reason_code"]), ("", &"server_unavailable".into()));
}

#[test]
fn suggested_command_keeps_the_user_of_the_url() {
    let Some(server) = RedisServer::start(&[]) else { return };
    server.command(&["ACL", "SETUSER", "ivy", "on", ">s3cr3t", "~*", "+@all"]);
    let (scratch, url) = (Scratch::new(), server.url("team"));
    let login = |login: &str| url.replacen("://", &format!("://{login}@"), 1);
    let refused = scratch.run(["work", "status", "unknown", "--db", &login("ivy:s3cr3t")]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.stderr.contains(&login("ivy")) && !refused.stderr.contains("s3cr3t"), "{refused:?}");
}

#[test]
fn setup_refuses_a_file_as_the_board_of_a_user() {
    let scratch = Scratch::new();
    let call = ["setup", "claude", "--db", "sq2.db", "--yes", "--json"];
    let refusal = scratch.run(call).refused(Code::InvalidValue);
    assert!(refusal["hint"].as_str().unwrap().contains("BLACKBOARD_DB"), "{refusal}");
}
