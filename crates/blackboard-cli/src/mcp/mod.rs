//! The board as an MCP server on standard input and output: one file a noun, and what all of them use.
//!
//! Here alone a runtime runs, on one thread; what touches the board goes to a few others ([`state::blocking`]). All share
//! one board. A call that waits for a key, a lock or a change waits for one thread that follows the log ([`watcher`]), however
//! many they are.
//!
//! A refusal of the board is the result of a tool, marked as an error, with code, hint and details: the model is to read
//! it. Errors of the protocol are for what is no call of a tool at all.
//!
//! Nothing here decides a rule of the board. A write is not given the name of an operation: a client that tries again sends
//! another request id, so that nothing tells a repetition from a second call (`docs/decisions/0009`). Who wants that passes `op`.

mod agent;
mod entry;
mod event;
mod handshake;
mod hints;
mod hold;
mod input;
mod keep_alive;
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
