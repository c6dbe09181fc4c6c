//! The dashboard: a web server on the loopback interface that shows a board and changes nothing.
//!
//! It opens the board read-only: it neither sweeps nor expires anything, and shows what is overdue. One runtime on one
//! thread serves the browsers, a few threads read the board for them, and one thread follows the event log ([`feed`]).
//! That thread reads and serializes each commit once, for all browsers ([`stream`]): a client costs a connection and a
//! cursor, but no thread, query or connection to the board.
//!
//! Responses with data of the board have the header `Blackboard-Revision`, the revision at which it was read.
//! `/api/events/stream?after=REVISION` continues there, so no event is missed. The responses that seed 000 defines are
//! bare: its lists, its columns, its order, with more columns at the end. If such a list is incomplete, the header
//! `Blackboard-Next` has the token of the next page. All other responses have the same envelope as JSON output of
//! commands.
//!
//! | File | Content |
//! |---|---|
//! | `server.rs` | the listening socket, connections and their limits, shutdown |
//! | `route.rs` | maps paths to handlers |
//! | `access.rs` | which requests are answered: `Host`, `Origin`, the token, and the cookie that a browser gets for it |
//! | `clients.rs` | the limits of streams per client |
//! | `query.rs` | decoding of paths and query strings |
//! | `reply.rs` | responses, and the headers that all of them have |
//! | `feed.rs` | the thread that follows the board, and the commits that it read last |
//! | `event_view.rs` | an event in the form that browsers get |
//! | `stream.rs` | server-sent events |
//! | `api/` | the responses, one file per noun |
//! | `page/` | the page |
//! | `browser.rs` | opens the page in a browser |
//! | `background.rs` | the server as a background process: registering, finding, starting and stopping it |

mod access;
mod api;
mod background;
mod browser;
mod clients;
mod event_view;
mod feed;
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
