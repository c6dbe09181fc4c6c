//! A board on a Redis server, against what the same server does without the board.

mod claims;
mod commands;
pub mod crowd;
mod fleet;
mod floor;
mod followers;
mod writes;

use crate::Measurement;

/// Every measurement, in the order in which they run.
pub const MEASUREMENTS: &[Measurement] = &[
    ("claim", claims::claiming),
    ("write", writes::writing),
    ("commands", commands::commands),
    ("follow", followers::hearing),
    ("crowd", crowd::claiming),
    ("fleet", fleet::ten_thousand),
    ("binary", commands::binary),
];
