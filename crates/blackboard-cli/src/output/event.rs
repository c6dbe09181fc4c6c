//! Events, for people.

use std::borrow::Cow;
use std::collections::BTreeMap;

use blackboard::Revision;
use blackboard::agent::ShortIds;
use blackboard::clock::Timestamp;
use blackboard::event::{Event, Observation, TargetType};

use super::{Result, Screen, escape, time};

/// From where `observe` reads the event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// From the cursor of the session, which moves.
    OnFromCursor,
    /// From the cursor of the session, which stays.
    PeekFromCursor,
    /// From the moment of `--since` on.
    FromMoment,
    /// From another start: a revision, or the last day.
    FromOther,
}

/// The end of a list of events.
pub struct Summary {
    /// How many events were shown.
    pub shown: usize,
    /// The time of the last of them.
    pub last: Option<Timestamp>,
    /// Whether events were pruned while the list was read.
    pub pruned: bool,
    /// Whether events were left out because of the limit.
    pub more: bool,
    /// The last revision that was read.
    pub revision: Revision,
}

/// Which events a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Any events. Each has the id of its work item: summaries have only the title, which no command accepts.
    OfTheBoard,
    /// Those of one work item, indented.
    OfOneItem,
}

/// Events below each other, with a line for the date where the day changes.
pub struct EventLines {
    style: Style,
    day: String,
    /// The sessions of the active agents and of those that were named so far, by name.
    named: BTreeMap<String, Vec<String>>,
}

impl EventLines {
    /// A list that begins today.
    pub fn new(screen: &Screen<'_>, style: Style) -> EventLines {
        let mut named = BTreeMap::<_, Vec<_>>::new();
        for (name, session) in screen.active_agents() {
            named.entry(name).or_default().push(session);
        }
        EventLines { style, day: time::date(screen.now()), named }
    }

    /// The summary of the next event. An agent whose name another session has gets its short id.
    fn summary<'e>(&mut self, event: &'e Event) -> Cow<'e, str> {
        let Some((name, session)) = event.named_agent() else { return Cow::Borrowed(&event.summary) };
        let sessions = self.named.entry(name.to_owned()).or_default();
        if !sessions.contains(&session) {
            sessions.push(session);
        }
        match &sessions[..] {
            [_] => Cow::Borrowed(&event.summary),
            several => event.summary_with_session(ShortIds::of(several.iter().map(String::as_str))),
        }
    }

    /// Adds an event.
    pub fn show(&mut self, screen: &mut Screen<'_>, event: &Event) -> Result {
        let indent = if self.style == Style::OfOneItem { "  " } else { "" };
        let day = time::date(event.timestamp);
        if day != self.day {
            screen.line(format_args!("{indent}{day}:"))?;
            self.day = day;
        }
        // A crafted board may have any text as the type.
        let event_type = escape(event.shown_type());
        let before = format!("{indent}{}  {event_type:<20} ", time::of_day(event.timestamp));
        let summary = self.summary(event);
        let summary = escape(&summary);
        match (self.style, event.target_type, &event.target_id) {
            (Style::OfTheBoard, Some(TargetType::WorkItem), Some(item)) => {
                screen.wrapped_line(&before, &format!("{summary} [{}]", escape(item)))
            }
            _ => screen.wrapped_line(&before, &summary),
        }
    }
}

/// What stands above the events of `observation`.
pub fn show_heading(screen: &mut Screen<'_>, observation: &Observation, reading: Reading) -> Result {
    match (observation.since, reading) {
        (None, _) => screen.line(format_args!("Events:"))?,
        (Some(since), Reading::FromMoment | Reading::FromOther) => {
            screen.line(format_args!("Events since {}:", time::local(since)))?;
        }
        (Some(since), Reading::OnFromCursor | Reading::PeekFromCursor) => {
            screen.line(format_args!("Events since last observation ({}):", time::local(since)))?;
        }
    }
    if observation.compacted {
        screen.line(format_args!("Older events have been pruned; showing the oldest kept events."))?;
    }
    screen.gap()
}

/// What stands below the events.
pub fn show_summary(screen: &mut Screen<'_>, summary: &Summary, reading: Reading) -> Result {
    let Summary { shown, last, pruned, more, revision } = summary;
    if *pruned {
        screen.line(format_args!("Events were pruned during the read; some are missing here."))?;
    }
    let Some(last) = *last else { return screen.line(format_args!("No new events.")) };
    screen.gap()?;
    let events = if *shown == 1 { "event" } else { "events" };
    if reading == Reading::OnFromCursor {
        let time = time::of_day(last);
        screen.line(format_args!("{shown} {events} | Next check will start from {time}"))?;
    } else {
        screen.line(format_args!("{shown} {events}"))?;
    }
    match reading {
        _ if !more => Ok(()),
        Reading::OnFromCursor => {
            screen.line(format_args!("More events follow. Check again, or use --limit N for more."))
        }
        Reading::FromOther => screen
            .line(format_args!("More events follow. Use --after {revision}, or use --limit N for more.")),
        Reading::PeekFromCursor => screen
            .line(format_args!("More events follow. Add --after {revision}, or use --limit N for more.")),
        Reading::FromMoment => screen.line(format_args!(
            "More events follow. Use --after {revision} instead of --since, or use --limit N for more."
        )),
    }
}

/// The line of a follower where events are missing.
pub fn show_compacted(screen: &mut Screen<'_>) -> Result {
    screen.line(format_args!("Older events have been pruned; continuing with the oldest kept events."))
}
