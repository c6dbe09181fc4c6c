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
