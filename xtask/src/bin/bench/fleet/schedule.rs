//! When each operation of a fleet is due.

use std::time::Duration;

/// The rates of a fleet.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub agents: usize,
    pub heartbeats_per_second: f64,
    pub claims_per_second: f64,
    pub writes_per_second: f64,
    pub length: Duration,
}

/// What agents do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Heartbeat,
    Claim,
    Write,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Heartbeat, Kind::Claim, Kind::Write];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Heartbeat => "heartbeat",
            Kind::Claim => "claim",
            Kind::Write => "write",
        }
    }
}

impl Pace {
    pub fn per_second(&self, kind: Kind) -> f64 {
        match kind {
            Kind::Heartbeat => self.heartbeats_per_second,
            Kind::Claim => self.claims_per_second,
            Kind::Write => self.writes_per_second,
        }
    }

    /// How many operations of a kind the simulation has.
    pub fn count(&self, kind: Kind) -> usize {
        (self.per_second(kind) * self.length.as_secs_f64()).round() as usize
    }
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operation {
    /// The time since the start of the simulation.
    pub due: Duration,
    pub kind: Kind,
    /// Its number among those of its kind. The agents take turns.
    pub number: usize,
}

/// All operations in the order of their time: those of each kind at equal distances.
pub struct Schedule {
    pace: Pace,
    next: [usize; Kind::ALL.len()],
}

impl Schedule {
    pub fn new(pace: Pace) -> Schedule {
        Schedule { pace, next: [0; Kind::ALL.len()] }
    }

    fn next_of(&self, place: usize) -> Option<Operation> {
        let (kind, number) = (Kind::ALL[place], self.next[place]);
        // Kinds of the same rate begin apart.
        let part = (place as f64 + 0.5) / Kind::ALL.len() as f64;
        let due = || Duration::from_secs_f64((number as f64 + part) / self.pace.per_second(kind));
        (number < self.pace.count(kind)).then(|| Operation { due: due(), kind, number })
    }
}

impl Iterator for Schedule {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        let operations = (0..Kind::ALL.len()).filter_map(|place| Some((place, self.next_of(place)?)));
        let (place, operation) = operations.min_by_key(|(_, operation)| operation.due)?;
        self.next[place] += 1;
        Some(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_come_in_the_order_of_their_time_and_at_their_rates() {
        let pace = Pace {
            agents: 5,
            heartbeats_per_second: 2.5,
            claims_per_second: 10.0,
            writes_per_second: 0.0,
            length: Duration::from_secs(4),
        };
        let all: Vec<Operation> = Schedule::new(pace).collect();
        let count = |kind| all.iter().filter(|operation| operation.kind == kind).count();
        assert_eq!(Kind::ALL.map(count), [10, 40, 0]);
        assert!(all.is_sorted_by_key(|operation| operation.due));
        assert!(all.iter().all(|operation| operation.due < pace.length));
        let mut claims = all.iter().filter(|operation| operation.kind == Kind::Claim);
        assert!(claims.by_ref().map(|claim| claim.number).eq(0..40));
    }
}
