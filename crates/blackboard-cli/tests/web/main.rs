//! The dashboard's server, as a browser and as an attacker see it: raw HTTP to the real program.
//!
//! What is about the content of a board runs on each engine: its file lists it in `testkit::on_each_engine`. Tests of HTTP, of
//! tokens, of limits and of the file of a board have `#[test]`.
//!
//! The answers of the API are compared with the `--json` output of commands on the same board.

#![cfg(target_os = "linux")]
#![expect(unreachable_pub, reason = "a test has no public interface: `pub` means used outside of its module")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot continue has failed")]

mod background;
mod client;
mod conditions;
mod crowd;
mod hostile;
mod limits;
mod pages;
mod quota;
mod routes;
mod security;
mod served;
mod stream;
mod token;
mod writes;

use testkit::{hostile_board, scale, scratch};
