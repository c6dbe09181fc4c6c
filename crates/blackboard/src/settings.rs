//! [`Settings`]: every number that a user may change, with its default.

use std::time::Duration;

use crate::text::TextRules;

const DAY: Duration = Duration::from_hours(24);

/// The settings of a board's rules. The edges fill them from configuration files and the environment; the library
/// reads neither.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How often an agent should send a heartbeat.
    pub heartbeat_interval: Duration,
    /// How long an agent may be without a heartbeat before its process is checked.
    pub stale_threshold: Duration,
    /// The same for sessions that share their process with others: for those only the time decides.
    pub delegate_stale_threshold: Duration,
    /// How long heartbeats are kept.
    pub keep_heartbeats: Duration,
    /// How long events are kept.
    pub keep_events: Duration,
    /// How long agents are kept that ended normally.
    pub keep_completed_agents: Duration,
    /// How long agents are kept that were marked stale.
    pub keep_stale_agents: Duration,
    /// About how many bytes the event log and superseded values may use.
    pub max_log_bytes: u64,
    /// How many bytes the value of an entry may have.
    pub max_value_bytes: usize,
    /// How many bytes of values one commit may have: those that it writes, replaces, removes or reads.
    pub max_commit_bytes: usize,
    /// The rules for incoming text.
    pub text: TextRules,
}

impl Settings {
    /// How often a sign of life of a working session is recorded: well below the threshold, however short that is.
    ///
    /// ```
    /// # use blackboard::settings::Settings;
    /// # use std::time::Duration;
    /// let settings = Settings { stale_threshold: Duration::from_secs(50), ..Settings::default() };
    /// assert_eq!(settings.sign_of_life_interval(), Duration::from_secs(10));
    /// ```
    pub fn sign_of_life_interval(&self) -> Duration {
        self.heartbeat_interval.min(self.stale_threshold / 5)
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            heartbeat_interval: Duration::from_mins(1),
            stale_threshold: Duration::from_mins(5),
            delegate_stale_threshold: Duration::from_mins(30),
            keep_heartbeats: 7 * DAY,
            keep_events: 30 * DAY,
            keep_completed_agents: DAY,
            keep_stale_agents: 7 * DAY,
            max_log_bytes: 256 * 1024 * 1024,
            max_value_bytes: 1024 * 1024,
            max_commit_bytes: 64 * 1024 * 1024,
            text: TextRules::default(),
        }
    }
}
