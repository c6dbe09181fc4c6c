//! Gemini CLI.

use jsonc_parser::json;

use super::content::Content;
use super::json::Wanted;
use super::platform::{Part, Places, Platform, Scope, Target, grouped, servers, skill};

pub const GEMINI: Platform = Platform {
    name: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    scopes: &[Scope::User, Scope::Project],
    directory: Places::gemini,
    targets,
    afterwards: |scope| match scope {
        Scope::User | Scope::Local => {
            &["restart the sessions that run now: settings are read when one starts"]
        }
        Scope::Project => &[
            "trust this folder when `gemini` asks: it reads a project's settings only then",
            "restart the sessions that run now: settings are read when one starts",
        ],
    },
};

fn targets(places: &Places, scope: Scope) -> Vec<Target> {
    let directory = match scope {
        Scope::User | Scope::Local => places.gemini(),
        Scope::Project => places.project.join(".gemini"),
    };
    let server = Wanted::Server(servers("mcpServers"), json!({ "command": "blackboard", "args": ["mcp"] }));
    let content = Content::Json(vec![hooks(), server]);
    vec![
        Target::new(Part::HooksAndServer, directory.join("settings.json"), content),
        skill(&directory.join("skills")),
    ]
}

fn hooks() -> Wanted {
    // A hook that can't be started ends the agent's turn before it began, also for those who have the settings from a
    // repository and not this program. This passes, in every shell that may run it.
    let command = "blackboard hook gemini; exit 0";
    // In milliseconds.
    let handler = || json!({ "type": "command", "command": command, "timeout": 5000 });
    Wanted::Hooks(vec![
        ("SessionStart", grouped(None, handler())),
        ("BeforeAgent", grouped(None, handler())),
        ("BeforeTool", grouped(Some("write_file|replace"), handler())),
        ("AfterTool", grouped(None, handler())),
        ("AfterAgent", grouped(None, handler())),
        ("SessionEnd", grouped(None, handler())),
    ])
}
