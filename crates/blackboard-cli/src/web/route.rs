//! Which path is what.

use std::sync::Arc;

use blackboard::{Board, Code, Fault, Result};
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use uuid::Uuid;

use super::access::Access;
use super::clients::{Client, Streams};
use super::feed::Feed;
use super::query::{Query, decoded};
use super::reply::{self, Body, Reply};
use super::stream::Stream;
use super::{api, page};
use crate::unreadable::UnreadableRows;

/// What an answer of the API is made from.
pub struct Asked<'a> {
    /// The board, which is empty if there is none; for [`ABOUT`] also if it can't be read.
    pub board: &'a Board,
    /// What stands behind the question mark.
    pub query: &'a str,
    /// What follows the noun in the path, as in `/api/work/design-schema`.
    pub id: &'a str,
    /// What is known of the board.
    pub feed: &'a Feed,
}

impl Asked<'_> {
    /// The parameters, of which these are known.
    pub fn query(&self, known: &[&str]) -> Result<Query> {
        Query::parse(self.query, known)
    }
}

type Answer = fn(&Asked<'_>) -> Result<Reply>;

/// The path that also answers if the board can't be read, and says why.
const ABOUT: &str = "/api/board";

/// The API: each path and what answers it. A path that ends with a slash has one more part, an id.
const API: &[(&str, Answer)] = &[
    ("/api/status", api::status::counts),
    (ABOUT, api::board::about),
    ("/api/agents", api::agents::list),
    ("/api/agents/", api::agents::show),
    ("/api/agent", api::agents::named),
    ("/api/work", api::work::list),
    ("/api/work/", api::work::show),
    ("/api/item", api::work::named),
    ("/api/lanes", api::work::lanes),
    ("/api/events", api::events::list),
    ("/api/projects", api::projects::list),
    ("/api/entries", api::entries::list),
    ("/api/entries/history", api::entries::history),
    ("/api/scopes", api::entries::scopes),
    ("/api/locks", api::locks::list),
];

/// The path of the stream.
const STREAM: &str = "/api/events/stream";

/// What the answers of one server have in common.
pub struct Shared {
    /// What is known of the board.
    pub feed: Arc<Feed>,
    /// Which requests are answered.
    pub access: Access,
    /// The streams that are open.
    pub streams: Arc<Streams>,
}

/// Answers a request.
pub async fn answer(request: Parts, shared: Arc<Shared>) -> Reply {
    let head = request.method == Method::HEAD;
    let (mut reply, nonce) = match shared.access.admit(&request) {
        Err(refusal) => (*refusal, None),
        Ok(_) if request.method != Method::GET && !head => (reply::not_allowed(), None),
        Ok(_) if request.uri.path() == "/" => {
            let nonce = nonce();
            (reply::text("text/html; charset=utf-8", page::document(&nonce)), Some(nonce))
        }
        Ok(client) => (route(request, &client, &shared).await, None),
    };
    reply::protect(&mut reply, nonce.as_deref());
    if head && matches!(reply.body(), Body::Events(_)) {
        // Only its headers are wanted, and it has no end.
        *reply.body_mut() = Body::Whole(hyper::body::Bytes::new());
    }
    reply
}

async fn route(request: Parts, client: &Client, shared: &Shared) -> Reply {
    let path = request.uri.path();
    let feed = Arc::clone(&shared.feed);
    if path == "/favicon.ico" {
        return reply::empty(StatusCode::NO_CONTENT);
    }
    if path == STREAM {
        let slot = match shared.streams.open(client) {
            Ok(slot) => slot,
            Err(limit) => return reply::too_many_streams(limit),
        };
        return Stream::open(&request, feed, slot).await.unwrap_or_else(|error| reply::failure(&error));
    }
    let Some((answer, id)) = find(path) else { return reply::not_found() };
    // Before the answer: a client that follows from there is notified if the board was replaced.
    let identity = feed.identity();
    let answered = decoded(id).map(|id| {
        tokio::task::spawn_blocking(move || {
            let board = match feed.board() {
                Err(_) if request.uri.path() == ABOUT => feed.empty(),
                board => board?,
            };
            let unreadable = UnreadableRows::default();
            let board = &unreadable.observe(board);
            let query = request.uri.query().unwrap_or("");
            let mut reply = answer(&Asked { board, query, id: &id, feed: &feed })?;
            reply::note_unreadable(&mut reply, &unreadable.list());
            Ok(reply)
        })
    });
    let outcome = match answered {
        Ok(answered) => answered.await.unwrap_or_else(|error| {
            Err(Fault::new(Code::Internal, "a request broke down").because(error).into())
        }),
        Err(error) => Err(error),
    };
    let mut reply = outcome.unwrap_or_else(|error| reply::failure(&error));
    if let Ok(identity) = HeaderValue::from_str(&identity) {
        reply.headers_mut().insert(reply::BOARD, identity);
    }
    reply
}

/// What answers a path, and the id at its end.
fn find(path: &str) -> Option<(Answer, &str)> {
    API.iter().find_map(|&(known, answer)| {
        let id = path.strip_prefix(known)?;
        let fits = if known.ends_with('/') { !id.is_empty() && !id.contains('/') } else { id.is_empty() };
        fits.then_some((answer, id))
    })
}

/// A word that no client can know before the page is made.
fn nonce() -> String {
    Uuid::new_v4().simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_as_it_is_written_or_not_at_all() {
        for (path, id) in [("/api/work", ""), ("/api/work/a%2Fb", "a%2Fb"), ("/api/entries/history", "")] {
            assert_eq!(find(path).map(|(_, id)| id), Some(id), "{path}");
        }
        for path in [
            "",
            "/api",
            "/api/",
            "/api/work/",
            "/api/work//",
            "/api/work/a/b",
            "//api/work",
            "/api/../api/work",
            "/API/work",
            "/api/works",
            "/api/work/../status/x",
            "/index.html",
            "/.git/config",
        ] {
            assert!(find(path).is_none(), "{path}");
        }
    }

    #[test]
    fn a_nonce_is_never_the_same() {
        assert_ne!(nonce(), nonce());
        assert_eq!(nonce().len(), 32);
    }
}
