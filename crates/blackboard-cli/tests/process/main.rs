//! Tests with real processes: many of them at once, killed, stopped or starved, keep every promise of
//! the board. Each test runs the real program; the library is used to prepare a board, SQL to look at one.
//!
//! Tests that are about a board run on each engine: their file lists them in `testkit::on_each_engine`, one line per test.
//! They look at the board through the program, the library or its tables ([`test_board`]). Tests that are about the file of a
//! board have `#[test]`: they hold its locks, damage it, or check what it costs. They are in modules of their own, listed
//! last below, or in a module `of_a_file` beside tests of the same subject.
//!
//! `BLACKBOARD_TEST_SCALE` multiplies the sizes, up to the full ones (see [`scale::size`]): `cargo xtask torture` runs
//! these same tests that way. A test that needs something that the machine lacks is skipped, and fails in CI.

#![cfg(target_os = "linux")]
#![expect(unreachable_pub, reason = "a test has no public interface: `pub` means used outside of its module")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot continue has failed")]

// On each engine.
mod calls;
mod claims;
mod conditions;
mod counters;
mod crash_claims;
mod crash_entries;
mod expiry;
mod fencing;
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
mod mutations;
mod pages;
mod pipes;
mod purge;
mod quota_claims;
mod readers;
mod readme;
mod render;
mod retention;
mod runs;
mod scopes;
mod swarm;
mod sweep_race;
mod unknown_outcome;
mod unreadable_rows;
mod work_imports;

// About the file of a board: its locks, bytes, schema, WAL, directory and file system.
mod demo;
mod disk_full;
mod durability;
mod file_systems;
mod migration;
mod queue;
mod quota;
mod read_only;
mod shared_quota;
mod swapped;
mod system_calls;
mod upgrade;
mod usage;
mod wal;

mod crowd;
mod entry_checks;
mod test_board;

use testkit::{machine, scale, scratch};
