//! The ledger: agents, work, heartbeats and the event log.

mod commands;
mod contention;
mod footprint;
mod imports;
mod log;
mod pull;
mod sweeping;
mod throughput;
mod upgrade;
pub mod worker;

use crate::Measurement;

/// Every measurement, in the order in which they run.
pub const MEASUREMENTS: &[Measurement] = &[
    ("commands", commands::measure),
    ("throughput", throughput::measure),
    ("paced", contention::paced),
    ("bursts", contention::bursts),
    ("closed-loop", contention::closed_loop),
    ("log-lengths", log::lengths),
    ("sweep-idle", sweeping::nothing_to_do),
    ("sweep-dead", sweeping::the_dead),
    ("event-room", log::room),
    ("pruning", log::pruning),
    ("telling", log::telling),
    ("upgrade", upgrade::measure),
    ("pull", pull::measure),
    ("import", imports::measure),
    ("footprint", footprint::measure),
];
