//! Responses, and the headers that all of them have.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use blackboard::clock::{Clock, SystemClock};
use blackboard::{Code, Error, Revision, UnreadableRow};
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::clients::StreamLimit;
use super::stream::Stream;
use crate::envelope::{Answer, Failure};
use crate::output;

const CORP: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The revision at which the response was read.
pub const REVISION: HeaderName = HeaderName::from_static("blackboard-revision");

/// The identity of the board: a different file at the same path has a different one.
pub const BOARD: HeaderName = HeaderName::from_static("blackboard-board");

/// The token of the next page of a bare list.
pub const NEXT: HeaderName = HeaderName::from_static("blackboard-next");

/// The number of events in the event log.
pub const EVENTS: HeaderName = HeaderName::from_static("blackboard-events");

/// The oldest of them.
pub const OLDEST: HeaderName = HeaderName::from_static("blackboard-oldest");

/// The positions of the first and the last event of a response, separated by a comma.
pub const POSITIONS: HeaderName = HeaderName::from_static("blackboard-positions");

/// The rows that were left out because they cannot be read: `TABLE ID`, separated by commas.
pub const UNREADABLE: HeaderName = HeaderName::from_static("blackboard-unreadable");

/// How many of them the header names. A proxy may refuse long headers.
const NAMED: usize = 20;

/// The body of a response.
pub enum Body {
    /// The complete body.
    Whole(Bytes),
    /// Events as they happen.
    Events(Box<Stream>),
}

/// A response before it gets the headers that all responses have.
pub type Reply = Response<Body>;

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Body::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Body::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Body::Events(stream) => {
                stream.poll_next(context).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Body::Events(_) => SizeHint::default(),
        }
    }
}

/// Adds the headers that all responses have. `nonce` is that of the page's style and script.
pub fn protect(reply: &mut Reply, nonce: Option<&str>) {
    let policy = match nonce {
        Some(nonce) => format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
             img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        None => "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'".to_owned(),
    };
    let headers = reply.headers_mut();
    if let Ok(policy) = HeaderValue::try_from(policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CORP, HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Text of this content type.
pub fn text(content_type: &'static str, text: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Body::Whole(text.into()));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

/// Only a status.
pub fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Body::Whole(Bytes::new()));
    *reply.status_mut() = status;
    reply
}

/// A value as a bare JSON body.
pub fn bare<T: Serialize + ?Sized>(value: &T, revision: Revision) -> Reply {
    written(revision, |answer| answer.raw(value))
}

/// A value as a bare JSON body, with the token of the next page.
pub fn bare_page<T: Serialize>(values: &[T], next: Option<&str>, revision: Revision) -> Reply {
    let mut reply = bare(values, revision);
    // Ids may contain characters that headers cannot, so the token is percent-encoded, as in the next query.
    let next = next.map(super::query::encoded);
    if let Some(next) = next.and_then(|next| HeaderValue::from_str(&next).ok()) {
        reply.headers_mut().insert(NEXT, next);
    }
    reply
}

/// Reports the rows that were left out of a response.
pub fn note_unreadable(reply: &mut Reply, rows: &[UnreadableRow]) {
    let names = rows
        .iter()
        .take(NAMED)
        .map(|row| super::query::encoded(&format!("{} {}", row.table, row.id.as_deref().unwrap_or("?"))));
    let names = names.collect::<Vec<_>>().join(",");
    if let Some(names) = HeaderValue::from_str(&names).ok().filter(|_| !rows.is_empty()) {
        reply.headers_mut().insert(UNREADABLE, names);
    }
}

#[derive(Serialize)]
struct PageEnd<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
    revision: Revision,
}

/// `{ok, count, items, next?, revision, timestamp}`
pub fn list<T: Serialize>(items: &[T], next: Option<&str>, revision: Revision) -> Reply {
    written(revision, |answer| answer.list_with(items, &PageEnd { next, revision }))
}

/// A response with the envelope of commands.
pub fn written(revision: Revision, write: impl FnOnce(&mut Answer<'_>) -> output::Result) -> Reply {
    let mut bytes = Vec::new();
    match write(&mut Answer::new(&mut bytes, SystemClock.now())) {
        Ok(()) => {
            let mut reply = text("application/json", bytes);
            reply.headers_mut().insert(REVISION, HeaderValue::from(revision.get()));
            reply
        }
        Err(output::Failure::Board(error)) => failure(&error),
        Err(output::Failure::Output(error)) => {
            failure(&blackboard::Fault::new(Code::Internal, "an answer is not JSON").because(error).into())
        }
    }
}

/// The response for an error of the board.
pub fn failure(error: &Error) -> Reply {
    json(status_of(error.code()), &Failure::new(error, SystemClock.now()))
}

/// A refusal that only the web server has.
pub fn refused(status: StatusCode, code: &'static str, message: &str, hint: &str) -> Reply {
    json(status, &Failure::of_web(code, message.to_owned(), hint, SystemClock.now()))
}

/// An unknown path.
pub fn not_found() -> Reply {
    refused(StatusCode::NOT_FOUND, "not_found", "path not found", "the page is at /")
}

/// A method that would change something, or an unknown one.
pub fn not_allowed() -> Reply {
    let mut reply = refused(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "this server is read-only",
        "use GET or HEAD",
    );
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    reply
}

/// The refusal of a stream that exceeds a limit.
pub fn too_many_streams(limit: StreamLimit) -> Reply {
    let (code, message) = match limit {
        StreamLimit::Browser => ("too_many_streams", "this browser has too many streams open"),
        StreamLimit::Programs => {
            ("too_many_streams", "programs have too many streams of this dashboard open")
        }
        StreamLimit::Server => ("no_free_streams", "the dashboard has no free streams"),
    };
    let hint = "close a page or a program that follows the board, and try again";
    let mut reply = refused(StatusCode::TOO_MANY_REQUESTS, code, message, hint);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    reply
}

fn json<T: Serialize>(status: StatusCode, value: &T) -> Reply {
    // A failure contains only text and numbers, which are always valid JSON.
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    let mut reply = text("application/json", bytes);
    *reply.status_mut() = status;
    reply
}

/// The HTTP status of an error code. A code that is not in the list is from a newer library.
fn status_of(code: Code) -> StatusCode {
    known_status(code).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
}

fn known_status(code: Code) -> Option<StatusCode> {
    Some(match code {
        Code::Usage | Code::InvalidValue | Code::AmbiguousSession => StatusCode::BAD_REQUEST,
        Code::BoardNotFound
        | Code::AgentNotFound
        | Code::ProjectNotFound
        | Code::ProtocolNotFound
        | Code::ScopeNotFound
        | Code::NotMapped
        | Code::PageNotFound
        | Code::WorkNotFound
        | Code::EntryNotFound
        | Code::QuotaNotConfigured => StatusCode::NOT_FOUND,
        // The client has to start over.
        Code::Compacted | Code::CursorAhead => StatusCode::GONE,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        // The board cannot be read now. The last ones refuse calls that the dashboard does not make: it only reads.
        Code::Io
        | Code::DiskFull
        | Code::Corrupt
        | Code::ForeignDatabase
        | Code::UpgradeNeeded
        | Code::NewerSchema
        | Code::ServerUnavailable
        | Code::ServerUnsuitable
        | Code::ServerFull
        | Code::OutcomeUnknown
        | Code::AccessDenied
        | Code::UnsafePermissions
        | Code::NetworkFilesystem
        | Code::ReadOnly
        | Code::BoardSealed
        | Code::BeingCopied
        | Code::Conflict
        | Code::RegistryMismatch
        | Code::Busy
        | Code::TimedOut
        | Code::NoSession
        | Code::NotRunning
        | Code::QuotaExceeded
        | Code::NothingAvailable
        | Code::AlreadyClaimed
        | Code::AlreadyCompleted
        | Code::AlreadyExists
        | Code::WorkBlocked
        | Code::NotHolder
        | Code::Held
        | Code::StaleFence
        | Code::DependencyCycle
        | Code::SessionStale
        | Code::SessionEnded
        | Code::InUse
        | Code::ScopeFull
        | Code::ScopeEnded
        | Code::ProtocolMismatch
        | Code::CallFailed
        | Code::NotAllowed
        | Code::AlreadyRunning
        | Code::PortTaken
        | Code::SecretLooking => StatusCode::SERVICE_UNAVAILABLE,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_status_of_its_own() {
        for &code in Code::ALL {
            assert!(known_status(code).is_some(), "{code} has no status");
        }
        assert_eq!(status_of(Code::BoardNotFound), StatusCode::NOT_FOUND);
        assert_eq!(status_of(Code::Corrupt), StatusCode::SERVICE_UNAVAILABLE);
    }
}
