//! The `blackboard` command.

mod config;
mod environment;
mod location;

fn main() {}
