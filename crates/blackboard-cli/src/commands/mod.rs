//! Every command, once: one file a command, one line in [`COMMANDS`].
//!
//! A command is a struct of arguments whose doc comment is its help text, and its [`Run`]. The table says by which
//! words it is called and where the help lists it; parsing, help, completions and `docs/cli.md` all follow from it. Below the
//! tables is how a row of them becomes a clap definition.

mod agent;
pub mod arguments;
mod call;
mod completions;
mod copy;
mod demo;
pub mod entry;
mod export;
mod file;
mod guard;
pub mod hook;
mod import;
mod init;
mod interrupt;
mod lock;
mod mcp;
mod memory;
mod observe;
mod page;
mod project;
mod protocol;
mod pull;
mod quota;
mod registry;
mod render;
mod run;
mod scope;
mod search;
mod serve;
mod setup;
mod spoke;
mod status;
mod sweep;
mod upgrade;
mod version;
mod work;

use std::ffi::OsString;

use blackboard::Result;
use clap::error::ErrorKind;
use clap::{ArgMatches, Args};

use crate::args::Globals;
use crate::context::Context;
use crate::outcome::Outcome;

/// Every command, in the order in which `help --all` lists them.
pub const COMMANDS: &[Command] = &[
    command::<status::Status>("status", Group::Everyday),
    command::<agent::list::List>("agent list", Group::Everyday),
    command::<work::list::List>("work list", Group::Everyday),
    command::<work::create::Create>("work create", Group::Everyday),
    command::<work::claim::Claim>("work claim", Group::Everyday),
    command::<work::complete::Complete>("work complete", Group::Everyday),
    command::<work::release::Release>("work release", Group::Everyday),
    command::<observe::Observe>("observe", Group::Everyday),
    command::<file::reserve::Reserve>("file reserve", Group::Everyday),
    command::<entry::write::Write>("write", Group::Everyday),
    command::<entry::read::Read>("read", Group::Everyday),
    command::<serve::Serve>("serve", Group::Everyday),
    command::<demo::Demo>("demo", Group::GettingStarted),
    command::<setup::Setup>("setup", Group::GettingStarted),
    command::<init::Init>("init", Group::GettingStarted),
    command::<run::Run>("run", Group::GettingStarted),
    command::<agent::register::Register>("agent register", Group::Agents),
    command::<agent::heartbeat::Heartbeat>("agent heartbeat", Group::Agents),
    command::<agent::show::Show>("agent show", Group::Agents),
    command::<agent::deregister::Deregister>("agent deregister", Group::Agents),
    command::<call::Call>("call", Group::Agents),
    command::<work::block::Block>("work block", Group::Work),
    command::<work::unblock::Unblock>("work unblock", Group::Work),
    command::<work::status::Status>("work status", Group::Work),
    command::<work::reassign::Reassign>("work reassign", Group::Work),
    command::<work::edit::Edit>("work edit", Group::Work),
    command::<work::wait::Wait>("work wait", Group::Work),
    command::<work::reset::Reset>("work reset", Group::Work),
    command::<work::delete::Delete>("work delete", Group::Work),
    command::<work::import::Import>("work import", Group::Work),
    command::<work::export::Export>("work export", Group::Work),
    command::<work::update_metadata::UpdateMetadata>("work update-metadata", Group::Work),
    command::<work::append_event::AppendEvent>("work append-event", Group::Work),
    command::<entry::list::List>("list", Group::Entries),
    command::<entry::query::Query>("query", Group::Entries),
    command::<search::Search>("search", Group::Entries),
    command::<entry::history::History>("history", Group::Entries),
    command::<entry::wait::Wait>("wait", Group::Entries),
    command::<entry::append::Append>("append", Group::Entries),
    command::<entry::increment::Increment>("increment", Group::Entries),
    command::<entry::delete::Delete>("delete", Group::Entries),
    command::<entry::clear::Clear>("clear", Group::Entries),
    command::<entry::purge::Purge>("purge", Group::Entries),
    command::<entry::txn::Txn>("txn", Group::Entries),
    command::<entry::snapshot::Snapshot>("snapshot", Group::Entries),
    command::<scope::create::Create>("scope create", Group::Entries),
    command::<scope::set::Set>("scope set", Group::Entries),
    command::<scope::show::Show>("scope show", Group::Entries),
    command::<scope::list::List>("scope list", Group::Entries),
    command::<scope::delete::Delete>("scope delete", Group::Entries),
    command::<page::map::Map>("page map", Group::Entries),
    command::<page::unmap::Unmap>("page unmap", Group::Entries),
    command::<page::list::List>("page list", Group::Entries),
    command::<page::show::Show>("page show", Group::Entries),
    command::<memory::remember::Remember>("memory remember", Group::Memory),
    command::<memory::recall::Recall>("memory recall", Group::Memory),
    command::<memory::feedback::Feedback>("memory feedback", Group::Memory),
    command::<memory::map::Map>("memory map", Group::Memory),
    command::<memory::list::List>("memory list", Group::Memory),
    command::<memory::define::Define>("memory define", Group::Memory),
    command::<memory::promote::Promote>("memory promote", Group::Memory),
    command::<memory::drain::Drain>("memory drain", Group::Memory),
    command::<memory::pending::Pending>("memory pending", Group::Memory),
    command::<memory::compact::Compact>("memory compact", Group::Memory),
    command::<memory::delete::Delete>("memory delete", Group::Memory),
    command::<lock::acquire::Acquire>("lock acquire", Group::LocksAndFiles),
    command::<lock::release::Release>("lock release", Group::LocksAndFiles),
    command::<lock::list::List>("lock list", Group::LocksAndFiles),
    command::<lock::run::Run>("lock run", Group::LocksAndFiles),
    command::<file::release::Release>("file release", Group::LocksAndFiles),
    command::<file::list::List>("file list", Group::LocksAndFiles),
    command::<file::check::Check>("file check", Group::LocksAndFiles),
    command::<project::register::Register>("project register", Group::Projects),
    command::<project::list::List>("project list", Group::Projects),
    command::<project::status::Status>("project status", Group::Projects),
    command::<project::remove::Remove>("project remove", Group::Projects),
    command::<spoke::init::Init>("spoke init", Group::Projects),
    command::<spoke::show::Show>("spoke show", Group::Projects),
    command::<spoke::validate::Validate>("spoke validate", Group::Projects),
    command::<pull::Pull>("pull", Group::Projects),
    command::<registry::Registry>("registry", Group::Projects),
    command::<render::Render>("render", Group::Projects),
    command::<protocol::list::List>("protocol list", Group::Protocols),
    command::<protocol::show::Show>("protocol show", Group::Protocols),
    command::<protocol::key::Key>("protocol key", Group::Protocols),
    command::<protocol::pattern::Pattern>("protocol pattern", Group::Protocols),
    command::<protocol::parse::Parse>("protocol parse", Group::Protocols),
    command::<protocol::check::Check>("protocol check", Group::Protocols),
    command::<protocol::define::Define>("protocol define", Group::Protocols),
    command::<protocol::remove::Remove>("protocol remove", Group::Protocols),
    command::<quota::status::Status>("quota status", Group::Quota),
    command::<quota::check::Check>("quota check", Group::Quota),
    command::<quota::release::Release>("quota release", Group::Quota),
    command::<quota::record::RecordUsage>("quota record", Group::Quota),
    command::<quota::history::History>("quota history", Group::Quota),
    command::<quota::fold::Fold>("quota fold", Group::Quota),
    command::<quota::init::Init>("quota init", Group::Quota),
    command::<quota::set::Set>("quota set", Group::Quota),
    command::<setup::status::Status>("setup status", Group::Setup),
    command::<setup::remove::Remove>("setup remove", Group::Setup),
    command::<guard::install::Install>("guard install", Group::Setup),
    command::<guard::check::Check>("guard check", Group::Setup),
    command::<guard::remove::Remove>("guard remove", Group::Setup),
    command::<mcp::Mcp>("mcp", Group::Setup),
    command::<hook::Hook>("hook", Group::Setup),
    command::<sweep::Sweep>("sweep", Group::Maintenance),
    command::<export::Export>("export", Group::Maintenance),
    command::<import::Import>("import", Group::Maintenance),
    command::<copy::Copy>("copy", Group::Maintenance),
    command::<upgrade::Upgrade>("upgrade", Group::Maintenance),
    command::<completions::Completions>("completions", Group::Maintenance),
    command::<version::Version>("version", Group::Maintenance),
];

/// How wide help is at most.
pub const HELP_WIDTH: usize = 80;

/// Other names of commands, which only the help of their command lists. `edit` and `work edit` are reserved for changing an
/// item.
pub const ALIASES: &[Alias] = &[
    alias("register", "agent register"),
    alias("heartbeat", "agent heartbeat"),
    alias("deregister", "agent deregister"),
    alias("agent ls", "agent list"),
    alias("who", "agent list"),
    alias("agent status", "agent show"),
    alias("create", "work create"),
    alias("work new", "work create"),
    alias("claim", "work claim"),
    alias("tasks claim", "work claim"),
    alias("release", "work release"),
    alias("tasks release", "work release"),
    alias("done", "work complete"),
    alias("complete", "work complete"),
    alias("work done", "work complete"),
    alias("work close", "work complete"),
    alias("work ls", "work list"),
    Alias { path: "ready", of: "work list", defaults: &[("status", "available")] },
    Alias { path: "tasks list", of: "work list", defaults: &[("status", "available")] },
    Alias { path: "tasks ls", of: "work list", defaults: &[("status", "available")] },
    alias("show", "work status"),
    alias("work show", "work status"),
    Alias { path: "log", of: "observe", defaults: &[("last", "20"), ("peek", "true")] },
    Alias { path: "watch", of: "observe", defaults: &[("follow", "true")] },
    alias("st", "status"),
    alias("get", "read"),
    alias("set", "write"),
    alias("ls", "list"),
    alias("transaction", "txn"),
    alias("recall", "memory recall"),
    alias("memory ls", "memory list"),
    alias("lock ls", "lock list"),
    alias("file ls", "file list"),
    alias("project ls", "project list"),
    alias("scope ls", "scope list"),
    alias("page ls", "page list"),
    alias("project show", "project status"),
    alias("protocol ls", "protocol list"),
];

/// What the first words of longer commands mean.
pub const NOUNS: &[Noun] = &[
    Noun { path: "agent", about: "Register and list agents" },
    Noun { path: "file", about: "Reserve and release files" },
    Noun { path: "guard", about: "Keep reserved files out of commits" },
    Noun { path: "lock", about: "Acquire and release locks" },
    Noun { path: "memory", about: "Remember, recall and move records" },
    Noun { path: "page", about: "Pack scopes into pages of bounded size" },
    Noun { path: "project", about: "Register projects" },
    Noun { path: "protocol", about: "Describe, build and check keys" },
    Noun { path: "quota", about: "Check, reserve and record tokens" },
    Noun { path: "scope", about: "Give scopes of entries policies" },
    Noun { path: "spoke", about: "Report to a hub: the files in .collab" },
    Noun { path: "tasks", about: "Alias of `work`" },
    Noun { path: "work", about: "Create, claim and complete work items" },
];

/// The command that `words` name, by its own name or by another.
pub fn find(words: &str) -> Option<Leaf> {
    let own = |path: &str| COMMANDS.iter().find(|command| command.path == path);
    if let Some(command) = own(words) {
        return Some(Leaf { command, alias: None });
    }
    let alias = ALIASES.iter().find(|alias| alias.path == words)?;
    own(alias.of).map(|command| Leaf { command, alias: Some(alias) })
}

/// Whether `path` lies below `noun`, as `work claim` does below `work`.
pub fn is_inside(path: &str, noun: &str) -> bool {
    path.strip_prefix(noun).is_some_and(|rest| rest.starts_with(' '))
}

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
    /// The section of the page of the program that names it.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests compare the page and `docs/cli.md` with it"))]
    pub group: Group,
    augment: fn(clap::Command) -> clap::Command,
    run: fn(&mut ArgMatches, &Context) -> Result<Result<Outcome>, clap::Error>,
}

/// The sections of the page of the program, and of `docs/cli.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What an agent or its user runs every day.
    Everyday,
    /// What a new user runs first.
    GettingStarted,
    /// Sessions of agents.
    Agents,
    /// Work items.
    Work,
    /// Keys and values.
    Entries,
    /// What sessions remember.
    Memory,
    /// What sessions exclude each other from.
    LocksAndFiles,
    /// Projects.
    Projects,
    /// Agreements on keys.
    Protocols,
    /// The token quota.
    Quota,
    /// What connects the board to other programs.
    Setup,
    /// What keeps a board in order.
    Maintenance,
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

/// A row of [`ALIASES`] that presets no option.
const fn alias(path: &'static str, of: &'static str) -> Alias {
    Alias { path, of, defaults: &[] }
}

/// A row of the table.
pub const fn command<C: Run>(path: &'static str, group: Group) -> Command {
    Command { path, group, augment: C::augment_args, run: run_parsed::<C> }
}

impl Command {
    /// Runs it with arguments that were parsed by its own definition; the outer error is one of usage.
    pub fn run(&self, matches: &mut ArgMatches, context: &Context) -> Result<Result<Outcome>, clap::Error> {
        (self.run)(matches, context)
    }

    /// Whether it has an option with this long name.
    pub fn has_option(&self, name: &str) -> bool {
        let definition = (self.augment)(clap::Command::new(self.path));
        definition.get_arguments().any(|argument| argument.get_long() == Some(name))
    }
}

impl Group {
    /// Every section, in the order of the page.
    #[cfg(test)]
    pub const ALL: [Group; 12] = [
        Group::Everyday,
        Group::GettingStarted,
        Group::Agents,
        Group::Work,
        Group::Entries,
        Group::Memory,
        Group::LocksAndFiles,
        Group::Projects,
        Group::Protocols,
        Group::Quota,
        Group::Setup,
        Group::Maintenance,
    ];

    /// Its heading.
    #[cfg(test)]
    pub const fn heading(self) -> &'static str {
        match self {
            Group::Everyday => "Everyday",
            Group::GettingStarted => "Getting started",
            Group::Agents => "Agents",
            Group::Work => "Work",
            Group::Entries => "Entries",
            Group::Memory => "Memory",
            Group::LocksAndFiles => "Locks, files",
            Group::Projects => "Projects",
            Group::Protocols => "Protocols",
            Group::Quota => "Token quota",
            Group::Setup => "Setup",
            Group::Maintenance => "Maintenance",
        }
    }

    /// Whether the page shows the summaries of its commands, and not only their names.
    #[cfg(test)]
    pub const fn shows_summaries(self) -> bool {
        matches!(self, Group::Everyday | Group::GettingStarted)
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
        self.for_readers(self.without_tree())
    }

    /// The definition of this command as a part of the tree, whose root has the global options.
    pub fn inside_tree(self) -> clap::Command {
        self.for_readers(self.augment(clap::Command::new(self.name())))
    }

    /// The definition as help shows it: at most 80 columns wide, with the aliases of the command, and its examples last.
    fn for_readers(self, definition: clap::Command) -> clap::Command {
        let definition = definition.max_term_width(HELP_WIDTH);
        let Some(text) = definition.get_long_about().map(ToString::to_string) else { return definition };
        let (explanation, examples) = match text.split_once("\n\nExamples:\n") {
            Some((explanation, examples)) => (explanation, Some(examples)),
            None => (text.as_str(), None),
        };
        let mut explanation = unwrapped(explanation);
        let aliases: Vec<_> =
            ALIASES.iter().filter(|alias| alias.of == self.command.path).map(|alias| alias.path).collect();
        if !aliases.is_empty() {
            explanation.push_str("\n\nAliases: ");
            explanation.push_str(&aliases.join(", "));
        }
        let definition = definition.long_about(explanation);
        match examples {
            Some(examples) => definition.after_long_help(format!("Examples:\n{examples}")),
            None => definition,
        }
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

fn run_parsed<C: Run>(matches: &mut ArgMatches, context: &Context) -> Result<Result<Outcome>, clap::Error> {
    Ok(C::from_arg_matches_mut(matches)?.run(context))
}

/// One line a paragraph: the lines of the source are not those of the reader's terminal. An indented paragraph keeps its
/// lines.
fn unwrapped(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        if paragraph.starts_with("  ") { paragraph.to_owned() } else { paragraph.replace('\n', " ") }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_paths() -> Vec<&'static str> {
        COMMANDS.iter().map(|command| command.path).chain(ALIASES.iter().map(|alias| alias.path)).collect()
    }

    #[test]
    fn no_name_is_the_beginning_of_another_but_that_of_setup() {
        let paths = all_paths();
        for (index, path) in paths.iter().enumerate() {
            for (_, other) in paths.iter().enumerate().filter(|(other, _)| *other != index) {
                let is_beginning = is_inside(other, path) && *path != "setup";
                assert!(path != other && !is_beginning, "{path} / {other}");
            }
        }
    }

    #[test]
    fn every_alias_names_a_command() {
        for alias in ALIASES {
            assert!(
                find(alias.path).is_some(),
                "{} is an alias of {}, which does not exist",
                alias.path,
                alias.of
            );
        }
    }

    #[test]
    fn every_noun_has_a_meaning_and_every_meaning_a_command() {
        for path in all_paths() {
            if let Some((noun, _)) = path.rsplit_once(' ') {
                let is_known = find(noun).is_some() || NOUNS.iter().any(|known| known.path == noun);
                assert!(is_known, "{noun} is missing in NOUNS");
            }
        }
        for noun in NOUNS {
            assert!(
                all_paths().iter().any(|path| is_inside(path, noun.path)),
                "{} has no commands",
                noun.path
            );
        }
    }
}
