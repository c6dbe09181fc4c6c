//! `blackboard memory compact`

use blackboard::entry::Actor;
use blackboard::memory::{Compact as Asked, Relevance};
use blackboard::{Result, Revision};

use super::relevance;
use crate::commands::Run;
use crate::commands::arguments::{Session, revision, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::memory::CompactedRecords;

/// Replace records by a summary
///
/// Writes the summary and deletes the records in one transaction. The records stay in the history of their keys. With
/// --at, refuses a summary of records that were written after that revision (exit 4).
///
/// Examples:
///   blackboard memory compact --level short-term --summary 'Use CI' --of k1 k2
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Compact {
    /// Level of the records
    #[arg(long, value_name = "LEVEL")]
    level: String,

    /// Level of the summary [default: that of the records]
    #[arg(long, value_name = "LEVEL")]
    into: Option<String>,

    /// Summary, shortened to 4,000 characters; invisible characters are removed
    #[arg(long, value_name = "TEXT")]
    summary: String,

    /// Keys of the records that it replaces
    #[arg(long, value_name = "KEY", required = true, num_args = 1..)]
    of: Vec<String>,

    /// Tag of the summary; repeatable [default: the tags that all of the records have]
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',', value_parser = trimmed::<String>)]
    tags: Vec<String>,

    /// How relevant it is: 0 to 1 [default: as the most relevant record]
    #[arg(long, value_name = "R", value_parser = relevance)]
    relevance: Option<Relevance>,

    /// Revision at which the records were read
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    at: Option<Revision>,

    #[command(flatten)]
    session: Session,
}

impl Run for Compact {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let compacted = board.memories().compact(&Asked {
            level: self.level,
            into: self.into,
            summary: self.summary,
            of: self.of,
            tags: self.tags,
            relevance: self.relevance,
            at: self.at,
            actor: Actor { session, ..Actor::default() },
        })?;
        context.note_text(&compacted.text);
        Ok(Outcome::new(CompactedRecords(compacted)))
    }
}
