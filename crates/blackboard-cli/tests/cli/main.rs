//! What a user of the `blackboard` command sees: the real program, one module a command.

#![expect(unreachable_pub, reason = "a test has no public interface: `pub` means used outside of its module")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

mod completions;
mod output;
mod scratch;
mod usage;
mod version;
