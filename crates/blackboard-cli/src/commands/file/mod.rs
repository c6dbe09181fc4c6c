//! `blackboard file …`

pub mod check;
pub mod list;
pub mod release;
pub mod reserve;
