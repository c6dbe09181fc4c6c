//! Codex: the events and answers of Claude Code, but different tools. It refuses an answer with an unknown member.
//!
//! It asks the user about every hook whose text is new, and skips untrusted hooks. So the text never changes: it
//! contains no path and no version.

use std::path::PathBuf;
use std::time::Duration;

use blackboard::clock::Timestamp;
use blackboard::quota::Usage;
use jsonc_parser::json;
use serde::Deserialize;
use serde_json::Value;

use super::claude::{PAYLOAD, format_reply};
use super::{AgentProcess, CallMetadata, Exceptions, Platform, PlatformSettings, ReplyFormat, Variables};
use crate::hooks::PayloadFormat;
use crate::quota::reading::{LimitReport, Reading, UsageFormat, moment};
use crate::setup::{Content, Part, SettingsDirs, SettingsLevel, Target, Wanted, grouped, skill};

pub const CODEX: Platform = Platform {
    id: "codex",
    name: "Codex",
    process: AgentProcess { names: &["codex"], hosts_many: false, is_hidden: true },
    variables: Variables {
        session: Some("CODEX_SESSION_ID"),
        // A subagent is a thread in its parent's session.
        delegate: Some("CODEX_THREAD_ID"),
        pid: None,
        others: &[HOME],
    },
    payload: PayloadFormat {
        edit_tools: &["apply_patch", "Edit", "Write"],
        patch_tools: &["apply_patch"],
        delegate_tools: &[],
        ..PAYLOAD
    },
    replies: ReplyFormat { takes_context_before_tools: true, takes_context_on_prompt: true, format_reply },
    settings: PlatformSettings {
        program: "codex",
        levels: &[SettingsLevel::User, SettingsLevel::Project],
        directory,
        targets,
        note: Some("Codex runs the hooks only after you have trusted them: type /hooks in Codex."),
        afterwards: |level| match level {
            SettingsLevel::User | SettingsLevel::Local => &[
                "accept the hooks: start `codex`, type /hooks and trust them. Until then Codex skips them silently",
            ],
            SettingsLevel::Project => &[
                "trust this directory when `codex` asks: it reads a project's settings only then",
                "accept the hooks: start `codex`, type /hooks and trust them. Until then Codex skips them silently",
            ],
        },
    },
    usage: Some(UsageFormat::lines(read_usage)),
    exceptions: Exceptions {
        call_metadata: Some(CallMetadata { key: "x-codex-turn-metadata", session_hints }),
        ..Exceptions::NONE
    },
};

/// Replaces `~/.codex`.
const HOME: &str = "CODEX_HOME";

/// The session and the thread of an MCP tool call, in an object or in JSON text.
fn session_hints(metadata: &Value) -> Vec<String> {
    let parsed = metadata.as_str().and_then(|text| serde_json::from_str(text).ok());
    let metadata: &Value = parsed.as_ref().unwrap_or(metadata);
    let id = |name| metadata.get(name).and_then(Value::as_str);
    CODEX.session_hints(id("session_id"), id("thread_id")).collect()
}

/// A line of a rollout, of one of the kinds that matter.
#[derive(Deserialize)]
struct RolloutLine {
    #[serde(rename = "type")]
    kind: String,
    timestamp: Option<String>,
    payload: RolloutPayload,
}

#[derive(Deserialize)]
struct RolloutPayload {
    #[serde(rename = "type")]
    kind: Option<String>,
    /// The thread, in the first line.
    id: Option<String>,
    model: Option<String>,
    thread_id: Option<String>,
    response_id: Option<String>,
    usage: Option<Tokens>,
    info: Option<TokenCount>,
    rate_limits: Option<RateLimits>,
}

#[derive(Deserialize)]
struct TokenCount {
    total_token_usage: Option<Tokens>,
    last_token_usage: Option<Tokens>,
}

/// Numbers of tokens. Input contains caches, and output contains reasoning.
#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "these are the names of Codex")]
struct Tokens {
    input_tokens: Option<u64>,
    cached_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    reasoning_output_tokens: Option<u64>,
    total_tokens: Option<u64>,
}

/// The limits with the id of the account, or without an id. Those of other ids are of one model or feature.
const ACCOUNT: &str = "codex";

#[derive(Deserialize)]
struct RateLimits {
    limit_id: Option<String>,
    primary: Option<RateLimit>,
    secondary: Option<RateLimit>,
}

#[derive(Deserialize)]
struct RateLimit {
    used_percent: Option<f64>,
    window_minutes: Option<u64>,
    /// Seconds since 1970.
    resets_at: Option<u32>,
    /// The same in older versions.
    resets_in_seconds: Option<u32>,
}

impl Tokens {
    fn usage(&self) -> Usage {
        let (input, output) = (self.input_tokens.unwrap_or_default(), self.output_tokens.unwrap_or_default());
        let cache_read = self.cached_input_tokens.unwrap_or_default().min(input);
        let cache_write = self.cache_write_input_tokens.unwrap_or_default().min(input - cache_read);
        let reasoning = self.reasoning_output_tokens.unwrap_or_default().min(output);
        Usage {
            input: input - cache_read - cache_write,
            cache_write,
            cache_read,
            output: output - reasoning,
            reasoning,
        }
    }
}

/// Reads a line of a rollout. A call of the model has a `token_usage_record`, and later a `token_count`. Older versions
/// have only the latter, so it counts until the first record of the file. Copies of a line have the same id.
fn read_usage(line: &str, reading: &mut Reading) {
    let has = |kind: &str| line.contains(kind);
    let names_thread = reading.context.thread.is_none() && has(r#""session_meta""#);
    if !names_thread
        && !has(r#""turn_context""#)
        && !has(r#""token_usage_record""#)
        && !has(r#""token_count""#)
    {
        return;
    }
    let Ok(RolloutLine { kind, timestamp, payload }) = serde_json::from_str(line) else { return };
    let at = moment(timestamp.as_deref());
    match (kind.as_str(), payload.kind.as_deref()) {
        ("session_meta", _) if names_thread => reading.context.thread = usable(payload.id),
        ("turn_context", _) => {
            if let Some(model) = usable(payload.model) {
                reading.context.model = Some(model);
            }
        }
        ("token_usage_record", _) => {
            reading.context.has_records = true;
            let (Some(thread), Some(response)) = (payload.thread_id, payload.response_id) else { return };
            let Some(tokens) = payload.usage else { return };
            let model = reading.context.model.clone();
            reading.add(format!("codex:{thread}:{response}"), model.as_deref(), at, tokens.usage());
        }
        ("event_msg", Some("token_count")) => {
            let Some(at) = at else { return };
            if let Some(limits) = payload.rate_limits {
                report(&limits, at, reading);
            }
            let Some(TokenCount { total_token_usage: Some(total), last_token_usage: Some(last) }) =
                payload.info
            else {
                return;
            };
            let Some(total) = total.total_tokens.filter(|_| !reading.context.has_records) else { return };
            let Some(thread) = reading.context.thread.clone() else { return };
            let model = reading.context.model.clone();
            reading.add(format!("codex:{thread}:{total}"), model.as_deref(), Some(at), last.usage());
        }
        _ => {}
    }
}

fn usable(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty() && text.len() <= 200)
}

/// Adds the limits of the account.
fn report(limits: &RateLimits, at: Timestamp, reading: &mut Reading) {
    if limits.limit_id.as_ref().is_some_and(|id| id != ACCOUNT) {
        return;
    }
    for limit in [&limits.primary, &limits.secondary].into_iter().flatten() {
        let later = limit.resets_in_seconds.map(|seconds| at.plus(Duration::from_secs(seconds.into())));
        let moment = limit.resets_at.map(|seconds| Timestamp::from_millis(i64::from(seconds) * 1000));
        let (Some(used_percent), Some(window_minutes), Some(resets_at)) =
            (limit.used_percent, limit.window_minutes, moment.or(later))
        else {
            continue;
        };
        reading.limits.push(LimitReport {
            model: reading.context.model.clone().unwrap_or_default(),
            window_minutes,
            used_percent,
            resets_at: resets_at.millis(),
            at: at.millis(),
        });
    }
}

/// `$CODEX_HOME`, `~/.codex`
fn directory(dirs: &SettingsDirs) -> PathBuf {
    dirs.moved_by(HOME).unwrap_or_else(|| dirs.home.join(".codex"))
}

fn targets(dirs: &SettingsDirs, level: SettingsLevel) -> Vec<Target> {
    let directory = match level {
        SettingsLevel::User | SettingsLevel::Local => directory(dirs),
        SettingsLevel::Project => dirs.project.join(".codex"),
    };
    vec![
        Target::new(Part::Hooks, directory.join("hooks.json"), Content::Json(vec![hooks()])),
        Target::new(Part::Server, directory.join("config.toml"), Content::Toml("mcp_servers")),
        skill(&directory.join("skills")),
    ]
}

fn hooks() -> Wanted {
    let handler =
        |timeout: u32| json!({ "type": "command", "command": "blackboard hook codex", "timeout": timeout });
    Wanted::Hooks(vec![
        ("SessionStart", grouped(None, handler(5))),
        ("UserPromptSubmit", grouped(None, handler(5))),
        ("PreToolUse", grouped(Some("apply_patch|Edit|Write"), handler(5))),
        ("PostToolUse", grouped(None, handler(5))),
        ("SubagentStart", grouped(None, handler(5))),
        ("SubagentStop", grouped(None, handler(5))),
        ("Stop", grouped(None, handler(5))),
        // The longest timeout that it allows.
        ("SessionEnd", grouped(None, handler(3))),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn call_metadata_is_an_object_or_its_text() {
        let hints = ["codex:s1/t1".to_owned(), "codex:s1".to_owned(), "codex:t1".to_owned()];
        let metadata = json!({"session_id": "s1", "thread_id": "t1", "turn_id": "x"});
        assert_eq!(session_hints(&metadata), hints);
        assert_eq!(session_hints(&json!(metadata.to_string())), hints);
        assert_eq!(session_hints(&json!({"session_id": "s1", "thread_id": "s1"})), hints[1..2]);
        assert_eq!(session_hints(&json!({"session_id": "s1"})), hints[1..2]);
        assert_eq!(session_hints(&json!({"thread_id": "t1"})), hints[2..]);
        for odd in [json!(null), json!("{"), json!(7), json!({"session_id": 7}), json!([])] {
            assert_eq!(session_hints(&odd), Vec::<String>::new(), "{odd}");
        }
    }
}
