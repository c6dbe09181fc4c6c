//! Maps request paths to handlers.

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
use crate::quota::QuotaReader;
use crate::unreadable::UnreadableRows;

/// What a handler of the API gets.
pub struct ApiRequest<'a> {
    /// The board, or an empty one if there is none; for [`ABOUT`] also if it cannot be read.
    pub board: &'a Board,
    /// The query string.
    pub query: &'a str,
    /// The rest of the path after the noun, for example `design-schema` in `/api/work/design-schema`.
    pub id: &'a str,
    /// The state of the board.
    pub feed: &'a Feed,
    /// The token quota, if it is configured.
    pub quota: Option<&'a QuotaReader>,
}

impl ApiRequest<'_> {
    /// Parses the parameters, and refuses names that are not in this list.
    pub fn query(&self, known: &[&str]) -> Result<Query> {
        Query::parse(self.query, known)
    }
}

type Answer = fn(&ApiRequest<'_>) -> Result<Reply>;

/// The path that answers even if the board cannot be read, with the reason.
const ABOUT: &str = "/api/board";

/// The paths of the API and their handlers. A path that ends with a slash is followed by an id.
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
    ("/api/quota", api::quota::status),
];

/// The path of the stream.
const STREAM: &str = "/api/events/stream";

/// What all handlers of a server share.
pub struct Shared {
    /// The state of the board.
    pub feed: Arc<Feed>,
    /// Which requests are answered.
    pub access: Access,
    /// The open streams.
    pub streams: Arc<Streams>,
    /// The beginning of a command for the board, for the page.
    pub program: String,
    /// The token quota, if it is configured.
    pub quota: Option<Arc<QuotaReader>>,
}

/// Handles a request.
pub async fn answer(request: Parts, shared: Arc<Shared>) -> Reply {
    let head = request.method == Method::HEAD;
    let (mut reply, nonce) = match shared.access.admit(&request) {
        Err(refusal) => (*refusal, None),
        Ok(_) if request.method != Method::GET && !head => (reply::not_allowed(), None),
        Ok(_) if request.uri.path() == "/" => {
            let nonce = nonce();
            (
                reply::text(
                    "text/html; charset=utf-8",
                    page::document(&nonce, &shared.program, shared.quota.is_some()),
                ),
                Some(nonce),
            )
        }
        Ok(client) => (route(request, &client, &shared).await, None),
    };
    reply::protect(&mut reply, nonce.as_deref());
    if head && matches!(reply.body(), Body::Events(_)) {
        // A HEAD request gets only the headers: the stream has no end.
        *reply.body_mut() = Body::Whole(hyper::body::Bytes::new());
    }
    reply
}

async fn route(request: Parts, client: &Client, shared: &Shared) -> Reply {
    let path = request.uri.path();
    let (feed, quota) = (Arc::clone(&shared.feed), shared.quota.clone());
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
    // Read before the response: a client that follows from there notices if the board was replaced.
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
            let quota = quota.as_deref();
            let mut reply = answer(&ApiRequest { board, query, id: &id, feed: &feed, quota })?;
            reply::note_unreadable(&mut reply, &unreadable.list());
            Ok(reply)
        })
    });
    let outcome = match answered {
        Ok(answered) => answered.await.unwrap_or_else(|error| {
            Err(Fault::new(Code::Internal, "internal error in a request").because(error).into())
        }),
        Err(error) => Err(error),
    };
    let mut reply = outcome.unwrap_or_else(|error| reply::failure(&error));
    if let Ok(identity) = HeaderValue::from_str(&identity) {
        reply.headers_mut().insert(reply::BOARD, identity);
    }
    reply
}

/// The handler of a path, and the id at its end.
fn find(path: &str) -> Option<(Answer, &str)> {
    API.iter().find_map(|&(known, answer)| {
        let id = path.strip_prefix(known)?;
        let fits = if known.ends_with('/') { !id.is_empty() && !id.contains('/') } else { id.is_empty() };
        fits.then_some((answer, id))
    })
}

/// A random text that no client can know in advance.
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
