//! `blackboard history`

use blackboard::entry::EntryVersion;
use blackboard::{Board, Code, Hint, Refusal, Result};

use crate::commands::Run;
use crate::commands::arguments::{ReadAs, ScopeOption, at_least_one};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::{Change, KeyHistory};
use crate::output::row_limit;

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

    /// Maximum number of results [default: 50 on a terminal, else all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,

    #[command(flatten)]
    reader: ReadAs,

    #[command(flatten)]
    scope: ScopeOption,
}

impl Run for History {
    fn run(self, context: &Context) -> Result<Outcome> {
        let name = context.scope(&self.scope)?;
        let board = self.reader.apply(context.open(Access::read())?)?;
        let limit = row_limit(self.limit, context.json()).unwrap_or(usize::MAX);
        Ok(Outcome::new(of(&board, &name, &self.key, limit, usize::MAX)?))
    }
}

/// What was under a key, for this command and for the dashboard.
pub fn of(board: &Board, scope: &str, key: &str, limit: usize, most_bytes: usize) -> Result<KeyHistory> {
    let history = board.scope(scope).history_within(key, limit, most_bytes)?;
    if history.versions.is_empty() {
        let message = format!("key {key} has no history in scope {scope}");
        return Err(Refusal::new(Code::EntryNotFound, message).hint(Hint::ListKeys(scope.to_owned())).into());
    }
    let mut removals = history.removals;
    let change = |version: EntryVersion| {
        let removal = removals.remove(&version.entry.revision);
        Change { version, removal }
    };
    let changes = history.versions.into_iter().map(change).collect();
    Ok(KeyHistory { changes, more: history.more, compacted: history.compacted })
}
