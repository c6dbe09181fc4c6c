//! `blackboard call`

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io;

use blackboard::clock::{Clock, SystemClock};
use blackboard::entry::{Actor, Entry};
use blackboard::protocol::{AgentRun, Call as CallRequest, Reply, Run as CallRun, RunEvent};
use blackboard::{Error, Result};

use super::entry::input::ValueInput;
use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, Session, length, limit};
use crate::context::{Context, note};
use crate::envelope::{Answer, Failure};
use crate::hints::{self, GivenOptions};
use crate::open::Access;
use crate::outcome::{Outcome, Render};
use crate::output::entry::{BareValue, RawText, ReadEntry};
use crate::output::protocol::run_event;
use crate::output::{self, Screen};

/// Send a request to an agent and wait for its result
///
/// Writes request:run:NAMESPACE:ID and waits for result:run:NAMESPACE:ID, then prints that entry. Events of the run
/// go to stderr; with --json, each is a line on stdout before the result. Exits with 6 when --timeout expires, and
/// with 4 if the agent reports an error; the request stays. A note says if it expires or is evicted meanwhile.
///
/// Examples:
///   blackboard call compliance '{"contract":"q4"}' --timeout 10m
///   git log | blackboard call review - --string --timeout 1h --raw
///   blackboard call compliance '{"contract":"q4"}' --id 7 --scope agent:ivy
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Call {
    /// Namespace: names the capability that handles the request
    #[arg(value_name = "NAMESPACE")]
    namespace: String,

    #[command(flatten)]
    given: ValueInput,

    /// Give up after this long
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    timeout: Option<String>,

    /// Id of the request [default: a new one]; a repeated call waits for the result of the first
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// Print the value of the result only, unchanged
    #[arg(long = "value")]
    only_value: bool,

    /// Print the value of the result only, and a string without its quotes
    #[arg(short = 'r', long, conflicts_with = "only_value")]
    raw: bool,

    #[command(flatten)]
    scope: ScopeOption,

    /// Author [default: the session's agent, or "cli"]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Call {
    fn run(self, context: &Context) -> Result<Outcome> {
        let timeout = length(self.timeout.as_deref())?;
        let _limit = limit(timeout);
        let scope = context.scope(&self.scope)?;
        let value = self.given.value_after("NAMESPACE", "call", context.max_value_bytes()?)?;
        let call = CallRequest { timeout, id: self.id, ..CallRequest::new(&self.namespace, value) };
        let (board, session) = context.open(Access::call(self.session.named()))?;
        let by = Actor { author: self.agent, session, ..Actor::default() };
        let run = AgentRun::start(&board.scope(&scope).acting_as(by), &call)?;
        let form = match (self.raw, self.only_value) {
            (true, _) => Form::Raw,
            (false, true) => Form::Value,
            (false, false) => Form::Entry,
        };
        let given = context.given_options();
        Ok(Outcome::new(Called {
            run: RefCell::new(run),
            form,
            db: given.db.map(ToOwned::to_owned),
            session: given.session.map(ToOwned::to_owned),
            exit_code: Cell::new(None),
        }))
    }
}

/// What is printed of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Entry,
    Value,
    Raw,
}

impl Form {
    fn of(self, result: Entry) -> Box<dyn Render> {
        match self {
            Form::Entry => Box::new(ReadEntry(result)),
            Form::Value => Box::new(BareValue(result.value)),
            Form::Raw => Box::new(RawText(result.value)),
        }
    }
}

/// The answer of `call`, which is printed as it arrives.
struct Called {
    run: RefCell<CallRun>,
    form: Form,
    db: Option<OsString>,
    session: Option<String>,
    exit_code: Cell<Option<u8>>,
}

impl Called {
    /// Shows each event, and returns the result.
    fn result(&self, mut show: impl FnMut(&RunEvent) -> output::Result) -> output::Result<Box<dyn Render>> {
        let mut run = self.run.borrow_mut();
        loop {
            match run.next_reply()? {
                Reply::Event(event) => show(&event)?,
                // An agent that has begun it can still answer.
                Reply::RequestGone(gone) => note(&format!(
                    "request {} {}: only an agent that has seen it before can answer",
                    run.id(),
                    gone.in_words()
                )),
                Reply::Result(result) => return Ok(self.form.of(*result)),
            }
        }
    }

    /// An error after the first line is a line too, so that a program finds it where it reads.
    fn last_line(&self, error: &Error, answer: &mut Answer<'_>) -> output::Result {
        self.exit_code.set(Some(error.code().exit_code()));
        let mut failure = Failure::new(error, SystemClock.now());
        let given = GivenOptions { db: self.db.as_deref(), session: self.session.as_deref() };
        failure.hint = error.hint().map(|hint| hints::as_command(hint, &given));
        answer.lines(&[failure])
    }
}

impl Render for Called {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        if self.form != Form::Entry {
            return self.result(show_on_stderr)?.json(answer);
        }
        let mut has_lines = false;
        let result = self.result(|event| {
            has_lines = true;
            answer.lines(&[&event.event])
        });
        match result {
            Ok(result) => result.json(answer),
            Err(output::Failure::Board(error)) if has_lines => self.last_line(&error, answer),
            Err(failure) => Err(failure),
        }
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        let result = self.result(show_on_stderr)?;
        // Ages and rests of times count from the end of the wait.
        screen.set_now(SystemClock.now());
        result.human(screen)
    }

    fn exit_code(&self) -> Option<u8> {
        self.exit_code.get()
    }
}

/// Standard output has only the result, so that a shell can use it.
fn show_on_stderr(event: &RunEvent) -> output::Result {
    run_event(event, &mut Screen::of_stderr(&mut io::stderr().lock(), SystemClock.now()))
}
