//! Many entries.

use blackboard::Revision;
use blackboard::entry::{Entry, ListedKey};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{glimpse, left};
use crate::envelope::Answer;
use crate::outcome::Render;
use crate::output::{Cell, Column, Failure, ListPage, Result, Screen, Table, escape, harmless_json, time};

/// The answer of `list`.
pub struct KeyList(pub ListPage<ListedKey>);

impl Render for KeyList {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let keys: Vec<_> = self.0.rows.iter().map(|listed| listed.key.as_str()).collect();
        answer.raw(&keys)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        if self.0.rows.is_empty() {
            return screen.line(format_args!("No entries."));
        }
        let now = screen.now();
        self.0.rows.iter().try_for_each(|ListedKey { key, expires_at }| match expires_at {
            Some(expires) => screen.line(format_args!("{} [TTL: {}]", escape(key), left(*expires, now))),
            None => screen.line(format_args!("{}", escape(key))),
        })?;
        self.0.note_more(screen)
    }
}

/// The answer of `query` and of `list --long`.
pub struct EntryList {
    /// The entries.
    pub entries: ListPage<Entry>,
    /// Where the next page starts, if there is more.
    pub next: Option<String>,
    /// The revision of that moment.
    pub revision: Revision,
}

#[derive(Serialize)]
struct Position<'a> {
    next: Option<&'a str>,
    revision: Revision,
}

impl Render for EntryList {
    fn is_list(&self) -> bool {
        true
    }

    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let (next, revision) = (self.next.as_deref(), self.revision);
        answer.list_with(&self.entries.rows, &Position { next, revision })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        if self.entries.rows.is_empty() {
            return screen.line(format_args!("No entries."));
        }
        let mut table = Table::new([
            Column::typed("KEY"),
            Column::text("VALUE").importance(5),
            Column::fixed("VERSION").if_wide(),
            Column::fixed("REVISION").importance(1),
            Column::name("AUTHOR").importance(4),
            Column::fixed("AGE").importance(3),
            Column::fixed("TTL").importance(2),
            Column::text("TAGS").if_wide(),
        ]);
        let now = screen.now();
        for entry in &self.entries.rows {
            table.row([
                Cell::new(&entry.key),
                Cell::new(glimpse(&entry.value, screen)),
                Cell::new(entry.version.to_string()),
                Cell::new(entry.revision.to_string()),
                Cell::new(&entry.updated_by),
                Cell::new(time::age(now.since(entry.updated_at))),
                Cell::optional(entry.expires_at.map(|expires| time::left(expires.since(now)))),
                Cell::new(entry.tags.join(", ")),
            ]);
        }
        screen.table(&table)?;
        match &self.next {
            // A list has no option for its next page.
            Some(next) if self.entries.rows.len() == self.entries.total => {
                screen.line(format_args!("More entries: add --after {}", escape(&in_quotes(next))))
            }
            _ => self.entries.note_more(screen),
        }
    }
}

/// A word as a shell takes it.
pub fn in_quotes(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || ":_-./".contains(character);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// The answer of `snapshot`: one object, key → entry, without the envelope.
pub struct WholeScope(pub Vec<Entry>);

impl Serialize for WholeScope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|entry| map.serialize_entry(&entry.key, entry))?;
        map.end()
    }
}

impl Render for WholeScope {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.raw(self)
    }

    /// The same, an entry a line: values stay unchanged, so they cannot be indented.
    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let text = |value: &dyn Fn() -> serde_json::Result<String>| {
            value().map_err(|error| Failure::Output(error.into()))
        };
        screen.verbatim("{")?;
        for (index, entry) in self.0.iter().enumerate() {
            let key = text(&|| serde_json::to_string(&entry.key))?;
            let entry = text(&|| serde_json::to_string(entry))?;
            let comma = if index == 0 { "" } else { "," };
            screen.verbatim(format_args!("{comma}\n  {}: {}", harmless_json(&key), harmless_json(&entry)))?;
        }
        screen.verbatim(if self.0.is_empty() { "}\n" } else { "\n}\n" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_can_be_pasted_into_a_shell() {
        for (word, expected) in [("task:a-1", "task:a-1"), ("a b", "'a b'"), ("it's $x", r"'it'\''s $x'")] {
            assert_eq!(in_quotes(word), expected);
        }
    }
}
