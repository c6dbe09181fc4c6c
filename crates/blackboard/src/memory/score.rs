//! How records are ranked. The parts of a score are in every answer, so that a reader can see why a record comes first.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::record::Facts;
use crate::clock::Timestamp;

/// The parts of a score, each from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreParts {
    /// How well the words match, if the call has words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<f64>,
    /// The relevance as it was remembered.
    pub relevance: f64,
    /// What its age has left of it: half after one half-life of the level, all if the level has none.
    pub age: f64,
    /// What ratings say: a moving average that starts at 0.5.
    pub usefulness: f64,
}

/// How much of the score words have, if there are any.
const WORDS_WEIGHT: f64 = 0.6;

impl ScoreParts {
    /// Of a record. Nothing that decays is stored.
    pub(super) fn of(
        facts: &Facts,
        words: Option<f64>,
        half_life: Option<Duration>,
        now: Timestamp,
    ) -> ScoreParts {
        let age = half_life.map_or(1.0, |half_life| {
            let half_lives = now.since(facts.remembered_at).as_secs_f64() / half_life.as_secs_f64();
            0.5_f64.powf(half_lives)
        });
        ScoreParts {
            words: words.map(rounded),
            relevance: facts.relevance.value(),
            age: rounded(age),
            usefulness: facts.usefulness.value(),
        }
    }

    /// The relevance that is left.
    pub(super) fn current_relevance(&self) -> f64 {
        self.relevance * self.age
    }

    /// The score: words count 0.6, the relevance that is left and the usefulness 0.2 each. Without words, these two count half
    /// each.
    pub(super) fn total(&self) -> f64 {
        let rest = f64::midpoint(self.current_relevance(), self.usefulness);
        rounded(match self.words {
            Some(words) => WORDS_WEIGHT * words + (1.0 - WORDS_WEIGHT) * rest,
            None => rest,
        })
    }
}

/// With three places: the rest is noise for a reader, and differs between machines.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Relevance;

    #[test]
    fn the_score_is_the_weighted_sum_of_its_parts() {
        let hour = Some(Duration::from_hours(1));
        for (words, relevance, usefulness, hours, half_life, expected) in [
            (None, 1.0, 1.0, 0, hour, 1.0),
            (None, 0.5, 0.5, 0, hour, 0.5),
            (None, 1.0, 0.5, 1, hour, 0.5),
            (None, 1.0, 0.5, 2, hour, 0.375),
            (None, 1.0, 0.5, 900, None, 0.75),
            (Some(1.0), 1.0, 1.0, 0, hour, 1.0),
            (Some(0.5), 0.5, 0.5, 0, None, 0.5),
            (Some(1.0), 0.0, 0.0, 0, None, 0.6),
            (Some(1.0), 0.0, 0.0, 100_000, hour, 0.6),
        ] {
            let facts = Facts {
                relevance: Relevance::nearest(relevance),
                usefulness: Relevance::nearest(usefulness),
                ratings: 0,
                remembered_at: Timestamp::EPOCH,
                remembered_by: String::new(),
                project: None,
                summary_of: Vec::new(),
            };
            let now = Timestamp::EPOCH.plus(Duration::from_hours(hours));
            let score = ScoreParts::of(&facts, words, half_life, now).total();
            assert!((score - expected).abs() < 1e-9, "{words:?} {relevance} {usefulness} {hours}: {score}");
        }
    }
}
