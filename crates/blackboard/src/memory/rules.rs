//! The rules of a level, each a pure function.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::entry::{Glob, check_pattern, check_tag};
use crate::error::{Code, Error, Refusal, Result};
use crate::scope::{as_seconds, from_seconds};
use crate::text::{check_id, shown};

/// How many levels a board may have: `recall` reads the rules of all of them.
pub const MAX_LEVELS: usize = 50;

/// How many patterns, tags or next levels the rules of one level may name.
const MAX_NAMES: usize = 20;

/// A number from 0 to 1, in steps of 0.001.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Relevance(u16);

impl Relevance {
    /// The relevance of a record that is remembered without one.
    pub const DEFAULT: Relevance = Relevance(500);

    /// From a number from 0 to 1.
    ///
    /// ```
    /// use blackboard::memory::Relevance;
    ///
    /// assert_eq!(Relevance::new(0.3)?.value(), 0.3);
    /// assert!(Relevance::new(1.5).is_err());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn new(number: f64) -> Result<Relevance> {
        if !(0.0..=1.0).contains(&number) {
            return Err(Error::invalid(format!("{number} is not a relevance: write a number from 0 to 1")));
        }
        Ok(Relevance::nearest(number))
    }

    /// The nearest one.
    pub(crate) fn nearest(number: f64) -> Relevance {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to 1000")]
        Relevance((number.clamp(0.0, 1.0) * 1000.0).round() as u16)
    }

    /// The number.
    pub fn value(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl Serialize for Relevance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

impl<'de> Deserialize<'de> for Relevance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Relevance, D::Error> {
        Relevance::new(f64::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// The rules of a level. Edges go from a level to its `next` levels; what a level takes from them is among its own rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LevelRules {
    /// Patterns of the keys that belong to the level; every key if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// Whether a record belongs to the session that remembers it, and leaves the level when that session ends.
    #[serde(skip_serializing_if = "is_false")]
    pub session: bool,
    /// How long a record stays. It then moves to a next level; only in a level without one does it expire.
    #[serde(
        serialize_with = "as_seconds",
        deserialize_with = "from_seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl: Option<Duration>,
    /// How many records the level should have. More of them move on, or are offered for a summary; none is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_entries: Option<u64>,
    /// How many tokens its records should have together. From 90 % on, a batch is offered for a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// After which time a record counts half. Readers compute that; nothing is written.
    #[serde(
        serialize_with = "as_seconds",
        deserialize_with = "from_seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub half_life: Option<Duration>,
    /// The least relevance of a record that another level passes on to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_relevance: Option<Relevance>,
    /// A record with one of these tags is not taken from another level.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_tags: Vec<String>,
    /// Takes records from another level when that has so many new ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_at: Option<u64>,
    /// Takes records from another level when the oldest new one has this age.
    #[serde(
        serialize_with = "as_seconds",
        deserialize_with = "from_seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub takes_after: Option<Duration>,
    /// Whether it takes only summaries from another level: records are then offered as a batch, and not moved.
    #[serde(skip_serializing_if = "is_false")]
    pub by_summary: bool,
    /// The levels to which records move, the first that takes a record first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
    /// The level that takes the records of a session that ends, before those of `next`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_end: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference to the field")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Why a level does not take a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Declined {
    /// No pattern matches the key.
    Key,
    /// The relevance is too small.
    Relevance,
    /// It has a tag that the level does not take.
    Tag,
}

impl LevelRules {
    /// Whether a key belongs to the level.
    pub(super) fn has_key(&self, key: &str) -> bool {
        self.patterns.is_empty() || self.patterns.iter().any(|pattern| Glob::new(pattern).matches(key))
    }

    /// Whether the level takes a record from another one.
    pub(super) fn takes(&self, key: &str, tags: &[String], relevance: Relevance) -> Result<(), Declined> {
        if !self.has_key(key) {
            return Err(Declined::Key);
        }
        if self.min_relevance.is_some_and(|least| relevance < least) {
            return Err(Declined::Relevance);
        }
        if tags.iter().any(|tag| self.without_tags.contains(tag)) {
            return Err(Declined::Tag);
        }
        Ok(())
    }

    /// The levels to which its records may go.
    pub(super) fn targets(&self) -> impl Iterator<Item = &str> {
        self.at_end.iter().chain(&self.next).map(String::as_str)
    }

    /// The time to live of its entries: that of the level if records have nowhere to go.
    pub(super) fn ttl_of_entries(&self) -> Option<Duration> {
        self.ttl.filter(|_| self.targets().next().is_none())
    }

    /// Refuses rules that contradict each other, or that name what cannot exist.
    pub(super) fn check(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let lists = [("patterns", &self.patterns), ("tags", &self.without_tags), ("next levels", &self.next)];
        for (what, names) in lists {
            if names.len() > MAX_NAMES {
                let count = names.len();
                return Err(Error::invalid(format!("{count} {what} are too many; {MAX_NAMES} are allowed")));
            }
        }
        self.patterns
            .iter()
            .try_for_each(|pattern| check_pattern(&super::levels::scope_of(name), pattern))?;
        self.without_tags.iter().try_for_each(|tag| check_tag(tag))?;
        self.targets().try_for_each(check_name)?;
        for (what, number) in
            [("max-entries", self.max_entries), ("max-tokens", self.tokens), ("takes-at", self.takes_at)]
        {
            if number == Some(0) {
                return Err(Error::invalid(format!("{what} is 0; the least is 1")));
            }
        }
        for (what, time) in
            [("TTL", self.ttl), ("half-life", self.half_life), ("takes-after", self.takes_after)]
        {
            if time.is_some_and(|time| time.is_zero()) {
                return Err(Error::invalid(format!("the {what} of level {name} is 0")));
            }
        }
        crate::entry::check_ttl(self.ttl)
    }
}

/// Refuses a text that cannot be the name of a level.
pub(super) fn check_name(name: &str) -> Result<()> {
    check_id("memory level", name)?;
    if name.len() > 64 || name.contains([':', ',', '*', '?', '[', ']']) || name.contains(char::is_whitespace)
    {
        let name = shown(name);
        return Err(Error::invalid(format!(
            "\"{name}\" cannot be the name of a level: write at most 64 letters, digits, '-', '_' or '.'"
        )));
    }
    Ok(())
}

/// Refuses edges that lead back to their level: a record would move forever.
pub(super) fn check_no_cycle(levels: &BTreeMap<String, LevelRules>) -> Result<()> {
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for start in levels.keys() {
        let mut path: Vec<&str> = Vec::new();
        if let Some(cycle) = cycle_from(start, levels, &mut path, &mut done) {
            let names = cycle.join(" → ");
            let message = format!("memory levels would form a cycle: {names}");
            return Err(Refusal::new(Code::DependencyCycle, message)
                .hint("let one of these levels have no next level among the others")
                .detail("levels", cycle.into_iter().map(str::to_owned).collect::<Vec<_>>())
                .into());
        }
    }
    Ok(())
}

fn cycle_from<'a>(
    level: &'a str,
    levels: &'a BTreeMap<String, LevelRules>,
    path: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    if let Some(place) = path.iter().position(|known| *known == level) {
        let mut cycle = path[place..].to_vec();
        cycle.push(level);
        return Some(cycle);
    }
    if done.contains(level) {
        return None;
    }
    path.push(level);
    // A board has few levels, so the recursion is not deep.
    let found = levels
        .get(level)
        .and_then(|rules| rules.targets().find_map(|target| cycle_from(target, levels, path, done)));
    path.pop();
    done.insert(level);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn levels(edges: &[(&str, &[&str], Option<&str>)]) -> BTreeMap<String, LevelRules> {
        let rules = |next: &[&str], at_end: Option<&str>| LevelRules {
            next: owned(next),
            at_end: at_end.map(str::to_owned),
            ..LevelRules::default()
        };
        edges.iter().map(|(name, next, at_end)| ((*name).to_owned(), rules(next, *at_end))).collect()
    }

    #[test]
    fn cycles_are_found_and_named() {
        for (edges, expected) in [
            (&[][..], None),
            (&[("a", &["b"][..], None), ("b", &["c"], None)], None),
            (&[("a", &["b", "c"], None), ("b", &["d"], None), ("c", &["d"], None), ("d", &[], None)], None),
            (&[("a", &["a"], None)], Some("a → a")),
            (&[("a", &["b"], None), ("b", &["c"], None), ("c", &["a"], None)], Some("a → b → c → a")),
            (&[("a", &["b"], None), ("b", &["c"], None), ("c", &["b"], None)], Some("b → c → b")),
            (&[("a", &["b"], Some("c")), ("c", &[], Some("a"))], Some("a → c → a")),
        ] {
            let found = check_no_cycle(&levels(edges)).map_err(|error| (error.code(), error.to_string()));
            match expected {
                None => assert_eq!(found, Ok(()), "{edges:?}"),
                Some(cycle) => {
                    let (code, message) = found.unwrap_err();
                    assert_eq!(code, Code::DependencyCycle);
                    assert!(message.ends_with(&format!(": {cycle}")), "{message}");
                }
            }
        }
    }

    #[test]
    fn a_level_takes_what_its_rules_allow() {
        let rules = LevelRules {
            patterns: owned(&["memory_record:*", "note:*"]),
            min_relevance: Some(Relevance::nearest(0.3)),
            without_tags: owned(&["skill"]),
            ..LevelRules::default()
        };
        for (key, tags, relevance, expected) in [
            ("memory_record:a", &[][..], 0.3, Ok(())),
            ("note:a", &["plan"], 1.0, Ok(())),
            ("other", &[], 1.0, Err(Declined::Key)),
            ("memory_record:a", &[], 0.299, Err(Declined::Relevance)),
            ("memory_record:a", &["plan", "skill"], 1.0, Err(Declined::Tag)),
        ] {
            assert_eq!(rules.takes(key, &owned(tags), Relevance::nearest(relevance)), expected, "{key}");
        }
        assert_eq!(LevelRules::default().takes("x", &[], Relevance::default()), Ok(()));
    }

    #[test]
    fn rules_that_cannot_hold_are_refused() {
        let rules = LevelRules::default;
        for (name, wrong) in [
            ("", rules()),
            ("a:b", rules()),
            ("a b", rules()),
            ("a,b", rules()),
            ("a", LevelRules { ttl: Some(Duration::ZERO), ..rules() }),
            ("a", LevelRules { half_life: Some(Duration::ZERO), ..rules() }),
            ("a", LevelRules { max_entries: Some(0), ..rules() }),
            ("a", LevelRules { next: owned(&["x:y"]), ..rules() }),
            ("a", LevelRules { without_tags: owned(&[""]), ..rules() }),
            ("a", LevelRules { patterns: vec!["p".to_owned(); MAX_NAMES + 1], ..rules() }),
        ] {
            assert_eq!(wrong.check(name).unwrap_err().code(), Code::InvalidValue, "{name}: {wrong:?}");
        }
        rules().check("long-term.semantic_2").unwrap();
    }

    #[test]
    fn only_records_without_a_next_level_expire() {
        let ttl = Some(Duration::from_secs(9));
        for (next, at_end, expected) in [(&[][..], None, ttl), (&["b"], None, None), (&[], Some("b"), None)] {
            let rules = LevelRules {
                ttl,
                next: owned(next),
                at_end: at_end.map(str::to_owned),
                ..LevelRules::default()
            };
            assert_eq!(rules.ttl_of_entries(), expected);
        }
    }
}
