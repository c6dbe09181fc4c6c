//! Human output of the demo.

use blackboard::event::EventType;

use super::{Result, Screen, Tone, escape, time};
use crate::demo::{Ended, Narration, VICTIM};

/// A line of the narration.
pub fn show(screen: &mut Screen<'_>, line: &Narration<'_>) -> Result {
    let styles = screen.styles();
    match line {
        Narration::Chapter(text) => {
            screen.gap()?;
            screen.line(format_args!("{}", styles.paint(Tone::Heading, &format!("# {text}"))))?;
        }
        Narration::Command(text) => {
            screen.line(format_args!("{}", styles.paint(Tone::Caution, &format!("$ {text}"))))?;
        }
        Narration::Event(event) => {
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

/// The result.
pub fn conclude(screen: &mut Screen<'_>, ended: &Ended) -> Result {
    screen.gap()?;
    if ended.interrupted {
        return screen.line(format_args!("Interrupted; everything was removed."));
    }
    let Ended { agents, completed, items, events, .. } = ended;
    let died = if ended.rescued.is_some() { ", one of which was killed" } else { "" };
    screen.line(format_args!(
        "{completed} of {items} work items were completed by {agents} agents{died}. The board has {events} events."
    ))?;
    if let Some(item) = &ended.rescued {
        screen.line(format_args!(
            "Work item {} was completed by another agent after {VICTIM} was killed.",
            escape(item)
        ))?;
    }
    screen.line(format_args!("To connect your own agents: blackboard setup"))
}
