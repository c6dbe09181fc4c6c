//! A demonstration, told while it happens.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use blackboard::event::EventType;
use serde::Serialize;

use super::{Result, Screen, Tone, escape, time};
use crate::child::Signals;
use crate::demo::{self, Ended, Stage, Told};
use crate::envelope::Answer;
use crate::outcome::Render;
use crate::web;

/// How often one looks whether to end.
const TICK: Duration = Duration::from_millis(100);

/// The answer of `demo`.
pub struct Demonstration {
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
    /// A demonstration that has not begun.
    pub fn new(stage: Stage, signals: Signals, limit: Duration, keep: bool, open: bool) -> Demonstration {
        let stage = RefCell::new(stage);
        Demonstration { stage, signals, limit, keep, open, interrupted: Cell::new(false) }
    }

    fn open(&self, stage: &Stage) {
        if self.open {
            // It is in the directory of the demonstration, which is removed at the end.
            web::open(stage.dashboard(), stage.engine.sidecars()).keep();
        }
    }

    /// Holds everything as it is until something asks to end.
    fn hold(&self) {
        while self.keep && self.signals.asked_to_end().is_none() {
            std::thread::sleep(TICK);
        }
    }
}

impl Render for Demonstration {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let mut stage = self.stage.borrow_mut();
        self.open(&stage);
        let ended = demo::tell(&mut stage, &self.signals, self.limit, |_| Ok(()))?;
        self.interrupted.set(ended.interrupted);
        answer.object(&Answered { ended: &ended, url: stage.url() })?;
        answer.flush()?;
        self.hold();
        Ok(())
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let mut stage = self.stage.borrow_mut();
        screen.fields([
            ("Board", Some(format!("{} (removed at the end)", stage.engine.name()))),
            ("Dashboard", Some(stage.url())),
        ])?;
        self.open(&stage);
        let ended = demo::tell(&mut stage, &self.signals, self.limit, |told| show(screen, &told))?;
        self.interrupted.set(ended.interrupted);
        conclude(screen, &ended)?;
        if self.keep && !ended.interrupted {
            screen.line(format_args!("The dashboard stays at {} until Ctrl-C.", stage.url()))?;
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

fn show(screen: &mut Screen<'_>, told: &Told<'_>) -> Result {
    let styles = screen.styles();
    match told {
        Told::Chapter(text) => {
            screen.gap()?;
            screen.line(format_args!("{}", styles.paint(Tone::Heading, &format!("# {text}"))))?;
        }
        Told::Command(text) => {
            screen.line(format_args!("{}", styles.paint(Tone::Caution, &format!("$ {text}"))))?;
        }
        Told::Event(event) => {
            let tone = match event.event_type {
                EventType::AgentStale | EventType::StaleLocksReleased => Tone::Alarm,
                EventType::WorkClaimed => Tone::Taken,
                EventType::WorkCompleted => Tone::Good,
                _ => Tone::Plain,
            };
            let summary = escape(&event.summary);
            screen.line(format_args!(
                "{}  {}",
                time::of_day(event.timestamp),
                styles.paint(tone, &summary)
            ))?;
        }
    }
    screen.flush()
}

fn conclude(screen: &mut Screen<'_>, ended: &Ended) -> Result {
    screen.gap()?;
    if ended.interrupted {
        return screen.line(format_args!("Ended before its end; nothing is left."));
    }
    let Ended { agents, completed, items, events, .. } = ended;
    let died = if ended.rescued.is_some() { ", one of which died" } else { "" };
    screen.line(format_args!(
        "{completed} of {items} work items are done by {agents} agents{died}. All of it is in {events} events."
    ))?;
    if let Some(item) = &ended.rescued {
        screen.line(format_args!("What the dead one left ({}) was finished by another.", escape(item)))?;
    }
    screen.line(format_args!("To connect your own agents: blackboard setup"))
}
