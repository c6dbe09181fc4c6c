//! Cursor.

use jsonc_parser::json;

use super::content::Content;
use super::json::Wanted;
use super::platform::{Part, Places, Platform, Scope, Target, servers, skill};

pub const CURSOR: Platform = Platform {
    name: "cursor",
    title: "Cursor",
    program: "cursor-agent",
    scopes: &[Scope::User, Scope::Project],
    directory: Places::cursor,
    targets,
    afterwards: |scope| match scope {
        Scope::User | Scope::Local => {
            &["switch the MCP server \"blackboard\" on in Cursor's settings if it is off"]
        }
        Scope::Project => &[
            "trust this workspace when Cursor asks: it runs a project's hooks only then",
            "switch the MCP server \"blackboard\" on in Cursor's settings if it is off",
        ],
    },
};

fn targets(places: &Places, scope: Scope) -> Vec<Target> {
    let directory = match scope {
        Scope::User | Scope::Local => places.cursor(),
        Scope::Project => places.project.join(".cursor"),
    };
    let server = json!({ "command": "blackboard", "args": ["mcp"] });
    vec![
        Target::new(
            Part::Hooks,
            directory.join("hooks.json"),
            Content::Json(vec![Wanted::Format("version", json!(1)), hooks()]),
        ),
        Target::new(
            Part::Server,
            directory.join("mcp.json"),
            Content::Json(vec![Wanted::Server(servers("mcpServers"), server)]),
        ),
        skill(&directory.join("skills")),
    ]
}

/// Handlers stand in the list themselves: a group around them, as elsewhere, would never fire.
fn hooks() -> Wanted {
    let handler = json!({ "command": "blackboard hook cursor", "timeout": 10 });
    let events = ["sessionStart", "beforeSubmitPrompt", "preToolUse", "postToolUse", "stop", "sessionEnd"];
    Wanted::Hooks(events.into_iter().map(|event| (event, handler.clone())).collect())
}
