//! Hooks: many at once, against a lock that is never released, and of agents that are killed.

use std::collections::BTreeSet;
use std::io::Write;
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use blackboard::id::session_id_from_hint;
use blackboard::work::Create;
use rusqlite::Connection;
use serde_json::{Value, json};
use testkit::process::{Lines, RunToEnd as _, wait_for};

use crate::crowd::{end_of, wait_until};
use crate::machine::can_trace;
use crate::scratch::{Output, Scratch};

testkit::on_each_engine![
    a_hundred_concurrent_hooks_all_succeed_and_no_event_is_shown_twice,
    a_hundred_agents_that_start_and_end_at_once_leave_nothing_behind,
    session_whose_start_was_lost_is_registered_by_its_next_prompt,
    a_hook_ends_in_the_middle_of_a_system_call_that_does_not_return,
    a_hook_that_waits_for_the_directory_of_an_edited_file_reports_it_in_its_log,
    a_denial_of_too_many_files_resolves_none_of_them,
    a_hook_that_cannot_keep_its_time_does_nothing,
    an_answer_that_is_not_read_in_time_is_absent,
    a_hook_whose_input_never_ends_ends_by_itself,
    the_agent_that_was_killed_is_swept_by_the_hooks_of_others,
    two_agents_of_one_process_and_a_nested_one_are_distinguished,
];

fn start(scratch: &Scratch, session: &str, event: &str, change: impl FnOnce(&mut Command)) -> Child {
    let mut command = scratch.command(["hook", "claude"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    change(&mut command);
    let mut child = command.spawn().unwrap();
    let call =
        json!({"session_id": session, "hook_event_name": event, "cwd": scratch.path(), "tool_name": "Bash"});
    let _ = child.stdin.take().unwrap().write_all(call.to_string().as_bytes());
    child
}

/// The output of a hook that has to succeed.
fn said(child: Child) -> String {
    let ended = end_of(child);
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
    ended.stdout
}

fn hook(scratch: &Scratch, session: &str, event: &str) -> String {
    said(start(scratch, session, event, |_| {}))
}

/// The time limit that hooks have without a setting.
fn usual_deadline(command: &mut Command) {
    command.env_remove("BLACKBOARD_HOOK_DEADLINE");
}

/// The time limit of most tests: the answer comes on a slow machine, too.
fn long_deadline(_command: &mut Command) {}

/// The numbers of the items whose creation a text reports.
fn items_in(text: &str) -> Vec<String> {
    let parts = text.split("work_created item-").skip(1);
    parts.map(|part| part.chars().take_while(char::is_ascii_digit).collect()).collect()
}

fn tell_of_items(scratch: &Scratch, numbers: Range<usize>) {
    let board = scratch.board();
    for number in numbers {
        let id = format!("item-{number}");
        board.work().create(&Create::new(&id, &id)).unwrap();
    }
}

fn a_hundred_concurrent_hooks_all_succeed_and_no_event_is_shown_twice() {
    let scratch = Scratch::new();
    hook(&scratch, "ivy", "SessionStart");
    let mut told = Vec::new();
    for round in 0..3 {
        // If no hook of a round was fast enough, the next round shows its items.
        let numbers = 8 * round..8 * (round + 1);
        tell_of_items(&scratch, numbers.clone());
        let hooks: Vec<Child> = (0..100)
            .map(|number| {
                let event = if number % 3 == 0 { "UserPromptSubmit" } else { "PostToolUse" };
                // First with a long time limit, so that everything is shown; then with the usual one.
                start(&scratch, "ivy", event, |command| {
                    if round > 0 {
                        usual_deadline(command);
                    }
                })
            })
            .collect();
        let texts: Vec<String> = hooks.into_iter().map(said).filter(|text| !text.is_empty()).collect();
        for text in &texts {
            let answer: Value = serde_json::from_str(text).unwrap();
            assert!(answer["hookSpecificOutput"]["additionalContext"].is_string(), "{text}");
        }
        let items: Vec<String> = texts.iter().flat_map(|text| items_in(text)).collect();
        if round == 0 {
            assert_eq!(items.len(), 8, "{items:?}");
        }
        told.extend(items);
        let distinct: BTreeSet<&String> = told.iter().collect();
        assert_eq!(distinct.len(), told.len(), "an event was shown twice: {told:?}");
        clear_items(&scratch, numbers);
    }
}

fn clear_items(scratch: &Scratch, numbers: Range<usize>) {
    let board = scratch.board();
    for number in numbers {
        board.work().delete(&format!("item-{number}"), true, None).unwrap();
    }
}

fn a_hundred_agents_that_start_and_end_at_once_leave_nothing_behind() {
    let scratch = Scratch::new();
    let together = |event: &str| {
        let hooks: Vec<Child> =
            (0..100).map(|number| start(&scratch, &format!("agent-{number}"), event, |_| {})).collect();
        hooks.into_iter().map(said).collect::<Vec<_>>()
    };
    assert!(together("SessionStart").iter().all(|text| text.contains("additionalContext")));
    assert_eq!(scratch.json(["agent", "list"])["count"], 100);
    assert!(together("SessionEnd").iter().all(String::is_empty));
    assert_eq!(scratch.json(["agent", "list"])["count"], 0);
}

fn session_whose_start_was_lost_is_registered_by_its_next_prompt() {
    let scratch = Scratch::new();
    hook(&scratch, "first", "SessionStart");
    let together = |event: &str, change: fn(&mut Command)| {
        let hooks: Vec<Child> =
            (0..100).map(|number| start(&scratch, &format!("agent-{number}"), event, change)).collect();
        for child in hooks {
            said(child);
        }
    };
    together("SessionStart", usual_deadline);
    // Hooks leave a server alone for some seconds if it did not answer one of them in time. A file is always tried.
    wait_until("all sessions are registered", || {
        together("UserPromptSubmit", |_| {});
        let count = scratch.json(["agent", "list"])["count"].as_u64();
        assert!(scratch.is_served() || count == Some(101), "{count:?}");
        (count == Some(101)).then_some(())
    });
}

/// A hook under a tracer. `deadline` sets its time limit.
fn traced(
    scratch: &Scratch,
    deadline: fn(&mut Command),
    tracer: &[&str],
    event: &str,
    tool: &str,
    input: &Value,
) -> Child {
    let hook = scratch.command(["hook", "codex"]);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq"]).args(tracer);
    command.arg(hook.get_program()).args(hook.get_args()).env_clear().current_dir(scratch.path());
    for (name, value) in hook.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    deadline(&mut command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let call = json!({"session_id": "ivy", "hook_event_name": event, "cwd": scratch.path(),
        "tool_name": tool, "tool_input": input});
    child.stdin.take().unwrap().write_all(call.to_string().as_bytes()).unwrap();
    child
}

/// Delays some system calls of a hook for longer than the test runs, and waits until the hook ends anyway. The tracer itself
/// ends only after the delay, so the trace shows the end of the hook.
fn end_of_delayed(scratch: &Scratch, filter: &[&str], calls: &str, event: &str, tool: &str, input: &Value) {
    let trace = scratch.path().join("trace");
    let _ = std::fs::remove_file(&trace);
    let inject = format!("inject={calls}:delay_enter=600s");
    let tracer = [&["-o", trace.to_str().unwrap(), "-e", &inject], filter].concat();
    let mut child = traced(scratch, usual_deadline, &tracer, event, tool, input);
    wait_until(&format!("the end of {event} during {calls}"), || {
        let trace = std::fs::read_to_string(&trace).unwrap_or_default();
        assert!(!trace.contains("exit_group(1"), "{trace}");
        trace.contains("exit_group(0").then_some(())
    });
    // Only the tracer is still running.
    child.kill().unwrap();
    let output = child.run_to_end();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{event} during {calls}");
    ends_after_its_time_limit(&std::fs::read_to_string(&trace).unwrap(), calls);
}

/// A trace shows the time limit however busy the machine is: the thread that keeps it was started before the first delayed
/// call, asked the kernel to sleep for 300 ms at most, once, and ended the process. If the time was over when the thread
/// began to run, it did not sleep.
fn ends_after_its_time_limit(trace: &str, delayed: &str) {
    let position = |what: &str| trace.lines().position(|line| line.contains(what));
    let (started, first) = (position(" clone"), position(&format!(" {delayed}(")));
    assert!(started.is_some() && started < first, "the thread starts before the first {delayed}: {trace}");
    let thread = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let end = trace.lines().find(|line| line.contains("exit_group(0")).and_then(thread);
    let sleeps: Vec<&str> = trace.lines().filter(|line| line.contains("nanosleep(")).collect();
    let sleep = match sleeps[..] {
        [] => {
            let main = trace.lines().next().and_then(thread);
            assert!(end.is_some() && end != main, "another thread than the first ends the process: {trace}");
            return;
        }
        [sleep] => sleep,
        _ => panic!("at most one sleep, not {sleeps:?}: {trace}"),
    };
    let number = |name: &str| -> u64 {
        let (_, rest) = sleep.split_once(name).unwrap_or_else(|| panic!("{name} is not in {sleep}"));
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    let time = Duration::new(number("tv_sec="), 0) + Duration::from_nanos(number("tv_nsec="));
    assert!(time <= Duration::from_millis(300), "{sleep}");
    assert_eq!(thread(sleep), end, "the thread that slept ends the process: {trace}");
}

fn a_hook_ends_in_the_middle_of_a_system_call_that_does_not_return() {
    if !can_trace("a system call that does not return") {
        return;
    }
    let scratch = Scratch::new();
    hook(&scratch, "ivy", "SessionStart");
    let patch = json!({"command": "*** Begin Patch\n*** Update File: src/a.rs\n*** End Patch"});
    for (event, tool, input) in [
        ("SessionStart", "", &Value::Null),
        ("PreToolUse", "apply_patch", &patch),
        ("PostToolUse", "apply_patch", &patch),
        ("PostToolUse", "Bash", &Value::Null),
    ] {
        end_of_delayed(&scratch, &[], "statx", event, tool, input);
    }
}

fn a_hook_that_waits_for_the_directory_of_an_edited_file_reports_it_in_its_log() {
    if !can_trace("a system call that does not return") {
        return;
    }
    let scratch = Scratch::new();
    hook(&scratch, "ivy", "SessionStart");
    let slow = scratch.path().join("slow");
    std::fs::create_dir(&slow).unwrap();
    let patch = format!("*** Begin Patch\n*** Add File: {}/a\n*** End Patch", slow.display());
    let filter = ["-e", "trace=statx,exit_group", "-P", slow.to_str().unwrap()];
    // A machine under load may not write the line within the 200 ms that are left for it.
    let deadline = |command: &mut Command| {
        command.env("BLACKBOARD_HOOK_DEADLINE", "2000");
    };
    wait_until("a line in the log", || {
        let trace = scratch.path().join("trace");
        let _ = std::fs::remove_file(&trace);
        let inject = "inject=statx:delay_enter=600s";
        let tracer = [&["-o", trace.to_str().unwrap(), "-e", inject], &filter[..]].concat();
        let input = json!({ "command": patch });
        let mut child = traced(&scratch, deadline, &tracer, "PreToolUse", "apply_patch", &input);
        let log = scratch.sidecar("hook.log");
        let ended = || {
            std::fs::read_to_string(&log).unwrap_or_default().contains("exceeded its time limit of 2000 ms")
        };
        let began = Instant::now();
        while !ended() && began.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        wait_for(&mut child);
        ended().then_some(())
    });
}

fn a_denial_of_too_many_files_resolves_none_of_them() {
    if !can_trace("the system calls of a denial") {
        return;
    }
    let scratch = Scratch::new();
    hook(&scratch, "ivy", "SessionStart");
    std::fs::write(scratch.home_file("config.json"), r#"{"fileGuard": "deny"}"#).unwrap();
    let many: Vec<_> = (0..1001).map(|number| format!("*** Add File: edited/{number}\n")).collect();
    let many = many.concat();
    let deep = format!("*** Add File: edited{}/a\n", "/d".repeat(200));
    let trace = scratch.path().join("trace");
    for files in [many, deep] {
        let input = json!({"command": format!("*** Begin Patch\n{files}*** End Patch")});
        let tracer = ["-o", trace.to_str().unwrap(), "-e", "trace=%file"];
        let said = said(traced(&scratch, long_deadline, &tracer, "PreToolUse", "apply_patch", &input));
        assert!(said.contains("\"deny\"") && said.contains("split this edit"), "{said}");
        let trace = std::fs::read_to_string(&trace).unwrap();
        assert!(trace.contains(".pai") && !trace.contains("edited"), "{trace}");
    }
}

fn a_hook_that_cannot_keep_its_time_does_nothing() {
    if !can_trace("threads that cannot start") {
        return;
    }
    let scratch = Scratch::new();
    hook(&scratch, "ivy", "SessionStart");
    let inject = ["-o", "/dev/null", "-e", "inject=clone,clone3:error=EAGAIN"];
    let ended = end_of(traced(&scratch, usual_deadline, &inject, "SessionStart", "", &Value::Null));
    assert!(ended.status.success() && ended.stdout.is_empty(), "{ended:?}");
    assert_eq!(scratch.json(["agent", "list"])["count"], 1, "the session of codex is not registered");
    let log = std::fs::read_to_string(scratch.sidecar("hook.log")).unwrap();
    assert!(log.contains("no thread could be started"), "{log}");
}

fn an_answer_that_is_not_read_in_time_is_absent() {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let scratch = Scratch::new();
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    // A full pipe: the answer can only be written once this was read.
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    let mut filled = 0;
    while let Ok(written) = writer.write(&[b'.'; 512]) {
        filled += written;
    }
    fcntl_setfl(&writer, flags).unwrap();
    let child = start(&scratch, "ivy", "SessionStart", |command| {
        usual_deadline(command);
        command.stdout(writer);
    });
    let ended = end_of(child);
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
    let mut read = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut read).unwrap();
    assert_eq!(read.len(), filled, "{}", String::from_utf8_lossy(&read[filled..]));
}

fn a_hook_whose_input_never_ends_ends_by_itself() {
    let scratch = Scratch::new();
    hook(&scratch, "ivy", "SessionStart");
    let log = scratch.sidecar("hook.log");
    // A machine under load may not write the line within the 30 ms that are left for it.
    wait_until("a line in the log", || {
        let mut command = scratch.command(["hook", "claude"]);
        usual_deadline(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"{\"session_id\": \"ivy\"").unwrap();
        let ended = end_of(child);
        assert!(ended.status.success() && ended.stdout.is_empty(), "{ended:?}");
        drop(input);
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.contains("exceeded its time limit of 300 ms").then_some(())
    });
}

fn the_agent_that_was_killed_is_swept_by_the_hooks_of_others() {
    let scratch = Scratch::new();
    let mut agent = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = agent.id().to_string();
    let stale = |command: &mut Command| {
        command.env("BLACKBOARD_STALE_THRESHOLD", "1");
    };
    said(start(&scratch, "dead", "SessionStart", |command| {
        command.env("BLACKBOARD_PID", &pid);
    }));
    said(start(&scratch, "ivy", "SessionStart", |_| {}));
    let dead = session_id_from_hint("claude:dead");
    scratch.json(["work", "claim", "--id", "x", "--title", "X", "--session", &dead]);
    agent.kill().unwrap();
    wait_for(&mut agent);
    let mut told = String::new();
    wait_until("a hook that tells of the stale agent", || {
        // Alternates between idle and active, so that no hook is throttled.
        for event in ["Stop", "UserPromptSubmit"] {
            told.push_str(&said(start(&scratch, "ivy", event, stale)));
        }
        told.contains("marked stale").then_some(())
    });
    let found = scratch.json(["agent", "show", &dead]);
    assert_eq!(found["status"], "stale");
    assert_eq!(scratch.json(["work", "status", "x"])["status"], "available");
    wait_until("a hook that tells of its work", || {
        let is_told = told.contains("Released 1 work item(s)");
        if !is_told {
            told.push_str(&said(start(&scratch, "ivy", "UserPromptSubmit", stale)));
        }
        is_told.then_some(())
    });
}

fn two_agents_of_one_process_and_a_nested_one_are_distinguished() {
    let scratch = Scratch::new();
    for (platform, session) in [("claude", "outer"), ("codex", "inner"), ("opencode", "inner")] {
        let mut command = scratch.command(["hook", platform]);
        // A nested agent inherits the environment.
        command.env("BLACKBOARD_SESSION_ID", session_id_from_hint("claude:outer"));
        let event = if platform == "opencode" { "session.created" } else { "SessionStart" };
        let call = json!({"session_id": session, "hook_event_name": event, "cwd": scratch.path()});
        let output = Output::fed(&mut command, call.to_string());
        let own = session_id_from_hint(&format!("{platform}:{session}"));
        assert!(output.stdout.contains(&own), "{platform}");
    }
    assert_eq!(scratch.json(["agent", "list"])["count"], 3);
    let sharing: Vec<bool> = ["claude:outer", "codex:inner", "opencode:inner"]
        .iter()
        .map(|hint| {
            let connection = scratch.tables();
            let query = "SELECT shares_process FROM agents WHERE session_id = ?1";
            connection.query_row(query, [session_id_from_hint(hint)], |row| row.get(0)).unwrap()
        })
        .collect();
    assert_eq!(sharing, [false, false, true], "a host of many sessions proves nothing about one of them");
}

/// What depends on the lock of writers.
mod of_a_file {
    use super::*;

    #[test]
    fn a_denial_does_not_wait_for_the_write_lock() {
        let scratch = Scratch::new();
        let trees = ["one", "two", "three"].map(|name| scratch.path().join(name));
        for tree in &trees {
            std::fs::create_dir_all(tree.join(".git")).unwrap();
        }
        let files = trees.clone().map(|tree| format!("*** Add File: {}/a\n", tree.display())).concat();
        let codex = |session: &str, event: &str| {
            let mut command = scratch.command(["hook", "codex"]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let call = json!({"session_id": session, "hook_event_name": event, "cwd": scratch.path(),
            "tool_name": "apply_patch", "tool_input": {"command": format!("*** Begin Patch\n{files}")}});
            child.stdin.take().unwrap().write_all(call.to_string().as_bytes()).unwrap();
            child
        };
        for session in ["ivy", "oak"] {
            said(codex(session, "SessionStart"));
        }
        for tree in &trees {
            let mut reserve = scratch.command(["file", "reserve", "**"]);
            reserve.args(["--session", &session_id_from_hint("codex:oak")]);
            assert!(reserve.current_dir(tree).run_to_end().status.success());
        }
        std::fs::write(scratch.home_file("config.json"), r#"{"fileGuard": "deny"}"#).unwrap();
        let lock = Connection::open(scratch.database()).unwrap();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        // The time limit is longer than the test, unless the answer waits for the write after it.
        let mut child = codex("ivy", "PreToolUse");
        let told = Lines::of(&mut child).next();
        assert!(told.contains("\"deny\"") && told.matches("a: reserved (**)").count() == 3, "{told}");
        lock.execute_batch("ROLLBACK").unwrap();
        assert!(wait_for(&mut child).success());
        let noted = "SELECT count(*) FROM file_edits WHERE denied_at IS NOT NULL AND edited_at IS NULL";
        assert_eq!(lock.query_row(noted, [], |row| row.get::<_, i64>(0)).unwrap(), 3);
    }

    #[test]
    fn a_hook_does_not_hang_while_another_process_holds_the_write_lock() {
        let scratch = Scratch::new();
        hook(&scratch, "ivy", "SessionStart");
        tell_of_items(&scratch, 0..1);
        let lock = Connection::open(scratch.database()).unwrap();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        // Each waits a second for the lock, and then has enough time to write to its log on a slow machine, too.
        let deadline = |command: &mut Command| {
            command.env("BLACKBOARD_HOOK_DEADLINE", "3000");
        };
        let events = ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"];
        let calls = events.into_iter().flat_map(|event| [("ivy", event), ("new", event)]);
        let hooks: Vec<_> =
            calls.map(|(session, event)| (event, start(&scratch, session, event, deadline))).collect();
        for (event, child) in hooks {
            assert_eq!(said(child), "", "{event}: nothing can be told that cannot be noted as told");
        }
        // Only this test can end the transaction: the lock was held from the start to the end of each hook.
        assert!(!lock.is_autocommit());
        let log = std::fs::read_to_string(scratch.sidecar("hook.log")).unwrap();
        assert!(log.lines().count() >= 8, "{log}");
        lock.execute_batch("ROLLBACK").unwrap();
        assert_eq!(items_in(&hook(&scratch, "ivy", "PostToolUse")), ["0"], "it is told now");
        assert_eq!(hook(&scratch, "ivy", "PostToolUse"), "");
    }
}
