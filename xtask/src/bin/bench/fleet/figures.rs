//! The figures of a simulation: tables, JSON, and what a larger fleet needs.

use std::fmt;

use serde_json::{Map, Value, json};

use super::Sync;
use super::load::{Load, Samples};
use super::schedule::{Kind, Pace};
use super::unit_costs::{Cost, UnitCosts};
use crate::statistics::percentile;

/// The fleet that is calculated.
const LARGE_FLEET: f64 = 100_000.0;

/// What each agent of it does in a minute, besides its heartbeat.
const CLAIMS_A_MINUTE: f64 = 0.1;
const WRITES_A_MINUTE: f64 = 1.0;

/// What the board of that fleet has: for each agent, and the heartbeats of each that are kept.
const ITEMS_EACH: f64 = 10.0;
const ENTRIES_EACH: f64 = 1.0;
const EVENTS_EACH: f64 = 10.0;
const HEARTBEATS_EACH: f64 = 1000.0;

/// All figures.
#[derive(Clone, Debug)]
pub struct Figures {
    pub agents: usize,
    pub pace: Pace,
    pub appendfsync: Sync,
    pub costs: UnitCosts,
    pub load: Load,
    /// The memory of the server at the end, in bytes.
    pub memory: f64,
}

impl Figures {
    /// How many operations failed, or were not seen by the follower.
    pub fn failures(&self) -> usize {
        let failed: usize = self.load.samples.values().map(|samples| samples.failures.len()).sum();
        failed + self.load.missed
    }

    /// A percentile of the times of all operations, in milliseconds.
    pub fn percentile(&self, percent: f64) -> f64 {
        let times: Vec<f64> =
            self.load.samples.values().flat_map(|samples| &samples.times).copied().collect();
        percentile(&times, percent)
    }

    fn operations(&self) -> f64 {
        let count = |samples: &Samples| samples.times.len() + samples.failures.len();
        self.load.samples.values().map(count).sum::<usize>() as f64
    }

    fn cost(&self, name: &str) -> Cost {
        let found = self.costs.costs.iter().find(|(known, _)| *known == name);
        found.map(|(_, cost)| *cost).unwrap_or_default()
    }

    fn bytes(&self, name: &str) -> f64 {
        self.costs.bytes.iter().find(|(known, _)| *known == name).map_or(0.0, |(_, bytes)| *bytes)
    }

    /// The time of the server on a processor for each operation, with everything that it does meanwhile.
    fn server_microseconds(&self) -> f64 {
        self.load.counted.processor.as_secs_f64() * 1e6 / self.operations().max(1.0)
    }

    fn calculation(&self) -> Calculation {
        let per_second = LARGE_FLEET / 60.0;
        let rates = [
            ("heartbeat", per_second),
            ("claim", per_second * CLAIMS_A_MINUTE),
            ("write", per_second * WRITES_A_MINUTE),
        ];
        let cores = rates.iter().map(|(name, rate)| rate * self.cost(name).server_microseconds / 1e6).sum();
        let row = |name: &str, each: f64| LARGE_FLEET * each * self.bytes(name) / 1e9;
        let board = row("agent", 1.0)
            + row("item", ITEMS_EACH)
            + row("entry", ENTRIES_EACH)
            + row("event", EVENTS_EACH);
        Calculation {
            cores,
            operations_per_second: rates.iter().map(|(_, rate)| rate).sum(),
            board_gigabytes: board,
            heartbeat_gigabytes: row("heartbeat", HEARTBEATS_EACH),
            connection_gigabytes: row("connection", 1.0),
        }
    }

    /// The figures as one JSON object.
    pub fn json(&self) -> Value {
        let mut operations = Map::new();
        for kind in Kind::ALL {
            let samples = self.load.samples.get(&kind).cloned().unwrap_or_default();
            let figures = json!({
                "count": samples.times.len() + samples.failures.len(),
                "offered_per_second": self.pace.per_second(kind),
                "p50_milliseconds": percentile(&samples.times, 50.0),
                "p99_milliseconds": percentile(&samples.times, 99.0),
                "longest_milliseconds": percentile(&samples.times, 100.0),
                "runs_p99": percentile(&samples.runs, 99.0),
                "failures": samples.failures.len(),
                "first_failure": samples.failures.first(),
            });
            operations.insert(kind.name().to_owned(), figures);
        }
        let costs = self.costs.costs.iter().map(|(name, cost)| {
            let cost =
                json!({"round_trips": cost.round_trips, "server_microseconds": cost.server_microseconds});
            ((*name).to_owned(), cost)
        });
        let bytes = self.costs.bytes.iter().map(|(name, bytes)| ((*name).to_owned(), json!(bytes)));
        let (load, calculation) = (&self.load, self.calculation());
        json!({
            "agents": self.agents,
            "seconds": load.seconds,
            "appendfsync": format!("{:?}", self.appendfsync).to_lowercase(),
            "threads": load.threads,
            "failures": self.failures(),
            "operations_per_second": self.operations() / load.seconds,
            "p50_milliseconds": self.percentile(50.0),
            "p99_milliseconds": self.percentile(99.0),
            "round_trips_per_operation": load.counted.requests as f64 / self.operations().max(1.0),
            "server_microseconds_per_operation": self.server_microseconds(),
            "server_bytes": self.memory,
            "operations": operations,
            "follower": {
                "events": load.delays.len(),
                "missed": load.missed,
                "p50_milliseconds": percentile(&load.delays, 50.0),
                "p99_milliseconds": percentile(&load.delays, 99.0),
            },
            "unit_costs": costs.collect::<Map<_, _>>(),
            "bytes": bytes.collect::<Map<_, _>>(),
            "for_100000_agents": {
                "operations_per_second": calculation.operations_per_second,
                "server_cores": calculation.cores,
                "board_gigabytes": calculation.board_gigabytes,
                "heartbeat_gigabytes": calculation.heartbeat_gigabytes,
                "connection_gigabytes": calculation.connection_gigabytes,
            },
        })
    }
}

/// What the server of a large fleet needs.
struct Calculation {
    operations_per_second: f64,
    cores: f64,
    /// Agents, items, entries and events.
    board_gigabytes: f64,
    /// The heartbeats that are kept.
    heartbeat_gigabytes: f64,
    /// If each agent waits for events on its own connection.
    connection_gigabytes: f64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let load = &self.load;
        writeln!(
            f,
            "{} agents for {:.0} s on {} threads, appendfsync {}: {:.0} operations/s, {} failures",
            self.agents,
            load.seconds,
            load.threads,
            format!("{:?}", self.appendfsync).to_lowercase(),
            self.operations() / load.seconds,
            self.failures(),
        )?;
        writeln!(
            f,
            "p50 {:.2} ms, p99 {:.2} ms from the moment at which an operation was due",
            self.percentile(50.0),
            self.percentile(99.0)
        )?;
        writeln!(
            f,
            "server: {:.0} µs of a processor and {:.2} round trips per operation, {:.1} MB of memory at the end",
            self.server_microseconds(),
            load.counted.requests as f64 / self.operations().max(1.0),
            self.memory / 1e6,
        )?;
        writeln!(
            f,
            "\n| In the fleet | Offered/s | p50 ms | p99 ms | Longest ms | Runs p99 | Failures |\n|---|---|---|---|---|---|---|"
        )?;
        for kind in Kind::ALL {
            let Some(samples) = load.samples.get(&kind) else { continue };
            let [middle, late, longest] =
                [50.0, 99.0, 100.0].map(|percent| percentile(&samples.times, percent));
            writeln!(
                f,
                "| {} | {:.1} | {middle:.2} | {late:.2} | {longest:.2} | {:.0} | {} |",
                kind.name(),
                self.pace.per_second(kind),
                percentile(&samples.runs, 99.0),
                samples.failures.len(),
            )?;
        }
        let [middle, late] = [50.0, 99.0].map(|percent| percentile(&load.delays, percent));
        writeln!(
            f,
            "| call until a follower has its event | – | {middle:.2} | {late:.2} | – | – | {} |",
            load.missed
        )?;
        writeln!(f, "\n| Alone | Round trips | Server µs |\n|---|---|---|")?;
        for (name, cost) in &self.costs.costs {
            writeln!(f, "| {name} | {:.2} | {:.0} |", cost.round_trips, cost.server_microseconds)?;
        }
        writeln!(f, "\n| Memory of | Bytes |\n|---|---|")?;
        for (name, bytes) in &self.costs.bytes {
            writeln!(f, "| {name} | {bytes:.0} |")?;
        }
        let calculation = self.calculation();
        writeln!(
            f,
            "\n100,000 agents, each with a heartbeat and a write a minute and a claim in ten: {:.0} operations/s, {:.2} cores of the server.\n\
             Memory: {:.1} GB for agents, 1,000,000 items, 100,000 entries and 1,000,000 events; {:.1} GB for 1,000 kept heartbeats of each; \
             {:.1} GB if each has a connection.",
            calculation.operations_per_second,
            calculation.cores,
            calculation.board_gigabytes,
            calculation.heartbeat_gigabytes,
            calculation.connection_gigabytes,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use super::*;
    use crate::server_counters::Counters;

    fn figures() -> Figures {
        let samples =
            Samples { times: vec![1.0, 3.0], runs: vec![1.0, 2.0], failures: vec!["no".to_owned()] };
        let cost = Cost { round_trips: 2.0, server_microseconds: 60.0 };
        Figures {
            agents: 2,
            pace: Pace {
                agents: 2,
                heartbeats_per_second: 1.0,
                claims_per_second: 3.0,
                writes_per_second: 0.0,
                length: Duration::from_secs(1),
            },
            appendfsync: Sync::Always,
            costs: UnitCosts {
                costs: vec![("heartbeat", cost), ("claim", cost), ("write", cost)],
                bytes: vec![("agent", 1000.0), ("heartbeat", 100.0)],
            },
            load: Load {
                samples: HashMap::from([(Kind::Claim, samples)]),
                threads: 1,
                seconds: 1.0,
                counted: Counters { requests: 6, processor: Duration::from_micros(300) },
                delays: vec![1.0],
                missed: 1,
            },
            memory: 1e6,
        }
    }

    #[test]
    fn failures_are_calls_that_failed_and_events_that_were_missed() {
        let figures = figures();
        assert_eq!(figures.failures(), 2);
        let json = figures.json();
        assert_eq!(json["operations"]["claim"]["first_failure"], "no");
        assert_eq!(json["round_trips_per_operation"], 2.0);
        assert_eq!(json["server_microseconds_per_operation"], 100.0);
        assert_eq!(json["appendfsync"], "always");
    }

    #[test]
    fn large_fleet_is_calculated_from_the_costs_of_one_operation() {
        let calculation = figures().calculation();
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 0.001, "{found}");
        // 1,667 heartbeats, 167 claims and 1,667 writes a second, 60 µs each.
        close(calculation.operations_per_second, 3500.0);
        close(calculation.cores, 0.21);
        close(calculation.board_gigabytes, 0.1);
        close(calculation.heartbeat_gigabytes, 10.0);
    }
}
