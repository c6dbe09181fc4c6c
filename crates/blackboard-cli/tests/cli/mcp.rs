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

testkit::on_each_engine![human_output_matches_transcript,];

fn human_output_matches_transcript() {
    transcript::check("mcp");
}
