//! The words of a call: the global options, and what the words show of a call that could not be understood.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};

use crate::location::BoardName;
use crate::output::escape;

/// The options that every command takes, before or after its words.
#[derive(clap::Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Globals {
    /// Board to use: a file, an existing directory (then DIR/local.db), or the URL of a server
    /// ('redis://host:port?board=NAME')
    #[arg(long, global = true, value_name = "PATH", help_heading = HEADING, overrides_with = "db")]
    pub db: Option<BoardName>,

    /// Print JSON, also for errors
    #[arg(long, global = true, help_heading = HEADING, overrides_with = "json")]
    pub json: bool,

    /// Store text that looks like a credential
    #[arg(long, global = true, help_heading = HEADING, hide_short_help = true)]
    #[arg(overrides_with = "allow_secret_looking")]
    pub allow_secret_looking: bool,
}

/// How many words in front are a global option: one, or two if its value is the next word. None if the value is missing.
pub fn global_option(arguments: &[OsString]) -> usize {
    match arguments.first().and_then(|first| first.to_str()) {
        Some("--db") if arguments.len() > 1 => 2,
        Some(text) if SWITCHES.contains(&text) || text.starts_with("--db=") => 1,
        _ => 0,
    }
}

/// The words in front of a call that could not be understood, without the global options between them.
pub fn leading_words(arguments: &[OsString]) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = arguments;
    while let [first, after @ ..] = rest {
        rest = match (global_option(rest), first.to_str()) {
            (0, Some(text)) if !text.starts_with('-') => {
                words.push(text.to_owned());
                after
            }
            (0, _) => break,
            (option, _) => &rest[option..],
        };
    }
    words
}

/// The same call in words that can be repeated to a person: harmless, not too long, and without the login of a URL. Bytes
/// that are no text stay what they are.
pub fn repeatable(arguments: &[OsString]) -> Vec<OsString> {
    let repeatable =
        |argument: &OsString| match argument.to_str().map(|text| escape(&without_login(text)).into_owned()) {
            Some(text) => match text.char_indices().nth(LONGEST_REPEATED) {
                Some((end, _)) => format!("{}…", &text[..end]).into(),
                None => text.into(),
            },
            None => argument.clone(),
        };
    arguments.iter().map(repeatable).collect()
}

/// A text without the login of the URL in it, which may be a secret.
fn without_login(text: &str) -> Cow<'_, str> {
    match text.split_once("://").and_then(|(before, rest)| Some((before, rest.rsplit_once('@')?.1))) {
        Some((before, address)) => format!("{before}://…@{address}").into(),
        None => text.into(),
    }
}

/// Whether a call that could not be understood wanted JSON.
pub fn asks_for_json(arguments: &[OsString]) -> bool {
    has_switch(arguments, "--json")
}

/// Whether a call that could not be understood wanted a line for `eval`.
pub fn asks_for_shell(arguments: &[OsString]) -> bool {
    has_switch(arguments, "--shell") && !asks_for_json(arguments)
}

fn has_switch(arguments: &[OsString], switch: &str) -> bool {
    let mut before_values = arguments.iter().take_while(|argument| *argument != OsStr::new("--"));
    before_values.any(|argument| argument == switch)
}

/// How many letters of a word are enough to recognize it.
const LONGEST_REPEATED: usize = 200;

const HEADING: &str = "Global options";

/// The options of [`Globals`] without a value; a test compares them with the definitions above.
const SWITCHES: &[&str] = &["--json", "--allow-secret-looking"];

#[cfg(test)]
mod tests {
    use clap::Args;

    use super::*;

    fn arguments(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_walk_knows_every_global_option() {
        let command = Globals::augment_args(clap::Command::new("globals"));
        let names = |takes_value: bool| -> Vec<String> {
            let wanted = command
                .get_arguments()
                .filter(|argument| argument.get_action().takes_values() == takes_value);
            wanted.map(|argument| format!("--{}", argument.get_long().unwrap())).collect()
        };
        assert_eq!(names(false), SWITCHES);
        assert_eq!(names(true), ["--db"]);
        assert!(command.get_arguments().all(|argument| argument.get_short().is_none()));
    }

    #[test]
    fn json_after_a_double_dash_is_a_value() {
        assert!(asks_for_json(&arguments("wrok --json")));
        assert!(!asks_for_json(&arguments("wrok -- --json")));
    }
}
