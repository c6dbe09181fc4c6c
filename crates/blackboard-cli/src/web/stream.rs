//! Server-sent events: the events of the board, as they happen.
//!
//! `GET /api/events/stream?after=REVISION`, or the header `Last-Event-ID`, continues after that revision; without
//! either, the stream starts now. First comes `retry: 2000`, then one message per event without an `event:` line, whose
//! `id` is the event's revision and whose `data` is the event. Every 15 seconds without an event there is a comment. If
//! the revision has been pruned, the response is 410 with the code `compacted`, and the page starts over.
//!
//! `board=`, with the `Blackboard-Board` header of what the page has read, refuses to continue on a different board
//! (410, `other_board`): revisions of one board mean nothing on another.
//!
//! A client that reads too slowly is disconnected, and continues with its `Last-Event-ID` when it reconnects.

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

/// The first line of a stream: how long a browser waits before it reconnects.
const GREETING: &[u8] = b"retry: 2000\n\n";

const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// The longest time without a message.
const QUIET: Duration = Duration::from_secs(15);

/// The next bytes and the position after them; `None` at the end.
type Next = Pin<Box<dyn Future<Output = Option<(Bytes, StreamPosition)>> + Send>>;

/// The stream of one client.
pub struct Stream {
    /// The pending read; `None` at the end.
    next: Option<Next>,
    /// Counts among the streams of its client until this value is dropped.
    _slot: StreamSlot,
}

/// The position of a client.
struct StreamPosition {
    feed: Arc<Feed>,
    changes: watch::Receiver<u64>,
    generation: u64,
    position: Revision,
    /// Whether it has reached the end of the event log once. From then on it has to keep up.
    caught_up: bool,
}

impl Stream {
    /// The response to a request for the stream.
    pub async fn open(request: &Parts, feed: Arc<Feed>, slot: StreamSlot) -> Result<Reply> {
        let query = Query::parse(request.uri.query().unwrap_or(""), &["after", "board"])?;
        // `Last-Event-ID` is newer than the revision in the URL that the page requested first.
        let seen = match request.headers.get(LAST_EVENT_ID).map(HeaderValue::to_str) {
            Some(Ok(text)) if !text.is_empty() => Some(revision(text)?),
            _ => query.revision("after")?,
        };
        // A board that cannot be read now has nothing to follow.
        let looked_at = Arc::clone(&feed);
        blocking(move || looked_at.board()).await?;
        let changes = feed.changes();
        let (generation, end) = feed.position();
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
    /// Refuses a position that was pruned, or that is after the end of the event log.
    async fn checked(self) -> Result<StreamPosition> {
        let (_, end) = self.feed.position();
        if self.position == end || matches!(self.next_commit(), Following::Next(..)) {
            return Ok(self);
        }
        let feed = Arc::clone(&self.feed);
        let position = self.position;
        blocking(move || feed.board()?.events().lines(position, 1)).await?;
        Ok(self)
    }

    fn next_commit(&self) -> Following {
        self.feed.following(self.generation, self.position)
    }

    /// The next bytes. Ends the stream if the client is too slow, or if the board was replaced.
    async fn next(mut self) -> Option<(Bytes, StreamPosition)> {
        loop {
            // Subscribe before the check, so that an event after the check ends the wait.
            self.changes.borrow_and_update();
            match self.next_commit() {
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
                    if self.feed.position().0 != self.generation {
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
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Fault::new(Code::Internal, "internal error in a request").because(error).into())
    })
}
