//! The MCP server on standard input and output: one file per noun, and what they share.
//!
//! The runtime has one thread; functions that use the board run on a few others ([`state::blocking`]). All share one
//! board. Calls that wait for a key, a lock or a change share one thread that follows the event log ([`watcher`]).
//!
//! A refusal of the board is a tool result that is marked as an error, with code, hint and details, so that the model
//! reads it. Protocol errors are only for messages that are not tool calls.
//!
//! This module contains no rules of the board. Writes get no idempotency key automatically: a client that retries sends
//! a new request id, so the server cannot distinguish a retry from a second call (`docs/decisions/0009`). A caller that
//! needs one passes `op`.

mod agent;
mod entry;
mod event;
mod handshake;
mod hints;
mod hold;
mod input;
mod keep_alive;
mod memory;
mod reply;
mod resource;
mod schema;
mod server;
mod session;
mod state;
mod tools;
mod wait;
mod watcher;
mod work;

pub use server::serve;
