//! [`Grouping`]: to which group of pages an entry belongs.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::entry::Entry;
use crate::names::impl_names;

/// How many tags name a group.
const TAGS: usize = 3;

/// How long the entries of one group by time were written.
const BUCKET_MILLIS: i64 = 5 * 60 * 1000;

/// The group of entries without a tag or without a prefix.
const OTHER: &str = "other";

/// By what the entries of a mapped scope are grouped. A page has entries of one group, so what belongs together is found
/// together, and a change touches few pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grouping {
    /// The first three tags, in their order.
    #[default]
    Tag,
    /// The five minutes in which an entry was last written.
    Time,
    /// The key up to its first colon.
    Prefix,
}

impl Grouping {
    /// All of them.
    pub const ALL: &'static [Grouping] = &[Grouping::Tag, Grouping::Time, Grouping::Prefix];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Grouping::Tag => "tag",
            Grouping::Time => "time",
            Grouping::Prefix => "prefix",
        }
    }

    /// The group of an entry.
    pub(super) fn locality(self, entry: &Entry) -> String {
        let found = match self {
            Grouping::Tag => entry.tags.iter().take(TAGS).map(String::as_str).collect::<Vec<_>>().join("+"),
            Grouping::Time => bucket(entry.updated_at),
            Grouping::Prefix => {
                entry.key.split_once(':').map_or_else(String::new, |(first, _)| first.to_owned())
            }
        };
        if found.is_empty() { OTHER.to_owned() } else { found }
    }
}

impl_names!(Grouping, "grouping of pages");

/// When the five minutes begin that a moment belongs to, without seconds.
fn bucket(moment: Timestamp) -> String {
    let start = moment.millis().div_euclid(BUCKET_MILLIS) * BUCKET_MILLIS;
    let text = Timestamp::from_millis(start).to_string();
    let minutes = text.rsplit_once(':').map_or(text.as_str(), |(minutes, _)| minutes);
    format!("{minutes}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Value;
    use crate::revision::Revision;

    #[test]
    fn locality_is_named_by_tags_time_or_prefix() {
        let entry = |key: &str, tags: &[&str], moment: &str| Entry {
            scope: "s".to_owned(),
            key: key.to_owned(),
            value: Value::null(),
            version: 1,
            revision: Revision::new(1),
            created_at: Timestamp::EPOCH,
            created_by: String::new(),
            updated_at: moment.parse().unwrap(),
            updated_by: String::new(),
            expires_at: None,
            tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
            metadata: None,
            session_id: None,
            fence: None,
        };
        let at = "2026-02-03T15:34:59.999Z";
        for (key, tags, moment, expected) in [
            ("a:b:c", &["x", "y", "z", "zz"][..], at, ["x+y+z", "2026-02-03T15:30Z", "a"]),
            ("a", &["x"], "2026-02-03T15:35:00.000Z", ["x", "2026-02-03T15:35Z", "other"]),
            ("other:a", &[], "1970-01-01T00:00:00.000Z", ["other", "1970-01-01T00:00Z", "other"]),
        ] {
            let entry = entry(key, tags, moment);
            let found: Vec<_> = Grouping::ALL.iter().map(|grouping| grouping.locality(&entry)).collect();
            assert_eq!(found, expected, "{key} {tags:?} {moment}");
        }
    }
}
