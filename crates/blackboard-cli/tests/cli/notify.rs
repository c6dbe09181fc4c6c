//! `notify` in the home configuration: commands that are started after events.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::wait_until;

use crate::scratch::{Output, Scratch};

testkit::on_each_engine![
    a_command_gets_the_event_as_observe_prints_it,
    events_and_severity_decide_which_commands_start,
    a_command_that_continues_starts_commands_meanwhile,
    a_reader_that_marks_an_agent_stale_starts_commands,
    a_hook_starts_commands_after_its_answer,
];

/// A home with these commands.
fn with_commands(commands: &Value) -> Scratch {
    let scratch = Scratch::new();
    configure(&scratch, &json!({"notify": commands}));
    scratch
}

fn configure(scratch: &Scratch, config: &Value) {
    let file = scratch.home_file("config.json");
    let directory = file.parent().unwrap();
    fs::create_dir_all(directory).unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(file, config.to_string()).unwrap();
}

/// A directory for what a command gets, and the command.
struct Inbox {
    directory: PathBuf,
}

impl Inbox {
    fn new(scratch: &Scratch, name: &str) -> Inbox {
        let directory = scratch.path().join(name);
        fs::create_dir(&directory).unwrap();
        Inbox { directory }
    }

    /// A command that stores its input under a name of its own.
    fn command(&self) -> Value {
        let script = "cat > \"$0/$$.part\" && mv \"$0/$$.part\" \"$0/$$.json\"";
        json!(["sh", "-c", script, self.directory])
    }

    fn received(&self) -> Vec<Value> {
        let files = fs::read_dir(&self.directory).unwrap().map(|file| file.unwrap().path());
        let complete = files.filter(|file| file.extension().is_some_and(|extension| extension == "json"));
        complete.map(|file| serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()).collect()
    }

    /// Waits for this many events.
    fn wait(&self, count: usize) -> Vec<Value> {
        wait_until("a started command", || Some(self.received()).filter(|received| received.len() >= count))
    }
}

fn last_event(scratch: &Scratch) -> Value {
    scratch.json(["observe", "--last", "1"])["items"][0].clone()
}

fn create(scratch: &Scratch, item: &str) {
    let created = scratch.run(["work", "create", item, "--title", item]).success();
    assert_eq!(created.stderr.replace("note: created a new board", "").matches("notify").count(), 0);
}

fn a_command_gets_the_event_as_observe_prints_it() {
    let scratch = Scratch::new();
    let (work, entries) = (Inbox::new(&scratch, "work"), Inbox::new(&scratch, "entries"));
    configure(
        &scratch,
        &json!({"notify": [
            {"command": work.command(), "events": ["work_created"]},
            {"command": entries.command(), "events": ["entry_*"]},
        ]}),
    );
    create(&scratch, "x");
    assert_eq!(work.wait(1), [last_event(&scratch)]);
    scratch.run(["write", "key", r#"{"a": 1}"#]).success();
    let received = entries.wait(1);
    assert_eq!(received, [last_event(&scratch)]);
    assert_eq!(received[0]["entry"]["value"], json!({"a": 1}));
    assert_eq!(work.received().len(), 1);
}

fn events_and_severity_decide_which_commands_start() {
    let scratch = Scratch::new();
    let inboxes = ["work", "locks", "urgent", "all"].map(|name| Inbox::new(&scratch, name));
    let [work, locks, urgent, all] = &inboxes;
    let quota = json!({"providers": {"a": {"windows": {"5h": {"budget": 1000}}}}});
    configure(
        &scratch,
        &json!({"quota": quota, "notify": [
            {"command": work.command(), "events": ["work_*", "project_*"], "minInterval": "0s"},
            {"command": locks.command(), "events": ["lock_acquired"], "minInterval": "0s"},
            {"command": urgent.command(), "minSeverity": "warning", "minInterval": "0s"},
            {"command": all.command(), "minSeverity": "info", "minInterval": "0s"},
        ]}),
    );
    let ivy = scratch.json(["agent", "register", "--name", "Ivy"])["session_id"].as_str().unwrap().to_owned();
    create(&scratch, "x");
    scratch.run(["lock", "acquire", "deploy", "--session", &ivy]).success();
    scratch.run(["quota", "record", "--input-tokens", "900"]).success();
    let types = |inbox: &Inbox, count| {
        let mut types: Vec<_> =
            inbox.wait(count).iter().map(|event| event["event_type"].as_str().unwrap().to_owned()).collect();
        types.sort();
        types
    };
    assert_eq!(types(all, 4), ["agent_registered", "entry_written", "quota_warning", "work_created"]);
    assert_eq!(types(work, 1), ["work_created"]);
    assert_eq!(types(locks, 1), ["entry_written"]);
    assert_eq!(types(urgent, 1), ["quota_warning"]);
}

#[test]
fn what_the_rate_limit_skips_is_counted_for_the_next_start() {
    let scratch = Scratch::new();
    let inbox = Inbox::new(&scratch, "inbox");
    let command = json!({"command": inbox.command(), "events": ["entry_written"], "minInterval": "1h"});
    configure(&scratch, &json!({"notify": [command]}));
    for value in ["1", "2", "3"] {
        scratch.run(["write", "key", value]).success();
    }
    assert_eq!(inbox.wait(1)[0]["entry"]["value"], json!(1));
    // Another hour has passed.
    let file = scratch.home_file("notify.json");
    let mut starts: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let of_command = starts.as_object_mut().unwrap().values_mut().next().unwrap();
    assert_eq!(of_command["skipped"], 2);
    of_command["starts"].as_object_mut().unwrap().values_mut().next().unwrap()["at"] = 0.into();
    fs::write(&file, starts.to_string()).unwrap();
    scratch.run(["write", "key", "4"]).success();
    let received = inbox.wait(2);
    let last = received.iter().find(|event| event["entry"]["value"] == 4).unwrap();
    assert_eq!((received.len(), &last["skipped"]), (2, &json!(2)));
    assert_eq!(received.iter().filter(|event| event.get("skipped").is_none()).count(), 1);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn warnings_of_two_windows_at_once_are_both_announced() {
    let scratch = Scratch::new();
    let inbox = Inbox::new(&scratch, "inbox");
    let windows = json!({"5h": {"budget": 1000}, "7d": {"budget": 1000}});
    let quota = json!({"providers": {"a": {"windows": windows, "warnAt": [0.5, 0.9]}}});
    let command = json!({"command": inbox.command(), "events": ["quota_warning"], "minInterval": "1h"});
    configure(&scratch, &json!({"quota": quota, "notify": [command]}));
    create(&scratch, "x");
    let summaries = |count| {
        let mut summaries: Vec<_> = inbox
            .wait(count)
            .iter()
            .map(|event| event["summary"].as_str().unwrap()[..21].to_owned())
            .collect();
        summaries.sort();
        summaries
    };
    scratch.run(["quota", "record", "--input-tokens", "600"]).success();
    assert_eq!(summaries(2), ["Quota: 5h window of a", "Quota: 7d window of a"]);
    scratch.run(["quota", "record", "--input-tokens", "300"]).success();
    assert_eq!(summaries(4).len(), 4, "the more severe ones are announced too");
}

#[test]
fn a_program_that_does_not_exist_is_one_line_in_the_log() {
    let scratch = with_commands(&json!([{"command": ["/nonexistent/\u{1b}program"], "minInterval": "0s"}]));
    create(&scratch, "x");
    let log = fs::read_to_string(scratch.home_file("notify.log")).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains("work_created /nonexistent/\\u{1b}program cannot be started: "), "{log}");
    assert_eq!(scratch.json(["work", "list"])["count"], 1);
}

#[test]
fn a_command_that_reads_nothing_and_never_ends_delays_no_caller() {
    let scratch = Scratch::new();
    let file = scratch.path().join("pid");
    let script = "echo $$ > \"$0.part\" && mv \"$0.part\" \"$0\" && exec sleep 3600";
    let command = json!({"command": ["sh", "-c", script, file], "events": ["entry_written"]});
    configure(&scratch, &json!({"notify": [command]}));
    // More than a pipe takes.
    let value = json!("x".repeat(500_000)).to_string();
    let input = scratch.path().join("value.json");
    fs::write(&input, value).unwrap();
    // The call ends only when its outputs are closed.
    scratch.run(["write", "key", "--file", input.to_str().unwrap()]).success();
    let pid = wait_until("a started command", || fs::read_to_string(&file).ok());
    let pid: u32 = pid.trim().parse().unwrap();
    let group = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let group = group.rsplit(") ").next().unwrap().split(' ').nth(2).unwrap().to_owned();
    testkit::processes::kill(pid);
    assert_eq!(group, pid.to_string(), "it has a process group of its own");
}

#[test]
fn events_of_a_command_start_no_command() {
    let scratch = Scratch::new();
    let (starts, end) = (scratch.path().join("starts"), scratch.path().join("end"));
    let script = "echo start >> \"$0\"; \"$2\" work create again --title Again; touch \"$1\"";
    let program = testkit::scratch::program();
    let command = json!({"command": ["sh", "-c", script, starts, end, program], "minInterval": "0s"});
    configure(&scratch, &json!({"notify": [command]}));
    create(&scratch, "x");
    wait_until("the end of the command", || end.exists().then_some(()));
    assert_eq!(scratch.json(["work", "list"])["count"], 2, "it acts on the board of the event");
    assert_eq!(fs::read_to_string(starts).unwrap(), "start\n");
}

fn a_command_that_continues_starts_commands_meanwhile() {
    let scratch = Scratch::new();
    let inbox = Inbox::new(&scratch, "inbox");
    configure(&scratch, &json!({"notify": [{"command": inbox.command(), "events": ["agent_registered"]}]}));
    // The command of `run` ends when the event of its session has arrived.
    let script = "while [ -z \"$(ls \"$0\" | grep json)\" ]; do sleep 0.01; done";
    let call = ["run", "--name", "Ivy", "--", "sh", "-c", script];
    let mut command = scratch.command(call);
    command.arg(&inbox.directory);
    let ended = testkit::process::RunToEnd::run_to_end(&mut command);
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(inbox.received()[0]["event_type"], "agent_registered");
}

fn a_reader_that_marks_an_agent_stale_starts_commands() {
    let scratch = Scratch::new();
    let inbox = Inbox::new(&scratch, "inbox");
    scratch.run(["agent", "register", "--name", "Ivy"]).success();
    scratch.forget_processes();
    scratch.set_heartbeats(Duration::from_hours(1), Duration::from_hours(1));
    configure(&scratch, &json!({"notify": [{"command": inbox.command(), "minSeverity": "warning"}]}));
    scratch.run(["work", "list"]).success();
    let received = inbox.wait(1);
    assert_eq!((&received[0]["event_type"], received.len()), (&"agent_stale".into(), 1));
}

fn a_hook_starts_commands_after_its_answer() {
    let scratch = Scratch::new();
    let inbox = Inbox::new(&scratch, "inbox");
    create(&scratch, "x");
    configure(&scratch, &json!({"notify": [{"command": inbox.command(), "events": ["agent_*"]}]}));
    let call = json!({"cwd": scratch.path(), "session_id": "1", "hook_event_name": "SessionStart"});
    let output = Output::fed(&mut scratch.command(["hook", "claude"]), call.to_string());
    assert!(output.stdout.contains("additionalContext"), "{output:?}");
    assert_eq!(inbox.wait(1), [last_event(&scratch)]);
}

#[test]
fn without_a_configuration_nothing_is_started_or_stored() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path().join(".blackboard")).unwrap();
    create(&scratch, "x");
    let names: Vec<_> = scratch.contents().into_iter().map(|(path, ..)| path).collect();
    let is_ours = |path: &PathBuf| path.to_string_lossy().contains("notif");
    assert!(!names.iter().any(is_ours), "{names:?}");
}
