//! Commands on a board on a Redis server.

mod copies;
mod edges;
mod examples;
mod limits;
mod lost;
mod mistakes;
mod rights;
mod setup;

use std::process::Command;

use blackboard::Code;
use testkit::process::{RunToEnd, Signal};
use testkit::proxy::{Fault, Proxy, Target};
use testkit::redis::RedisServer;
use testkit::scratch::{Output, Scratch};

/// A server with a board, and the directory in which commands use it.
struct Shared {
    server: RedisServer,
    scratch: Scratch,
}

impl Shared {
    fn new() -> Option<Shared> {
        Some(Shared { server: RedisServer::start(&[])?, scratch: Scratch::new() })
    }

    fn url(&self) -> String {
        self.server.url("team")
    }

    /// A command whose environment names the board.
    fn command(&self, call: &[&str]) -> Command {
        let mut command = self.scratch.command(call);
        command.env("BLACKBOARD_DB", self.url());
        command
    }

    #[track_caller]
    fn run(&self, call: &[&str]) -> Output {
        Output::of(self.command(call).run_to_end())
    }

    /// The JSON of a call that succeeds.
    #[track_caller]
    fn json(&self, call: &[&str]) -> serde_json::Value {
        self.run(&[call, &["--json"]].concat()).success().json()
    }
}

#[test]
fn commands_work_on_a_board_of_a_redis_server() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (scratch, url) = (Scratch::new(), server.url("team"));
    let run = |call: &[&str]| scratch.run(call.iter().chain(&["--db", url.as_str()])).success();
    let missing = scratch.run(["status", "--json", "--db", &url]).success().json();
    assert_eq!(missing["board"], "missing");
    assert_eq!(server.command(&["DBSIZE"]), ":0\r\n", "a reading command creates nothing");
    run(&["agent", "register", "--name", "Ivy"]);
    run(&["work", "create", "x", "--title", "Item"]);
    run(&["work", "claim", "x", "--session", "Ivy"]);
    run(&["write", "key", "7"]);
    assert_eq!(run(&["read", "key", "--json"]).json()["value"], 7);
    assert!(run(&["work", "list"]).stdout.contains("Ivy"));
    run(&["work", "complete", "x", "--session", "Ivy"]);
    let status = scratch.run(["status", "--json", "--db", &url]).success().json();
    assert_eq!(status["ok"], true);
    assert!(!scratch.database().exists(), "no local board was created");
}

#[test]
fn password_comes_from_the_environment_and_is_never_printed() {
    let Some(server) = RedisServer::start(&[("requirepass", "s3cr3t")]) else { return };
    let (scratch, url) = (Scratch::new(), server.url("team"));
    let run = |url: &str, variables: &[(&str, &str)]| {
        let mut command = scratch.command(["write", "key", "7", "--json", "--db", url]);
        Output::of(command.envs(variables.iter().copied()).run_to_end())
    };
    run(&url, &[]).refused(Code::AccessDenied);
    run(&url, &[("BLACKBOARD_REDIS_PASSWORD", "s3cr3t")]).success();
    let file = scratch.path().join("password");
    std::fs::write(&file, "s3cr3t\n").unwrap();
    run(&url, &[("BLACKBOARD_REDIS_PASSWORD_FILE", file.to_str().unwrap())]).success();
    let with_login = |login: &str| url.replacen("://", &format!("://{login}@"), 1);
    run(&with_login(":s3cr3t"), &[]).success();
    // A hint repeats the board of the call.
    let url_with_password = with_login(":s3cr3t");
    let refused = scratch.run(["work", "status", "unknown", "--db", &url_with_password]);
    assert!(refused.stderr.contains("--db") && !refused.stderr.contains("s3cr3t"), "{}", refused.stderr);
    for wrong in [run(&with_login(":wr0ng"), &[]), run(&with_login("ivy:wr0ng"), &[])] {
        wrong.refused(Code::AccessDenied);
        assert!(!wrong.stdout.contains("wr0ng") && !wrong.stderr.contains("wr0ng"));
    }
}

#[test]
fn hook_leaves_a_server_that_does_not_answer_alone_for_a_while() {
    testkit::limit_test();
    let scratch = Scratch::new();
    let input = r#"{"session_id":"1","hook_event_name":"SessionStart"}"#;
    for _ in 0..2 {
        let mut command = scratch.command(["hook", "claude"]);
        command.env("BLACKBOARD_DB", "redis+unix:///nowhere/socket");
        command.env("BLACKBOARD_HOOK_DEADLINE", "20000");
        let output = Output::fed(&mut command, input);
        assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    }
    let log = scratch.contents().into_iter().filter(|(path, ..)| path.ends_with("hook.log"));
    let log: String = log.map(|(_, _, text)| String::from_utf8(text).unwrap()).collect();
    assert!(log.contains("it is tried again in"), "{log}");
}

#[test]
fn hook_does_not_connect_again_to_a_server_that_has_stopped() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (scratch, url) = (Scratch::new(), server.url("team"));
    let hook = || {
        let mut command = scratch.command(["hook", "claude"]);
        let output = Output::fed(
            command.env("BLACKBOARD_DB", &url).env_remove("BLACKBOARD_HOOK_DEADLINE"),
            r#"{"session_id":"1","hook_event_name":"SessionStart"}"#,
        );
        assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    };
    server.signal(Signal::STOP);
    // On a busy machine, the limit of a hook may pass before it connects.
    let (file, ..) = testkit::wait_until("a hook that has met the server", || {
        hook();
        scratch.contents().into_iter().find(|(path, ..)| path.ends_with("retry-after"))
    });
    server.signal(Signal::CONT);
    std::fs::write(file, "60").unwrap();
    let connections = || {
        let info = server.command(&["INFO", "stats"]);
        let line = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        line.unwrap().parse::<u64>().unwrap()
    };
    let before = connections();
    hook();
    assert_eq!(connections(), before + 1, "only this test connects");
}

#[test]
fn hook_leaves_a_server_alone_that_stops_answering_after_the_board_was_opened() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (scratch, proxy) = (Scratch::new(), Proxy::before(&server));
    let hook = || {
        let mut command = scratch.command(["hook", "claude"]);
        // A call waits for a third of it.
        command.env("BLACKBOARD_DB", proxy.url("team")).env("BLACKBOARD_HOOK_DEADLINE", "3000");
        let output = Output::fed(&mut command, r#"{"session_id":"1","hook_event_name":"SessionStart"}"#);
        assert_eq!(output.code, 0);
    };
    let file = || scratch.contents().into_iter().find(|(path, ..)| path.ends_with("retry-after"));
    let end_pause = || {
        let Some((path, ..)) = file() else { return };
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_mins(2)).unwrap();
    };
    let hold_next = || {
        proxy.accept();
        proxy.fail_next_of(Target::Event("agent_registered"), Fault::HoldRequest);
    };
    let mut last = 0;
    for _ in 0..3 {
        // On a busy machine, the limit of a hook may pass before it makes this call.
        testkit::wait_until("a hook that has opened the board", || {
            end_pause();
            hold_next();
            hook();
            proxy.has_failed().then_some(())
        });
        let (.., text) = file().expect("a pause");
        let pause: u64 = String::from_utf8(text).unwrap().parse().unwrap();
        assert!(pause > last || pause == 60, "{pause} after {last}");
        last = pause;
        hold_next();
        hook();
        assert!(!proxy.has_failed(), "the next hook does not connect");
    }
    end_pause();
    // A hook that was answered ends it.
    proxy.fail_next_of(Target::Event("nothing"), Fault::HoldRequest);
    testkit::wait_until("a hook that is in time", || {
        hook();
        file().is_none().then_some(())
    });
}
