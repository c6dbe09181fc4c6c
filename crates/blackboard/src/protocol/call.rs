//! A call of another agent with the protocol `AgentRun`: a request, the events of its run, and its result.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::AgentRun;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::{Actor, Entry, Scope, Value, Write};
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{Event, EventType, Filter};
use crate::follow::{Check, Follow, Follower, Start};
use crate::hint::Hint;
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::store::CallLimit;
use crate::text::shown;

/// The longest time between two checks whether a request has expired.
const TICK: Duration = Duration::from_secs(1);

/// How many events are in memory at once, apart from the rest of the last commit.
const BATCH: usize = 100;

/// The field of the metadata of a result that says that the call failed. The value of the result describes the error.
pub const FAILED: &str = "failed";

/// A request to an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Names the capability of the agent that handles the request.
    pub namespace: Option<String>,
    /// The request.
    pub value: Value,
    /// The timeout; none by default.
    pub timeout: Option<Duration>,
    /// The id of the request; a new one by default. A call with the id and the value of an earlier one makes no second
    /// request: it waits for the result of the first.
    pub id: Option<String>,
    /// The time to live of the request. An agent does not begin a request that has expired.
    pub ttl: Option<Duration>,
}

impl Call {
    /// A request without a timeout.
    pub fn new(namespace: &str, value: Value) -> Call {
        let namespace = Some(namespace.to_owned());
        Call { namespace, value, timeout: None, id: None, ttl: None }
    }
}

/// What an agent answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// An event of the run.
    Event(RunEvent),
    /// The request is gone, so only an agent that has seen it before can answer. It is reported once.
    RequestGone(RequestGone),
    /// The result. Nothing follows.
    Result(Box<Entry>),
}

/// Why a request is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestGone {
    /// Its scope was full.
    Evicted,
    /// Its time to live is over.
    Expired,
    /// A caller deleted it.
    Deleted,
}

impl RequestGone {
    /// Its name in JSON output.
    pub fn as_str(self) -> &'static str {
        match self {
            RequestGone::Evicted => "evicted",
            RequestGone::Expired => "expired",
            RequestGone::Deleted => "deleted",
        }
    }

    /// What has happened to it, after its name.
    pub fn in_words(self) -> &'static str {
        match self {
            RequestGone::Evicted => "was evicted",
            RequestGone::Expired => "has expired",
            RequestGone::Deleted => "was deleted",
        }
    }

    fn of(event: &Event) -> RequestGone {
        match event.event_type {
            EventType::EntryEvicted => RequestGone::Evicted,
            EventType::EntryExpired => RequestGone::Expired,
            _ => RequestGone::Deleted,
        }
    }
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEvent {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// The event of the log.
    pub event: Event,
}

/// A request that was made, and whose replies are received one by one.
///
/// ```
/// use std::time::Duration;
/// use blackboard::Board;
/// use blackboard::entry::{Value, Write};
/// use blackboard::protocol::{AgentRun, Call, Reply};
///
/// let board = Board::memory();
/// let scope = board.scope("agent:ivy");
/// let call = Call { id: Some("7".to_owned()), ..Call::new("compliance", Value::of("check the contract")?) };
/// let mut run = AgentRun::start(&scope, &call)?;
/// // What the agent does.
/// scope.write(&Write::new("event:run:compliance:7:progress", Value::of(&50)?))?;
/// scope.write(&Write::new("result:run:compliance:7", Value::of("fine")?))?;
///
/// assert!(matches!(run.next_reply()?, Reply::Event(event) if event.name == "progress"));
/// assert!(matches!(run.next_reply()?, Reply::Result(entry) if entry.value == Value::of("fine")?));
/// # Ok::<(), blackboard::Error>(())
/// ```
pub struct Run {
    board: Board,
    scope: String,
    actor: Actor,
    follower: Follower,
    id: String,
    namespace: Option<String>,
    request: Request,
    result_key: String,
    timeout: Option<Duration>,
    until: Option<Instant>,
    /// The rest of the current batch.
    ready: VecDeque<Event>,
}

/// A request that was made.
struct Request {
    key: String,
    revision: Revision,
    expires_at: Option<Timestamp>,
    /// Why it no longer exists, once that is known.
    gone: Option<RequestGone>,
}

impl AgentRun {
    /// Makes a request, and waits for its result. `on_event` gets the events of the run before that.
    ///
    /// The result is the first one that is written after the request, under exactly the key of its id. No result is missed,
    /// however soon it is written. If the agent reports an error, the call fails with the code `call_failed`; after the timeout
    /// it fails with `timed_out`, and the request stays. Every error that comes after the request has its id as a detail.
    ///
    /// ```
    /// use std::time::Duration;
    /// use blackboard::Board;
    /// use blackboard::entry::Value;
    /// use blackboard::protocol::{AgentRun, Call, Dispatch, Dispatcher, Handlers};
    ///
    /// let board = Board::memory();
    /// let scope = board.scope("agent:ivy");
    /// let handlers = Handlers::new().answer_runs(Some("compliance"), |request| {
    ///     request.emit("progress", &Value::of(&50)?)?;
    ///     Value::of(&format!("checked {}", request.value.to::<String>()?))
    /// });
    /// let worker = Dispatcher::open(&scope, &Dispatch::new("compliance"), handlers)?.on_thread()?;
    ///
    /// let mut events = Vec::new();
    /// let one_minute = Some(Duration::from_secs(60));
    /// let call = Call { timeout: one_minute, ..Call::new("compliance", Value::of("the contract")?) };
    /// let result = AgentRun::call(&scope, &call, |event| events.push(event.name.clone()))?;
    /// assert_eq!((result.value, events), (Value::of("checked the contract")?, vec!["progress".to_owned()]));
    /// worker.stop()?;
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn call(scope: &Scope<'_>, call: &Call, mut on_event: impl FnMut(&RunEvent)) -> Result<Entry> {
        let mut run = AgentRun::start(scope, call)?;
        loop {
            match run.next_reply()? {
                Reply::Event(event) => on_event(&event),
                Reply::RequestGone(_) => {}
                Reply::Result(result) => return Ok(*result),
            }
        }
    }

    /// Makes a request, whose replies the caller receives one by one. See [`Run`].
    pub fn start(scope: &Scope<'_>, call: &Call) -> Result<Run> {
        let until = call.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let _limit = CallLimit::until(until);
        let id = call.id.clone().unwrap_or_else(|| scope.board.ids().session());
        let namespace = call.namespace.as_deref();
        let result_key = AgentRun::result_key(&id, namespace)?;
        let events = AgentRun::event_pattern(Some(&id), namespace)?;
        // A caller that may not read the result would wait for it in vain.
        scope.check_readable(&result_key)?;
        // If the answer of the server was lost, the caller can repeat the call with the id.
        let named = |error: Error| named_call(error, &scope.name, &id, &result_key);
        let request = make_request(scope, call, &id).map_err(named)?;
        let in_scope = |filter: Filter, keys: Vec<String>| {
            let scopes = vec![scope.name.clone()];
            Filter { keys, scopes, ..filter }
        };
        let replies = in_scope(Filter::of_types([EventType::EntryWritten]), vec![result_key.clone(), events]);
        let removals = [
            EventType::EntryDeleted,
            EventType::EntryExpired,
            EventType::EntryEvicted,
            EventType::EntryPurged,
        ];
        let removed = in_scope(Filter::of_types(removals), vec![request.key.clone()]);
        let follow = Follow {
            filters: vec![replies, removed],
            start: Start::Revision(request.revision),
            caller: scope.actor.session.clone(),
            ..Follow::default()
        };
        let follower = scope.board_of_actor().follow(&follow).map_err(named)?;
        Ok(Run {
            board: scope.board.clone(),
            scope: scope.name.clone(),
            actor: scope.actor.clone(),
            follower,
            id,
            namespace: call.namespace.clone(),
            request,
            result_key,
            timeout: call.timeout,
            until,
            ready: VecDeque::new(),
        })
    }
}

/// Writes the request, unless the same one exists.
fn make_request(scope: &Scope<'_>, call: &Call, id: &str) -> Result<Request> {
    let key = AgentRun::request_key(id, call.namespace.as_deref())?;
    let write = Write { ttl: call.ttl, if_absent: true, ..Write::new(&key, call.value.clone()) };
    let made = |key, revision, expires_at| Request { key, revision, expires_at, gone: None };
    let refused = match scope.write(&write) {
        Ok(written) => return Ok(made(key, written.revision, written.expires_at)),
        Err(error) => error,
    };
    if refused.code() != Code::AlreadyExists {
        return Err(refused);
    }
    match scope.entry(&key)? {
        Some(known) if known.value.says_the_same_as(&call.value) => {
            Ok(made(key, known.revision, known.expires_at))
        }
        _ => Err(refused),
    }
}

/// An error of a call, with what a caller needs to wait for the result by itself. A refused request has no result.
fn named_call(error: Error, scope: &str, id: &str, result_key: &str) -> Error {
    match error {
        refusal @ Error::Refusal(_) if refusal.code() != Code::OutcomeUnknown => refusal,
        error => {
            error.with_detail("id", id).with_detail("scope", scope).with_detail("result_key", result_key)
        }
    }
}

impl Run {
    /// The id of the request.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The revision of the request.
    pub fn request(&self) -> Revision {
        self.request.revision
    }

    /// The key of the result.
    pub fn result_key(&self) -> &str {
        &self.result_key
    }

    /// Waits for the next reply, and fails as [`AgentRun::call`] does. After a timeout it may be called again: it makes one
    /// more check each time.
    pub fn next_reply(&mut self) -> Result<Reply> {
        let _limit = CallLimit::until(self.until);
        self.wait_for_reply().map_err(|error| named_call(error, &self.scope, &self.id, &self.result_key))
    }

    fn wait_for_reply(&mut self) -> Result<Reply> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                if let Some(reply) = self.reply(event)? {
                    return Ok(reply);
                }
            }
            let left =
                self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            let can_expire = self.request.gone.is_none() && self.request.expires_at.is_some();
            match self.follower.next_batch(BATCH, if can_expire { left.min(TICK) } else { left }) {
                Ok(Some(batch)) => self.ready = batch.events.into(),
                Ok(None) if can_expire && self.has_expired() => {
                    self.request.gone = Some(RequestGone::Expired);
                    return Ok(Reply::RequestGone(RequestGone::Expired));
                }
                // What existed when the time was over is received, however long the search for it takes.
                Ok(None) if left.is_zero() && self.follower.has_caught_up() => return Err(self.timed_out()),
                Ok(None) => {}
                // The result may be among the events that are gone.
                Err(error) if error.code() == Code::Compacted => {
                    let after = Some(self.request.revision);
                    if let Check::Done(result) = self.scope().check_key(&self.result_key, after)? {
                        return finish(result);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn scope(&self) -> Scope<'_> {
        self.board.scope(&self.scope).acting_as(self.actor.clone())
    }

    /// Whether the request has expired. The event of that comes with a later sweep.
    fn has_expired(&self) -> bool {
        let is_due = self.request.expires_at.is_some_and(|expires| expires <= self.board.clock().now());
        // A caller that may not read its request learns nothing.
        is_due && matches!(self.scope().entry(&self.request.key), Ok(None))
    }

    /// The reply in an event; `None` if it belongs to another run.
    fn reply(&mut self, event: Event) -> Result<Option<Reply>> {
        if event.target_id.as_ref() == Some(&self.request.key) {
            let is_known = self.request.gone.is_some();
            let gone = *self.request.gone.get_or_insert(RequestGone::of(&event));
            return Ok((!is_known).then_some(Reply::RequestGone(gone)));
        }
        let Some(change) = &event.entry else { return Ok(None) };
        // A purge removes values.
        let Some(value) = change.value.clone() else { return Ok(None) };
        if change.key == self.result_key {
            let scope = self.scope();
            let result = match scope.entry_as_of(&self.result_key, event.id) {
                Err(error) if error.code() == Code::Compacted => scope.entry(&self.result_key)?,
                result => result?,
            };
            return result.map(finish).transpose();
        }
        // The pattern may match keys of other requests.
        let Some(mut values) = AgentRun::parse_event_key(&change.key) else { return Ok(None) };
        let is_own = values.get("id") == Some(&self.id) && values.get("ns") == self.namespace.as_ref();
        let Some(name) = values.remove("name").filter(|_| is_own) else { return Ok(None) };
        Ok(Some(Reply::Event(RunEvent { name, value, event })))
    }

    fn timed_out(&self) -> Error {
        let waited = crate::duration::waited(self.timeout.unwrap_or_default());
        let mut message = format!("timed out after {waited}: no result for request {}", shown(&self.id));
        let mut refusal = Refusal::new(Code::TimedOut, "");
        let (scope, key) = (self.scope.clone(), self.result_key.clone());
        if let Some(gone) = self.request.gone {
            message = format!("{message}, which {}", gone.in_words());
            refusal = match gone {
                RequestGone::Evicted => refusal.hint(Hint::FreeSpaceIn(scope)),
                RequestGone::Expired => refusal.hint(Hint::ShowScope(scope)),
                RequestGone::Deleted => refusal,
            };
            refusal = refusal.detail("request", gone.as_str());
        } else {
            refusal = refusal.hint(Hint::WaitForResult { scope, key, after: self.request.revision });
        }
        Refusal { message, ..refusal }
            .detail("id", self.id.as_str())
            .detail("scope", self.scope.as_str())
            .detail("result_key", self.result_key.as_str())
            .into()
    }
}

/// The result, or the error that the agent has reported instead.
fn finish(result: Entry) -> Result<Reply> {
    let metadata = result.metadata.as_ref().map(Metadata::to_map).unwrap_or_default();
    if metadata.get(FAILED) != Some(&serde_json::Value::Bool(true)) {
        return Ok(Reply::Result(Box::new(result)));
    }
    let error: serde_json::Value = result.value.to()?;
    let text = match (error.get("error").unwrap_or(&error), &error) {
        (serde_json::Value::String(text), _) => text.clone(),
        (_, whole) => whole.to_string(),
    };
    let message = format!("{} reports that the call failed: {}", result.updated_by, shown(&text));
    Err(Refusal::new(Code::CallFailed, message)
        .hint(Hint::ReadKey { scope: result.scope.clone(), key: result.key.clone() })
        .detail("scope", result.scope.as_str())
        .detail("key", result.key.as_str())
        .detail("revision", result.revision.get())
        .detail("value", error)
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_is_an_error_only_if_its_metadata_says_so() {
        testkit::limit_test();
        let scope = "agent:ivy";
        let board = Board::memory();
        for (value, metadata, expected) in [
            ("{\"error\": \"no\"}", "{}", None),
            ("{\"error\": \"no\"}", "{\"failed\": false}", None),
            ("{\"error\": \"no\"}", "{\"failed\": \"true\"}", None),
            ("{\"error\": \"no\"}", "{\"failed\": true}", Some("cli reports that the call failed: no")),
            ("\"no\"", "{\"failed\": true}", Some("cli reports that the call failed: no")),
            ("[1]", "{\"failed\": true}", Some("cli reports that the call failed: [1]")),
        ] {
            let value = Value::parse(value, 1024).unwrap();
            let metadata = Some(Metadata::parse(metadata).unwrap());
            board.scope(scope).write(&Write { metadata, ..Write::new("a", value) }).unwrap();
            let finished = finish(board.scope(scope).entry("a").unwrap().unwrap());
            match (finished, expected) {
                (Ok(Reply::Result(_)), None) => {}
                (Err(error), Some(expected)) => {
                    assert_eq!((error.code(), error.to_string().as_str()), (Code::CallFailed, expected));
                }
                (finished, expected) => panic!("{finished:?} instead of {expected:?}"),
            }
        }
    }
}
