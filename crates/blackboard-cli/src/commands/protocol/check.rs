//! `blackboard protocol check`

use std::path::Path;

use blackboard::Result;
use blackboard::entry::Value;

use crate::commands::Run;
use crate::commands::entry::input::read_text;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::protocol::CheckedKey;

/// Show the protocols of a key, and check a value
///
/// Lists the protocols that the key belongs to, the most specific one first. With a value, exits with 4 if the value
/// does not match the schema of the first of them that has one. No protocol refuses a write, unless a rule of the scope
/// names it.
///
/// Examples:
///   blackboard protocol check signal:data_analyst:ready
///   blackboard protocol check result:q4 '{"summary":"Q4 revenue up 15%"}'
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Check {
    /// Key of an entry
    #[arg(value_name = "KEY")]
    key: String,

    /// Value: JSON, or any other text as a string; - reads standard input
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: Option<String>,
}

impl Run for Check {
    fn run(self, context: &Context) -> Result<Outcome> {
        let max_bytes = context.max_value_bytes()?;
        let text = match self.value {
            Some(text) if text == "-" => Some(read_text(Path::new("-"), max_bytes)?),
            text => text,
        };
        let value = text.map(|text| Value::from_text_or_string(&text, max_bytes)).transpose()?;
        let board = context.open(Access::read())?;
        let checked = board.protocols().check(&self.key, value.as_ref())?;
        Ok(Outcome::new(CheckedKey { checked, has_value: value.is_some() }))
    }
}
