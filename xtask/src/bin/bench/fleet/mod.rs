//! `cargo xtask fleet`: a simulation of many agents on one board of a local Redis server.
//!
//! An agent is a session and the times of its next operations, so a fleet needs only as many threads as operations run
//! at the same time (`load.rs`). First each operation runs alone, which shows its cost and the memory of what it
//! creates (`unit_costs.rs`). Then the fleet runs at its pace, and each operation is timed from the moment at which it
//! was due. The server itself counts requests, processor time and memory.

mod figures;
mod load;
mod progress;
mod schedule;
mod unit_costs;

use std::time::Duration;

use clap::Parser;

pub use self::figures::Figures;
use self::load::Load;
pub use self::progress::Progress;
use self::schedule::Pace;
use self::unit_costs::UnitCosts;
use crate::Result;
use crate::redis_server::Server;
use crate::remote_board::open_for_many;
use crate::server_counters::reported;

/// The name of the fleet's board on its server.
const BOARD: &str = "fleet";

/// Simulate many agents on a board of a local Redis server
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "cargo xtask fleet", no_binary_name = true)]
pub struct Options {
    /// Number of agents
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = at_least_one)]
    pub agents: usize,

    /// Length of the simulation in minutes [default: 1]
    #[arg(long, value_name = "MINUTES", conflicts_with = "seconds", value_parser = positive)]
    pub minutes: Option<f64>,

    /// Length of the simulation in seconds
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub seconds: Option<f64>,

    /// Claims per second of all agents together
    #[arg(long, value_name = "RATE", default_value_t = 100.0, value_parser = not_negative)]
    pub claims_per_second: f64,

    /// Writes per second of all agents together
    #[arg(long, value_name = "RATE", default_value_t = 100.0, value_parser = not_negative)]
    pub writes_per_second: f64,

    /// Time between two heartbeats of an agent, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = positive)]
    pub heartbeat: f64,

    /// When the server writes changes to its disk
    #[arg(long, value_name = "WHEN", default_value = "everysec")]
    pub appendfsync: Sync,

    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

/// When the server writes changes to its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Sync {
    /// Never: the server has no file
    Off,
    Everysec,
    Always,
}

impl Options {
    fn length(&self) -> Duration {
        let seconds = self.seconds.or(self.minutes.map(|minutes| minutes * 60.0));
        Duration::from_secs_f64(seconds.unwrap_or(60.0))
    }

    fn pace(&self) -> Pace {
        Pace {
            agents: self.agents,
            heartbeats_per_second: self.agents as f64 / self.heartbeat,
            claims_per_second: self.claims_per_second,
            writes_per_second: self.writes_per_second,
            length: self.length(),
        }
    }
}

impl Sync {
    fn settings(self) -> &'static [&'static str] {
        match self {
            Sync::Off => &["--appendonly", "no"],
            Sync::Everysec => &["--appendonly", "yes", "--appendfsync", "everysec"],
            Sync::Always => &["--appendonly", "yes", "--appendfsync", "always"],
        }
    }
}

/// The command: simulates, and prints the figures.
pub fn run(arguments: &[String]) -> Result {
    let options = Options::parse_from(arguments);
    let figures = simulate(&options, &Progress::on_stderr())?;
    if options.json {
        println!("{:#}", figures.json());
    } else {
        println!("{figures}");
    }
    Ok(())
}

/// Simulates a fleet on a server of its own.
pub fn simulate(options: &Options, progress: &Progress) -> Result<Figures> {
    let server = Server::start_with(options.appendfsync.settings())?;
    let url = server.url(BOARD);
    let board = open_for_many(&url)?;
    let pace = options.pace();
    let (costs, sessions) = UnitCosts::measure(&server, &board, &pace, progress)?;
    let load = Load::run(&server, &board, &sessions, &pace, progress)?;
    let memory = reported(&mut server.connect()?, "memory", "used_memory")?;
    Ok(Figures { agents: options.agents, pace, appendfsync: options.appendfsync, costs, load, memory })
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "not a number from 1 on".to_owned())
}

fn positive(text: &str) -> Result<f64, String> {
    not_negative(text)?;
    text.parse().ok().filter(|number| *number > 0.0).ok_or_else(|| "not greater than 0".to_owned())
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "not a number from 0 on".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(text.split_whitespace())
    }

    #[test]
    fn options_have_a_length_and_rates() {
        let fleet = options("--agents 600 --seconds 2.5 --claims-per-second 7 --json").unwrap();
        assert!(fleet.json);
        let pace = fleet.pace();
        assert_eq!((pace.agents, pace.length), (600, Duration::from_millis(2500)));
        assert!((pace.heartbeats_per_second - 10.0).abs() < 1e-9);
        assert!((pace.claims_per_second - 7.0).abs() < 1e-9);
        assert_eq!(options("--minutes 3").unwrap().length(), Duration::from_mins(3));
        assert_eq!(options("").unwrap().length(), Duration::from_mins(1));
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        for text in [
            "--agents 0",
            "--agents -1",
            "--seconds 0",
            "--minutes 1 --seconds 1",
            "--claims-per-second -1",
            "--claims-per-second NaN",
            "--heartbeat 0",
            "--appendfsync sometimes",
        ] {
            assert!(options(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_small_fleet_runs_without_failures_and_has_all_figures() {
        testkit::limit_test();
        if testkit::redis::skip_without_redis() {
            return;
        }
        let text = "--agents 50 --seconds 2 --claims-per-second 20 --writes-per-second 20 --heartbeat 2";
        let figures = simulate(&options(text).unwrap(), &Progress::silent()).unwrap();
        let json = figures.json();
        assert_eq!(json["failures"], 0, "{json:#}");
        assert_eq!(json["agents"], 50);
        assert_eq!(json["operations"]["claim"]["count"], 40);
        assert_eq!(json["operations"]["write"]["count"], 40);
        assert_eq!(json["operations"]["heartbeat"]["count"], 50);
        assert_eq!(json["follower"]["missed"], 0);
        for name in ["register", "heartbeat", "create", "claim", "write", "follow"] {
            let cost = &json["unit_costs"][name];
            assert!(cost["round_trips"].as_f64().unwrap() >= 1.0, "{name}: {json:#}");
            assert!(cost["server_microseconds"].as_f64().unwrap() > 0.0, "{name}: {json:#}");
        }
        for name in ["claim", "write", "heartbeat"] {
            let round_trips = json["unit_costs"][name]["round_trips"].as_f64().unwrap();
            // A connection that is opened meanwhile costs one, too.
            assert!((2.0..2.2).contains(&round_trips), "{name}: {json:#}");
        }
        for name in ["agent", "item", "entry", "version", "event", "heartbeat", "connection"] {
            assert!(json["bytes"][name].as_f64().unwrap() > 50.0, "{name}: {json:#}");
        }
        let text = figures.to_string();
        for expected in ["p99", "100,000 agents", "round trips"] {
            assert!(text.contains(expected), "{text}");
        }
    }
}
