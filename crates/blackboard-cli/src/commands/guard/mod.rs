//! `blackboard guard …`

pub mod check;
mod hook;
pub mod install;
pub mod remove;
