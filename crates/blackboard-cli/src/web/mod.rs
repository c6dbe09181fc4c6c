//! The dashboard: a web server on the loopback interface that shows a board and changes nothing.
//!
//! It opens the board to read alone: it neither sweeps nor expires, it shows what is overdue. One runtime on one
//! thread talks to the browsers, a few threads ask the board for them, and one thread follows the log ([`feed`]).
//! That one reads and serialises each commit once, however many browsers follow it ([`stream`]): a client costs a
//! connection and a place in the log, and no thread, query or connection to the board.
//!
//! What the board answers carries the header `Blackboard-Revision`, the revision at which it was read;
//! `/api/events/stream?after=REVISION` goes on from there, so that nothing is missed in between. The answers that
//! seed 000 has are bare: what it lists, its columns, its order, and more columns behind. Where such a list was cut
//! off, the header `Blackboard-Next` says where it goes on. All other answers have the envelope of commands.
//!
//! | File | What it is about |
//! |---|---|
//! | `server.rs` | listening, connections and their limits, stopping |
//! | `route.rs` | which path is what |
//! | `access.rs` | which requests are answered: `Host`, `Origin`, the token, and the cookie that a browser gets for it |
//! | `clients.rs` | how many streams one client may have |
//! | `query.rs` | the words of a request |
//! | `reply.rs` | an answer, the headers that all have, and how it becomes bytes |
//! | `feed.rs` | the one thread that follows the board, and what it has read last |
//! | `event_view.rs` | an event as browsers get it |
//! | `stream.rs` | server-sent events |
//! | `api/` | the answers, one file a noun |
//! | `page/` | the page |
//! | `browser.rs` | opening the page |
//! | `background.rs` | the server as a process of its own: which one runs, starting and stopping it |

mod access;
mod api;
mod background;
mod browser;
mod clients;
mod event_view;
mod feed;
#[cfg(test)]
mod gaps;
mod page;
mod query;
mod reply;
mod route;
mod server;
mod stream;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub use background::ServerRegistration;
pub use background::{Running, detach, find, start_in_background, stop};
pub use browser::open;
pub use server::{Listening, Options};
