//! `blackboard project …`

pub mod list;
pub mod register;
pub mod remove;
pub mod status;
