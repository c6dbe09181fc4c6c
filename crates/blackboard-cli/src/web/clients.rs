//! Clients, and how many streams each of them may have open.
//!
//! A stream keeps its connection for as long as its page is open, and connections are limited. A client is a browser,
//! by the id in its cookie, or all other programs together: on the loopback interface nothing tells one program from
//! another. So a script that forgets to close its streams keeps no page from following the board.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many streams one browser may have: browsers themselves open six connections to a server.
const OF_A_BROWSER: usize = 32;

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// The browser with this id in its cookie.
    Browser(String),
    /// Any program without such a cookie.
    Program,
}

/// The streams that are open.
pub struct Streams {
    /// How many there may be in all; the other connections are for requests that end.
    most: usize,
    most_of_programs: usize,
    most_of_a_browser: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    all: usize,
    by_client: HashMap<Client, usize>,
}

/// The right to one stream, as long as the value exists.
pub struct StreamSlot {
    streams: Arc<Streams>,
    client: Client,
}

impl Streams {
    /// For a server with this many connections.
    pub fn new(connections: usize) -> Arc<Streams> {
        let quarter = (connections / 4).max(1);
        Arc::new(Streams {
            most: (3 * quarter).min(connections),
            most_of_programs: quarter,
            most_of_a_browser: quarter.min(OF_A_BROWSER),
            open: Mutex::default(),
        })
    }

    /// Opens one for a client; `None` if it, or all together, have as many as they may.
    pub fn open(self: &Arc<Streams>, client: &Client) -> Option<StreamSlot> {
        let most = match client {
            Client::Browser(_) => self.most_of_a_browser,
            Client::Program => self.most_of_programs,
        };
        let mut open = self.lock();
        let own = open.by_client.get(client).copied().unwrap_or(0);
        if own >= most || open.all >= self.most {
            return None;
        }
        open.all += 1;
        open.by_client.insert(client.clone(), own + 1);
        drop(open);
        Some(StreamSlot { streams: Arc::clone(self), client: client.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        open.all -= 1;
        if let Some(own) = open.by_client.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                open.by_client.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_has_all_of_its_streams_leaves_the_others_theirs() {
        let streams = Streams::new(400);
        let [first, second] = ["a", "b"].map(|id| Client::Browser(id.to_owned()));
        let mut slots: Vec<_> = (0..OF_A_BROWSER).map(|_| streams.open(&first).unwrap()).collect();
        assert!(streams.open(&first).is_none());
        slots.extend((0..100).map(|_| streams.open(&Client::Program).unwrap()));
        assert!(streams.open(&Client::Program).is_none());
        let other = streams.open(&second).unwrap();
        slots.remove(0);
        slots.push(streams.open(&first).unwrap());
        assert!(streams.open(&first).is_none());
        drop((slots, other));
        let open = streams.lock();
        assert_eq!((open.all, open.by_client.len()), (0, 0));
    }

    #[test]
    fn all_clients_together_leave_connections_for_requests() {
        let streams = Streams::new(8);
        let slots: Vec<_> =
            (0..100).filter_map(|id| streams.open(&Client::Browser(format!("{id}")))).collect();
        assert_eq!(slots.len(), 6);
        assert!(Streams::new(1).open(&Client::Program).is_some());
    }
}
