//! `blackboard observe`

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blackboard::clock::{Clock, SystemClock};
use blackboard::duration::parse_since;
use blackboard::event::{Event, Filter, Observation, Since};
use blackboard::follow::{Follow, Follower, Start};
use blackboard::store::CallLimit;
use blackboard::{Board, Code, Error, Refusal, Result, Revision};
use serde::Serialize;

use super::Run;
use super::arguments::{ReadAs, ScopeOption, Session, at_least_one, length, limit, revision};
use crate::context::Context;
use crate::envelope::{Answer, Failure};
use crate::hints;
use crate::open::Access;
use crate::outcome::{Outcome, Render};
use crate::output::event::{EventLines, Reading, Style, Summary, show_compacted, show_heading, show_summary};
use crate::output::{self, Screen, row_limit};
use crate::session::no_session;

/// The reader whose cursor this command moves.
const READER: &str = "observe";

/// How many events are in memory at once.
const BATCH: usize = 1000;

/// The longest wait of a follower: after this time it notices that its reader is gone, or that its time is over.
const TICK: Duration = Duration::from_millis(200);

/// Show events since your last check, or follow new ones
///
/// Shows events after the session's cursor and moves the cursor; without a session, the last 24 hours. --since, --after,
/// --last, --peek, --as and filters leave the cursor where it is. --follow prints new events as they arrive, and --cursor
/// NAME resumes after an interruption without a gap.
///
/// Event types: agent_registered, agent_deregistered, agent_stale, agent_recovered, agent_updated, progress;
/// work_created, work_claimed, work_released, work_completed, work_blocked, work_unblocked, work_reset, work_updated,
/// work_deleted, metadata_updated;
/// lock_acquired, lock_released, files_reserved, files_released, stale_locks_released; project_registered,
/// project_updated, project_removed; protocol_defined, protocol_removed; entry_written, entry_deleted, entry_expired,
/// entry_evicted, entry_purged, entries_cleared; scope_created, scope_updated, scope_deleted;
/// scope_mapped, scope_unmapped, page_added, page_replaced, page_invalidated; quota_warning.
/// heartbeat_received is the name of progress in JSON.
///
/// Examples:
///   blackboard observe
///   blackboard observe --others
///   blackboard observe --last 20
///   blackboard observe --since 1h --json
///   blackboard observe --filter work_claimed,work_completed --peek
///   blackboard observe --follow --key 'task:*' --timeout 1s
///   blackboard observe --follow --cursor mirror --since 1h --limit 3
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Observe {
    #[command(flatten)]
    session: Session,

    /// Only what is newer: 90s, 15m, 1h, 2d, or an ISO 8601 time
    #[arg(long, value_name = "WHEN", conflicts_with = "after", allow_hyphen_values = true)]
    since: Option<String>,

    /// Only events after this revision
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    after: Option<Revision>,

    /// Only the newest N events that match, oldest first
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one, conflicts_with_all = ["since", "after"])]
    last: Option<usize>,

    /// Omit events of your own session; requires a session
    #[arg(long)]
    others: bool,

    #[command(flatten)]
    filters: Filters,

    /// Maximum number of events; a commit is never split [default: 50 on a terminal, else all]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,

    /// Do not move the cursor
    #[arg(long)]
    peek: bool,

    /// Print new events as they arrive
    #[arg(long, short)]
    follow: bool,

    /// Named cursor to follow from; it moves with what was printed
    #[arg(long, value_name = "NAME", conflicts_with_all = ["peek", "session"])]
    cursor: Option<String>,

    /// Stop following after this long
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    timeout: Option<String>,

    #[command(flatten)]
    reader: ReadAs,
}

/// Which events are wanted.
#[derive(clap::Args, Debug)]
struct Filters {
    /// Only these event types, separated by commas; also write, create, update, delete, expire, purge and clear, which
    /// are changes of entries
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    filter: Vec<String>,

    /// Only entries whose keys match this pattern; repeatable
    #[arg(long = "key", value_name = "PATTERN")]
    keys: Vec<String>,

    /// Only entries of this scope; repeatable [default with --key or --tag: $BLACKBOARD_SCOPE or "default"]
    #[arg(short = 'S', long = "scope", value_name = "NAME")]
    scopes: Vec<String>,

    /// Include entries of every scope with --key or --tag
    #[arg(long, conflicts_with = "scopes")]
    all_scopes: bool,

    /// Only events of this agent or author: name, session id or prefix of 6 or more; repeatable
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<String>,

    /// Tag; repeatable, all must match
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

impl Filters {
    /// One filter that asks for all of it; none if nothing is asked for.
    fn wanted(self, context: &Context) -> Result<Vec<Filter>> {
        let asks_for_entries = !self.keys.is_empty() || !self.tags.is_empty();
        let scopes = if asks_for_entries && self.scopes.is_empty() && !self.all_scopes {
            vec![context.scope(&ScopeOption { scope: None })?]
        } else {
            self.scopes
        };
        let filter = Filter {
            keys: self.keys,
            scopes,
            types: self.filter.iter().map(|name| name.parse()).collect::<Result<_>>()?,
            agents: self.agents,
            tags: self.tags,
            custom: None,
        };
        Ok(if filter.wants_everything() { Vec::new() } else { vec![filter] })
    }
}

impl Run for Observe {
    fn run(self, context: &Context) -> Result<Outcome> {
        // Not a rule of clap's, which ignores what an alias presets.
        let needs_follow = [("--cursor", self.cursor.is_some()), ("--timeout", self.timeout.is_some())];
        match needs_follow.iter().find(|(_, given)| *given && !self.follow) {
            Some((option, _)) => Err(Refusal::new(Code::Usage, format!("{option} needs --follow"))
                .hint(hints::command("run: ", format!("observe --follow {option} VALUE")))
                .into()),
            None if self.follow => self.follow(context),
            None => self.look(context),
        }
    }
}

impl Observe {
    /// Shows what has happened.
    fn look(self, context: &Context) -> Result<Outcome> {
        let mut filters = self.filters.wanted(context)?;
        // What --others leaves out is known to the session, so its cursor may pass it. What another reader sees is not.
        let moves = !self.peek && filters.is_empty() && !self.reader.is_given();
        let uses_cursor = self.since.is_none() && self.after.is_none() && self.last.is_none();
        let named = self.session.named();
        let (board, session) = match (self.others, uses_cursor) {
            (true, _) => {
                let (board, session) = context.open(Access::read_own(named))?;
                leave_out(&mut filters, &session);
                (board, Some(session))
            }
            (false, true) if moves => context.open(Access::read_as(named))?,
            (false, true) => context.open(Access::peek(named))?,
            (false, false) if named.is_some() => context.open(Access::read_as(named))?,
            (false, false) => (context.open(Access::read())?, None),
        };
        let board = self.reader.apply(board)?;
        add_sessions(&mut filters, &board)?;
        let now = SystemClock.now();
        // A caller that names a number gets that many.
        let limit = match self.last {
            Some(_) => self.limit,
            None => row_limit(self.limit, context.json()),
        };
        let limit = limit.unwrap_or(usize::MAX);
        // An alias presets --last, so that another start may be given as well.
        let since = match (&self.since, self.after, self.last, session) {
            (Some(since), ..) => Since::Moment(parse_since(since, now)?),
            (None, Some(after), ..) => Since::Revision(after),
            (None, None, Some(last), _) => Since::Last(last.min(limit) as u64),
            (None, None, None, Some(session)) => Since::Cursor { session, reader: READER.to_owned() },
            (None, None, None, None) => Since::Moment(parse_since("24h", now)?),
        };
        let observation = board.events().observe_filtered(&since, &filters)?;
        let reading = match since {
            Since::Cursor { .. } if moves => Reading::OnFromCursor,
            Since::Cursor { .. } => Reading::PeekFromCursor,
            Since::Moment(_) if self.since.is_some() => Reading::FromMoment,
            Since::Moment(_) | Since::Revision(_) | Since::Last(_) => Reading::FromOther,
        };
        let last_shown = Rc::new(Cell::new(observation.after));
        let shown = Rc::clone(&last_shown);
        let outcome =
            Outcome::new(Observed { board: board.clone(), observation, reading, limit, last_shown });
        Ok(match since {
            Since::Cursor { session, reader } if reading == Reading::OnFromCursor => {
                outcome.after_flush(move || {
                    // If another process is writing, the reader sees its last events again, which is better than waiting.
                    let _ = board.events().advance(&session, &reader, shown.get());
                })
            }
            _ => outcome,
        })
    }

    /// Shows what happens.
    fn follow(self, context: &Context) -> Result<Outcome> {
        let timeout = length(self.timeout.as_deref())?;
        let limit = limit(timeout);
        let mut filters = self.filters.wanted(context)?;
        let moves = !self.peek && filters.is_empty() && !self.reader.is_given();
        let has_start =
            self.since.is_some() || self.after.is_some() || self.last.is_some() || self.cursor.is_some();
        let (board, session) = if has_start && !self.others {
            context.open(Access::follow(self.session.named()))?
        } else {
            context.open(Access::follow_as(self.session.named()))?
        };
        let board = self.reader.apply(board)?;
        if self.others {
            leave_out(&mut filters, session.as_deref().ok_or_else(no_session)?);
        }
        add_sessions(&mut filters, &board)?;
        let given = match (&self.since, self.after, self.last) {
            (Some(since), ..) => Some(Since::Moment(parse_since(since, SystemClock.now())?)),
            (None, Some(after), _) => Some(Since::Revision(after)),
            (None, None, Some(last)) => Some(Since::Last(last as u64)),
            (None, None, None) => None,
        };
        let given = match given {
            Some(Since::Revision(after)) => Some(after),
            Some(since) => Some(board.events().observe_filtered(&since, &filters)?.after),
            None => None,
        };
        let start = match (self.cursor, given, &session) {
            (Some(name), new_after, _) => Start::Cursor { name, new_after },
            (None, Some(after), _) => Start::Revision(after),
            (None, None, Some(session)) => {
                let (session, reader) = (session.clone(), READER.to_owned());
                Start::Session { session, reader, moves }
            }
            (None, None, None) => Start::Now,
        };
        let follower = board.follow(&Follow { filters, start, caller: session, ..Follow::default() })?;
        Ok(Outcome::new(Followed {
            follower: RefCell::new(follower),
            limit: self.limit.unwrap_or(usize::MAX),
            until: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            _limit: limit,
        }))
    }
}

/// Leaves out the events that a session caused.
fn leave_out(filters: &mut Vec<Filter>, session: &str) {
    if filters.is_empty() {
        filters.push(Filter::default());
    }
    for filter in filters {
        let session = session.to_owned();
        filter.custom = Some(Arc::new(move |event| !event.is_by(&session)));
    }
}

/// Adds the session of each short id in the filters. Names are compared with the names in events.
fn add_sessions(filters: &mut [Filter], board: &Board) -> Result<()> {
    for filter in filters {
        for index in 0..filter.agents.len() {
            match board.agents().resolve(&filter.agents[index]) {
                Ok((session, _)) if session.starts_with(&filter.agents[index]) => filter.agents.push(session),
                // The events of an agent that was removed still have its name.
                Ok(_) | Err(Error::Refusal(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// The answer of `observe`. It reads the event log in batches while it is printed, so that neither a million events nor a slow
/// reader delays other processes.
struct Observed {
    board: Board,
    observation: Observation,
    reading: Reading,
    limit: usize,
    /// How far it was read, once it was shown.
    last_shown: Rc<Cell<Revision>>,
}

#[derive(Serialize)]
struct Position {
    revision: Revision,
    compacted: bool,
    more: bool,
}

impl Observed {
    /// Shows every event up to the limit.
    fn each(&self, mut show: impl FnMut(&Event) -> output::Result) -> output::Result<Summary> {
        let (mut shown, mut last, mut pruned) = (0, None, false);
        let mut after = self.observation.after;
        while shown < self.limit {
            let batch = self.board.events().next(&self.observation, after, BATCH.min(self.limit - shown))?;
            let Some(batch) = batch else {
                // Everything was read, also what a filter left out.
                self.last_shown.set(self.observation.until);
                break;
            };
            batch.events.iter().try_for_each(&mut show)?;
            shown += batch.events.len();
            last = batch.events.last().map(|event| event.timestamp).or(last);
            pruned |= batch.compacted;
            after = batch.last;
            self.last_shown.set(after);
        }
        let more = shown >= self.limit && self.has_events_after(after)?;
        Ok(Summary { shown, last, pruned, more, revision: self.last_shown.get() })
    }

    /// Whether a wanted event follows. A filter may leave out everything between.
    fn has_events_after(&self, mut after: Revision) -> Result<bool> {
        while let Some(batch) = self.board.events().next(&self.observation, after, 1)? {
            if !batch.events.is_empty() {
                return Ok(true);
            }
            after = batch.last;
        }
        Ok(false)
    }
}

impl Render for Observed {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        let mut items = answer.items()?;
        let Summary { pruned, more, revision, .. } = self.each(|event| items.push(event))?;
        items.finish(&Position { revision, compacted: self.observation.compacted || pruned, more })
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        show_heading(screen, &self.observation, self.reading)?;
        let mut lines = EventLines::new(screen, Style::OfTheBoard);
        let summary = self.each(|event| lines.show(screen, event))?;
        show_summary(screen, &summary, self.reading)
    }

    fn is_list(&self) -> bool {
        true
    }
}

/// The answer of `observe --follow`, which has no end of its own.
struct Followed {
    follower: RefCell<Follower>,
    limit: usize,
    until: Option<Instant>,
    /// A server that does not answer keeps it no longer than that.
    _limit: CallLimit,
}

/// What is shown next.
enum Next<'a> {
    Events(&'a [Event]),
    /// Events are missing here.
    Compacted(&'a Error),
}

impl Followed {
    /// Shows each batch, and acknowledges it after it has left this process.
    fn each(&self, mut show: impl FnMut(Next<'_>) -> output::Result) -> output::Result {
        let mut follower = self.follower.borrow_mut();
        let mut shown = 0;
        while shown < self.limit {
            let left = self.until.map_or(TICK, |until| until.saturating_duration_since(Instant::now()));
            match follower.next_batch(self.limit - shown, left.min(TICK)) {
                Ok(Some(batch)) => {
                    show(Next::Events(&batch.events))?;
                    shown += batch.events.len();
                    follower.acknowledge(batch.last)?;
                }
                // What existed when the time was over is shown, however long the search for it takes.
                Ok(None) if left.is_zero() && follower.has_caught_up() || has_left() => break,
                Ok(None) => {}
                Err(error) if error.code() == Code::Compacted => show(Next::Compacted(&error))?,
                // Other processes have been writing for so long that the cursor could not be stored. Nothing is lost by that.
                Err(error) if error.code() == Code::Busy && !left.is_zero() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Render for Followed {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        self.each(|next| match next {
            Next::Events(events) => answer.lines(events),
            Next::Compacted(error) => answer.lines(&[Failure::new(error, SystemClock.now())]),
        })
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        let mut lines = EventLines::new(screen, Style::OfTheBoard);
        self.each(|next| {
            match next {
                Next::Events(events) => events.iter().try_for_each(|event| lines.show(screen, event))?,
                Next::Compacted(_) => show_compacted(screen)?,
            }
            screen.flush()
        })
    }
}

/// Whether the other end of standard output, a pipe, is closed. A follower would otherwise notice it only with its next event.
#[cfg(unix)]
fn has_left() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let stdout = io::stdout();
    // Errors are reported without being asked for.
    let mut descriptors = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let known = poll(&mut descriptors, Some(&at_once)).is_ok();
    known && descriptors[0].revents().intersects(PollFlags::ERR | PollFlags::NVAL)
}

/// Whether the other end of standard output is closed, which this system does not tell.
#[cfg(not(unix))]
fn has_left() -> bool {
    let _ = io::stdout();
    false
}
