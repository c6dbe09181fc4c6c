//! `blackboard lock …`

pub mod acquire;
pub mod list;
pub mod release;
pub mod run;

use clap::builder::NonEmptyStringValueParser;

/// Which lock is wanted, and how.
#[derive(clap::Args, Debug)]
pub struct LockOptions {
    /// Name of the lock
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub name: String,

    /// Wait up to this long for the lock [default: do not wait]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub wait: Option<String>,

    /// Time to live: 90s, 15m, 1h, 2d; a bare number is seconds [default: until the session ends]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub ttl: Option<String>,

    /// Reason, shown to other agents
    #[arg(short = 'm', long, value_name = "TEXT", allow_hyphen_values = true)]
    pub note: Option<String>,
}
