//! `blackboard protocol`: agreements on keys.

pub mod check;
pub mod define;
pub mod key;
pub mod list;
pub mod parse;
pub mod pattern;
pub mod remove;
pub mod show;

use blackboard::{Code, Refusal, Result};

use crate::output::shortened;

/// A message of a protocol, with values.
#[derive(clap::Args, Debug)]
pub struct MessageValues {
    /// Message, for example AgentRun.request; only PROTOCOL if it has one message
    #[arg(value_name = "MESSAGE")]
    message: String,

    /// Values of the template; any text is escaped
    #[arg(value_name = "NAME=VALUE")]
    values: Vec<String>,
}

impl MessageValues {
    /// The names and values.
    fn values(&self) -> Result<Vec<(&str, &str)>> {
        let mut values = Vec::with_capacity(self.values.len());
        for text in &self.values {
            let Some(value) = text.split_once('=') else {
                return Err(Refusal::new(
                    Code::Usage,
                    format!("\"{}\" is not NAME=VALUE", shortened(text, 100)),
                )
                .hint("write the name of a value of the template, for example id=7")
                .into());
            };
            values.push(value);
        }
        Ok(values)
    }
}
