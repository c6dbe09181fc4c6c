//! `blackboard quota set`

use blackboard::Result;
use serde_json::Value;

use super::{edit, home_config, tokens};
use crate::commands::Run;
use crate::config::printable;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::quota::{ConfiguredQuota, SetQuota};
use crate::quota::check_server;

/// Change a value of the token quota
///
/// Changes one value of `quota` in your home configuration, and keeps everything else, comments too. `null` removes it, for
/// example a window. What follows `models.` is one pattern, also with dots. A value that is not valid is refused (exit 2).
///
/// Examples:
///   blackboard quota set providers.anthropic.windows.5h.budget 400k
///   blackboard quota set providers.anthropic.reservation.operator 100000
///   blackboard quota set 'models.claude-3.5-*' anthropic
///   blackboard quota set enforce deny
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Set {
    /// Key inside of quota, with dots
    #[arg(value_name = "KEY")]
    key: String,

    /// Value: JSON, a number of tokens such as 400k, or any other text as a string
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,
}

/// The last names of keys whose values are numbers of tokens.
const TOKENS: [&str; 4] = ["budget", "operator", "maxPerAgent", "tokensPerMinute"];

impl Set {
    /// The value as JSON. A number of tokens may have a unit.
    fn value(&self) -> Value {
        let name = self.key.rsplit('.').next().unwrap_or_default();
        match tokens(&self.value) {
            Ok(number) if TOKENS.contains(&name) => number.into(),
            _ => serde_json::from_str(&self.value).unwrap_or_else(|_| Value::String(self.value.clone())),
        }
    }
}

impl Run for Set {
    fn run(self, context: &Context) -> Result<Outcome> {
        let file = home_config(context)?;
        if !file.exists() {
            return Err(super::not_configured());
        }
        let _lock = edit::lock(&file)?;
        let value = self.value();
        let text = edit::with_value(&file, &edit::read(&file)?, &self.key, &value)?;
        let quota = edit::quota_in(&text)?;
        quota.server.as_deref().map(check_server).transpose()?;
        edit::write(&file, &text)?;
        Ok(Outcome::new(ConfiguredQuota(SetQuota { file: printable(&file), key: Some(self.key), quota })))
    }
}
