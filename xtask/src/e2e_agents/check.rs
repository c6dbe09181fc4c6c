//! The checks of each client, and their results.

use crate::Result;

/// The checks of every client with hooks, in the order of the story.
pub const COMMON: &[&str] =
    &[REGISTERED, BRIEFED, HEARTBEAT, CLAIMED, DELEGATE, DEREGISTERED, SWEPT, HOOK_LOG];

pub const REGISTERED: &str = "registered with the PID of its process";
pub const BRIEFED: &str = "brief in the model's request";
pub const HEARTBEAT: &str = "heartbeat after a tool call";
pub const CLAIMED: &str = "item claimed by MCP for that session";
pub const DELEGATE: &str = "subagent registered as a delegate";
pub const DEREGISTERED: &str = "deregistered at its end";
pub const SWEPT: &str = "swept after kill -9";
pub const HOOK_LOG: &str = "no error in the hook log";

/// The result of a check.
pub enum Outcome {
    /// It holds, as this shows.
    Held(String),
    /// It fails, because of this.
    Failed(String),
    /// The client does not have this feature.
    Absent(&'static str),
}

/// One check.
pub struct Check {
    pub name: &'static str,
    pub outcome: Outcome,
}

/// The checks of one client, in order.
pub struct Checks {
    pub all: Vec<Check>,
}

impl Checks {
    pub fn new() -> Checks {
        Checks { all: Vec::new() }
    }

    /// Runs a check, and records the result. A story continues after a failed check.
    pub fn see(&mut self, name: &'static str, look: impl FnOnce() -> Result<String>) {
        let outcome = match look() {
            Ok(seen) => Outcome::Held(seen),
            Err(why) => Outcome::Failed(why.to_string()),
        };
        self.all.push(Check { name, outcome });
    }

    /// Records that a check does not apply.
    pub fn absent(&mut self, name: &'static str, why: &'static str) {
        self.all.push(Check { name, outcome: Outcome::Absent(why) });
    }

    /// Records a story that ended early: the checks that it did not reach have failed.
    pub fn fail_missing(&mut self, names: &[&'static str], why: &str) {
        for name in names {
            if !self.all.iter().any(|check| check.name == *name) {
                let outcome = Outcome::Failed(format!("the story did not reach this check: {why}"));
                self.all.push(Check { name, outcome });
            }
        }
    }

    pub fn failed(&self) -> usize {
        self.all.iter().filter(|check| matches!(check.outcome, Outcome::Failed(_))).count()
    }
}
