//! `blackboard demo`

use std::time::Duration;

use blackboard::{Code, Fault, Refusal, Result};

use super::Run;
use crate::child::Signals;
use crate::context::Context;
use crate::demo::{self, Stage};
use crate::open::Access;
use crate::outcome::{Nothing, Outcome};
use crate::output::demo::Demonstration;

/// See in half a minute what this is for
///
/// Makes a board of its own in a scratch directory, starts a dashboard for it and four agents, each a real process. They
/// register, claim work, share facts and wait for a lock. One of them is killed, and another one takes over what it held.
/// What happens is told here, and can be watched in a browser. At the end nothing is left, unless --keep holds the
/// dashboard open until Ctrl-C. If a signal ends it early, nothing is left either, and the exit code is 128 and the number
/// of the signal; only a kill -9 leaves its directory in the temporary one.
///
/// Examples:
///   blackboard demo
///   blackboard demo --open --keep
///   blackboard demo --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Demo {
    /// Keep the board and its dashboard at the end, until Ctrl-C
    #[arg(long)]
    keep: bool,

    /// Open the dashboard in a browser
    #[arg(long)]
    open: bool,

    /// How many milliseconds an agent takes for a step
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 2000, hide = true)]
    pace: u64,

    /// How many milliseconds may pass without an event before the demo fails
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 30_000, hide = true)]
    limit: u64,

    /// Be one of the agents
    #[arg(long = "as", value_name = "NAME", hide = true)]
    worker: Option<String>,
}

impl Run for Demo {
    fn run(self, context: &Context) -> Result<Outcome> {
        let pace = Duration::from_millis(self.pace);
        if let Some(name) = &self.worker {
            let repository = std::env::current_dir().unwrap_or_default();
            demo::work(&context.open(Access::unswept())?, name, pace, &repository)?;
            return Ok(Outcome::new(Nothing));
        }
        if context.globals.db.is_some() {
            let refusal = Refusal::new(Code::Usage, "a demonstration makes a board of its own");
            return Err(refusal.hint("leave out --db; to watch your own board: blackboard serve").into());
        }
        let signals = Signals::catch()
            .map_err(|error| Fault::new(Code::Io, "signals cannot be caught").because(error))?;
        let stage = Stage::build(pace)?;
        let limit = Duration::from_millis(self.limit);
        Ok(Outcome::new(Demonstration::new(stage, signals, limit, self.keep, self.open)))
    }
}
