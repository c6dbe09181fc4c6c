//! `blackboard demo`

use std::cell::{Cell, RefCell};
use std::time::Duration;

use blackboard::{Code, Refusal, Result};
use serde::Serialize;

use super::Run;
use crate::child::{self, Signals};
use crate::context::Context;
use crate::demo::{self, Ended, Stage};
use crate::envelope::Answer;
use crate::hints;
use crate::open::Access;
use crate::outcome::{Nothing, Outcome, Render};
use crate::output::demo::{conclude, show};
use crate::output::{self, Screen};
use crate::web;

/// How often the command checks whether a signal asks it to end.
const TICK: Duration = Duration::from_millis(100);

/// Watch four agents share work for 30 seconds
///
/// Creates a temporary board and dashboard and starts four agents as real processes; one is killed, and another
/// completes its work. Everything is removed at the end unless --keep is given.
///
/// Examples:
///   blackboard demo
///   blackboard demo --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Demo {
    /// Keep the board and its dashboard until Ctrl+C
    #[arg(long)]
    keep: bool,

    /// Open the dashboard in your browser
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
        if context.db().is_some() {
            let refusal = Refusal::new(Code::Usage, "the demo creates its own board");
            return Err(refusal.hint(hints::command("omit --db; to watch your own board: ", "serve")).into());
        }
        let signals = child::catch_signals()?;
        let stage = Stage::build(pace)?;
        let limit = Duration::from_millis(self.limit);
        Ok(Outcome::new(Demonstration {
            stage: RefCell::new(stage),
            signals,
            limit,
            keep: self.keep,
            open: self.open,
            interrupted: Cell::new(false),
        }))
    }
}

/// The output of the demo. It runs while it is printed.
struct Demonstration {
    stage: RefCell<Stage>,
    signals: Signals,
    /// How long nothing may happen before it fails.
    limit: Duration,
    keep: bool,
    open: bool,
    interrupted: Cell<bool>,
}

#[derive(Serialize)]
struct Answered<'a> {
    #[serde(flatten)]
    ended: &'a Ended,
    url: String,
}

impl Demonstration {
    fn open(&self, stage: &Stage) {
        if self.open {
            // It is in the directory of the demonstration, which is removed at the end.
            web::open(stage.dashboard(), stage.engine.sidecars()).keep();
        }
    }

    /// Keeps everything as it is until a signal asks to end.
    fn hold(&self) {
        while self.keep && self.signals.asked_to_end().is_none() {
            std::thread::sleep(TICK);
        }
    }
}

impl Render for Demonstration {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        let mut stage = self.stage.borrow_mut();
        self.open(&stage);
        let ended = demo::tell(&mut stage, &self.signals, self.limit, |_| Ok(()))?;
        self.interrupted.set(ended.interrupted);
        answer.object(&Answered { ended: &ended, url: stage.url() })?;
        answer.flush()?;
        self.hold();
        Ok(())
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        let mut stage = self.stage.borrow_mut();
        screen.fields([
            ("Board", Some(format!("{} (removed at the end)", stage.engine.name()))),
            ("Dashboard", Some(stage.url())),
        ])?;
        self.open(&stage);
        let ended = demo::tell(&mut stage, &self.signals, self.limit, |line| show(screen, &line))?;
        self.interrupted.set(ended.interrupted);
        conclude(screen, &ended)?;
        if self.keep && !ended.interrupted {
            screen.line(format_args!("The dashboard runs at {} until Ctrl+C.", stage.url()))?;
        }
        screen.flush()?;
        self.hold();
        Ok(())
    }

    /// That of the signal which ended it early. With --keep, a signal after the end of the story is how it ends.
    fn exit_code(&self) -> Option<u8> {
        self.interrupted.get().then(|| self.signals.asked_to_end()).flatten()
    }
}
