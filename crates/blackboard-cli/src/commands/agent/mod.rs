//! `blackboard agent …`

pub mod deregister;
pub mod heartbeat;
pub mod list;
pub mod register;
pub mod show;
