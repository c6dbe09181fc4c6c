//! The tokens of an answer, as the ledger stores them: no kind contains another.

use std::iter::Sum;
use std::ops::Add;

use serde_json::Value;

/// The tokens of an answer, or of several ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub cache_write: u64,
    pub cache_read: u64,
    pub output: u64,
    pub reasoning: u64,
}

impl Usage {
    /// The tokens of the answer with this number. Every kind differs from answer to answer, and no sum of some answers
    /// is that of as many others in all five kinds. They stay small, because clients shorten long conversations.
    pub fn of(number: usize) -> Usage {
        let of = |base: u64, factor: u64, modulus: u64| base + (number as u64 + 1) * factor % modulus;
        Usage {
            input: of(100, 1, 1009),
            cache_write: of(2000, 7, 997),
            cache_read: of(3000, 37, 1013),
            output: of(20, 61, 991),
            reasoning: of(5, 113, 983),
        }
    }

    /// What `quota status --json` has as usage.
    pub fn in_status(value: &Value) -> Usage {
        let of = |kind: &str| value[kind].as_u64().unwrap_or_default();
        Usage {
            input: of("input"),
            cache_write: of("cache_write"),
            cache_read: of("cache_read"),
            output: of("output"),
            reasoning: of("reasoning"),
        }
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        Usage {
            input: self.input + other.input,
            cache_write: self.cache_write + other.cache_write,
            cache_read: self.cache_read + other.cache_read,
            output: self.output + other.output,
            reasoning: self.reasoning + other.reasoning,
        }
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(all: I) -> Usage {
        all.fold(Usage::default(), Usage::add)
    }
}
