//! Labels, the estimate, and what is known of an item's source: members of its metadata.
//!
//! | Member | Value |
//! |---|---|
//! | `labels` | texts, sorted |
//! | `estimate` | the expected tokens |
//! | `outside` | what the last import saw: [`Outside`] |

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use super::{Priority, WorkItem, hold};
use crate::error::{Code, Error, Refusal, Result};
use crate::metadata::Metadata;
use crate::text::{Cleaner, Kind};

/// The most labels of an item.
const MOST_LABELS: usize = 100;

/// The most characters of a label.
const LONGEST_LABEL: usize = 100;

/// The largest estimate: the largest whole number that every reader of JSON keeps.
const LARGEST_ESTIMATE: u64 = (1 << 53) - 1;

const LABELS: &str = "labels";
const ESTIMATE: &str = "estimate";
const OUTSIDE: &str = "outside";
const PRIORITY: &str = "priority";

/// Refuses metadata of a caller with members that only the board writes.
pub(super) fn check_given(metadata: &Metadata) -> Result<()> {
    let given = metadata.to_map();
    match [OUTSIDE, hold::MEMBER].into_iter().find(|member| given.contains_key(*member)) {
        Some(member) => Err(Refusal::new(
            Code::InvalidValue,
            format!("the member \"{member}\" of an item's metadata is written by the board"),
        )
        .hint("use another name")
        .into()),
        None => Ok(()),
    }
}

/// An item at its source, as the last import saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outside {
    /// The form of the import that wrote the text of the item last, for example `github`.
    pub(crate) from: Option<String>,
    /// Whether it was closed.
    pub(crate) is_closed: bool,
    /// Whether it was closed while a session held it, so that its release completes it.
    pub(crate) completes_on_release: bool,
    /// Its blockers there.
    pub(crate) blocked_by: Vec<String>,
    /// Its priority there.
    pub(crate) priority: Priority,
    /// Its estimate there.
    pub(crate) estimate: Option<u64>,
    /// Why it was on hold there.
    pub(crate) on_hold: Option<String>,
    /// Whether it was closed before the board had it, so that it is no progress of this board.
    pub(crate) was_closed_before: bool,
}

impl WorkItem {
    /// Its labels, sorted.
    ///
    /// ```
    /// # use blackboard::{Board, work::{Create, Edit}};
    /// # let board = Board::memory();
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// let edit = Edit { add_labels: vec!["ci".to_owned()], estimate: Some(20_000), ..Edit::of("fix-tests") };
    /// let item = board.work().edit(&edit)?.item;
    /// assert_eq!((item.labels(), item.estimate()), (vec!["ci".to_owned()], Some(20_000)));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn labels(&self) -> Vec<String> {
        texts(self.member(LABELS).as_ref())
    }

    /// The tokens that it is expected to need.
    pub fn estimate(&self) -> Option<u64> {
        self.member(ESTIMATE)?.as_u64()
    }

    /// The form of the import that wrote its text last, for example `github`; `None` if no import did.
    pub fn imported_from(&self) -> Option<String> {
        self.outside().from
    }

    /// Its metadata without labels, estimate and what is known of its source.
    pub fn other_metadata(&self) -> Option<Metadata> {
        let mut metadata = self.metadata.clone();
        for name in [LABELS, ESTIMATE, OUTSIDE] {
            // What is stored is an object of an allowed size, and this one is smaller.
            metadata = Metadata::with_member(metadata.as_ref(), name, None).ok().flatten();
        }
        metadata
    }

    /// What the last import saw.
    pub(crate) fn outside(&self) -> Outside {
        let Some(Json::Object(seen)) = self.member(OUTSIDE) else { return Outside::default() };
        let is_true = |name: &str| seen.get(name) == Some(&Json::Bool(true));
        Outside {
            from: seen.get("from").and_then(Json::as_str).map(str::to_owned),
            is_closed: is_true("closed"),
            completes_on_release: is_true("completes_on_release"),
            blocked_by: texts(seen.get("blocked_by")),
            priority: seen
                .get(PRIORITY)
                .and_then(Json::as_str)
                .and_then(|name| name.parse().ok())
                .unwrap_or_default(),
            estimate: seen.get(ESTIMATE).and_then(Json::as_u64),
            on_hold: seen.get("on_hold").and_then(Json::as_str).map(str::to_owned),
            was_closed_before: is_true("closed_before"),
        }
    }

    pub(super) fn set_labels(&mut self, labels: &[String]) -> Result<()> {
        self.set_member(LABELS, (!labels.is_empty()).then(|| json!(labels)).as_ref())
    }

    pub(super) fn set_estimate(&mut self, estimate: Option<u64>) -> Result<()> {
        self.set_member(ESTIMATE, estimate.map(Json::from).as_ref())
    }

    pub(crate) fn set_outside(&mut self, seen: &Outside) -> Result<()> {
        let Outside {
            from,
            is_closed,
            completes_on_release,
            blocked_by,
            priority,
            estimate,
            on_hold,
            was_closed_before,
        } = seen;
        let mut members = Map::new();
        members.extend(from.as_ref().map(|from| ("from".to_owned(), json!(from))));
        for (name, is_true) in [
            ("closed", is_closed),
            ("completes_on_release", completes_on_release),
            ("closed_before", was_closed_before),
        ] {
            members.extend(is_true.then(|| (name.to_owned(), json!(true))));
        }
        if !blocked_by.is_empty() {
            members.insert("blocked_by".to_owned(), json!(blocked_by));
        }
        if *priority != Priority::default() {
            members.insert(PRIORITY.to_owned(), json!(priority));
        }
        members.extend(estimate.map(|estimate| (ESTIMATE.to_owned(), json!(estimate))));
        members.extend(on_hold.as_ref().map(|reason| ("on_hold".to_owned(), json!(reason))));
        self.set_member(OUTSIDE, (!members.is_empty()).then_some(Json::Object(members)).as_ref())
    }

    /// A later release makes it available, although it is closed at its source. A later completion is progress of this board.
    pub(super) fn stay_open_when_released(&mut self) {
        let seen = self.outside();
        if seen.completes_on_release || seen.was_closed_before {
            // Less metadata than before is always allowed.
            let _ =
                self.set_outside(&Outside { completes_on_release: false, was_closed_before: false, ..seen });
        }
    }

    /// Whether it was completed on this board, and not before it was imported.
    pub(crate) fn is_progress(&self) -> bool {
        self.status == super::Status::Completed && !self.outside().was_closed_before
    }

    fn member(&self, name: &str) -> Option<Json> {
        self.metadata.as_ref()?.member(name)
    }

    fn set_member(&mut self, name: &str, value: Option<&Json>) -> Result<()> {
        if self.member(name).as_ref() != value {
            self.metadata = Metadata::with_member(self.metadata.as_ref(), name, value)?;
        }
        Ok(())
    }
}

/// The texts of a list. A caller may have stored something else under the name.
fn texts(list: Option<&Json>) -> Vec<String> {
    let texts = list.and_then(Json::as_array).into_iter().flatten();
    texts.filter_map(Json::as_str).map(str::to_owned).collect()
}

/// Labels with filtered text, sorted, each once.
pub(super) fn clean_labels(cleaner: &mut Cleaner<'_>, labels: &[String]) -> Result<Vec<String>> {
    let mut clean = BTreeSet::new();
    for label in labels {
        let label = cleaner.clean("labels", Kind::Field, label)?;
        if label.chars().count() > LONGEST_LABEL {
            return Err(Error::invalid(format!(
                "a label has more than {LONGEST_LABEL} characters: \"{label}\""
            )));
        }
        if !label.is_empty() {
            clean.insert(label);
        }
    }
    Ok(clean.into_iter().collect())
}

/// Refuses more labels than an item may have.
pub(super) fn check_label_count(count: usize) -> Result<()> {
    if count > MOST_LABELS {
        return Err(Error::invalid(format!("a work item has at most {MOST_LABELS} labels, not {count}")));
    }
    Ok(())
}

/// Refuses an estimate that no reader of JSON would keep.
pub(super) fn check_estimate(estimate: Option<u64>) -> Result<()> {
    match estimate {
        Some(tokens) if tokens > LARGEST_ESTIMATE => {
            Err(Error::invalid(format!("an estimate has at most {LARGEST_ESTIMATE} tokens, not {tokens}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_item;

    #[test]
    fn details_are_members_beside_those_of_the_caller() {
        let mut item = WorkItem { metadata: Some(Metadata::parse(r#"{"n":1.0}"#).unwrap()), ..an_item("x") };
        item.set_labels(&["b".to_owned()]).unwrap();
        item.set_estimate(Some(7)).unwrap();
        let seen = Outside {
            from: Some("github".to_owned()),
            is_closed: true,
            completes_on_release: true,
            blocked_by: vec!["a".to_owned()],
            priority: Priority::P1,
            estimate: Some(7),
            on_hold: Some("later".to_owned()),
            was_closed_before: true,
        };
        item.set_outside(&seen).unwrap();
        assert_eq!((item.labels(), item.estimate(), item.outside()), (vec!["b".to_owned()], Some(7), seen));
        assert_eq!(item.other_metadata().unwrap().as_str(), r#"{"n":1.0}"#);
        item.set_labels(&[]).unwrap();
        item.set_estimate(None).unwrap();
        item.set_outside(&Outside::default()).unwrap();
        assert_eq!(item.metadata.unwrap().as_str(), r#"{"n":1.0}"#);
    }

    #[test]
    fn other_values_under_these_names_are_not_read() {
        let text = r#"{"labels":"b","estimate":-1,"outside":[]}"#;
        let item = WorkItem { metadata: Some(Metadata::parse(text).unwrap()), ..an_item("x") };
        assert_eq!((item.labels(), item.estimate(), item.outside()), (vec![], None, Outside::default()));
    }
}
