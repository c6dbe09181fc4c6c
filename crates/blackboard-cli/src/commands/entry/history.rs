//! `blackboard history`

use blackboard::entry::EntryVersion;
use blackboard::event::{Event, Since};
use blackboard::{Board, Code, Hint, Refusal, Result};

use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, at_least_one};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::{Change, KeyHistory};

/// Show previous values of a key
///
/// Lists writes, deletions and expirations of a key, newest first, as far back as the event log is kept. `read
/// --as-of REVISION` shows one version in full.
///
/// Examples:
///   blackboard history counter
///   blackboard history counter --limit 100 --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct History {
    /// Key
    #[arg(value_name = "KEY")]
    key: String,

    /// Maximum number of results
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one, default_value_t = 20)]
    limit: usize,

    #[command(flatten)]
    scope: ScopeOption,
}

impl Run for History {
    fn run(self, context: &Context) -> Result<Outcome> {
        let name = context.scope(&self.scope)?;
        let board = context.open(Access::read())?;
        Ok(Outcome::new(of(&board, &name, &self.key, self.limit, usize::MAX)?))
    }
}

/// What was under a key, for this command and for the dashboard.
pub fn of(board: &Board, scope: &str, key: &str, limit: usize, most_bytes: usize) -> Result<KeyHistory> {
    let history = board.scope(scope).history_within(key, limit, most_bytes)?;
    if history.versions.is_empty() {
        let message = format!("nothing is known of an entry {key} in scope {scope}");
        return Err(Refusal::new(Code::EntryNotFound, message).hint(Hint::ListKeys(scope.to_owned())).into());
    }
    let changes = history.versions.into_iter().map(|version| {
        let removal = if version.removed { event_of(board, &version)? } else { None };
        Ok(Change { version, removal })
    });
    Ok(KeyHistory { changes: changes.collect::<Result<_>>()?, compacted: history.compacted })
}

/// The event of a version, which knows how an entry was removed and when; `None` once it was pruned.
fn event_of(board: &Board, version: &EntryVersion) -> Result<Option<Event>> {
    let revision = version.entry.revision;
    let mut observation = board.events().observe(&Since::Revision(revision.previous()), &[])?;
    observation.until = revision;
    let batch = board.events().next(&observation, revision.previous(), 1)?;
    Ok(batch.and_then(|batch| batch.events.into_iter().find(|event| event.id == revision)))
}
