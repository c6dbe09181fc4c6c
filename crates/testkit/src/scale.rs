//! The size of tests, and their random numbers.

/// A size that is `small` in CI and grows with `BLACKBOARD_TEST_SCALE` up to `full`.
pub fn size(small: usize, full: usize) -> usize {
    let scale = std::env::var("BLACKBOARD_TEST_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1);
    small.saturating_mul(scale).min(full).max(small.min(full))
}

/// Prints the progress of a long test. Only `torture`, which shows the output of its tests, makes them long.
pub fn progress(what: &str, done: usize, of: usize) {
    if of >= 10 && done.is_multiple_of(of / 10) {
        println!("{what}: {done} of {of}");
    }
}

/// Pseudorandom numbers, the same for the same seed.
pub struct Chance(fastrand::Rng);

impl Chance {
    /// The stream of this seed.
    pub fn new(seed: usize) -> Chance {
        Chance(fastrand::Rng::with_seed(seed as u64))
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound)
    }
}
