//! Tests for each platform: its input is parsed, answers have its form, its process is recognized, and setup hooks the
//! events that are handled.

mod setup;

use std::collections::BTreeSet;
use std::path::PathBuf;

use blackboard::process::{Found, ProcessInfo, fake_chain as chain, fake_process as process, find_agent};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AGENT_NAMES, PLATFORMS, Platform, Reply, declared_pids, session_hints};
use crate::environment::Environment;
use crate::hooks::request::{HookEvent, HookRequest, Payload};

/// One line of a fixture: input of a platform and its meaning, or a reply and its form on that platform.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Example {
    Call { means: Value, input: Value },
    Answer { reply: ExampleReply, to: String, output: Value },
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum ExampleReply {
    Context { context: String, session: Option<String> },
    Deny { deny: String },
}

fn platform(id: &str) -> &'static Platform {
    Platform::find(id).unwrap()
}

/// The examples of a platform. Each platform has some.
fn examples(platform: &Platform) -> Vec<Example> {
    let name = format!("tests/fixtures/hooks/{}.jsonl", platform.id);
    let text = std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(&name));
    let text = text.unwrap_or_else(|error| panic!("{} has no examples in {name}: {error}", platform.name));
    let parse = |(number, line)| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}, line {number}: {error}"))
    };
    (1..).zip(text.lines()).map(parse).collect()
}

fn read(id: &str, input: &str) -> HookRequest {
    platform(id).payload.read(&Payload::parse(input).unwrap()).unwrap()
}

/// A request as fixtures describe it.
fn described(request: &HookRequest) -> Value {
    let mut means = match &request.event {
        HookEvent::Nothing => json!({"event": "nothing"}),
        HookEvent::Started { forgot: false } => json!({"event": "started"}),
        HookEvent::Started { forgot: true } => json!({"event": "started", "forgot": true}),
        HookEvent::Prompted => json!({"event": "prompted"}),
        HookEvent::AboutToEdit(call) => {
            json!({"event": "about to edit", "tool": call.tool, "paths": call.paths})
        }
        HookEvent::ToolUsed(call) => json!({"event": "tool used", "tool": call.tool, "paths": call.paths}),
        HookEvent::AboutToDelegate { kind, task } => {
            json!({"event": "about to delegate", "kind": kind, "task": task})
        }
        HookEvent::DelegateStarted { kind } => json!({"event": "delegate started", "kind": kind}),
        HookEvent::DelegateEnded => json!({"event": "delegate ended"}),
        HookEvent::Idle => json!({"event": "idle"}),
        HookEvent::Ended => json!({"event": "ended"}),
    };
    let ids = [("session", Some(&request.session)), ("delegate", request.delegate.as_ref())];
    let ids = ids.into_iter().chain([("parent", request.parent.as_ref()), ("task", request.task.as_ref())]);
    for (name, id) in ids {
        if let Some(id) = id {
            means[name] = json!(id);
        }
    }
    means
}

#[test]
fn every_platform_is_understood() {
    testkit::limit_test();
    for platform in PLATFORMS {
        let mut kinds: BTreeSet<String> =
            platform.payload.events.iter().map(|(_, kind)| format!("{kind:?}")).collect();
        for example in examples(platform) {
            let Example::Call { means, input } = example else { continue };
            let request = read(platform.id, &input.to_string());
            assert_eq!(described(&request), means, "{}: {input}", platform.id);
            assert_eq!(request.directory.as_deref(), Some("/w".as_ref()), "{}: {input}", platform.id);
            let known = platform.payload.events.iter().find(|(name, _)| *name == request.event_name);
            kinds.remove(&known.map(|(_, kind)| format!("{kind:?}")).unwrap_or_default());
        }
        assert_eq!(kinds, BTreeSet::new(), "{} has no examples of these events", platform.id);
    }
}

#[test]
fn every_platform_is_answered_in_its_form() {
    testkit::limit_test();
    for platform in PLATFORMS {
        let format_reply = platform.replies.format_reply;
        assert_eq!(format_reply("E", &Reply::Silence), None, "{}", platform.id);
        let (mut contexts, mut sessions, mut denials) = (0, 0, 0);
        for example in examples(platform) {
            let Example::Answer { reply, to, output } = example else { continue };
            let reply = match reply {
                ExampleReply::Context { context: text, session } => {
                    contexts += usize::from(session.is_none());
                    sessions += usize::from(session.is_some());
                    Reply::Context { text, session }
                }
                ExampleReply::Deny { deny } => {
                    denials += 1;
                    Reply::Deny(deny)
                }
            };
            assert_eq!(format_reply(&to, &reply), Some(output), "{}: {reply:?}", platform.id);
        }
        let has_all = contexts > 0 && sessions > 0 && denials > 0;
        assert!(has_all, "{} has no example of a context, a context with a session or a denial", platform.id);
    }
}

#[test]
fn a_session_that_was_compacted_or_cleared_gets_its_brief_again() {
    for (source, forgot) in [("startup", false), ("resume", false), ("compact", true), ("clear", true)] {
        let input = json!({"hook_event_name": "SessionStart", "session_id": "1", "source": source});
        assert_eq!(read("claude", &input.to_string()).event, HookEvent::Started { forgot }, "{source}");
    }
}

#[test]
fn the_task_of_a_delegate_is_read_where_the_platform_names_it() {
    testkit::limit_test();
    let read = |id: &str, input: Value| read(id, &input.to_string());
    let about =
        |kind: &str, task: &str| HookEvent::AboutToDelegate { kind: kind.to_owned(), task: task.to_owned() };
    let asked =
        json!({"description": " Find the callers\nof it", "prompt": "secret", "subagent_type": "Explore"});
    for (id, tool) in [("claude", "Task"), ("claude", "Agent"), ("copilot", "task")] {
        let input = json!({"hook_event_name": "PreToolUse", "session_id": "1", "tool_name": tool, "tool_input": asked});
        assert_eq!(read(id, input).event, about("Explore", "Find the callers"), "{id}");
    }
    let input = json!({"hook_event_name": "PreToolUse", "session_id": "1", "tool_name": "Task", "tool_input": {"prompt": "p"}});
    assert_eq!(read("claude", input).event, HookEvent::Nothing, "a prompt is not a description");
    let input =
        json!({"event": "session.created", "session_id": "2", "parent_id": "1", "task": "x".repeat(900)});
    assert_eq!(read("opencode", input).task, Some("x".repeat(200)));
}

#[test]
fn input_without_an_event_or_a_session_is_not_understood() {
    testkit::limit_test();
    for text in [
        "{}",
        r#"{"hook_event_name": "Stop"}"#,
        r#"{"session_id": "1"}"#,
        r#"{"session_id": 1, "hook_event_name": "Stop"}"#,
        r#"{"session_id": "", "hook_event_name": "Stop"}"#,
        &format!(r#"{{"session_id": "{}", "hook_event_name": "Stop"}}"#, "x".repeat(101)),
    ] {
        let payload = Payload::parse(text).unwrap();
        assert!(PLATFORMS.iter().all(|platform| platform.payload.read(&payload).is_none()), "{text}");
    }
}

#[test]
fn a_copilot_that_runs_the_hooks_of_claude_is_recognized() {
    for (copilot, session, expected) in [
        (None, None, "claude"),
        (None, Some("0f1e-claude"), "claude"),
        (Some("1"), None, "copilot"),
        (Some("1"), Some("another"), "copilot"),
        // A Claude Code that Copilot CLI started.
        (Some("1"), Some("0f1e-claude"), "claude"),
    ] {
        let set = [("COPILOT_CLI", copilot), ("CLAUDE_CODE_SESSION_ID", session)];
        let environment = environment(set.into_iter().filter_map(|(name, value)| Some((name, value?))));
        let payload = Payload::parse(r#"{"session_id": "0f1e-claude"}"#).unwrap();
        assert_eq!(platform("claude").resolve(&payload, &environment).id, expected);
        assert_eq!(platform("codex").resolve(&payload, &environment).id, "codex");
    }
}

fn environment(variables: impl IntoIterator<Item = (&'static str, &'static str)>) -> Environment {
    let platform_variables = variables.into_iter().map(|(name, value)| (name, value.into())).collect();
    Environment { platform_variables, ..Environment::default() }
}

#[test]
fn a_delegate_comes_before_the_session_that_it_works_in() {
    let hints = |variables: &[(&'static str, &'static str)], wanted: fn(&Platform) -> bool| {
        session_hints(&environment(variables.iter().copied()), wanted)
    };
    let (session, thread) = (("CODEX_SESSION_ID", "s"), ("CODEX_THREAD_ID", "t"));
    let (same, gemini) = (("CODEX_THREAD_ID", "s"), ("GEMINI_SESSION_ID", "g"));
    assert_eq!(hints(&[session, thread, gemini], |_| true), ["codex:s/t", "codex:s", "codex:t", "gemini:g"]);
    assert_eq!(hints(&[session, same, gemini], |_| true), ["codex:s", "gemini:g"]);
    assert_eq!(hints(&[thread, gemini], |_| true), ["codex:t", "gemini:g"]);
    assert_eq!(hints(&[thread, gemini], |platform| platform.process.is_hidden), ["codex:t"]);
}

#[test]
fn agents_declare_their_pids_in_the_environment() {
    assert_eq!(declared_pids(&environment([("OPENCODE_PID", "8"), ("CLAUDE_PID", "7")])), [7, 8]);
    assert_eq!(declared_pids(&environment([("OPENCODE_PID", "x")])), [0; 0]);
}

fn named(name: &str) -> ProcessInfo {
    process(name, &format!("/usr/bin/{name}"), name)
}

/// A chain whose last process is PID 1.
fn to_first<const N: usize>(processes: [ProcessInfo; N]) -> Vec<ProcessInfo> {
    let mut chain = chain(processes);
    chain.last_mut().unwrap().pid = 1;
    chain
}

#[test]
fn the_process_of_every_agent_is_recognized_by_each_of_its_names() {
    for platform in PLATFORMS {
        assert!(!platform.process.names.is_empty(), "{}", platform.id);
        assert!(platform.process.names.contains(&platform.settings.program), "{}", platform.id);
    }
    assert!(AGENT_NAMES.iter().all(|name| !name.is_empty()));
    for name in AGENT_NAMES {
        let found = find_agent(&chain([named("sh"), named(name)]), AGENT_NAMES, &[]);
        assert_eq!(found, Found::Agent(99), "{name}");
    }
}

#[test]
fn the_long_lived_process_of_each_client_is_found() {
    let claude = || process("claude", "/home/u/.local/share/claude/versions/2.1.325", "claude");
    let codex = || process("codex", "/usr/lib/node_modules/@openai/codex/vendor/codex/codex", "codex exec");
    let launcher =
        || process("node", "/usr/bin/node", "node /usr/lib/node_modules/@openai/codex/bin/codex.js exec");
    let script = "/usr/lib/node_modules/@google/gemini-cli/dist/index.js";
    let gemini = || {
        let arguments = format!("/usr/bin/node --max-old-space-size=8192 {script} -m flash");
        process("node", "/usr/bin/node", &arguments)
    };
    let copilot = || process("MainThread", "/opt/@github/copilot-linux-x64/copilot", "copilot");
    for (client, chain, expected) in [
        ("Claude, string command", chain([named("sh"), claude(), named("zsh")]), Found::Agent(99)),
        ("Claude, arguments", chain([claude(), named("zsh")]), Found::Agent(100)),
        ("Codex hook", chain([named("bash"), codex(), launcher(), named("zsh")]), Found::Agent(99)),
        ("Codex shell tool", to_first([named("bash"), named("codex-linux-sandbox")]), Found::Nothing),
        ("Codex shell tool, directly", to_first([codex()]), Found::Nothing),
        ("Gemini hook", chain([named("bash"), gemini(), gemini(), named("zsh")]), Found::Agent(99)),
        ("OpenCode", chain([named("opencode"), named("zsh")]), Found::Agent(100)),
        ("Copilot", chain([named("bash"), copilot(), copilot(), named("zsh")]), Found::Agent(99)),
        ("Copilot by npm", chain([copilot(), named("npm exec @githu"), named("zsh")]), Found::Agent(100)),
    ] {
        assert_eq!(find_agent(&chain, AGENT_NAMES, &[]), expected, "{client}");
    }
}
