//! `blackboard observe`

use blackboard::clock::{Clock, SystemClock};
use blackboard::duration::parse_since;
use blackboard::event::{EventType, Since};
use blackboard::{Error, Result};

use super::Run;
use super::arguments::{Session, at_least_one};
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::event::{Observed, Reading};

/// The reader whose cursor this command moves.
const READER: &str = "observe";

/// Show what happened since one last looked
///
/// A session has a cursor: each call shows what came after the one before, the first one what came after its
/// registration. The cursor moves only after everything was written. --since, --filter and --peek do not move it.
/// Without a session and without --since it shows the last 24 hours.
///
/// Examples:
///   blackboard observe
///   blackboard observe --since 1h --json
///   blackboard observe --since 2026-02-03T14:00:00Z --limit 50
///   blackboard observe --filter agent_stale,stale_locks_released --peek
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Observe {
    #[command(flatten)]
    session: Session,

    /// From then on: 90s, 15m, 1h, 2d ago, or an ISO 8601 time
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Only these types of events
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    filter: Vec<String>,

    /// About this many at most; a commit is never split
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,

    /// Do not move the cursor
    #[arg(long)]
    peek: bool,
}

impl Run for Observe {
    fn run(self, context: &Context) -> Result<Outcome> {
        let types = self.filter.iter().map(|name| event_type(name)).collect::<Result<Vec<_>>>()?;
        let now = SystemClock.now();
        let (board, since) = match &self.since {
            Some(since) => (context.reading()?, Since::Moment(parse_since(since, now)?)),
            None => match context.reading_as(self.session.session.as_deref())? {
                (board, Some(session)) => (board, Since::Cursor { session, reader: READER.to_owned() }),
                (board, None) => (board, Since::Moment(parse_since("24h", now)?)),
            },
        };
        let observation = board.events().observe(&since, &types)?;
        let reading = match since {
            Since::Cursor { .. } if !self.peek && types.is_empty() => Reading::OnFromCursor,
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
}

fn event_type(name: &str) -> Result<EventType> {
    match EventType::from_name(name.trim()) {
        EventType::Other(name) => {
            let known: Vec<_> = EventType::ALL.iter().map(EventType::as_str).collect();
            let name = blackboard::text::escape_for_terminal(&name).into_owned();
            Err(Error::invalid(format!("\"{name}\" is not a type of event; known: {}", known.join(", "))))
        }
        known => Ok(known),
    }
}
