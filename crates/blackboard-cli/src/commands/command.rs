//! The rows of the table of commands, and how one of them becomes a clap definition.

use std::ffi::OsString;

use blackboard::Result;
use clap::error::ErrorKind;
use clap::{ArgMatches, Args};

use crate::args::Globals;
use crate::context::Context;
use crate::outcome::Outcome;

/// What a command does with its arguments.
///
/// The doc comment of the struct is the help text: the first line is the summary, the rest the explanation, and what
/// follows a line `Examples:` stands at the end of the long help. `#[command(verbatim_doc_comment)]` keeps its lines.
pub trait Run: Args {
    /// Does it and returns what to show. Nothing is printed before this returns.
    fn run(self, context: &Context) -> Result<Outcome>;
}

/// One command: the words that call it, where help lists it, its arguments and what it does.
#[derive(Debug)]
pub struct Command {
    /// The words that call it, as in `work claim`.
    pub path: &'static str,
    /// Where the help of the program lists it.
    pub group: Group,
    augment: fn(clap::Command) -> clap::Command,
    run: fn(&mut ArgMatches, &Context) -> Result<Result<Outcome>, clap::Error>,
}

/// The sections of the help text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What an agent runs while it works.
    Everyday,
    /// Keys and values.
    Entries,
    /// What is run once.
    SetUp,
    /// What a person runs to look after a board.
    Operator,
}

/// Another name of a command, which help does not list.
#[derive(Debug)]
pub struct Alias {
    /// The words that call it.
    pub path: &'static str,
    /// The path of the command that they call.
    pub of: &'static str,
    /// Values that options have under this name when they are not given: id of the argument, value.
    pub defaults: &'static [(&'static str, &'static str)],
}

/// What the first words of a group of commands mean.
#[derive(Debug)]
pub struct Noun {
    /// The words, as in `work`.
    pub path: &'static str,
    /// What help says about it.
    pub about: &'static str,
}

/// A command under one of its names.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// The command.
    pub command: &'static Command,
    /// The other name by which it was called.
    pub alias: Option<&'static Alias>,
}

/// A row of the table.
pub const fn command<C: Run>(path: &'static str, group: Group) -> Command {
    Command { path, group, augment: C::augment_args, run: run::<C> }
}

impl Command {
    /// Runs it with arguments that were parsed by its own definition; the outer error is one of usage.
    pub fn run(&self, matches: &mut ArgMatches, context: &Context) -> Result<Result<Outcome>, clap::Error> {
        (self.run)(matches, context)
    }
}

impl Group {
    /// Every section, in the order of the help text.
    pub const ALL: [Group; 4] = [Group::Everyday, Group::Entries, Group::SetUp, Group::Operator];

    /// Its heading.
    pub const fn heading(self) -> &'static str {
        match self {
            Group::Everyday => "Everyday",
            Group::Entries => "Entries",
            Group::SetUp => "Set-up",
            Group::Operator => "Operator",
        }
    }
}

impl Leaf {
    /// The words that call it.
    pub fn path(self) -> &'static str {
        self.alias.map_or(self.command.path, |alias| alias.path)
    }

    /// Parses the arguments of this command alone; the words that name it are not among them.
    pub fn parse(self, arguments: &[OsString]) -> Result<ArgMatches, clap::Error> {
        match self.without_tree().try_get_matches_from(arguments) {
            // Only help shows examples. Moving them would cost every other call 3 % of its instructions.
            Err(error) if error.kind() == ErrorKind::DisplayHelp => {
                self.standing_alone().try_get_matches_from(arguments)
            }
            outcome => outcome,
        }
    }

    /// The definition of this command without the tree around it, with the global options.
    pub fn standing_alone(self) -> clap::Command {
        examples_last(self.without_tree())
    }

    /// The definition of this command as a part of the tree, whose root has the global options.
    pub fn inside_tree(self) -> clap::Command {
        examples_last(self.augment(clap::Command::new(self.name())))
    }

    fn without_tree(self) -> clap::Command {
        // First the global options: a later `augment` sets the text of the command, an earlier one would lose it.
        let bare = Globals::augment_args(clap::Command::new(self.name()));
        self.augment(bare).bin_name(format!("blackboard {}", self.path())).no_binary_name(true)
    }

    fn name(self) -> &'static str {
        let path = self.path();
        path.rsplit_once(' ').map_or(path, |(_, last)| last)
    }

    fn augment(self, bare: clap::Command) -> clap::Command {
        let mut command = (self.command.augment)(bare);
        for &(id, value) in self.alias.map_or(&[][..], |alias| alias.defaults) {
            command = command.mut_arg(id, |argument| argument.default_value(value));
        }
        command
    }
}

fn run<C: Run>(matches: &mut ArgMatches, context: &Context) -> Result<Result<Outcome>, clap::Error> {
    Ok(C::from_arg_matches_mut(matches)?.run(context))
}

/// Moves the examples of a doc comment behind the options, where readers of help texts look for them.
fn examples_last(command: clap::Command) -> clap::Command {
    let Some(text) = command.get_long_about().map(ToString::to_string) else { return command };
    match text.split_once("\n\nExamples:\n") {
        Some((explanation, examples)) => {
            command.long_about(unwrapped(explanation)).after_long_help(format!("Examples:\n{examples}"))
        }
        None => command,
    }
}

/// One line a paragraph: the lines of the source are not those of the reader's terminal.
fn unwrapped(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}
