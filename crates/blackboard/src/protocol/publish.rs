//! [`Publishable`]: a data type that knows its key.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Template;
use crate::entry::{Entry, Query, Scope, Value, Write, Written};
use crate::error::{Code, Error, Refusal, Result};

/// A data type whose values are entries: it knows the form of their keys, their tags and their time to live.
///
/// ```
/// use std::time::Duration;
/// use blackboard::Board;
/// use blackboard::protocol::Publishable;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct Summary {
///     task: String,
///     text: String,
/// }
///
/// impl Publishable for Summary {
///     const TEMPLATE: &'static str = "task:{task}:result:summary";
///
///     fn key_values(&self) -> Vec<(&'static str, String)> {
///         vec![("task", self.task.clone())]
///     }
///
///     fn tags(&self) -> Vec<String> {
///         vec!["summary".to_owned()]
///     }
///
///     fn ttl(&self) -> Option<Duration> {
///         Some(Duration::from_secs(3600))
///     }
/// }
///
/// let board = Board::memory();
/// let scope = board.scope("team-1");
/// let summary = Summary { task: "analysis-7".to_owned(), text: "Q4 revenue up 15%".to_owned() };
/// assert_eq!(scope.publish(&summary)?.key, "task:analysis-7:result:summary");
///
/// // All of them, and that of one task.
/// assert_eq!(scope.published::<Summary>(&[])?.len(), 1);
/// let found = scope.published::<Summary>(&[("task", "analysis-7")])?.remove(0);
/// assert_eq!((found.value, found.entry.tags), (summary, vec!["summary".to_owned()]));
/// # Ok::<(), blackboard::Error>(())
/// ```
pub trait Publishable: Serialize + DeserializeOwned {
    /// The form of its keys, as a [`Template`].
    const TEMPLATE: &'static str;

    /// The values of its key, by their names in the template.
    fn key_values(&self) -> Vec<(&'static str, String)>;

    /// The tags of its entry.
    fn tags(&self) -> Vec<String> {
        Vec::new()
    }

    /// The time to live of its entry. Without one, that of the scope applies.
    fn ttl(&self) -> Option<Duration> {
        None
    }

    /// Its key.
    fn key(&self) -> Result<String> {
        let values = self.key_values();
        let values: Vec<_> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Template::new(Self::TEMPLATE)?.key(&values)
    }
}

/// A published value.
#[derive(Clone, Debug, PartialEq)]
pub struct Published<T> {
    /// The value.
    pub value: T,
    /// Its entry, with the version, the author and the time of the last write.
    pub entry: Entry,
}

impl Scope<'_> {
    /// Writes a value under its key, and replaces the one before. See [`Publishable`].
    pub fn publish<T: Publishable>(&self, value: &T) -> Result<Written> {
        let write = Write::new(&value.key()?, Value::of(value)?);
        self.write(&Write { tags: value.tags(), ttl: value.ttl(), ..write })
    }

    /// The values of a type that the scope contains, at one revision and by key. Each of `values` is one that the key has to
    /// have. Keys that do not have the form of the type are ignored; a value that is not of the type is refused.
    pub fn published<T: Publishable>(&self, values: &[(&str, &str)]) -> Result<Vec<Published<T>>> {
        let template = Template::new(T::TEMPLATE)?;
        let query = Query { pattern: Some(template.pattern(values)?), ..Query::default() };
        let mut published = Vec::new();
        for entry in self.snapshot(&query)?.entries {
            let Some(found) = template.parse(&entry.key) else { continue };
            if values.iter().all(|(name, value)| found.get(*name).is_some_and(|text| text == value)) {
                published.push(Published { value: read(&entry, &template)?, entry });
            }
        }
        Ok(published)
    }
}

fn read<T: DeserializeOwned>(entry: &Entry, template: &Template) -> Result<T> {
    entry.value.to().map_err(|error| {
        let message = format!("the value of key {} does not match {template}: {error}", entry.key);
        Error::from(
            Refusal::new(Code::ProtocolMismatch, message)
                .detail("scope", entry.scope.as_str())
                .detail("key", entry.key.as_str())
                .detail("template", template.as_str()),
        )
    })
}
