//! `docs/cli.md`: every help text on one page, for people who read before they install.
//!
//! The page is made and checked by a test, so that nothing of it is in the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use crate::commands::{COMMANDS, Command, Group, HELP_WIDTH, Leaf};
use crate::help::PAGE;

/// Set by `cargo xtask cli-docs`.
const WRITE: &str = "BLACKBOARD_WRITE_CLI_DOCS";

#[test]
fn the_page_of_all_commands_is_up_to_date() {
    testkit::limit_test();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = page();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, page).unwrap();
    } else {
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            stored == page,
            "docs/cli.md is out of date: run `cargo xtask cli-docs` and commit the result"
        );
    }
}

fn page() -> String {
    let mut page = String::from(
        "# The `blackboard` command\n\n<!-- Made by `cargo xtask cli-docs` from the help texts. -->\n\n",
    );
    writeln!(page, "```text\n{}\n```", PAGE.trim_end()).unwrap();
    writeln!(page, "\n{}", short_options()).unwrap();
    for group in Group::ALL {
        let members: Vec<&Command> = COMMANDS.iter().filter(|command| command.group == group).collect();
        if members.is_empty() {
            continue;
        }
        writeln!(page, "\n## {}", group.heading()).unwrap();
        for command in members {
            let mut definition = Leaf { command, alias: None }.standing_alone().term_width(HELP_WIDTH);
            let help = definition.render_long_help().to_string();
            writeln!(page, "\n### `blackboard {}`\n\n```text\n{}\n```", command.path, help.trim_end())
                .unwrap();
        }
    }
    // Help texts are padded to the width of the terminal in places.
    page.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// The short options, and which long ones they stand for.
fn short_options() -> String {
    let mut shorts: BTreeMap<char, BTreeSet<String>> = BTreeMap::new();
    for command in COMMANDS {
        let definition = Leaf { command, alias: None }.standing_alone();
        for argument in definition.get_arguments() {
            if let (Some(short), Some(long)) = (argument.get_short(), argument.get_long()) {
                shorts.entry(short).or_default().insert(format!("`--{long}`"));
            }
        }
    }
    let mut text = String::from("## Short options\n\n| Short | Long |\n|---|---|\n");
    for (short, longs) in shorts {
        writeln!(text, "| `-{short}` | {} |", longs.into_iter().collect::<Vec<_>>().join(", ")).unwrap();
    }
    text.trim_end().to_owned()
}
