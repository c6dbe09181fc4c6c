//! Forms of work items outside of the board: text in, items out, and back.
//!
//! Everything here was written by others. The size of a text and the number of its items are limited; what cannot be read is
//! reported with its line, and does not stop the rest. The board filters all text.
//!
//! | File | What it reads |
//! |---|---|
//! | `github.rs` | the output of `gh issue list --json` |
//! | `jsonl.rs` | one JSON object per line; writes them too |
//! | `beads.rs` | `issues.jsonl` of beads |
//! | `tasks.rs` | a `tasks.yaml` |
//! | `markdown.rs` | a Markdown task list; writes one too. `list_key.rs` is the part of its ids that names the file |

pub mod beads;
pub mod github;
pub mod jsonl;
pub mod markdown;
pub mod tasks;

mod labels;
mod list_key;
mod object;

pub use self::labels::tokens;
pub use self::list_key::list_key;

use std::collections::HashMap;
use std::fmt;

use blackboard::text::escape_for_terminal;
use blackboard::work::OutsideItem;
use serde::Serialize;

/// The most bytes of a file, or of what another program prints.
pub const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The most items of one import.
const MOST_ITEMS: usize = 100_000;

/// The most problems that are kept.
const MOST_PROBLEMS: usize = 100;

/// The items of a text, and what cannot be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrackerFile {
    /// The items.
    pub items: Vec<OutsideItem>,
    /// The first problems.
    pub problems: Vec<Problem>,
    /// How many items could not be read.
    pub unread: usize,
    /// How many more problems there are.
    pub unreported: usize,
    /// Where each id was.
    places: HashMap<String, Place>,
}

/// What is wrong, and where.
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON output")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The line, or in a list the number of the item, from 1.
    pub line: usize,
    /// The same for people, for example `line 4` or `issue 4`; empty if it is about the whole text.
    pub place: String,
    /// What is wrong.
    pub problem: String,
}

/// Where an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere: it is about the whole text.
    Text,
    Line(usize),
    /// The position in a list of issues, and the number of the issue if that is known.
    Issue(usize, Option<u64>),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Text => Ok(()),
            Place::Line(line) => write!(formatter, "line {line}"),
            Place::Issue(_, Some(number)) => write!(formatter, "#{number}"),
            Place::Issue(position, None) => write!(formatter, "issue {position}"),
        }
    }
}

impl TrackerFile {
    /// Adds what was read of an item in a line.
    fn add(&mut self, line: usize, item: Result<OutsideItem, String>) {
        self.add_at(Place::Line(line), item);
    }

    /// Adds what was read of an item. Of two with the same id the board takes the last one, so the first is reported.
    fn add_at(&mut self, place: Place, item: Result<OutsideItem, String>) {
        match item {
            Ok(_) if self.items.len() == MOST_ITEMS => {
                self.add_problem(place, &format!("only {MOST_ITEMS} items are read"));
                self.unread += 1;
            }
            Ok(item) => {
                if let Some(earlier) = self.places.insert(item.id.clone(), place) {
                    let id = &item.id;
                    let problem = format!("it is skipped, because {place} has the same id {id} again");
                    self.add_problem(earlier, &problem);
                }
                self.items.push(item);
            }
            Err(problem) => {
                self.add_problem(place, &problem);
                self.unread += 1;
            }
        }
    }

    fn add_problem(&mut self, place: Place, problem: &str) {
        const CHARACTERS: usize = 200;
        if self.problems.len() == MOST_PROBLEMS {
            self.unreported += 1;
            return;
        }
        let problem: String = problem.chars().take(CHARACTERS).collect();
        let line = match place {
            Place::Text => 0,
            Place::Line(number) | Place::Issue(number, _) => number,
        };
        let problem = escape_for_terminal(&problem).into_owned();
        self.problems.push(Problem { line, place: place.to_string(), problem });
    }
}
