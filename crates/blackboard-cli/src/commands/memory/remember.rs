//! `blackboard memory remember`

use blackboard::Result;
use blackboard::entry::Value;
use blackboard::memory::{Content, Relevance, Remember as Asked};

use super::relevance;
use crate::commands::Run;
use crate::commands::arguments::{WriteOptions, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::memory::RememberedRecord;

/// Remember something that other sessions should know
///
/// Remember decisions, traps and commands that work, never conversation or secrets. The same text is one record, so a
/// repeated call changes nothing. What is due then moves to the next levels. On a board without levels, the usual ones are
/// created.
///
/// Examples:
///   blackboard memory remember 'The login tests need Redis' --tag trap
///   blackboard memory remember 'Use make ci, not make test' --relevance 0.8
///   blackboard memory remember --record '{"cmd": "make ci"}' --key build
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Remember {
    /// Text, shortened to 4,000 characters; invisible characters are removed
    #[arg(value_name = "TEXT", required_unless_present = "json_value", conflicts_with = "json_value")]
    text: Option<String>,

    /// JSON in place of the text, stored unchanged
    #[arg(long = "record", value_name = "JSON", id = "json_value")]
    record: Option<String>,

    /// Level [default: working with a session, short-term without one]
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,

    /// Tag; repeatable
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',', value_parser = trimmed::<String>)]
    tags: Vec<String>,

    /// Key of the record [default: one that depends on the text]
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// How relevant it is: 0 to 1 [default: 0.5]
    #[arg(long, value_name = "R", value_parser = relevance)]
    relevance: Option<Relevance>,

    #[command(flatten)]
    acting: WriteOptions,
}

impl Run for Remember {
    fn run(self, context: &Context) -> Result<Outcome> {
        let given = match (self.text, self.record) {
            (_, Some(json)) => Content::Json(Value::parse(&json, context.max_value_bytes()?)?),
            (text, None) => Content::Text(text.unwrap_or_default()),
        };
        let (board, session) = context.open(Access::write(self.acting.session.named()))?;
        let remembered = board.memories().remember(&Asked {
            content: given,
            level: self.level,
            tags: self.tags,
            key: self.key,
            relevance: self.relevance,
            actor: self.acting.by(session)?,
        })?;
        context.note_text(&remembered.text);
        Ok(Outcome::new(RememberedRecord(remembered)))
    }
}
