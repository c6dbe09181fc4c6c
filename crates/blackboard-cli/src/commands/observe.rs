//! `blackboard observe`

use blackboard::clock::{Clock, SystemClock};
use blackboard::duration::{parse, parse_since};
use blackboard::event::{Filter, Since, Start, Subscribe};
use blackboard::{Board, Result, Revision};

use super::Run;
use super::arguments::{InScope, Session, at_least_one};
use super::entry::revision;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::event::{Observed, Reading};
use crate::output::follow::Followed;

/// The reader whose cursor this command moves.
const READER: &str = "observe";

/// Show what happened since one last looked, or follow what happens
///
/// A session has a cursor: each call shows what came after the one before, the first one what came after its
/// registration. The cursor moves only after everything was written. --since, --after, --peek and filters do not move
/// it. Without a session and without --since it shows the last 24 hours.
///
/// With --follow it goes on and shows what happens as it happens; with --json that is one event a line. Without a session
/// it starts now. --cursor keeps a place of its own in the log under a name, with or without filters, and a new one starts
/// now or where --since or --after says: whoever is killed and started again sees at most its last batch twice, and misses
/// nothing. If events were pruned that it had not shown, it says so and goes on. A named cursor that was not
/// moved for as long as events are kept, and has missed some since, is forgotten and starts anew.
///
/// Of the filters all have to hold. --filter also takes write, create, update, delete, expire and clear. Keys and tags are
/// those of one scope, the one that other commands use too, unless --scope or --all-scopes says otherwise; without --key
/// and --tag every scope is shown. Events of entries carry the value and the value before.
///
/// Examples:
///   blackboard observe
///   blackboard observe --since 1h --json
///   blackboard observe --since 2026-02-03T14:00:00Z --limit 50
///   blackboard observe --filter agent_stale,stale_locks_released --peek
///   blackboard observe --follow --key 'task:*' --filter write --json
///   blackboard observe --follow --cursor mirror --scope team-1 --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Observe {
    #[command(flatten)]
    session: Session,

    /// From then on: 90s, 15m, 1h, 2d ago, or an ISO 8601 time
    #[arg(long, value_name = "WHEN", conflicts_with = "after", allow_hyphen_values = true)]
    since: Option<String>,

    /// What came after this revision
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    after: Option<Revision>,

    #[command(flatten)]
    filters: Filters,

    /// About this many at most; a commit is never split
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,

    /// Do not move the cursor
    #[arg(long)]
    peek: bool,

    /// Go on, and show what happens as it happens
    #[arg(long, short)]
    follow: bool,

    /// Follow from the cursor of this name, which moves with what was shown
    #[arg(long, value_name = "NAME", requires = "follow", conflicts_with_all = ["peek", "session"])]
    cursor: Option<String>,

    /// Follow for this long, such as 30s or 10m
    #[arg(long, value_name = "DURATION", requires = "follow", allow_hyphen_values = true)]
    timeout: Option<String>,
}

/// Which events are wanted.
#[derive(clap::Args, Debug)]
struct Filters {
    /// Only these types of events
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    filter: Vec<String>,

    /// Only entries whose keys fit this pattern; may be repeated
    #[arg(long = "key", value_name = "PATTERN")]
    keys: Vec<String>,

    /// Only entries of this scope; may be repeated [default with --key or --tag: $BLACKBOARD_SCOPE, or "default"]
    #[arg(long = "scope", value_name = "NAME")]
    scopes: Vec<String>,

    /// Entries of every scope, also with --key or --tag
    #[arg(long, conflicts_with = "scopes")]
    all_scopes: bool,

    /// Only what this agent or author did, by name or session id; may be repeated
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<String>,

    /// Only entries with this tag; repeated, with all of them
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

impl Filters {
    /// One filter that asks for all of it; none if nothing is asked for.
    fn wanted(self, context: &Context) -> Result<Vec<Filter>> {
        let asks_for_entries = !self.keys.is_empty() || !self.tags.is_empty();
        let scopes = if asks_for_entries && self.scopes.is_empty() && !self.all_scopes {
            vec![context.scope(&InScope { scope: None })?]
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
        if self.follow { self.follow(context) } else { self.look(context) }
    }
}

impl Observe {
    /// Shows what has happened.
    fn look(self, context: &Context) -> Result<Outcome> {
        let filters = self.filters.wanted(context)?;
        let now = SystemClock.now();
        let (board, since) = match (&self.since, self.after) {
            (Some(since), _) => (context.open(Access::read())?, Since::Moment(parse_since(since, now)?)),
            (None, Some(after)) => (context.open(Access::read())?, Since::Revision(after)),
            (None, None) => match context.open(Access::read_as(self.session.named()))? {
                (board, Some(session)) => (board, Since::Cursor { session, reader: READER.to_owned() }),
                (board, None) => (board, Since::Moment(parse_since("24h", now)?)),
            },
        };
        let observation = board.events().observe_filtered(&since, &filters)?;
        let reading = match since {
            Since::Cursor { .. } if !self.peek && filters.is_empty() => Reading::OnFromCursor,
            Since::Cursor { .. } => Reading::PeekFromCursor,
            _ => Reading::FromMoment,
        };
        let observed = Observed::new(board.clone(), observation, reading, self.limit);
        let shown = observed.last_shown();
        let outcome = Outcome::new(observed);
        Ok(match since {
            Since::Cursor { session, reader } if reading == Reading::OnFromCursor => {
                outcome.after_flush(move || {
                    // Somebody is writing: the reader sees its last events again, which is better than waiting.
                    let _ = board.events().advance(&session, &reader, shown.get());
                })
            }
            _ => outcome,
        })
    }

    /// Shows what happens.
    fn follow(self, context: &Context) -> Result<Outcome> {
        let timeout = self.timeout.as_deref().map(parse).transpose()?;
        let filters = self.filters.wanted(context)?;
        let asks_for_a_place = self.since.is_some() || self.after.is_some() || self.cursor.is_some();
        let (board, session) = if asks_for_a_place {
            context.open(Access::follow(self.session.named()))?
        } else {
            context.open(Access::follow_as(self.session.named()))?
        };
        let given = match &self.since {
            Some(since) => Some(revision_at(&board, since)?),
            None => self.after,
        };
        let start = match (self.cursor, given, &session) {
            (Some(name), new_after, _) => Start::Cursor { name, new_after },
            (None, Some(after), _) => Start::Revision(after),
            (None, None, Some(session)) => {
                let (session, reader) = (session.clone(), READER.to_owned());
                Start::Session { session, reader, moves: !self.peek && filters.is_empty() }
            }
            (None, None, None) => Start::Now,
        };
        let subscription = board.subscribe(&Subscribe { filters, start, caller: session })?;
        Ok(Outcome::new(Followed::new(subscription, self.limit, timeout)))
    }
}

/// After which revision comes what happened since then.
fn revision_at(board: &Board, since: &str) -> Result<Revision> {
    let moment = Since::Moment(parse_since(since, SystemClock.now())?);
    Ok(board.events().observe(&moment, &[])?.after)
}
