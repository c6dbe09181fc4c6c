//! What a user of the `blackboard` command sees: the real program, one module a command, and one for each promise
//! that all of them keep.
//!
//! Tests that are about a board run on each engine: their file lists them in `testkit::on_each_engine`, one line per test.
//! A transcript is the same on each engine. Other tests have `#[test]`, and are in modules about:
//!
//! - the file of a board: `foreign_files`, `permissions`, `publishing`, parts of `configuration`, `init` and `location`, and `of_a_file`
//!   beside tests of the same subject;
//! - what uses no board: `completions`, `demo`, `exit_codes`, `output`, `setup`, `usage`, `version`;
//! - a server of its own: `redis`.

#![cfg(unix)]
#![expect(unreachable_pub, reason = "a test has no public interface: `pub` means used outside of its module")]
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod agent;
mod append;
mod call;
mod clear;
mod completions;
mod copy;
mod delete;
mod demo;
mod export;
mod file;
mod guard;
mod history;
mod hook;
mod import;
mod increment;
mod init;
mod list;
mod lock;
mod mcp;
mod notify;
mod observe;
mod page;
mod project;
mod protocol;
mod pull;
mod purge;
mod query;
mod quota;
mod read;
mod registry;
mod render;
mod run;
mod scope;
mod search;
mod serve;
mod setup;
mod snapshot;
mod spoke;
mod status;
mod sweep;
mod txn;
mod upgrade;
mod version;
mod wait;
mod work;
mod write;

mod access;
mod aliases;
mod configuration;
mod examples;
mod exit_codes;
mod foreign_files;
mod hanging;
mod hostile_entries;
mod hostile_reads;
mod hostile_text;
mod location;
mod memory;
mod missing_board;
mod output;
mod permissions;
mod publishing;
mod redis;
mod reference_fields;
mod refusals;
mod same_names;
mod sessions;
mod status_export;
mod tables;
mod times;
mod transcript;
mod usage;
mod workflows;

use testkit::{hostile_board, machine, scratch, shapes};
