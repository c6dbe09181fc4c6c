//! Codex.
//!
//! It asks the user about every hook whose text is new to it, and skips those it was not told to trust. So the text
//! never changes: no path, no version.

use jsonc_parser::json;

use super::content::Content;
use super::json::Wanted;
use super::platform::{Part, Places, Platform, Scope, Target, grouped, skill};

pub const CODEX: Platform = Platform {
    name: "codex",
    title: "Codex",
    program: "codex",
    scopes: &[Scope::User, Scope::Project],
    directory: Places::codex,
    targets,
    afterwards: |scope| match scope {
        Scope::User | Scope::Local => &[
            "accept the hooks: start `codex`, type /hooks and trust them. Until then Codex skips them silently",
        ],
        Scope::Project => &[
            "trust this directory when `codex` asks: it reads a project's settings only then",
            "accept the hooks: start `codex`, type /hooks and trust them. Until then Codex skips them silently",
        ],
    },
};

fn targets(places: &Places, scope: Scope) -> Vec<Target> {
    let directory = match scope {
        Scope::User | Scope::Local => places.codex(),
        Scope::Project => places.project.join(".codex"),
    };
    vec![
        Target::new(Part::Hooks, directory.join("hooks.json"), Content::Json(vec![hooks()])),
        Target::new(Part::Server, directory.join("config.toml"), Content::Toml),
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
        // The longest that it allows.
        ("SessionEnd", grouped(None, handler(3))),
    ])
}
