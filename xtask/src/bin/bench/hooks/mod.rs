//! Hooks, and the MCP server.

pub mod agents;
mod commands;
mod crowd;
mod server;

use crate::Measurement;

/// Every measurement, in the order in which they run.
pub const MEASUREMENTS: &[Measurement] = &[
    ("throttled", commands::throttled),
    ("writing", commands::writing),
    ("usage", commands::usage),
    ("crowd", crowd::measure),
    ("claim", server::claims),
    ("footprint", server::footprint),
];
