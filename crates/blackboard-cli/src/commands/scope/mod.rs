//! `blackboard scope …`

pub mod create;
pub mod delete;
pub mod list;
pub mod set;
pub mod show;
