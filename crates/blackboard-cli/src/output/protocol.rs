//! Protocols, as human and JSON output.

use blackboard::protocol::{
    self, BuiltKey, BuiltPattern, Message, ParsedKey, Protocol, RecommendedTtl, RunEvent, Template, Values,
};

use super::{Cell, Column, ListPage, Result, Screen, Table, escape, harmless_json, render_object, time};
use crate::envelope::Answer;
use crate::outcome::Render;

render_object! {
    /// The answer of `protocol show`.
    ProtocolDetails(Protocol) = details;
    /// The answer of `protocol key`: the human output is only the key, so that a shell can use it.
    KeyOfProtocol(BuiltKey) = key;
    /// The answer of `protocol pattern`: the human output is only the pattern.
    PatternOfProtocol(BuiltPattern) = pattern;
    /// The answer of `protocol parse`.
    ValuesOfKey(ParsedKey) = parsed;
    /// The answer of `protocol define`.
    DefinedProtocol(protocol::DefinedProtocol) = defined;
    /// The answer of `protocol remove`.
    RemovedProtocol(protocol::RemovedProtocol) = removed;
}

/// The answer of `protocol list`. It is not empty if the board does not exist: built-in protocols need none.
pub struct ProtocolList(pub ListPage<Protocol>);

impl Render for ProtocolList {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.list_with(&self.0.rows, &self.0.rest())
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        protocols(&self.0, screen)
    }
}

/// The answer of `protocol check`.
pub struct CheckedKey {
    /// The protocols of the key.
    pub checked: protocol::CheckedKey,
    /// Whether a value was checked, too.
    pub has_value: bool,
}

impl Render for CheckedKey {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(&self.checked)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let checked = &self.checked;
        if checked.protocols.is_empty() {
            screen.line(format_args!("No protocol describes the key {}.", escape(&checked.key)))?;
        } else {
            let mut table = Table::new([
                Column::typed("PROTOCOL"),
                Column::fixed("LEVEL").importance(1),
                Column::fixed("TTL").importance(2),
                Column::typed("TEMPLATE"),
                Column::text("VALUES").importance(3),
            ]);
            for found in &checked.protocols {
                table.row([
                    Cell::new(&found.protocol),
                    Cell::new(found.level.as_str()),
                    Cell::optional(found.recommended_ttl.map(ttl).as_ref()),
                    Cell::new(found.template.as_str()),
                    Cell::new(in_order(&found.template, &found.values)),
                ]);
            }
            screen.table(&table)?;
        }
        match (&checked.value_checked_by, self.has_value) {
            (Some(name), _) => screen.line(format_args!("The value matches {}.", escape(name))),
            (None, true) if !checked.protocols.is_empty() => {
                screen.line(format_args!("No protocol describes its values."))
            }
            (None, _) => Ok(()),
        }
    }
}

/// The values of a key in the order of its template.
fn in_order(template: &Template, values: &Values) -> String {
    let given = |(name, _): (&str, bool)| values.get(name).map(|value| format!("{name}={value}"));
    template.names().filter_map(given).collect::<Vec<_>>().join(" ")
}

/// A recommended time to live: `5m to 15m`.
fn ttl(ttl: RecommendedTtl) -> String {
    let length = |seconds: u32| match seconds {
        hours if hours.is_multiple_of(3600) => format!("{}h", hours / 3600),
        minutes if minutes.is_multiple_of(60) => format!("{}m", minutes / 60),
        seconds => format!("{seconds}s"),
    };
    if ttl.min_seconds == ttl.max_seconds {
        return length(ttl.min_seconds);
    }
    format!("{} to {}", length(ttl.min_seconds), length(ttl.max_seconds))
}

fn protocols(page: &ListPage<Protocol>, screen: &mut Screen<'_>) -> Result {
    let mut table = Table::new([
        Column::typed("PROTOCOL"),
        Column::fixed("LEVEL").importance(2),
        Column::detail("SUMMARY").importance(3),
        Column::text("KEYS").importance(1),
    ]);
    for protocol in &page.rows {
        let words = protocol.messages.iter().map(|message| message.template.as_str());
        table.row([
            Cell::new(&protocol.name),
            Cell::new(protocol.level.as_str()),
            Cell::new(&protocol.summary),
            Cell::new(words.collect::<Vec<_>>().join(", ")),
        ]);
    }
    screen.table(&table)?;
    page.note_more(screen)
}

fn details(protocol: &Protocol, screen: &mut Screen<'_>) -> Result {
    let defined = match protocol.defined_at {
        Some(moment) => time::detailed(moment, screen.now()),
        None => "built in".to_owned(),
    };
    screen.fields([
        ("Protocol", Some(protocol.name.clone())),
        ("Summary", Some(protocol.summary.clone()).filter(|summary| !summary.is_empty())),
        ("Level", Some(protocol.level.as_str().to_owned())),
        ("Scope", Some(protocol.scope_template.to_owned())),
        ("Defined", Some(defined)),
    ])?;
    screen.gap()?;
    let mut table =
        Table::new([Column::typed("MESSAGE"), Column::typed("TEMPLATE"), Column::fixed("TTL").importance(1)]);
    for message in &protocol.messages {
        table.row([
            Cell::new(format!("{}.{}", protocol.name, message.name)),
            Cell::new(message.template.as_str()),
            Cell::optional(message.recommended_ttl.map(ttl).as_ref()),
        ]);
    }
    screen.table(&table)?;
    protocol.messages.iter().try_for_each(|message| schema(message, screen))
}

fn schema(message: &Message, screen: &mut Screen<'_>) -> Result {
    let Some(schema) = &message.value_schema else { return Ok(()) };
    screen.gap()?;
    screen.heading("Value schema:")?;
    // Each line by itself, because one line of text would lose its line breaks.
    schema.as_str().lines().try_for_each(|line| screen.line(format_args!("  {}", harmless_json(line))))
}

fn key(built: &BuiltKey, screen: &mut Screen<'_>) -> Result {
    screen.line(format_args!("{}", escape(&built.key)))
}

fn pattern(built: &BuiltPattern, screen: &mut Screen<'_>) -> Result {
    screen.line(format_args!("{}", escape(&built.pattern)))
}

fn parsed(parsed: &ParsedKey, screen: &mut Screen<'_>) -> Result {
    let ParsedKey { protocol, message, template, values, .. } = parsed;
    screen.line(format_args!(
        "{} ({})",
        escape(&format!("{protocol}.{message}")),
        escape(template.as_str())
    ))?;
    let given = template.names().filter_map(|(name, _)| Some((name, Some(values.get(name)?.clone()))));
    screen.fields(given)
}

fn defined(defined: &protocol::DefinedProtocol, screen: &mut Screen<'_>) -> Result {
    let verb = if defined.created { "Defined protocol" } else { "Protocol already defined" };
    let protocol = &defined.protocol;
    screen.line(format_args!("{verb}: {} ({})", escape(&protocol.name), escape(protocol.template.as_str())))
}

fn removed(removed: &protocol::RemovedProtocol, screen: &mut Screen<'_>) -> Result {
    screen.line(format_args!("Removed protocol: {}", escape(&removed.protocol.name)))
}

/// An event of a call, as one line.
pub fn run_event(event: &RunEvent, screen: &mut Screen<'_>) -> Result {
    let value = harmless_json(event.value.as_str()).replace('\n', " ");
    screen.line(format_args!("{}: {value}", escape(&event.name)))
}
