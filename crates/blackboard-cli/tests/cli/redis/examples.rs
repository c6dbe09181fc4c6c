//! The settings and the users of `examples/redis` and of `docs/redis.md` on a real server: accepted, and enough for every
//! kind of command.

use std::fs;
use std::path::{Path, PathBuf};

use blackboard::Code;
use serde_json::Value;
use testkit::process::RunToEnd as _;
use testkit::redis::RedisServer;
use testkit::server::Server;

use crate::scratch::{Output, Scratch};

/// The SHA-256 of `secret`, and of `public`.
const SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
const PUBLIC: &str = "efa1f375d76194fa51a3556a97e641e61685f914d446979da50a551a4333ffd7";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn example(name: &str) -> String {
    fs::read_to_string(root().join("examples/redis").join(name)).unwrap()
}

/// The users of the example, each with its rules except for the password.
fn users() -> Vec<(String, String)> {
    let file = example("users.acl");
    let users = file.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("user ")?.split_once(" on #")?;
        let (password, rules) = rest.split_once(' ')?;
        assert_eq!(password, format!("{}_SHA256", name.to_uppercase()), "each user has its own password");
        Some((name.to_owned(), rules.to_owned()))
    });
    users.collect()
}

/// The rules in the section about rights of the documentation.
fn documented_rules() -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/redis.md")).unwrap();
    let section = text.split("\n## ").find(|section| section.starts_with("Rights")).unwrap();
    let blocks = section.split("```").skip(1).step_by(2).filter(|block| block.contains("-@all"));
    blocks.map(|block| block.split_ascii_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// A server with the example's configuration and users.
fn start(scratch: &Scratch) -> Option<RedisServer> {
    let (file, users) = (scratch.path().join("redis.conf"), scratch.path().join("users.acl"));
    fs::write(&file, example("blackboard.conf")).unwrap();
    let passwords = example("users.acl").replace("AGENTS_SHA256", SECRET).replace("READERS_SHA256", PUBLIC);
    fs::write(&users, passwords).unwrap();
    RedisServer::start_with_file(&file, &[("aclfile", users.to_str().unwrap())])
}

#[test]
fn users_of_the_example_have_the_documented_rules() {
    testkit::limit_test();
    let of_example: Vec<_> = users()
        .into_iter()
        .map(|(_, rules)| rules.replace("resetkeys ~bb:{*}:* resetchannels", "~bb:{NAME}:*"))
        .collect();
    assert_eq!(of_example, documented_rules());
    let compose = example("compose.yaml");
    for name in ["blackboard.conf", "users.acl"] {
        assert!(compose.contains(name) && example("blackboard-redis.service").contains(name), "{name}");
    }
    assert!(compose.contains("healthcheck:") && compose.contains("BLACKBOARD_DB: redis://agents@redis:6379"));
}

#[test]
fn settings_and_users_of_the_example_are_enough_for_every_command() {
    let scratch = Scratch::new();
    let Some(server) = start(&scratch) else { return };
    let as_user = |user: &str, call: &[&str]| {
        let mut command = scratch.command(call);
        command.env("BLACKBOARD_DB", server.url("team").replacen("://", &format!("://{user}@"), 1));
        command.env("BLACKBOARD_REDIS_PASSWORD", if user == "readers" { "public" } else { "secret" });
        command
    };
    let run = |call: &[&str]| -> Value {
        let output = Output::of(as_user("agents", &[call, &["--json"]].concat()).run_to_end());
        assert!(!output.stderr.contains("append-only"), "{output:?}");
        output.success().json()
    };
    run(&["init"]);
    run(&["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    run(&["work", "create", "x", "--title", "Item"]);
    run(&["work", "claim", "--next", "--session", "Ivy"]);
    run(&["write", "key", "7", "--op", "once"]);
    run(&["write", "token", "\"secret\""]);
    run(&["observe", "--session", "Ivy"]);
    run(&["lock", "acquire", "deploy", "--session", "Ivy"]);
    run(&["file", "reserve", "src/", "--session", "Ivy"]);
    let purged = run(&["purge", "token"]);
    assert_eq!((&purged["scrubbed"], purged.get("remains")), (&true.into(), None), "{purged}");
    assert_eq!(run(&["status"])["ok"], true);
    run(&["sweep"]);
    run(&["delete", "key"]);
    run(&["work", "complete", "x", "--session", "Ivy"]);
    run(&["agent", "deregister", "Ivy"]);
    run(&["export"]);
    drop(Server::start(as_user("agents", &["serve", "--json", "--port", "0"])));
    // The other user reads, and does not write.
    for call in [&["status"][..], &["list"], &["observe"], &["work", "list"]] {
        Output::of(as_user("readers", call).run_to_end()).success();
    }
    drop(Server::start(as_user("readers", &["serve", "--json", "--port", "0"])));
    Output::of(as_user("readers", &["write", "key", "8", "--json"]).run_to_end()).refused(Code::AccessDenied);
    Output::of(as_user("default", &["status", "--json"]).run_to_end()).refused(Code::AccessDenied);
    let mut other_password = as_user("agents", &["status", "--json"]);
    other_password.env("BLACKBOARD_REDIS_PASSWORD", "public");
    Output::of(other_password.run_to_end()).refused(Code::AccessDenied);
}

#[test]
fn documented_rules_are_enough_on_a_server_of_any_settings() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let [agents, readers] = &documented_rules()[..] else { panic!("two lists of rules") };
    for (user, rules) in [("agents", agents), ("readers", readers)] {
        let mut command = vec!["ACL", "SETUSER", user, "on", ">secret"];
        let rules = rules.replace("NAME", "team");
        command.extend(rules.split_ascii_whitespace());
        assert_eq!(server.command(&command), "+OK\r\n", "{rules}");
    }
    let scratch = Scratch::new();
    let run = |user: &str, call: &[&str]| {
        let url = server.url("team").replacen("://", &format!("://{user}:secret@"), 1);
        Output::of(scratch.command(call.iter().chain(&["--db", url.as_str()])).run_to_end())
    };
    run("agents", &["write", "key", "7"]).success();
    assert!(run("readers", &["read", "key"]).success().stdout.contains('7'));
    run("readers", &["write", "key", "8", "--json"]).refused(Code::AccessDenied);
}
