//! The dashboard's server: how soon a browser hears, how long a list takes, and what a thousand of them cost.

mod listing;
mod memory;
mod pushing;
mod server;

use crate::Measurement;

pub use memory::hold;

/// Every measurement, in the order in which they run.
pub const MEASUREMENTS: &[Measurement] =
    &[("push", pushing::hearing), ("list", listing::listing), ("clients", memory::of_clients)];
