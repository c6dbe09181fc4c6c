//! What the tests of all crates share. Not published, and not a dependency of anything but tests.
//!
//! It does not depend on `blackboard`, so the library's own unit tests can use it.
//!
//! | Module | What it is about |
//! |---|---|
//! | `limit` | the time limit of a test |
//! | `wait` | waiting until a state is reached |
//! | `process` | processes that a test starts |
//! | `machine` | what a test needs of the machine |
//! | `scale` | how large a test is |
//!
//! A test that starts a thread or a process, waits, or uses files begins with [`limit_test`] or [`tempdir`], directly
//! or in its fixture.

#![expect(clippy::missing_panics_doc, reason = "a fixture that cannot continue fails its test")]
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a fixture that cannot continue fails its test")]

#[cfg(target_os = "linux")]
mod descendants;
mod limit;
pub mod machine;
#[cfg(unix)]
pub mod process;
pub mod scale;
#[cfg(unix)]
mod signals;
mod wait;

pub use limit::{limit_test, without_limit};
pub use wait::{patience, wait_until};

/// A directory that is removed when the value is dropped. It starts the time limit of the test.
pub fn tempdir() -> std::io::Result<tempfile::TempDir> {
    limit_test();
    tempfile::tempdir()
}
