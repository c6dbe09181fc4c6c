//! `blackboard mcp`

use blackboard::Result;

use super::Run;
use crate::context::Context;
use crate::mcp;
use crate::outcome::{Nothing, Outcome};

/// Run the MCP server for an agent
///
/// Speaks the Model Context Protocol on standard input and output; `setup` configures agents to start it. Acts for
/// the session of the agent that started it, or registers one when a call needs it.
///
/// Examples:
///   blackboard mcp
///   blackboard mcp --db team.db
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Mcp {}

impl Run for Mcp {
    fn run(self, context: &Context) -> Result<Outcome> {
        mcp::serve(context)?;
        Ok(Outcome::new(Nothing))
    }
}
