//! The `blackboard` command.

fn main() {}
