//! The dashboard's server: the latency of the stream, the time of a list, and the cost of a thousand browsers.

mod listing;
mod memory;
mod pushing;
mod server;

use crate::Measurement;

pub use memory::hold;

/// Every measurement, in the order in which they run.
pub const MEASUREMENTS: &[Measurement] =
    &[("push", pushing::hearing), ("list", listing::listing), ("clients", memory::of_clients)];
