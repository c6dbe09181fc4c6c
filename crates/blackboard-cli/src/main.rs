//! The `blackboard` command.

mod config;
mod environment;

fn main() {}
