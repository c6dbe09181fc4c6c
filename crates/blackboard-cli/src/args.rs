//! From argv to the one command that is meant, without building the others.
//!
//! Building clap's tree of every command costs more than most commands do, so [`find`] only walks over the words in
//! front and hands the rest to the clap definition of that one command. Whatever it does not understand, it leaves
//! to the whole tree ([`crate::tree`]), which is made of the same definitions and knows how to suggest and explain.

use std::ffi::{OsStr, OsString};

use crate::commands::{self, Leaf};
use crate::help::Topic;
use crate::output::escape;

/// The options that every command takes, before or after its words.
#[derive(clap::Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Globals {
    /// Board to use: a file, or an existing directory (then DIR/local.db)
    #[arg(long, global = true, value_name = "PATH", help_heading = HEADING, overrides_with = "db")]
    pub db: Option<OsString>,

    /// Print JSON, also for errors
    #[arg(long, global = true, help_heading = HEADING, overrides_with = "json")]
    pub json: bool,

    /// Store text that looks like a credential
    #[arg(long, global = true, help_heading = HEADING, hide_short_help = true)]
    #[arg(overrides_with = "allow_secret_looking")]
    pub allow_secret_looking: bool,
}

/// What a call asks for.
#[derive(Debug)]
pub enum Invocation {
    /// `--version`, which is answered without parsing anything.
    Version,
    /// Help that is not about one command, which is printed without a parser.
    Help(Topic),
    /// No arguments at all.
    NoCommand,
    /// One command, and every argument but the words that name it.
    Leaf { leaf: Leaf, arguments: Vec<OsString> },
    /// A usage error, or something that only the complete tree understands: these arguments.
    Tree(Vec<OsString>),
}

impl Invocation {
    /// The words of the command, if it is one.
    pub fn path(&self) -> &'static str {
        match self {
            Invocation::Leaf { leaf, .. } => leaf.path(),
            Invocation::Version | Invocation::Help(_) | Invocation::NoCommand | Invocation::Tree(_) => "",
        }
    }
}

/// Finds what a call asks for; `arguments` is argv without the name of the program.
pub fn find(arguments: &[OsString]) -> Invocation {
    if arguments.is_empty() {
        return Invocation::NoCommand;
    }
    let tree = || Invocation::Tree(arguments.to_vec());
    let mut words = String::new();
    let mut before = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(text) = argument.to_str() else { return tree() };
        match text {
            "--version" | "-V" if words.is_empty() => return version(arguments),
            "--help" | "-h" if words.is_empty() => return Invocation::Help(Topic::Program),
            "help" if words.is_empty() => return help(rest.as_slice()),
            "--db" => match rest.next() {
                Some(value) => before.extend([argument.clone(), value.clone()]),
                None => return tree(),
            },
            _ if SWITCHES.contains(&text) || text.starts_with("--db=") => before.push(argument.clone()),
            _ if text.starts_with('-') => return tree(),
            word => {
                if !words.is_empty() {
                    words.push(' ');
                }
                words.push_str(word);
                if let Some(leaf) = commands::find(&words) {
                    // `setup` is a command, and `setup status` another one.
                    let longer = rest.clone().next().and_then(|next| next.to_str());
                    if longer.is_some_and(|next| commands::find(&format!("{words} {next}")).is_some()) {
                        continue;
                    }
                    let arguments = before.into_iter().chain(rest.cloned()).collect();
                    return Invocation::Leaf { leaf, arguments };
                }
            }
        }
    }
    tree()
}

/// Finds what `--version` asks for: the command has its JSON output.
fn version(arguments: &[OsString]) -> Invocation {
    match commands::find("version").filter(|_| asks_for_json(arguments)) {
        Some(leaf) => Invocation::Leaf { leaf, arguments: vec!["--json".into()] },
        None => Invocation::Version,
    }
}

/// The words in front of a call that could not be understood, without the global options between them.
pub fn leading_words(arguments: &[OsString]) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.to_str() {
            Some("--db") => {
                rest.next();
            }
            Some(text) if SWITCHES.contains(&text) || text.starts_with("--db=") => {}
            Some(text) if !text.starts_with('-') => words.push(text.to_owned()),
            _ => break,
        }
    }
    words
}

/// Finds what `help` with these arguments asks for.
fn help(arguments: &[OsString]) -> Invocation {
    let is_option = |argument: &&OsString| argument.to_string_lossy().starts_with('-');
    if arguments.iter().any(|argument| argument == "--all" || argument == "-a") {
        return Invocation::Help(Topic::All);
    }
    let words: Vec<OsString> = arguments.iter().filter(|argument| !is_option(argument)).cloned().collect();
    match words.as_slice() {
        [] => Invocation::Help(Topic::Program),
        [word] if let Some(topic) = Topic::named(word) => Invocation::Help(topic),
        _ => find(&words.into_iter().chain(["--help".into()]).collect::<Vec<_>>()),
    }
}

/// The same call in words that can be repeated to a person: harmless and not too long. Bytes that are no text stay what
/// they are.
pub fn repeatable(arguments: &[OsString]) -> Vec<OsString> {
    let repeatable = |argument: &OsString| match argument.to_str().map(escape) {
        Some(text) => match text.char_indices().nth(LONGEST_REPEATED) {
            Some((end, _)) => format!("{}…", &text[..end]).into(),
            None => text.into_owned().into(),
        },
        None => argument.clone(),
    };
    arguments.iter().map(repeatable).collect()
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

    fn found(line: &str) -> String {
        match find(&arguments(line)) {
            Invocation::Version => "--version".to_owned(),
            Invocation::Tree(_) => "tree".to_owned(),
            Invocation::Help(topic) => format!("help {topic:?}"),
            Invocation::NoCommand => "no command".to_owned(),
            Invocation::Leaf { leaf, arguments } => {
                let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
                format!("{} [{}]", leaf.command.path, arguments.join(" "))
            }
        }
    }

    #[test]
    fn the_words_in_front_name_the_command_and_the_rest_is_its_own() {
        testkit::limit_test();
        for (line, expected) in [
            ("version", "version []"),
            ("version --json", "version [--json]"),
            ("--json version", "version [--json]"),
            ("--db x --allow-secret-looking version y", "version [--db x --allow-secret-looking y]"),
            ("--db=x version version", "version [--db=x version]"),
            ("--db version version", "version [--db version]"),
            ("completions bash --json", "completions [bash --json]"),
            ("version --help", "version [--help]"),
            ("setup status --json", "setup status [--json]"),
            ("setup claude status", "setup [claude status]"),
            ("setup --yes status", "setup [--yes status]"),
            ("hook claude", "hook [claude]"),
            ("hook claude --json", "hook [claude --json]"),
            ("hook --help", "hook [--help]"),
            ("--json hook claude", "hook [--json claude]"),
            ("-V", "--version"),
            ("--json --version", "version [--json]"),
            ("--version --json", "version [--json]"),
            ("--db x -V", "--version"),
            ("", "no command"),
            ("help", "help Program"),
            ("--help", "help Program"),
            ("--json -h version", "help Program"),
            ("help --all", "help All"),
            ("help environment", "help Environment"),
            ("help exit-codes", "help ExitCodes"),
            ("help work claim", "work claim [--help]"),
            ("help setup", "setup [--help]"),
            ("help setup status", "setup status [--help]"),
        ] {
            assert_eq!(found(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_no_command_is_left_to_the_whole_tree() {
        testkit::limit_test();
        for line in ["--json", "--db", "help work", "help versio", "versio", "-- version", "--dbx version"] {
            assert_eq!(found(line), "tree", "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_text_are_left_to_clap() {
        use std::os::unix::ffi::OsStringExt;
        testkit::limit_test();
        let bytes = OsString::from_vec(vec![0xff, 0xfe]);
        assert!(matches!(find(std::slice::from_ref(&bytes)), Invocation::Tree(_)));
        let Invocation::Leaf { arguments, .. } = find(&["version".into(), bytes.clone()]) else { panic!() };
        assert_eq!(arguments, [bytes]);
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
