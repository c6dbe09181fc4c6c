//! `blackboard hook`

use blackboard::Result;

use crate::commands::Run;
use crate::context::Context;
use crate::envelope::Answer;
use crate::hooks;
use crate::outcome::{Outcome, Render};
use crate::output::{self, Screen};

/// Answer a hook of an agent platform (agents call this, not people)
///
/// Claude Code, Codex, Gemini CLI, Copilot CLI, Cursor and OpenCode run this when a session starts, a prompt is submitted, a
/// tool is used, and a session ends, with JSON on standard input. It registers the session, is its heartbeat, tells it once
/// what concerns it, and warns it before it edits a file that another agent has. Whatever goes wrong, it says nothing and
/// exits with 0; the file hook.log beside the board has a line about it. docs/hooks.md says what is called when.
///
/// Examples:
///   echo '{"session_id":"1","hook_event_name":"SessionStart","cwd":"/tmp"}' | blackboard hook claude
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Hook {
    /// Who calls: claude, codex, gemini, copilot, cursor or opencode
    #[arg(value_name = "PLATFORM", value_parser = crate::setup::AnyPlatform)]
    pub platform: String,
}

impl Run for Hook {
    fn run(self, context: &Context) -> Result<Outcome> {
        let hooks::Answer { said, afterwards } = hooks::run(&self.platform, context);
        Ok(Outcome::new(Said(said)).after_flush(afterwards))
    }
}

/// What the platform is told: one line of its own JSON, or nothing at all.
struct Said(Option<serde_json::Value>);

impl Render for Said {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        match &self.0 {
            Some(said) => answer.raw(said),
            None => Ok(()),
        }
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        match &self.0 {
            Some(said) => screen.verbatim(format_args!("{said}\n")),
            None => Ok(()),
        }
    }
}
