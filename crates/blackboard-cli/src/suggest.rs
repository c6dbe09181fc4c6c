//! What a call with an unknown command may have meant: the nearest command or topic of help.

use std::cmp::Reverse;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};

use crate::args;
use crate::commands::{self, ALIASES, COMMANDS, NOUNS};
use crate::help::{TOPICS, Topic};

/// The most suggestions of one hint.
const MOST: usize = 3;

/// How much a match with the second word of a command costs more than one with its first: `reserve` for `file reserve`.
const SECOND_WORD: usize = 1;

/// What is wrong with a call whose command does not exist, and what to do: the message and the hint.
pub fn unknown_command(arguments: &[OsString]) -> (String, String) {
    let words = args::leading_words(arguments);
    let (is_help, words) = match &words[..] {
        [help, rest @ ..] if help == "help" => (true, rest),
        words => (false, words),
    };
    // The words of the command, up to the one that is unknown.
    let known = (0..words.len()).rev().find(|&count| is_noun(&words[..count].join(" "))).unwrap_or(0);
    let unknown = words.get(known).map(String::as_str).unwrap_or_default();
    let what = if is_help { "command or topic" } else { "command" };
    let message = format!("unknown {what} '{unknown}'");
    let hint = match &similar(words, known, is_help)[..] {
        [] if known > 0 => format!("run `blackboard {} --help`", words[..known].join(" ")),
        [] => "list all commands: blackboard help --all".to_owned(),
        [one] => format!("did you mean: blackboard {one}"),
        several => format!("did you mean one of: {}", several.join(", ")),
    };
    (message, hint)
}

/// Removes a suggestion of clap's that is not near the unknown option: `--allow-secret-looking` for `--as`.
pub fn remove_far_option(error: &mut clap::Error) {
    let name = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.trim_start_matches('-')),
        _ => None,
    };
    let is_far = name(ContextKind::InvalidArg)
        .zip(name(ContextKind::SuggestedArg))
        .is_some_and(|(given, suggested)| distance(given, suggested).is_none());
    if is_far {
        error.remove(ContextKind::SuggestedArg);
        // It shows the suggestion, too.
        error.remove(ContextKind::Usage);
    }
}

fn is_noun(words: &str) -> bool {
    words.is_empty() || NOUNS.iter().any(|noun| noun.path == words)
}

/// The nearest commands, by their own names, all at the same distance. `known` words are right.
fn similar(words: &[String], known: usize, is_help: bool) -> Vec<String> {
    let nouns = NOUNS.iter().map(|noun| (noun.path, noun.path));
    let own = COMMANDS.iter().map(|command| (command.path, command.path));
    let aliases = ALIASES.iter().map(|alias| (alias.path, alias.of));
    let mut found: Vec<(Nearness, String)> = nouns
        .chain(own)
        .chain(aliases)
        .filter_map(|(path, of)| Some((nearness(path, words, known)?, own_name(of))))
        .collect();
    if is_help && known == 0 {
        let topics = TOPICS.iter().map(|Topic { name, .. }| {
            Some(((distance(words.first()?, name)?, Reverse(1)), format!("help {name}")))
        });
        found.extend(topics.flatten());
    }
    let nearest = found.iter().map(|(nearness, _)| *nearness).min();
    let mut names: Vec<String> = Vec::new();
    for (nearness, name) in found {
        if Some(nearness) == nearest && !names.contains(&name) {
            names.push(name);
        }
    }
    names.truncate(MOST);
    names
}

/// A noun that exists only in aliases is named by the noun of their commands.
fn own_name(path: &str) -> String {
    let of = ALIASES.iter().find(|alias| commands::is_inside(alias.path, path)).map(|alias| alias.of);
    let has_commands =
        COMMANDS.iter().any(|command| command.path == path || commands::is_inside(command.path, path));
    match of.and_then(|of| of.split(' ').next()).filter(|_| !has_commands) {
        Some(noun) => noun.to_owned(),
        None => path.to_owned(),
    }
}

/// How many letters differ, and how many words are compared: of two commands at the same distance, the longer one is meant.
type Nearness = (usize, Reverse<usize>);

/// How far these words are from a command, if they are near it. The known ones have to be its first.
fn nearness(path: &str, words: &[String], known: usize) -> Option<Nearness> {
    let names: Vec<&str> = path.split(' ').collect();
    if names.len() <= known || names[..known].iter().zip(words).any(|(name, word)| name != word) {
        return None;
    }
    let first = words.get(known)?;
    match &names[known..] {
        [name] => Some((distance(first, name)?, Reverse(1))),
        [noun, name] => {
            let both =
                words.get(known + 1).and_then(|word| Some(distance(first, noun)? + distance(word, name)?));
            match both {
                Some(both) => Some((both, Reverse(2))),
                // `acquire` alone means the command that has this word.
                None => Some((distance(first, name)? + SECOND_WORD, Reverse(1))),
            }
        }
        _ => None,
    }
}

/// How many letters differ, if few do. The beginning of a name is near it too.
fn distance(word: &str, name: &str) -> Option<usize> {
    let letters = word.chars().count();
    if letters >= 3 && name.starts_with(word) {
        return Some(usize::from(name != word));
    }
    let distance = strsim::osa_distance(word, name);
    (distance <= letters / 3).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_command_gets_the_nearest_one() {
        testkit::limit_test();
        let all = "list all commands: blackboard help --all";
        for (line, message, hint) in [
            ("wrok", "command 'wrok'", "did you mean: blackboard work"),
            ("--db x wrok claim a", "command 'wrok'", "did you mean: blackboard work claim"),
            ("agents", "command 'agents'", "did you mean: blackboard agent"),
            ("task list", "command 'task'", "did you mean: blackboard work list"),
            ("tasks lst", "command 'lst'", "did you mean: blackboard work list"),
            ("lock aquire", "command 'aquire'", "did you mean: blackboard lock acquire"),
            ("acquire deploy", "command 'acquire'", "did you mean: blackboard lock acquire"),
            ("clam", "command 'clam'", "did you mean: blackboard work claim"),
            ("versoin", "command 'versoin'", "did you mean: blackboard version"),
            ("help exit", "command or topic 'exit'", "did you mean: blackboard help exit-codes"),
            ("help env", "command or topic 'env'", "did you mean: blackboard help environment"),
            ("help work clam", "command or topic 'clam'", "did you mean: blackboard work claim"),
            ("edit", "command 'edit'", "did you mean: blackboard work edit"),
            ("xyzzy", "command 'xyzzy'", all),
            ("work xyzzy", "command 'xyzzy'", "run `blackboard work --help`"),
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let expected = (format!("unknown {message}"), hint.to_owned());
            assert_eq!(unknown_command(&arguments), expected, "{line}");
        }
    }
}
