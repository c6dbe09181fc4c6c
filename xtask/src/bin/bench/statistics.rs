//! The statistics of a measurement.

/// The median of several rounds, and their spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub lowest: f64,
    pub highest: f64,
}

impl Spread {
    /// From one number per round.
    pub fn of(rounds: &[f64]) -> Spread {
        Spread {
            median: percentile(rounds, 50.0),
            lowest: percentile(rounds, 0.0),
            highest: percentile(rounds, 100.0),
        }
    }
}

/// The value below which `percent` of all values are: the nearest rank. Zero if there are none.
pub fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * percent / 100.0).round() as usize).copied().unwrap_or(0.0)
}

/// The value in the middle.
pub fn median(values: &[f64]) -> f64 {
    percentile(values, 50.0)
}

/// Each round of one series against the same round of another.
pub fn ratios(rounds: &[f64], others: &[f64]) -> Vec<f64> {
    rounds.iter().zip(others).map(|(round, other)| round / other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        for (percent, expected) in [(0.0, 1.0), (50.0, 3.0), (95.0, 5.0), (100.0, 5.0)] {
            assert_eq!(
                percentile(&values, percent).total_cmp(&expected),
                std::cmp::Ordering::Equal,
                "{percent}"
            );
        }
        assert_eq!(median(&[]).total_cmp(&0.0), std::cmp::Ordering::Equal);
    }

    #[test]
    fn a_spread_has_its_median_between_its_ends() {
        let spread = Spread::of(&[1.3, 1.1, 1.2]);
        assert_eq!(spread, Spread { median: 1.2, lowest: 1.1, highest: 1.3 });
    }
}
