//! OpenCode, which runs no commands for events: a small plugin does that.

use jsonc_parser::json;

use super::content::Content;
use super::json::Wanted;
use super::platform::{Part, Places, Platform, Scope, Target, servers, skill};

pub const OPENCODE: Platform = Platform {
    name: "opencode",
    title: "OpenCode",
    program: "opencode",
    scopes: &[Scope::User, Scope::Project],
    directory: Places::opencode,
    targets,
    afterwards: |_| &["restart OpenCode: plugins are loaded when it starts"],
};

const PLUGIN: &str = include_str!("opencode.js");

fn targets(places: &Places, scope: Scope) -> Vec<Target> {
    let (settings, directory) = match scope {
        Scope::User | Scope::Local => (places.opencode(), places.opencode()),
        Scope::Project => (places.project.clone(), places.project.join(".opencode")),
    };
    // Either name is read; a second file beside the one that is there would only confuse.
    let with_comments = settings.join("opencode.jsonc");
    let settings = if with_comments.exists() { with_comments } else { settings.join("opencode.json") };
    let server = json!({ "type": "local", "command": ["blackboard", "mcp"], "enabled": true });
    vec![
        Target::new(Part::Hooks, directory.join("plugins/blackboard.js"), Content::Whole(PLUGIN)),
        Target::new(Part::Server, settings, Content::Json(vec![Wanted::Server(servers("mcp"), server)])),
        skill(&directory.join("skills")),
    ]
}
