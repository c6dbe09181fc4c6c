//! Server-sent events: what happens on the board, as it happens.
//!
//! `GET /api/events/stream?after=REVISION`, or with the header `Last-Event-ID`, goes on behind that revision; without
//! either it begins now. First comes `retry: 2000`, then a message an event without an `event:` line, whose `id` is
//! the event's revision and whose `data` is the event. Every 15 seconds in which nothing happens there is a comment.
//! What retention has removed can't be told any more: that is answered with 410 and the code `compacted`, and the
//! page starts over.
//!
//! `board=`, with the header `Blackboard-Board` of what the page has read, refuses to go on with another board (410,
//! `other_board`): revisions of one mean nothing on another.
//!
//! A client that is too slow for what happens is cut off, and goes on by its `Last-Event-ID` when it comes back.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use blackboard::{Code, Fault, Result, Revision};
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use tokio::sync::watch;
use tokio::time::sleep;

use super::clients::StreamSlot;
use super::feed::{Feed, Following};
use super::query::{Query, revision};
use super::reply::{Body, REVISION, Reply, refused};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// What a browser is told first: how long to wait before it comes back.
const GREETING: &[u8] = b"retry: 2000\n\n";

const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// How long nothing may be sent.
const QUIET: Duration = Duration::from_secs(15);

/// What comes next, once it is there, and where the client is then; `None` at the end.
type Next = Pin<Box<dyn Future<Output = Option<(Bytes, StreamPosition)>> + Send>>;

/// What one client gets.
pub struct Stream {
    /// What is being waited for; `None` at the end.
    next: Option<Next>,
    /// Counts among the streams of its client until this value is dropped.
    _slot: StreamSlot,
}

/// Where a client is.
struct StreamPosition {
    feed: Arc<Feed>,
    changes: watch::Receiver<u64>,
    generation: u64,
    position: Revision,
    /// Whether it has once read all that there was. From then on it has to keep up.
    caught_up: bool,
}

impl Stream {
    /// The answer to a request for the stream.
    pub async fn open(request: &Parts, feed: Arc<Feed>, slot: StreamSlot) -> Result<Reply> {
        let query = Query::parse(request.uri.query().unwrap_or(""), &["after", "board"])?;
        // What a browser has seen since is newer than what its page asked for at first.
        let seen = match request.headers.get(LAST_EVENT_ID).map(HeaderValue::to_str) {
            Some(Ok(text)) if !text.is_empty() => Some(revision(text)?),
            _ => query.revision("after")?,
        };
        // One that can't be read now has nothing to follow.
        let looked_at = Arc::clone(&feed);
        blocking(move || looked_at.board()).await?;
        let changes = feed.changes();
        let (generation, end) = feed.place();
        if query.text("board").is_some_and(|board| board != feed.identity()) {
            return Ok(refused(
                StatusCode::GONE,
                "other_board",
                "this is another board than the one that was read",
                "read everything again, and continue from there",
            ));
        }
        let position = seen.unwrap_or(end);
        let place = StreamPosition { feed, changes, generation, position, caught_up: false };
        let place = place.checked().await?;
        let mut reply = Response::new(Body::Events(Box::new(Stream {
            next: Some(Box::pin(std::future::ready(Some((Bytes::from_static(GREETING), place))))),
            _slot: slot,
        })));
        let headers = reply.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
        headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
        headers.insert(REVISION, HeaderValue::from(position.get()));
        Ok(reply)
    }

    /// The next bytes; `None` at the end.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        match next.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some((bytes, place))) => {
                self.next = Some(Box::pin(place.next()));
                Poll::Ready(Some(bytes))
            }
            Poll::Ready(None) => {
                self.next = None;
                Poll::Ready(None)
            }
        }
    }
}

impl StreamPosition {
    /// Refuses a place of which the board knows nothing: it was pruned, or lies ahead.
    async fn checked(self) -> Result<StreamPosition> {
        let (_, end) = self.feed.place();
        if self.position == end || matches!(self.look(), Following::Next(..)) {
            return Ok(self);
        }
        let feed = Arc::clone(&self.feed);
        let position = self.position;
        blocking(move || feed.board()?.events().lines(position, 1)).await?;
        Ok(self)
    }

    fn look(&self) -> Following {
        self.feed.following(self.generation, self.position)
    }

    /// What comes next. The client is let go if it is too slow, and when the board is another one.
    async fn next(mut self) -> Option<(Bytes, StreamPosition)> {
        loop {
            // Before the look: what happens after it ends the wait.
            self.changes.borrow_and_update();
            match self.look() {
                Following::Next(bytes, last) => {
                    self.position = last;
                    return Some((bytes, self));
                }
                Following::Nothing => {
                    self.caught_up = true;
                    tokio::select! {
                        changed = self.changes.changed() => changed.ok()?,
                        () = sleep(QUIET) => return Some((Bytes::from_static(KEEP_ALIVE), self)),
                    }
                }
                Following::InLog if self.caught_up => return None,
                Following::InLog => {
                    let (feed, position) = (Arc::clone(&self.feed), self.position);
                    let (bytes, last) = blocking(move || feed.read_log(position)).await.ok().flatten()?;
                    if self.feed.place().0 != self.generation {
                        return None;
                    }
                    self.position = last;
                    return Some((bytes, self));
                }
                Following::Elsewhere => return None,
            }
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Fault::new(Code::Internal, "a request broke down").because(error).into()))
}
