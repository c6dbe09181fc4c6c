//! The whole tree of commands as one clap definition: for help, suggestions, completions and documentation.
//!
//! It is made of the same definitions as a single command ([`Leaf`]), only slower to build, so that a call which
//! names a command never comes here.

use std::ffi::OsString;
use std::fmt::Write;

use clap::{ArgMatches, Args};

use crate::args::Globals;
use crate::commands::{self, ALIASES, COMMANDS, Command, Group, Leaf, NOUNS};

/// Every command below one root.
pub fn tree() -> clap::Command {
    let root = Globals::augment_args(clap::Command::new("blackboard"))
        .bin_name("blackboard")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .long_about(None::<&str>)
        .after_help("`blackboard help COMMAND` explains a command and shows examples.")
        .after_long_help(AFTER)
        .subcommand_required(true)
        .arg_required_else_help(true);
    let own = COMMANDS.iter().map(|command| command.path);
    let paths = own.chain(ALIASES.iter().map(|alias| alias.path));
    let tree = paths.filter_map(commands::find).fold(root, |root, leaf| {
        let words: Vec<&str> = leaf.path().split(' ').collect();
        attach(root, &words, 0, leaf)
    });
    let template = template(&tree);
    tree.help_template(template)
}

/// Parses a call with the whole tree: mostly to explain what is wrong with it.
pub fn parse(arguments: &[OsString]) -> Result<(&'static Command, ArgMatches), clap::Error> {
    let mut tree = tree().no_binary_name(true);
    let mut matches = tree.try_get_matches_from_mut(arguments)?;
    let mut path = String::new();
    while let Some((word, inner)) = matches.remove_subcommand() {
        if !path.is_empty() {
            path.push(' ');
        }
        path.push_str(&word);
        matches = inner;
    }
    match commands::find(&path) {
        Some(leaf) => Ok((leaf.command, matches)),
        // Every subcommand that clap accepts came from the table, so this is only for the compiler.
        None => {
            Err(tree.error(clap::error::ErrorKind::InvalidSubcommand, format!("unknown command '{path}'")))
        }
    }
}

const ABOUT: &str = "A coordination surface for agents that work at the same time";

const AFTER: &str = "\
Environment:
  BLACKBOARD_SESSION_ID          the session that acts, where --session does not say it
  BLACKBOARD_DB                  the board, where --db does not say it
  BLACKBOARD_SCOPE               the scope of entries, where --scope does not say it [default: default]
  BLACKBOARD_FENCE               set by `run` and `lock run` for their command: the fence of what it holds
  BLACKBOARD_HOME                where the board and the configuration of this user are [default: ~/.pai/blackboard]
  BLACKBOARD_PID                 the process behind a session that registers
  BLACKBOARD_AGENT_NAME          what an agent calls itself that registers by its hooks or the MCP server
  BLACKBOARD_HOOK_DEADLINE       how many milliseconds a hook may take [default: 300]
  BLACKBOARD_HEARTBEAT_INTERVAL  how many seconds apart an agent says that it is alive [default: 60]
  BLACKBOARD_STALE_THRESHOLD     how many seconds an agent may be silent before it counts as gone [default: 300]
  BLACKBOARD_PRUNE_AFTER         how many seconds heartbeats are kept [default: 604800]
  BLACKBOARD_ALLOW_NETWORK_FILESYSTEM
                                 true: accept a board on NFS, SMB, 9p or FUSE [default: false]

Exit codes:
  0  done
  1  a fault: something is broken
  2  wrong usage
  3  not found
  4  refused: someone else has it, or the version or fence is stale
  5  not permitted
  6  timed out

`blackboard help COMMAND` explains a command and shows examples.";

fn attach(parent: clap::Command, words: &[&'static str], depth: usize, leaf: Leaf) -> clap::Command {
    if depth + 1 == words.len() {
        // Below a noun that is hidden itself, whoever asks for help wants to see what there is.
        let hidden = leaf.alias.is_some() && !parent.is_hide_set();
        // A command that others begin with shows its own help, in which it names them.
        let below_command = COMMANDS.iter().any(|command| command.path == words[..depth].join(" "));
        let hidden = hidden || below_command;
        let parent = if below_command { parent.disable_help_subcommand(true) } else { parent };
        return parent.subcommand(leaf.inside_tree().hide(hidden));
    }
    let word = words[depth];
    if parent.find_subcommand(word).is_some() {
        parent.mut_subcommand(word, |noun| attach(noun, words, depth + 1, leaf))
    } else {
        parent.subcommand(attach(noun(&words[..=depth]), words, depth + 1, leaf))
    }
}

fn noun(words: &[&'static str]) -> clap::Command {
    let path = words.join(" ");
    let about = NOUNS.iter().find(|noun| noun.path == path).map_or("", |noun| noun.about);
    let only_in_aliases = !COMMANDS.iter().any(|command| commands::is_inside(command.path, &path));
    clap::Command::new(words[words.len() - 1])
        .about(about)
        .hide(only_in_aliases)
        .subcommand_required(true)
        .arg_required_else_help(true)
}

/// The help of the program: clap knows no groups of subcommands, so that the list is written here.
fn template(tree: &clap::Command) -> String {
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    let width = COMMANDS.iter().map(|command| command.path.len()).max().unwrap_or(0);
    let heading = clap::builder::Styles::styled().get_header().to_owned();
    for group in Group::ALL {
        let mut members = COMMANDS.iter().filter(|command| command.group == group).peekable();
        if members.peek().is_some() {
            // Writing to a `String` can't fail.
            let _ = write!(text, "\n{heading}{}:{heading:#}\n", group.heading());
        }
        for command in members {
            let definition =
                command.path.split(' ').try_fold(tree, |parent, word| parent.find_subcommand(word));
            let about =
                definition.and_then(clap::Command::get_about).map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {:width$}  {about}", command.path);
        }
    }
    let _ = write!(text, "\n{heading}Options:{heading:#}\n{{options}}{{after-help}}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_finds_no_mistake_in_any_definition() {
        tree().debug_assert();
        for leaf in leaves() {
            leaf.standing_alone().debug_assert();
        }
    }

    #[test]
    fn a_command_alone_and_in_the_tree_say_the_same() {
        let mut tree = tree();
        tree.build();
        for leaf in leaves() {
            let inside =
                leaf.path().split(' ').fold(&tree, |parent, word| parent.find_subcommand(word).unwrap());
            let (mut inside, mut alone) = (inside.clone(), leaf.standing_alone());
            assert_eq!(inside.render_long_help().to_string(), alone.render_long_help().to_string());
            assert_eq!(inside.render_help().to_string(), alone.render_help().to_string());
        }
    }

    #[test]
    fn every_command_has_a_summary_and_examples() {
        for command in COMMANDS {
            let definition = Leaf { command, alias: None }.inside_tree();
            let about = definition.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && !about.contains('\n'), "{}: the summary is one line", command.path);
            let after = definition.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.starts_with("Examples:\n"), "{} has no examples", command.path);
        }
    }

    #[test]
    fn the_tree_parses_what_the_short_way_parses() {
        testkit::limit_test();
        let arguments = ["--json", "completions", "bash"].map(OsString::from);
        let (command, matches) = parse(&arguments).unwrap();
        assert_eq!(command.path, "completions");
        assert!(matches.get_flag("json"));
    }

    #[test]
    fn every_example_in_the_help_texts_parses() {
        testkit::limit_test();
        let mut count = 0;
        for command in COMMANDS {
            let definition = Leaf { command, alias: None }.inside_tree();
            let examples = definition.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            for line in examples.lines().skip(1) {
                let call = call_in(line).unwrap_or_else(|| panic!("{}: no call in {line}", command.path));
                let (parsed, _) = parse(&call).unwrap_or_else(|error| panic!("{line}\n{error}"));
                assert_eq!(parsed.path, command.path, "{line}");
                count += 1;
            }
        }
        assert!(count >= 2 * COMMANDS.len() - 5, "most commands have more than one example");
    }

    /// The arguments of `blackboard` in a line of a shell, up to what ends the command there.
    fn call_in(line: &str) -> Option<Vec<OsString>> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for character in line.split_once("blackboard ")?.1.chars() {
            match character {
                '"' => quoted = !quoted,
                ' ' if !quoted => words.push(String::new()),
                '|' | '>' | ')' if !quoted => break,
                _ => words.last_mut()?.push(character),
            }
        }
        Some(words.into_iter().filter(|word| !word.is_empty()).map(OsString::from).collect())
    }

    fn leaves() -> impl Iterator<Item = Leaf> {
        let paths = COMMANDS.iter().map(|command| command.path).chain(ALIASES.iter().map(|alias| alias.path));
        paths.filter_map(commands::find)
    }
}
