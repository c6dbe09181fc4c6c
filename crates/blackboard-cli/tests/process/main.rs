//! Tests with real processes: many of them at once, killed, stopped or starved, keep every promise of
//! the board. Each test runs the real program; the library is used to prepare a board, SQL to look at one.
//!
//! `BLACKBOARD_TEST_SCALE` multiplies the sizes, up to the full ones (see [`scale::size`]): `cargo xtask torture` runs
//! these same tests that way. A test that needs something that the machine lacks is skipped, and fails in CI.

#![cfg(target_os = "linux")]
#![expect(unreachable_pub, reason = "a test has no public interface: `pub` means used outside of its module")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot continue has failed")]

mod claims;
mod conditions;
mod counters;
mod crash_claims;
mod crash_entries;
mod crowd;
mod demo;
mod disk_full;
mod durability;
mod entry_checks;
mod expiry;
mod fencing;
mod file_systems;
mod first_use;
mod followers;
mod gone_holders;
mod guard;
mod helper_scripts;
mod hooks;
mod large_copy;
mod liveness;
mod locks;
mod machines;
mod many_entries;
mod migration;
mod mutations;
mod pipes;
mod purge;
mod queue;
mod read_only;
mod readers;
mod readme;
mod retention;
mod runs;
mod swapped;
mod swarm;
mod sweep_race;
mod system_calls;
mod test_board;
mod unknown_outcome;
mod unreadable_rows;
mod wal;

use testkit::{machine, scale, scratch};
