//! The `blackboard` command: every edge of the board that a person, a script or an agent touches.
//!
//! One call goes from argv to one row of [`commands::COMMANDS`], from there to the verb of the library, and its answer
//! comes back as an [`outcome::Outcome`] that [`exit`] prints and turns into an exit code.
//! Nothing below decides a rule of the board. Each edge makes bytes of values: commands in [`output`] and [`envelope`],
//! hooks in [`platforms`], [`mcp`] in `reply.rs`, [`web`] in `reply.rs` and `feed.rs`.

#![expect(
    unreachable_pub,
    reason = "a program has no public interface: `pub` means used outside of its module"
)]
#![expect(
    clippy::doc_markdown,
    reason = "the doc comments of arguments are help texts, which people read as they are"
)]

mod args;
mod child;
#[cfg(test)]
mod cli_docs;
mod commands;
mod config;
mod context;
mod demo;
mod disk;
mod engine;
mod envelope;
mod environment;
mod exit;
mod git;
mod help;
mod hints;
mod hooks;
mod hub;
mod identity;
mod location;
mod mcp;
mod notify;
mod open;
mod outcome;
mod output;
mod platforms;
mod program;
mod quota;
mod repository_name;
mod session;
mod setup;
mod spoke;
mod suggest;
mod trackers;
mod tree;
mod unreadable;
mod web;
mod yaml;
mod zone;

use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;

use args::Globals;
use clap::{ArgMatches, FromArgMatches};
use commands::hook::Hook;
use commands::{Command, Leaf, Run};
use context::Context;
use help::HelpPage;

fn main() -> ExitCode {
    if cfg!(panic = "abort") {
        panic::set_hook(Box::new(report_panic));
    }
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(hook) = Hook::of_platform(&arguments) {
        return hooks::deadline::always_exit_zero(|| answer(hook));
    }
    let invocation = find(&arguments);
    if invocation.path() == "hook" {
        return hooks::deadline::always_exit_zero(|| call(invocation, &arguments));
    }
    call(invocation, &arguments)
}

/// Reports a fault of this program, without a backtrace: a program that does not unwind has no tables for one.
fn report_panic(panic: &PanicHookInfo<'_>) {
    let _ = writeln!(io::stderr(), "blackboard {panic}");
}

/// What a call asks for.
#[derive(Debug)]
enum Invocation {
    /// `--version`, which is answered without parsing anything.
    Version,
    /// Help that is not about one command, which is printed without a parser.
    Help(HelpPage),
    /// No arguments at all.
    NoCommand,
    /// One command, and every argument but the words that name it.
    Leaf { leaf: Leaf, arguments: Vec<OsString> },
    /// A usage error, or something that only the complete tree understands: these arguments.
    Tree(Vec<OsString>),
}

impl Invocation {
    /// The words of the command, if it is one.
    fn path(&self) -> &'static str {
        match self {
            Invocation::Leaf { leaf, .. } => leaf.path(),
            Invocation::Version | Invocation::Help(_) | Invocation::NoCommand | Invocation::Tree(_) => "",
        }
    }
}

/// Finds what a call asks for; `arguments` is argv without the name of the program.
///
/// Building clap's tree of every command costs more than most commands do. So this only walks over the words in front,
/// and the rest goes to the clap definition of that one command. Everything else is left to the complete tree
/// ([`tree`]), which is made of the same definitions and knows how to suggest and explain.
fn find(arguments: &[OsString]) -> Invocation {
    if arguments.is_empty() {
        return Invocation::NoCommand;
    }
    let (mut words, mut before) = (String::new(), Vec::new());
    let mut rest = arguments;
    while let [first, after @ ..] = rest {
        let option = args::global_option(rest);
        if option > 0 {
            before.extend_from_slice(&rest[..option]);
            rest = &rest[option..];
            continue;
        }
        rest = after;
        match first.to_str() {
            Some("--version" | "-V") if words.is_empty() => return version(arguments),
            Some("--help" | "-h") if words.is_empty() => return Invocation::Help(HelpPage::Program),
            Some("help") if words.is_empty() => return help(rest),
            Some(word) if !word.starts_with('-') => {
                if !words.is_empty() {
                    words.push(' ');
                }
                words.push_str(word);
                if let Some(leaf) = commands::find(&words) {
                    // `setup` is a command, and `setup status` another one.
                    let longer = rest.first().and_then(|next| next.to_str());
                    if longer.is_some_and(|next| commands::find(&format!("{words} {next}")).is_some()) {
                        continue;
                    }
                    before.extend_from_slice(rest);
                    return Invocation::Leaf { leaf, arguments: before };
                }
            }
            _ => break,
        }
    }
    Invocation::Tree(arguments.to_vec())
}

/// Finds what `--version` asks for: the command has its JSON output.
fn version(arguments: &[OsString]) -> Invocation {
    match commands::find("version").filter(|_| args::asks_for_json(arguments)) {
        Some(leaf) => Invocation::Leaf { leaf, arguments: vec!["--json".into()] },
        None => Invocation::Version,
    }
}

/// Finds what `help` with these arguments asks for.
fn help(arguments: &[OsString]) -> Invocation {
    let is_option = |argument: &&OsString| argument.to_string_lossy().starts_with('-');
    if arguments.iter().any(|argument| argument == "--all" || argument == "-a") {
        return Invocation::Help(HelpPage::All);
    }
    let words: Vec<OsString> = arguments.iter().filter(|argument| !is_option(argument)).cloned().collect();
    match words.as_slice() {
        [] => Invocation::Help(HelpPage::Program),
        [word] if let Some(page) = HelpPage::named(word) => Invocation::Help(page),
        _ => find(&words.into_iter().chain(["--help".into()]).collect::<Vec<_>>()),
    }
}

fn call(invocation: Invocation, arguments: &[OsString]) -> ExitCode {
    let parsed = match invocation {
        Invocation::Version => return exit::version(),
        Invocation::Help(_) if args::asks_for_json(arguments) => return exit::help_in_json(),
        Invocation::Help(page) => return page.print(),
        Invocation::NoCommand => return help::missing_command(),
        invocation => parse(invocation),
    };
    match parsed.and_then(run) {
        Ok(code) => code,
        Err(error) => {
            // clap repeats the words that it did not understand, and they may come from anywhere.
            let arguments = args::repeatable(arguments);
            let invocation = find(&arguments);
            let path = invocation.path();
            let mut error = parse(invocation).err().unwrap_or(error);
            suggest::remove_far_option(&mut error);
            exit::usage(&error, path, &arguments)
        }
    }
}

fn parse(invocation: Invocation) -> Result<(&'static Command, ArgMatches), clap::Error> {
    match invocation {
        Invocation::Leaf { leaf, arguments } => leaf.parse(&arguments).map(|matches| (leaf.command, matches)),
        Invocation::Tree(arguments) => tree::parse(&arguments),
        // These are answered before anything is parsed.
        Invocation::Version | Invocation::Help(_) | Invocation::NoCommand => tree::parse(&[]),
    }
}

/// Answers a hook that has no options.
fn answer(hook: Hook) -> ExitCode {
    let context = Context::new(Globals::default());
    let code = exit::finish(hook.run(&context), &context);
    std::mem::forget(context);
    code
}

fn run((command, mut matches): (&'static Command, ArgMatches)) -> Result<ExitCode, clap::Error> {
    let context = Context::new(Globals::from_arg_matches_mut(&mut matches)?).of_command(command);
    let outcome = command.run(&mut matches, &context)?;
    let code = exit::finish(outcome, &context);
    // The kernel closes the board faster than we could, and to the same effect: nothing is left to write.
    std::mem::forget(context);
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn found(line: &str) -> String {
        match find(&arguments(line)) {
            Invocation::Version => "--version".to_owned(),
            Invocation::Tree(_) => "tree".to_owned(),
            Invocation::Help(HelpPage::Topic(topic)) => format!("topic {}", topic.name),
            Invocation::Help(page) => format!("help {page:?}"),
            Invocation::NoCommand => "no command".to_owned(),
            Invocation::Leaf { leaf, arguments } => {
                let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
                format!("{} [{}]", leaf.command.path, arguments.join(" "))
            }
        }
    }

    #[test]
    fn leading_words_select_the_command() {
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
            ("help environment", "topic environment"),
            ("help exit-codes", "topic exit-codes"),
            ("help work claim", "work claim [--help]"),
            ("help setup", "setup [--help]"),
            ("help setup status", "setup status [--help]"),
        ] {
            assert_eq!(found(line), expected, "{line}");
        }
    }

    #[test]
    fn unknown_commands_are_parsed_by_the_complete_tree() {
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
}
