//! What the tests of all crates share. Not published, and not a dependency of anything but tests and `xtask`.
//!
//! Without the feature `program` it does not depend on `blackboard`. The feature adds what the tests of the program need.
//!
//! | Module | Subject |
//! |---|---|
//! | `limit` | the time limit of a test |
//! | `wait` | waiting until a state is reached |
//! | `process` | processes that a test starts, and waits for them with a limit |
//! | `processes` | processes as the system shows them, and their descendants |
//! | `programs` | programs that a test makes and then runs |
//! | `proxy` | a proxy in front of a server, whose connections break |
//! | `redis` | Redis servers that a test starts |
//! | `redis_cluster` | a cluster of three servers |
//! | `redis_sentinel` | a primary, its replicas and their sentinels |
//! | `reference` | databases of ivy-blackboard |
//! | `repositories` | many bare repositories |
//! | `engine` | the engines on which a test runs |
//! | `machine` | what a test needs from the machine |
//! | `skip` | the report of tests that cannot run here |
//! | `scale` | how large a test is |
//! | `scratch` | a board for the real program: the fixture of its tests |
//! | `tables` | a board as tables, to look at it with SQL |
//! | `server` | the server of a board: the fixture of a served board |
//! | `shapes` | the fields of JSON output |
//! | `hostile_board` | boards with hostile text in every column |
//!
//! A test that does more than compare literal values begins with [`limit_test`] or [`tempdir`], directly or in
//! its fixture. It waits for processes by [`process`], whose waits have a limit.

#![expect(clippy::missing_panics_doc, reason = "a fixture that cannot continue fails its test")]
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a fixture that cannot continue fails its test")]

#[cfg(unix)]
pub mod engine;
#[cfg(all(unix, feature = "program"))]
pub mod hostile_board;
mod limit;
pub mod machine;
pub mod process;
pub mod processes;
#[cfg(unix)]
mod programs;
#[cfg(unix)]
pub mod proxy;
#[cfg(unix)]
pub mod redis;
#[cfg(unix)]
pub mod redis_cluster;
#[cfg(unix)]
pub mod redis_sentinel;
pub mod reference;
pub mod repositories;
pub mod scale;
#[cfg(all(unix, feature = "program"))]
pub mod scratch;
#[cfg(all(unix, feature = "program"))]
pub mod server;
#[cfg(all(unix, feature = "program"))]
pub mod shapes;
#[cfg(unix)]
mod signals;
mod skip;
#[cfg(all(unix, feature = "program"))]
mod tables;
#[cfg(all(unix, feature = "program"))]
mod tamper;
mod wait;

pub use limit::{limit_test, limited, without_limit};
#[cfg(unix)]
pub use programs::{copy_program, write_program};
pub use skip::{VARIABLE as SKIPS_VARIABLE, skip};
pub use wait::{patience, wait_until};

/// A directory that is removed when the value is dropped. It starts the time limit of the test.
pub fn tempdir() -> std::io::Result<tempfile::TempDir> {
    limit_test();
    tempfile::tempdir()
}
