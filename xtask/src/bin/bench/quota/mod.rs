//! The token quota: its commands against others, and the size of its ledger.

mod commands;
mod ledger;
mod size;

use crate::Measurement;

/// Every measurement, in the order in which they run.
pub const MEASUREMENTS: &[Measurement] = &[("commands", commands::measure), ("size", size::measure)];
