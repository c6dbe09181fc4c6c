//! Clients, and the limits of their open streams.
//!
//! A stream keeps its connection for as long as its page is open, and connections are limited. A client is one browser,
//! identified by the id in its cookie, or all other programs together, because nothing distinguishes programs on the
//! loopback interface. So a script that does not close its streams cannot keep a page from following the board. A
//! script could also exchange the token for many cookies. Therefore browsers that got their cookies within the same ten
//! minutes share a limit, and earlier and later browsers still get streams.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of streams per browser: browsers themselves open six connections to a server.
const MAX_BROWSER_STREAMS: usize = 32;

/// The sender of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// The browser with this id in its cookie.
    Browser {
        /// The random part of the id.
        id: String,
        /// The period in which the server issued it.
        window: u64,
    },
    /// Any program without such a cookie.
    Program,
}

/// The limit that refuses a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamLimit {
    /// The limit of one browser.
    Browser,
    /// The limit of all other programs.
    Programs,
    /// The limit of the server, or of all browsers with new cookies.
    Server,
}

/// The open streams.
pub struct Streams {
    /// The maximum number of streams; the remaining connections are for requests that end.
    most: usize,
    most_of_programs: usize,
    most_of_a_window: usize,
    most_of_a_browser: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    all: usize,
    by_client: HashMap<Client, usize>,
    by_window: HashMap<u64, usize>,
}

/// A permit for one stream. Dropping it releases the permit.
pub struct StreamSlot {
    streams: Arc<Streams>,
    client: Client,
}

impl Streams {
    /// The limits of a server with this many connections.
    pub fn new(connections: usize) -> Arc<Streams> {
        let quarter = (connections / 4).max(1);
        Arc::new(Streams {
            most: (3 * quarter).min(connections),
            most_of_programs: quarter,
            most_of_a_window: quarter,
            most_of_a_browser: quarter.min(MAX_BROWSER_STREAMS),
            open: Mutex::default(),
        })
    }

    /// Opens a stream for a client.
    pub fn open(self: &Arc<Streams>, client: &Client) -> Result<StreamSlot, StreamLimit> {
        let (most, limit) = match client {
            Client::Browser { .. } => (self.most_of_a_browser, StreamLimit::Browser),
            Client::Program => (self.most_of_programs, StreamLimit::Programs),
        };
        let mut open = self.lock();
        let own = open.by_client.get(client).copied().unwrap_or(0);
        if own >= most {
            return Err(limit);
        }
        if open.all >= self.most {
            return Err(StreamLimit::Server);
        }
        if let Client::Browser { window, .. } = client {
            let together = open.by_window.entry(*window).or_default();
            if *together >= self.most_of_a_window {
                return Err(StreamLimit::Server);
            }
            *together += 1;
        }
        open.all += 1;
        open.by_client.insert(client.clone(), own + 1);
        drop(open);
        Ok(StreamSlot { streams: Arc::clone(self), client: client.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        open.all -= 1;
        decrease(&mut open.by_client, &self.client);
        if let Client::Browser { window, .. } = &self.client {
            decrease(&mut open.by_window, window);
        }
    }
}

/// Decrements a count, and removes it at zero.
fn decrease<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn browser(id: usize, window: u64) -> Client {
        Client::Browser { id: id.to_string(), window }
    }

    #[test]
    fn a_client_that_has_all_of_its_streams_leaves_the_others_theirs() {
        let streams = Streams::new(400);
        let (first, second) = (browser(1, 0), browser(2, 0));
        let mut slots: Vec<_> = (0..MAX_BROWSER_STREAMS).map(|_| streams.open(&first).unwrap()).collect();
        assert_eq!(streams.open(&first).err(), Some(StreamLimit::Browser));
        slots.extend((0..100).map(|_| streams.open(&Client::Program).unwrap()));
        assert_eq!(streams.open(&Client::Program).err(), Some(StreamLimit::Programs));
        let other = streams.open(&second).unwrap();
        slots.remove(0);
        slots.push(streams.open(&first).unwrap());
        assert_eq!(streams.open(&first).err(), Some(StreamLimit::Browser));
        drop((slots, other));
        let open = streams.lock();
        assert_eq!((open.all, open.by_client.len(), open.by_window.len()), (0, 0, 0));
    }

    #[test]
    fn browsers_with_cookies_of_the_same_time_share_a_limit() {
        let streams = Streams::new(400);
        let slots: Vec<_> = (0..200).map_while(|id| streams.open(&browser(id, 7)).ok()).collect();
        assert_eq!(slots.len(), 100);
        assert_eq!(streams.open(&browser(500, 7)).err(), Some(StreamLimit::Server));
        assert!(streams.open(&browser(500, 6)).is_ok() && streams.open(&browser(500, 8)).is_ok());
        assert!(streams.open(&Client::Program).is_ok());
    }

    #[test]
    fn all_clients_together_leave_connections_for_requests() {
        let streams = Streams::new(8);
        let slots: Vec<_> = (0..100).filter_map(|id| streams.open(&browser(id, id as u64)).ok()).collect();
        assert_eq!(slots.len(), 6);
        assert_eq!(streams.open(&Client::Program).err(), Some(StreamLimit::Server));
        assert!(Streams::new(1).open(&Client::Program).is_ok());
    }
}
