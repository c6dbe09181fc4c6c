//! [`Dispatcher`]: calls handlers with entries that other agents write, and answers.
//!
//! It follows the event log with a named cursor, for the patterns of its handlers only. The cursor is stored after a batch was
//! handled, so a process that is killed handles its last requests again. The answer is written together with an idempotency
//! key of the request, and only if the request is still open: each is answered once, by whichever process is first.

use std::collections::VecDeque;
use std::time::Duration;

use super::call::FAILED;
use super::handlers::{Handlers, Request};
use crate::board::Board;
use crate::entry::{Actor, Entry, EventWording, Scope, Value, Write, Written, check_not_reserved};
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{EntryChange, Event, EventType, Filter, Subscriber};
use crate::fingerprint::Fingerprint;
use crate::follow::{Follow, Follower, Start, StopHandle};
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::store::{Key, Prefetch};

/// How many events are handled before the cursor is stored, apart from the rest of the last commit.
const BATCH: usize = 16;

/// How a dispatcher follows and answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The name of its cursor. Processes with the same cursor continue each other's work.
    pub cursor: String,
    /// After which revision a new cursor starts; with the next event if it is not given. [`Revision::ZERO`] also handles open
    /// requests from before.
    pub new_after: Option<Revision>,
    /// The time to live of results. Without one, that of the scope applies.
    pub result_ttl: Option<Duration>,
}

impl Dispatch {
    /// With this cursor, from the next event on if it is a new one.
    pub fn new(cursor: &str) -> Dispatch {
        Dispatch { cursor: cursor.to_owned(), new_after: None, result_ttl: None }
    }
}

/// Calls handlers with the entries of a scope that other agents write, and answers requests.
///
/// - It receives only keys that match a handler. A handler is called only with keys that have the form of its template.
/// - Its cursor is durable: a dispatcher with the same name continues after a restart. Delivery is *at least once*: a process
///   that is killed handles its last batch again, of about 16 entries, but no request that has a result.
/// - An answer is written once for each request, whatever number of processes handle it. This lasts as long as the result
///   exists, and at least for 24 hours.
/// - A handler that returns an error or panics stops no others. The result of its request is then
///   `{"error": TEXT, "code": CODE}` with the metadata `{"failed": true}`, and
///   [`AgentRun::call`](super::AgentRun::call) fails with `call_failed`.
/// - Handlers of one dispatcher run one after the other. For work at the same time, use dispatchers with different cursors.
///
/// ```
/// use std::time::Duration;
/// use blackboard::Board;
/// use blackboard::entry::Value;
/// use blackboard::protocol::{AgentRun, Call, Dispatch, Dispatcher, Handlers};
///
/// let board = Board::memory();
/// let scope = board.scope("colony:compliance");
/// let handlers = Handlers::new().answer_runs(None, |request| Value::of(&request.value.to::<u64>()?.pow(2)));
/// let worker = Dispatcher::open(&scope, &Dispatch::new("worker"), handlers)?.on_thread()?;
///
/// let call = Call { namespace: None, timeout: Some(Duration::from_secs(60)), ..Call::new("", Value::of(&12)?) };
/// assert_eq!(AgentRun::call(&scope, &call, |_| {})?.value, Value::of(&144)?);
/// worker.stop()?;
/// # Ok::<(), blackboard::Error>(())
/// ```
pub struct Dispatcher {
    board: Board,
    scope: String,
    actor: Actor,
    result_ttl: Option<Duration>,
    handlers: Handlers,
    follower: Follower,
    /// The events of the current batch that are not handled yet.
    waiting: VecDeque<Event>,
    /// The end of the current batch.
    end: Option<Revision>,
}

impl Dispatcher {
    /// Starts to receive what is written to a scope. A new cursor is stored at once, so nothing that follows is missed. The
    /// actor of the scope is the author of the answers.
    pub fn open(scope: &Scope<'_>, dispatch: &Dispatch, handlers: Handlers) -> Result<Dispatcher> {
        check_not_reserved(&scope.name)?;
        handlers.check()?;
        let filter = Filter {
            keys: handlers.patterns()?,
            scopes: vec![scope.name.clone()],
            ..Filter::of_types([EventType::EntryWritten])
        };
        let start = Start::Cursor { name: dispatch.cursor.clone(), new_after: dispatch.new_after };
        let caller = scope.actor.session.clone();
        let follow = Follow { filters: vec![filter], start, caller, ..Follow::default() };
        Ok(Dispatcher {
            board: scope.board.clone(),
            scope: scope.name.clone(),
            actor: scope.actor.clone(),
            result_ttl: dispatch.result_ttl,
            handlers,
            follower: scope.board_of_actor().follow(&follow)?,
            waiting: VecDeque::new(),
            end: None,
        })
    }

    /// A handle to stop it. The handler that is running ends first.
    pub fn stop_handle(&self) -> StopHandle {
        self.follower.stop_handle()
    }

    /// Handles requests until it is stopped, or until the board fails. After an error it may be called again, and
    /// continues with the same request.
    pub fn run(&mut self) -> Result<()> {
        let stop = self.stop_handle();
        while !stop.is_stopped() {
            match self.handle_next(Duration::MAX) {
                // Other processes have been writing for so long that the cursor could not be stored. Nothing is lost by that.
                Err(error) if error.code() == Code::Busy => {}
                handled => drop(handled?),
            }
        }
        Ok(())
    }

    /// As [`Dispatcher::run`], on its own thread.
    pub fn on_thread(mut self) -> Result<Subscriber> {
        Subscriber::start(self.stop_handle(), move || self.run())
    }

    /// Handles the next batch, and returns how many entries it had; zero if none came within this time, or if the dispatcher was
    /// stopped.
    pub fn handle_next(&mut self, timeout: Duration) -> Result<usize> {
        if self.waiting.is_empty() {
            match self.follower.next_batch(BATCH, timeout) {
                Ok(Some(batch)) => {
                    self.waiting = batch.events.into();
                    self.end = Some(batch.last);
                }
                Ok(None) => return Ok(0),
                // It was not running for so long that events are gone. It continues with the oldest that is kept.
                Err(error) if error.code() == Code::Compacted => {
                    self.handlers.report(None, &error);
                    return Ok(0);
                }
                Err(error) => return Err(error),
            }
        }
        let (stop, mut handled) = (self.stop_handle(), 0);
        while let Some(event) = self.waiting.pop_front() {
            let result = if stop.is_stopped() { None } else { Some(self.handle(&event)) };
            match result {
                Some(Ok(())) => handled += 1,
                None => {
                    self.waiting.push_front(event);
                    return Ok(handled);
                }
                Some(Err(error)) => {
                    self.waiting.push_front(event);
                    return Err(error);
                }
            }
        }
        if let Some(end) = self.end.take() {
            self.follower.acknowledge(end)?;
        }
        Ok(handled)
    }

    /// Calls the handlers of an event. An error is one of the board; the event is then handled again.
    fn handle(&mut self, event: &Event) -> Result<()> {
        let Some(change) = &event.entry else { return Ok(()) };
        // A purge removes values.
        let Some(value) = &change.value else { return Ok(()) };
        let board = self.board.clone();
        let scope = board.scope(&self.scope).acting_as(self.actor.clone());
        for index in 0..self.handlers.routes.len() {
            let route = &mut self.handlers.routes[index];
            let Some(values) = route.values(&change.key) else { continue };
            let result_key = match route.result_key(&values).transpose() {
                Ok(result_key) => result_key,
                // It is longer than a key may be.
                Err(error) => {
                    self.handlers.report(Some(&change.key), &error);
                    continue;
                }
            };
            if let Some(result_key) = &result_key
                && standing_now(&scope, change, result_key)? != Standing::Open
            {
                continue;
            }
            let events = route.events.clone();
            let request = Request {
                key: &change.key,
                values: &values,
                value,
                revision: change.revision,
                author: &change.author,
                scope: scope.clone(),
                events: events.as_ref(),
            };
            let outcome = route.call(&request);
            if let Err(error) = &outcome {
                self.handlers.report(Some(&change.key), error);
            }
            if let Some(result_key) = &result_key {
                self.answer(
                    &scope,
                    change,
                    result_key,
                    outcome.map(|value| value.unwrap_or_else(Value::null)),
                )?;
            }
        }
        Ok(())
    }

    /// Writes the answer. If the board refuses it, for example because it is too large, the refusal is the answer.
    fn answer(
        &mut self,
        scope: &Scope<'_>,
        request: &EntryChange,
        result_key: &str,
        outcome: Result<Value>,
    ) -> Result<()> {
        let refused = match outcome {
            Ok(value) => match write_answer(scope, request, result_key, value, None, self.result_ttl) {
                Err(error) if !is_temporary(&error) => {
                    self.handlers.report(Some(&request.key), &error);
                    error
                }
                written => return written,
            },
            Err(error) => error,
        };
        let value =
            Value::of(&serde_json::json!({"error": refused.to_string(), "code": refused.code().as_str()}))?;
        let failed = Some(Metadata::from(serde_json::Map::from_iter([(FAILED.to_owned(), true.into())])));
        match write_answer(scope, request, result_key, value, failed, self.result_ttl) {
            // The scope accepts no answer to this request; others are not affected.
            Err(error) if !is_temporary(&error) => {
                self.handlers.report(Some(&request.key), &error);
                Ok(())
            }
            written => written,
        }
    }
}

/// Whether the same answer may be accepted later: the board cannot be written now, or not for this session.
fn is_temporary(error: &Error) -> bool {
    let is_about_session_or_board = matches!(
        error.code(),
        Code::Busy
            | Code::TimedOut
            | Code::AgentNotFound
            | Code::SessionStale
            | Code::SessionEnded
            | Code::StaleFence
            | Code::BeingCopied
            | Code::BoardSealed
    );
    matches!(error, Error::Fault(_)) || is_about_session_or_board
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It needs an answer.
    Open,
    /// It was deleted, or has expired.
    Withdrawn,
    /// It was written again, so there is a later event of it.
    Repeated,
    /// It has a result.
    Answered,
}

/// What becomes of the request that was written at the revision `asked`.
fn decide(request: Option<&Entry>, asked: Revision, result: Option<&Entry>) -> Standing {
    match (request, result) {
        (None, _) => Standing::Withdrawn,
        (Some(request), _) if request.revision != asked => Standing::Repeated,
        (Some(_), Some(result)) if result.revision > asked => Standing::Answered,
        (Some(_), _) => Standing::Open,
    }
}

/// What becomes of the request, before its handler is called.
fn standing_now(scope: &Scope<'_>, request: &EntryChange, result_key: &str) -> Result<Standing> {
    let keys = [&request.key, result_key].map(|key| Key::Entry(scope.name.clone(), key.to_owned()));
    let prefetch = keys.clone().map(Prefetch::Row);
    scope.board.read(&prefetch, |tx| {
        let (current, result) = (crate::entry::visible(tx, &keys[0])?, crate::entry::visible(tx, &keys[1])?);
        Ok(decide(current.as_ref(), request.revision, result.as_ref()))
    })
}

/// Writes the answer, unless the request is no longer open.
fn write_answer(
    scope: &Scope<'_>,
    request: &EntryChange,
    result_key: &str,
    value: Value,
    metadata: Option<Metadata>,
    ttl: Option<Duration>,
) -> Result<()> {
    let write = Write { ttl, metadata, ..Write::new(result_key, value) };
    let write = write.checked(&scope.name, scope.board.settings())?;
    // Not the value: a handler that runs again may answer something else, and the first answer stays.
    let asked = Fingerprint::new().text(&scope.name).text(result_key);
    let operation = Some(format!("answer:{}:{asked}", request.revision));
    let scope = scope.clone().acting_as(Actor { operation, ..scope.actor.clone() });
    let prefetch = [&request.key, result_key].map(|key| Prefetch::Entry(&scope.name, key));
    let written = scope.commit(
        "answer",
        |asked| asked.text(result_key).of(request.revision),
        &prefetch,
        |editor| -> Result<Written> {
            let current = editor.entry(&scope.name, &request.key)?;
            let result = editor.entry(&scope.name, result_key)?;
            match decide(current.as_ref(), request.revision, result.as_ref()) {
                Standing::Open => editor.write(&scope.name, &write, EventWording::AsEntry),
                standing => Err(not_open(standing)),
            }
        },
    );
    match written {
        Err(error) if error.details().is_some_and(|details| details.contains_key(NOT_OPEN)) => Ok(()),
        written => written.map(drop),
    }
}

/// Marks the refusal that ends the commit of an answer which is not needed.
const NOT_OPEN: &str = "standing";

fn not_open(standing: Standing) -> Error {
    let message = "the request is no longer open";
    Refusal::new(Code::Conflict, message).detail(NOT_OPEN, format!("{standing:?}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_open_until_it_has_a_later_result() {
        testkit::limit_test();
        let board = Board::memory();
        let scope = board.scope("team");
        let entry = |revision| {
            scope.write(&Write::new("a", Value::null())).unwrap();
            Entry { revision: Revision::new(revision), ..scope.entry("a").unwrap().unwrap() }
        };
        for (request, result, expected) in [
            (Some(5), None, Standing::Open),
            // The result of an earlier request with the same key.
            (Some(5), Some(4), Standing::Open),
            (Some(5), Some(6), Standing::Answered),
            (Some(7), None, Standing::Repeated),
            (Some(7), Some(6), Standing::Repeated),
            (None, None, Standing::Withdrawn),
            (None, Some(6), Standing::Withdrawn),
        ] {
            let (current, answer) = (request.map(entry), result.map(entry));
            let standing = decide(current.as_ref(), Revision::new(5), answer.as_ref());
            assert_eq!(standing, expected, "{request:?} {result:?}");
        }
    }
}
