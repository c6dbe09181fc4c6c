//! OpenCode, which has no command hooks: a small plugin forwards its events in our own format, which `docs/hooks.md`
//! describes.
//!
//! One process hosts many sessions, and a subagent is a session with a parent. All of them share one MCP server, so the
//! plugin also adds the session to the arguments of its tools.

use std::path::PathBuf;

use blackboard::clock::Timestamp;
use blackboard::quota::Usage;
use jsonc_parser::json;
use serde::Deserialize;
use serde_json::{Value, json as answer};

use super::claude::{FIELDS, PAYLOAD};
use super::{AgentProcess, Exceptions, Platform, PlatformSettings, Reply, ReplyFormat, Variables};
use crate::hooks::{EventKind, PayloadFields, PayloadFormat};
use crate::quota::reading::{Reading, UsageFormat};
use crate::setup::{Content, Part, SettingsDirs, SettingsLevel, Target, Wanted, servers, skill};

pub const OPENCODE: Platform = Platform {
    id: "opencode",
    name: "OpenCode",
    process: AgentProcess { names: &["opencode", "opencode-ai"], hosts_many: true, is_hidden: false },
    variables: Variables { session: None, delegate: None, pid: Some("OPENCODE_PID"), others: &[CONFIG_HOME] },
    payload: PayloadFormat {
        // The second names are OpenCode's own.
        fields: PayloadFields {
            event: &["hook_event_name", "event"],
            directory: &["cwd", "directory"],
            tool: &["tool_name", "tool"],
            input: &["tool_input", "args"],
            path: &["file_path", "filePath", "path"],
            parent: &["parent_id", "parentID"],
            task: &["task"],
            ..FIELDS
        },
        events: &[
            ("session.created", EventKind::Started),
            ("chat.message", EventKind::Prompted),
            ("tool.execute.before", EventKind::BeforeTool),
            ("tool.execute.after", EventKind::AfterTool),
            ("session.idle", EventKind::Idle),
            ("session.deleted", EventKind::Ended),
        ],
        edit_tools: &["edit", "write", "multiedit", "patch", "apply_patch"],
        patch_tools: &["patch", "apply_patch"],
        delegate_tools: &[],
        ..PAYLOAD
    },
    replies: ReplyFormat { takes_context_before_tools: false, takes_context_on_prompt: true, format_reply },
    settings: PlatformSettings {
        program: "opencode",
        levels: &[SettingsLevel::User, SettingsLevel::Project],
        directory,
        targets,
        note: None,
        afterwards: |_| &["restart OpenCode: plugins are loaded when it starts"],
    },
    // The plugin passes messages on.
    usage: Some(UsageFormat {
        transcript: &[],
        delegate_transcript: &[],
        messages: &["usage"],
        ..UsageFormat::lines(read_usage)
    }),
    exceptions: Exceptions::NONE,
};

/// Replaces `~/.config`.
const CONFIG_HOME: &str = "XDG_CONFIG_HOME";

const PLUGIN: &str = include_str!("opencode.js");

fn format_reply(_event: &str, reply: &Reply) -> Option<Value> {
    match reply {
        Reply::Silence => None,
        Reply::Context { text, session: Some(session) } => {
            Some(answer!({"context": text, "env": {"BLACKBOARD_SESSION_ID": session}}))
        }
        Reply::Context { text, session: None } => Some(answer!({ "context": text })),
        Reply::Deny(reason) => Some(answer!({ "deny": reason })),
    }
}

/// A message that the plugin passes on. No number contains another one.
#[derive(Deserialize)]
struct PassedMessage {
    id: String,
    model: Option<String>,
    /// Milliseconds since 1970.
    at: Option<i64>,
    tokens: Tokens,
}

#[derive(Deserialize)]
struct Tokens {
    input: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
    cache: Option<Cache>,
}

#[derive(Deserialize)]
struct Cache {
    read: Option<u64>,
    write: Option<u64>,
}

fn read_usage(message: &str, reading: &mut Reading) {
    let Ok(PassedMessage { id, model, at, tokens }) = serde_json::from_str(message) else { return };
    let cache = tokens.cache.unwrap_or(Cache { read: None, write: None });
    let usage = Usage {
        input: tokens.input.unwrap_or_default(),
        cache_write: cache.write.unwrap_or_default(),
        cache_read: cache.read.unwrap_or_default(),
        output: tokens.output.unwrap_or_default(),
        reasoning: tokens.reasoning.unwrap_or_default(),
    };
    reading.add(format!("opencode:{id}"), model.as_deref(), at.map(Timestamp::from_millis), usage);
}

/// `$XDG_CONFIG_HOME/opencode`, `~/.config/opencode`
fn directory(dirs: &SettingsDirs) -> PathBuf {
    dirs.moved_by(CONFIG_HOME).unwrap_or_else(|| dirs.home.join(".config")).join("opencode")
}

fn targets(dirs: &SettingsDirs, level: SettingsLevel) -> Vec<Target> {
    let (settings, directory) = match level {
        SettingsLevel::User | SettingsLevel::Local => (directory(dirs), directory(dirs)),
        SettingsLevel::Project => (dirs.project.clone(), dirs.project.join(".opencode")),
    };
    // OpenCode reads both names. A second file beside an existing one would only confuse.
    let with_comments = settings.join("opencode.jsonc");
    let settings = if with_comments.exists() { with_comments } else { settings.join("opencode.json") };
    let server = json!({ "type": "local", "command": ["blackboard", "mcp"], "enabled": true });
    vec![
        Target::new(Part::Hooks, directory.join("plugins/blackboard.js"), Content::Whole(PLUGIN)),
        Target::new(Part::Server, settings, Content::Json(vec![Wanted::Server(servers("mcp"), server)])),
        skill(&directory.join("skills")),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::Command;

    use testkit::process::RunToEnd as _;

    use super::*;
    use crate::hooks::request::{HookEvent, Payload};

    const CORPUS: &str = include_str!("../../tests/fixtures/patches.jsonl");

    /// Runs the plugin, and prints what it passes to the hook for each patch of the corpus, one per line.
    const HARNESS: &str = r#"
        import { readFileSync } from "node:fs"
        globalThis.Bun = {
          spawn: (_, { stdin }) => {
            const input = new TextDecoder().decode(stdin)
            if (JSON.parse(input).event === "tool.execute.before") console.log(input)
            return { stdout: "{}" }
          },
        }
        const { Blackboard } = await import(process.argv[2])
        const client = { session: { get: async () => ({ data: {} }) } }
        const plugin = await Blackboard({ client, directory: "/w" })
        for (const line of readFileSync(process.argv[3], "utf8").trimEnd().split("\n")) {
          const input = { tool: "apply_patch", sessionID: "ses_1" }
          await plugin["tool.execute.before"](input, { args: { patchText: JSON.parse(line).patch } })
        }
    "#;

    /// Runs the plugin with a session that goes on, and prints the usage that it passes to the hook, one call per line.
    const USAGE_HARNESS: &str = r#"
        const calls = []
        globalThis.Bun = {
          spawn: (_, { stdin }) => {
            const { event, usage } = JSON.parse(new TextDecoder().decode(stdin))
            calls.push([event, (usage ?? []).map((message) => message.id)])
            if (usage) console.log(...usage.map((message) => JSON.stringify(message)))
            return { stdout: "{}" }
          },
        }
        const { Blackboard } = await import(process.argv[2])
        const info = (id, completed, role = "assistant") => ({
          id, role, sessionID: "ses_1", modelID: "gpt-5", path: { cwd: "/secret" }, time: { created: 1, completed },
          tokens: { total: 1170, input: 112, output: 50, reasoning: 7, cache: { read: 1001, write: 0 } },
        })
        const messages = async () => ({ data: [{ info: info("m0", 5) }, { info: info("u0", 5, "user") }] })
        const client = { session: { get: async () => ({ data: {} }), messages } }
        const plugin = await Blackboard({ client, directory: "/w" })
        const event = (type, properties) => plugin.event({ event: { type, properties } })
        await event("message.updated", { info: { ...info("other", 5), sessionID: "ses_2" } })
        await plugin["chat.message"]({ sessionID: "ses_1" }, { message: { id: "x" }, parts: [] })
        await event("message.updated", { info: info("m1", undefined) })
        await event("message.updated", { info: info("m1", 1770132600000) })
        await event("message.updated", { info: info("m1", 1770132600000) })
        await event("session.idle", { sessionID: "ses_1" })
        await event("session.idle", { sessionID: "ses_1" })
        await event("session.idle", { sessionID: "ses_1" })
        console.error(JSON.stringify(calls))
    "#;

    #[test]
    fn the_plugin_passes_on_usage_of_complete_messages_and_of_earlier_ones() {
        if !testkit::machine::can("the plugin for OpenCode", "node", &["--version"]) {
            return;
        }
        let directory = testkit::tempdir().unwrap();
        let (harness, plugin) = (directory.path().join("harness.mjs"), directory.path().join("plugin.mjs"));
        std::fs::write(&harness, USAGE_HARNESS).unwrap();
        std::fs::write(&plugin, PLUGIN).unwrap();
        let output = Command::new("node").args([&harness, &plugin]).run_to_end();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let calls: Vec<(String, Vec<String>)> = serde_json::from_slice(&output.stderr).unwrap();
        let passed: Vec<String> = calls.iter().flat_map(|(_, ids)| ids.clone()).collect();
        let count = |id: &str| passed.iter().filter(|passed| *passed == id).count();
        assert_eq!((count("m0"), count("u0"), count("other")), (2, 0, 0), "{calls:?}");
        assert_eq!(count("m1"), 4, "two events, each passed on twice: {calls:?}");
        assert_eq!(calls.last().unwrap().1, Vec::<String>::new(), "{calls:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains("secret"), "{text}");
        let mut reading = Reading::default();
        for message in text.lines().flat_map(|line| line.split_inclusive("}} ")) {
            read_usage(message.trim(), &mut reading);
        }
        let ids: BTreeSet<_> = reading.messages.iter().map(|message| message.id.as_str()).collect();
        assert_eq!(ids, BTreeSet::from(["opencode:m0", "opencode:m1"]), "{text}");
        let usage = reading.messages[0].usage;
        assert_eq!((usage.input, usage.cache_read, usage.output, usage.reasoning), (112, 1001, 50, 7));
    }

    fn paths_in(input: &str) -> BTreeSet<String> {
        let request = OPENCODE.payload.read(&Payload::parse(input).unwrap()).unwrap();
        match request.event {
            HookEvent::AboutToEdit(call) => call.paths.into_iter().collect(),
            HookEvent::Nothing => BTreeSet::new(),
            other => panic!("{other:?}: {input}"),
        }
    }

    #[test]
    fn the_plugin_passes_patches_on_and_every_file_in_them_is_read() {
        if !testkit::machine::can("the plugin for OpenCode", "node", &["--version"]) {
            return;
        }
        let directory = testkit::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = directory.path().join(name);
            std::fs::write(&file, text).unwrap();
            file
        };
        let (harness, plugin) = (write("harness.mjs", HARNESS), write("plugin.mjs", PLUGIN));
        let corpus = write("patches.jsonl", CORPUS);
        let output = Command::new("node").args([&harness, &plugin, &corpus]).run_to_end();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let passed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(passed.lines().count(), CORPUS.lines().count());
        for (line, input) in CORPUS.lines().zip(passed.lines()) {
            let case: Value = serde_json::from_str(line).unwrap();
            let named = ["changes", "besides"].iter().filter_map(|list| case[list].as_array()).flatten();
            let named = named.map(|file| file.as_str().unwrap().to_owned()).collect();
            assert_eq!(paths_in(input), named, "{}", case["case"]);
        }
    }
}
