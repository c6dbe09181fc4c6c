//! The levels that one command creates: those of the library whose design this follows, with its thresholds.

use std::time::Duration;

use super::rules::{LevelRules, Relevance};
use super::{COLLECTIVE, SHORT_TERM, WORKING};

/// The names of the levels that `define` creates without a name.
pub const SEED_LEVELS: [&str; 6] = [WORKING, SHORT_TERM, "episodic", "semantic", "procedural", COLLECTIVE];

const SECOND: fn(u64) -> Option<Duration> = |seconds| Some(Duration::from_secs(seconds));

/// The levels with their rules. A level that loses 1 % in a minute has lost half after 69 minutes; the others likewise.
pub(super) fn levels() -> Vec<(&'static str, LevelRules)> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let least = |number| Some(Relevance::nearest(number));
    let rules = [
        LevelRules {
            session: true,
            ttl: SECOND(3600),
            tokens: Some(8_000),
            next: owned(&[SHORT_TERM]),
            at_end: Some(COLLECTIVE.to_owned()),
            ..LevelRules::default()
        },
        LevelRules {
            ttl: SECOND(3600),
            max_entries: Some(100),
            half_life: SECOND(4_138),
            takes_at: Some(5),
            takes_after: SECOND(120),
            next: owned(&["episodic", "semantic"]),
            ..LevelRules::default()
        },
        LevelRules {
            half_life: SECOND(41_568),
            min_relevance: least(0.3),
            without_tags: owned(&["reflection", "semantic", "knowledge", "skill"]),
            takes_at: Some(10),
            takes_after: SECOND(600),
            next: owned(&["procedural"]),
            ..LevelRules::default()
        },
        LevelRules {
            half_life: SECOND(83_157),
            min_relevance: least(0.5),
            without_tags: owned(&["ephemeral", "procedural", "skill", "action"]),
            takes_at: Some(15),
            takes_after: SECOND(900),
            ..LevelRules::default()
        },
        LevelRules {
            half_life: SECOND(415_867),
            takes_at: Some(20),
            takes_after: SECOND(1_800),
            by_summary: true,
            ..LevelRules::default()
        },
        // What an agent that ends found important. New sessions of its project start with it.
        LevelRules { min_relevance: least(0.7), ..LevelRules::default() },
    ];
    SEED_LEVELS.into_iter().zip(rules).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_lives_are_the_decay_per_minute_of_the_seed() {
        for (level, lost_per_minute) in
            [(SHORT_TERM, 0.01), ("episodic", 0.001), ("semantic", 0.0005), ("procedural", 0.0001)]
        {
            let rules = levels().into_iter().find(|(name, _)| *name == level).unwrap().1;
            let minutes = rules.half_life.unwrap().as_secs_f64() / 60.0;
            let left = (1.0_f64 - lost_per_minute).powf(minutes);
            assert!((left - 0.5).abs() < 0.0001, "{level} has {left} after its half-life");
        }
    }

    #[test]
    fn levels_of_the_seed_are_allowed_and_lead_to_each_other() {
        let all: std::collections::BTreeMap<_, _> =
            levels().into_iter().map(|(name, rules)| (name.to_owned(), rules)).collect();
        assert_eq!(all.len(), SEED_LEVELS.len());
        super::super::rules::check_no_cycle(&all).unwrap();
        for (name, rules) in &all {
            rules.check(name).unwrap();
            assert!(rules.targets().all(|target| all.contains_key(target)), "{name}");
        }
    }
}
