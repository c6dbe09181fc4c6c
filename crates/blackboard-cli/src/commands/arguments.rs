//! Arguments that several commands share, each defined once.

use blackboard::Metadata;
use clap::builder::NonEmptyStringValueParser;

/// The session that acts.
#[derive(clap::Args, Debug)]
pub struct Session {
    /// The session that acts: its id, or the first 6 characters or more [default: $BLACKBOARD_SESSION_ID, or the only
    /// live session of the agent that calls]
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

/// A work item, by position or by `--id`.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Item {
    /// The work item
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    item: Option<String>,

    /// The work item, as an option
    #[arg(long = "id", value_name = "ID", alias = "task", value_parser = NonEmptyStringValueParser::new())]
    item_option: Option<String>,
}

impl Item {
    /// The id, however it was given.
    pub fn id(self) -> String {
        // clap has made sure that one of them is there.
        self.item.or(self.item_option).unwrap_or_default()
    }
}

/// A project, by position or by `--id`.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Project {
    /// The project
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    project: Option<String>,

    /// The project, as an option
    #[arg(long = "id", value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    project_option: Option<String>,
}

impl Project {
    /// The id, however it was given.
    pub fn id(self) -> String {
        // clap has made sure that one of them is there.
        self.project.or(self.project_option).unwrap_or_default()
    }
}

/// Parses a number of things to show; showing none of them would look like there are none.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("allowed: a whole number from 1 on".to_owned()),
    }
}

/// Parses a JSON object.
pub fn metadata(text: &str) -> Result<Metadata, String> {
    Metadata::parse(text).map_err(|error| error.to_string())
}
