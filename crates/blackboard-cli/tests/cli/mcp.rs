//! The MCP server, as a client sees it: raw JSON-RPC over the pipes of the real program.

pub mod client;
mod inspector;
mod protocol;
mod replaced;
mod sessions;
mod subscriptions;
mod tools;
mod waiting;

use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("mcp");
}
