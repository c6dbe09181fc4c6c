//! A demonstration, for people.

use blackboard::event::EventType;

use super::{Result, Screen, Tone, escape, time};
use crate::demo::{Ended, Told};

/// A part of the story.
pub fn show(screen: &mut Screen<'_>, told: &Told<'_>) -> Result {
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

/// How it ended.
pub fn conclude(screen: &mut Screen<'_>, ended: &Ended) -> Result {
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
