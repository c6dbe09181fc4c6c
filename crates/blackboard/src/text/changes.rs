//! Changes to the text of one call: which fields were shortened or filtered.

use serde::{Deserialize, Serialize};

use super::{TextRules, check_name, shown};
use crate::error::Result;

/// The fields of a call whose text is not stored unchanged. Part of the answer; empty lists are omitted.
///
/// ```
/// # use blackboard::{Board, work::Create};
/// # let board = Board::memory();
/// let created = board.work().create(&Create::new("fix", &"long ".repeat(200)))?;
/// assert_eq!(created.text.shortened, ["title"]);
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextChanges {
    /// The fields that were longer than their limit and were cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<String>,
    /// The fields from which markup, code blocks, template markers or invisible characters were removed. White space that
    /// was joined does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filtered: Vec<String>,
    /// The lengths of the shortened fields. Not serialized, and missing where the answer of an earlier call is repeated.
    #[serde(skip)]
    pub lengths: Vec<ShortenedText>,
    /// The stored text of each filtered field. Not serialized, because the answer has these fields. A verb that remembers
    /// its answer stores this separately.
    #[serde(skip)]
    pub stored: Vec<StoredText>,
}

/// A field and its text after the filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredText {
    /// The field.
    pub field: String,
    /// Its text.
    pub text: String,
}

/// A field that was shortened, with its lengths in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortenedText {
    /// The field.
    pub field: String,
    /// How long the given text is.
    pub given: usize,
    /// The maximum number of characters of the field.
    pub limit: usize,
}

impl TextChanges {
    /// Whether all text is stored unchanged.
    pub fn is_empty(&self) -> bool {
        self.shortened.is_empty() && self.filtered.is_empty()
    }

    /// Adds the changes of further text of the same call.
    pub(crate) fn extend(&mut self, further: &TextChanges) {
        self.shortened.extend_from_slice(&further.shortened);
        self.lengths.extend_from_slice(&further.lengths);
        self.filtered.extend_from_slice(&further.filtered);
        self.stored.extend_from_slice(&further.stored);
    }

    /// One sentence that reports the changes, if there are any.
    ///
    /// ```
    /// # use blackboard::text::TextChanges;
    /// let changes = TextChanges { shortened: vec!["title".to_owned()], ..TextChanges::default() };
    /// assert_eq!(changes.sentence().unwrap(), "the title is longer than the limit and was shortened");
    /// ```
    pub fn sentence(&self) -> Option<String> {
        let list = |names: &[String]| match names {
            [] => None,
            [only] => Some(format!("the {only}")),
            [first @ .., last] => Some(format!("the {} and the {last}", first.join(", the "))),
        };
        let lengths = self.lengths.iter().map(|ShortenedText { field, given, limit }| {
            format!("{field} shortened from {given} to {limit} characters")
        });
        let lengths = lengths.collect::<Vec<_>>().join("; ");
        let shortened = list(&self.shortened).map(|names| match self.shortened.len() {
            _ if !lengths.is_empty() => lengths,
            1 => format!("{names} is longer than the limit and was shortened"),
            _ => format!("{names} are longer than the limit and were shortened"),
        });
        let filtered = list(&self.filtered).map(|names| {
            if self.stored.is_empty() {
                return format!("markup, template markers or invisible characters were removed from {names}");
            }
            let fields = self.stored.iter().map(|stored| {
                let text = shown(&stored.text);
                format!("{} was changed: \"{text}\"", stored.field)
            });
            let fields = fields.collect::<Vec<_>>().join("; ");
            format!("{fields} (markup, template markers or invisible characters were removed)")
        });
        let parts: Vec<_> = shortened.into_iter().chain(filtered).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// The length limit and the form of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One line: a name, a title, a note.
    Field,
    /// One longer line: progress, a summary, a reason.
    Summary,
    /// Many lines.
    Description,
}

/// Cleans the texts of one call and records their changes.
pub(crate) struct Cleaner<'rules> {
    rules: &'rules TextRules,
    changes: TextChanges,
}

impl<'rules> Cleaner<'rules> {
    pub(crate) fn new(rules: &'rules TextRules) -> Cleaner<'rules> {
        Cleaner { rules, changes: TextChanges::default() }
    }

    /// The clean text of the field `name` of the answer.
    pub(crate) fn clean(&mut self, name: &str, kind: Kind, text: &str) -> Result<String> {
        let cleaned = self.rules.cleaned(kind, text)?;
        if cleaned.shortened {
            self.changes.shortened.push(name.to_owned());
            let (given, limit) = (text.chars().count(), self.rules.limit(kind));
            self.changes.lengths.push(ShortenedText { field: name.to_owned(), given, limit });
        }
        if cleaned.filtered {
            self.changes.filtered.push(name.to_owned());
            self.changes.stored.push(StoredText { field: name.to_owned(), text: cleaned.text.clone() });
        }
        Ok(cleaned.text)
    }

    /// The same for a field that may be missing.
    pub(crate) fn maybe(&mut self, name: &str, kind: Kind, text: Option<&String>) -> Result<Option<String>> {
        text.map(|text| self.clean(name, kind, text)).transpose()
    }

    /// The clean name of an agent, in which invisible characters are refused.
    pub(crate) fn agent_name(&mut self, name: &str) -> Result<String> {
        check_name(name)?;
        self.clean("name", Kind::Field, name)
    }

    /// The changes to the texts.
    pub(crate) fn changes(self) -> TextChanges {
        self.changes
    }
}
