//! `blackboard protocol define`

use blackboard::Result;
use blackboard::protocol::{DefineProtocol, Level};

use crate::commands::Run;
use crate::commands::arguments::{Session, trimmed};
use crate::commands::entry::input::read_schema;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::protocol::DefinedProtocol;

/// Define a protocol on the board
///
/// A template has words and values with colons between them. {id} is a value, {ns?} one that may be missing, and
/// {id...} the rest of the key. The first part is a word. Defining it again changes nothing; with other fields it is
/// refused (exit 4).
///
/// A schema may have type, enum, const, properties, required, additionalProperties, items, minimum and maximum.
///
/// Examples:
///   blackboard protocol define review 'review:{repo}:{id}' --summary "Reviews"
///   blackboard protocol define score 'score:{id}' --schema '{"type":"number"}'
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Define {
    /// Name of letters, digits, - and _
    #[arg(value_name = "NAME")]
    name: String,

    /// Template of the keys
    #[arg(value_name = "TEMPLATE")]
    template: String,

    /// JSON Schema of the values: JSON, or a file; - is standard input
    #[arg(long, value_name = "JSON|FILE")]
    schema: Option<String>,

    /// Agents that share the entries: agent, session or colony [default: colony]
    #[arg(long, value_name = "LEVEL", value_parser = trimmed::<Level>)]
    level: Option<Level>,

    /// What the protocol is for
    #[arg(short = 'm', long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Define {
    fn run(self, context: &Context) -> Result<Outcome> {
        let value_schema = self.schema.map(read_schema).transpose()?;
        let (board, session) = context.open(Access::write(self.session.named()))?;
        let defined = board.protocols().define(&DefineProtocol {
            name: self.name,
            template: self.template,
            level: self.level,
            summary: self.summary,
            value_schema,
            session,
        })?;
        context.note_text(&defined.text);
        Ok(Outcome::new(DefinedProtocol(defined)))
    }
}
