//! `blackboard mcp`

use blackboard::Result;

use super::Run;
use crate::context::Context;
use crate::mcp;
use crate::outcome::{Nothing, Outcome};

/// Serve the board to an agent as MCP tools
///
/// Speaks the Model Context Protocol on standard input and output, in its versions with and without `initialize`. Agents start
/// it by themselves once they are told of it, as by `claude mcp add blackboard -- blackboard mcp`. It acts for the session of
/// the agent that started it; for an agent without one it registers a session at the first call that needs it, and ends that
/// when its input ends. While the agent lives, it sends its heartbeats. docs/mcp.md has the tools and resources.
///
/// Examples:
///   blackboard mcp
///   blackboard mcp --db /srv/team/board.db
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Mcp {}

impl Run for Mcp {
    fn run(self, context: &Context) -> Result<Outcome> {
        mcp::serve(context)?;
        Ok(Outcome::new(Nothing))
    }
}
