//! Copilot CLI.
//!
//! It reads every file of a directory, so our hooks have one of their own. Names of events in this spelling make it
//! send the fields that the others send.

use jsonc_parser::json;

use super::content::Content;
use super::json::Wanted;
use super::platform::{Part, Places, Platform, Scope, Target, servers, skill};

pub const COPILOT: Platform = Platform {
    name: "copilot",
    title: "Copilot CLI",
    program: "copilot",
    scopes: &[Scope::User, Scope::Project],
    directory: Places::copilot,
    targets,
    afterwards: |scope| match scope {
        Scope::User | Scope::Local => &["restart the sessions that run now: hooks are read when one starts"],
        Scope::Project => &[
            "trust this folder when `copilot` asks: it reads a project's hooks only then",
            "restart the sessions that run now: hooks are read when one starts",
        ],
    },
};

fn targets(places: &Places, scope: Scope) -> Vec<Target> {
    let (directory, servers_file) = match scope {
        Scope::User | Scope::Local => (places.copilot(), "mcp-config.json"),
        Scope::Project => (places.project.join(".github"), "mcp.json"),
    };
    let server = json!({ "type": "local", "command": "blackboard", "args": ["mcp"], "tools": ["*"] });
    vec![
        Target::new(
            Part::Hooks,
            directory.join("hooks/blackboard.json"),
            Content::Json(vec![Wanted::Format("version", json!(1)), hooks()]),
        ),
        Target::new(
            Part::Server,
            directory.join(servers_file),
            Content::Json(vec![Wanted::Server(servers("mcpServers"), server)]),
        ),
        skill(&directory.join("skills")),
    ]
}

fn hooks() -> Wanted {
    let handler =
        json!({ "type": "command", "exec": "blackboard", "args": ["hook", "copilot"], "timeoutSec": 5 });
    // It denies every tool whose hook can't be started, also to those who have the settings from a repository and not this
    // program. A shell that always ends well lets them pass.
    let guard = json!({
        "type": "command",
        "matcher": "edit|create|str_replace_editor|apply_patch|Edit|Write|MultiEdit|task|Task",
        "bash": "blackboard hook copilot || true",
        "powershell": "blackboard hook copilot; exit 0",
        "timeoutSec": 5
    });
    Wanted::Hooks(vec![
        ("SessionStart", handler.clone()),
        ("UserPromptSubmit", handler.clone()),
        ("PreToolUse", guard),
        ("PostToolUse", handler.clone()),
        ("SubagentStart", handler.clone()),
        ("SubagentStop", handler.clone()),
        ("Stop", handler.clone()),
        ("SessionEnd", handler),
    ])
}
