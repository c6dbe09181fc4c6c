//! Claude Code.

use jsonc_parser::json;

use super::content::Content;
use super::json::Wanted;
use super::platform::{Part, Places, Platform, Scope, Target, grouped, servers, skill};

pub const CLAUDE: Platform = Platform {
    name: "claude",
    title: "Claude Code",
    program: "claude",
    scopes: &[Scope::User, Scope::Project, Scope::Local],
    directory: Places::claude,
    targets,
    afterwards: |scope| match scope {
        Scope::User | Scope::Local => &["restart the sessions that run now: hooks are read when one starts"],
        Scope::Project => &[
            "everybody who works here is asked once whether to trust the project's hooks and its MCP server (.mcp.json)",
            "restart the sessions that run now: hooks are read when one starts",
        ],
    },
};

fn targets(places: &Places, scope: Scope) -> Vec<Target> {
    let directory = match scope {
        Scope::User => places.claude(),
        Scope::Project | Scope::Local => places.project.join(".claude"),
    };
    let settings = if scope == Scope::Local { "settings.local.json" } else { "settings.json" };
    // The file in which Claude Code keeps its own state; `claude mcp add` writes the same there.
    let state = places.claude_state();
    let (servers_file, path) = match scope {
        Scope::User => (state, servers("mcpServers")),
        Scope::Project => (places.project.join(".mcp.json"), servers("mcpServers")),
        Scope::Local => {
            let project = places.project.display().to_string();
            (state, [vec!["projects".to_owned(), project], servers("mcpServers")].concat())
        }
    };
    let server = json!({ "type": "stdio", "command": "blackboard", "args": ["mcp"] });
    let server = Target::new(Part::Server, servers_file, Content::Json(vec![Wanted::Server(path, server)]));
    let own_command = format!("claude mcp add --scope {} blackboard -- blackboard mcp", scope.as_str());
    let mut targets = vec![
        Target::new(Part::Hooks, directory.join(settings), Content::Json(vec![hooks()])),
        Target { is_private: scope != Scope::Project, own_command: Some(own_command), ..server },
    ];
    // A skill is for everybody or for this user; there is no third place.
    if scope != Scope::Local {
        targets.push(skill(&directory.join("skills")));
    }
    targets
}

/// With `args` the program is started without a shell: the agent is its parent, and nothing needs quoting.
fn hooks() -> Wanted {
    let handler =
        || json!({ "type": "command", "command": "blackboard", "args": ["hook", "claude"], "timeout": 5 });
    Wanted::Hooks(vec![
        ("SessionStart", grouped(None, handler())),
        ("UserPromptSubmit", grouped(None, handler())),
        ("PreToolUse", grouped(Some("Edit|MultiEdit|Write|NotebookEdit|Task|Agent"), handler())),
        ("PostToolUse", grouped(None, handler())),
        ("SubagentStart", grouped(None, handler())),
        ("SubagentStop", grouped(None, handler())),
        ("Stop", grouped(None, handler())),
        ("SessionEnd", grouped(None, handler())),
    ])
}
