//! `blackboard lock …`

pub mod acquire;
pub mod list;
pub mod release;
pub mod run;

use std::time::Duration;

use blackboard::duration;
use clap::builder::NonEmptyStringValueParser;

/// Which lock is wanted, and how.
#[derive(clap::Args, Debug)]
pub struct LockOptions {
    /// The lock: a name as keys have it, without * ? [ ] and without a colon at either end
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub name: String,

    /// Wait this long for it, as in 30s or 10m, instead of not at all
    #[arg(long, value_name = "DURATION", value_parser = length, allow_hyphen_values = true)]
    pub wait: Option<Duration>,

    /// Hold it for this long at most, as in 30s or 10m [default: as long as the session lives]
    #[arg(long, value_name = "DURATION", value_parser = length, allow_hyphen_values = true)]
    pub ttl: Option<Duration>,

    /// What it is held for, for others to read
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub note: Option<String>,
}

/// Parses a length of time.
pub fn length(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|error| match error.hint() {
        Some(hint) => format!("{error}; {}", crate::hints::as_command(hint)),
        None => error.to_string(),
    })
}
