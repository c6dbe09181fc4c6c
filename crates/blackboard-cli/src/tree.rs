//! The whole tree of commands as one clap definition: for help, suggestions, completions and documentation.
//!
//! It is made of the same definitions as a single command ([`Leaf`]), only slower to build, so that a call which
//! names a command never comes here.

use std::ffi::OsString;

use clap::{ArgMatches, Args};

use crate::args::Globals;
use crate::commands::{self, ALIASES, COMMANDS, Command, HELP_WIDTH, Leaf, NOUNS};
use crate::help::PAGE;

/// Every command below one root, with all its names.
pub fn tree() -> clap::Command {
    below_root(COMMANDS.iter().map(|command| command.path).chain(ALIASES.iter().map(|alias| alias.path)))
}

/// The same without aliases, for the completion of commands: shells would offer hidden names like all others.
pub fn tree_without_aliases() -> clap::Command {
    below_root(COMMANDS.iter().map(|command| command.path))
}

fn below_root(paths: impl Iterator<Item = &'static str>) -> clap::Command {
    let root = Globals::augment_args(clap::Command::new("blackboard"))
        .bin_name("blackboard")
        .version(env!("CARGO_PKG_VERSION"))
        .override_help(PAGE)
        .max_term_width(HELP_WIDTH)
        .subcommand_required(true)
        .arg_required_else_help(true);
    paths.filter_map(commands::find).fold(root, |root, leaf| {
        let words: Vec<&str> = leaf.path().split(' ').collect();
        attach(root, &words, 0, leaf)
    })
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

fn attach(parent: clap::Command, words: &[&'static str], depth: usize, leaf: Leaf) -> clap::Command {
    if depth + 1 == words.len() {
        // Below a noun that is hidden itself, help lists its commands.
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

    fn leaves() -> impl Iterator<Item = Leaf> {
        let paths = COMMANDS.iter().map(|command| command.path).chain(ALIASES.iter().map(|alias| alias.path));
        paths.filter_map(commands::find)
    }
}
