//! Scopes with policies, and files with many entries.

mod evictions;
mod files;
mod plain;
mod writes;

use crate::Measurement;

/// Every measurement, in the order in which they run.
pub const MEASUREMENTS: &[Measurement] = &[
    ("plain", plain::writing),
    ("policies", writes::writing),
    ("eviction", evictions::evicting),
    ("files", files::importing_and_rendering),
];
