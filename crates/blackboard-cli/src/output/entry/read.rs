//! One entry, or none.

use std::time::Duration;

use blackboard::agent::short_id;
use blackboard::entry::{Entry, Value};

use super::{left, unusual};
use crate::envelope::Answer;
use crate::outcome::Render;
use crate::output::{Result, Screen, harmless_json, time};

/// A time to live in the largest unit that shows it exactly: `7d`, `90s`.
fn in_largest_unit(ttl: Duration, seconds: f64) -> String {
    let milliseconds = ttl.as_millis();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m")];
    match units.iter().find(|(length, _)| milliseconds >= *length && milliseconds.is_multiple_of(*length)) {
        Some((length, unit)) => format!("{}{unit}", milliseconds / length),
        None => format!("{seconds}s"),
    }
}

/// The answer of `read`: the entry itself, without the envelope.
pub struct ReadEntry(pub Entry);

impl Render for ReadEntry {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.raw(&self.0)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let entry = &self.0;
        let now = screen.now();
        let ttl = entry.expires_at.zip(entry.ttl()).map(|(expires, ttl)| {
            // What is read as of a revision may have expired long ago.
            let rest = match expires.since(now) {
                rest if rest.is_zero() => "expired".to_owned(),
                rest if rest < Duration::from_mins(2) => format!("{} left", left(expires, now)),
                rest => format!("{} left", time::left(rest)),
            };
            format!("{} ({rest})", in_largest_unit(expires.since(entry.updated_at), ttl))
        });
        let created = format!("{} by {}", time::local(entry.created_at), entry.created_by);
        let lease = entry.session_id.as_ref().map(|session| {
            let fence = entry.fence.map(|fence| format!(", fence {fence}")).unwrap_or_default();
            format!("session {}{fence}", short_id(session))
        });
        screen.fields([
            ("Key", Some(entry.key.clone())),
            ("Scope", unusual(&entry.scope)),
            ("Value", Some(harmless_json(entry.value.as_str()).into_owned())),
            ("Source", Some(entry.updated_by.clone())),
            ("Timestamp", Some(time::detailed(entry.updated_at, now))),
            ("TTL", ttl),
            ("Version", Some(entry.version.to_string())),
            ("Revision", Some(entry.revision.to_string())),
            ("Created", (entry.created_at != entry.updated_at).then_some(created)),
            ("Tags", (!entry.tags.is_empty()).then(|| entry.tags.join(", "))),
            ("Metadata", entry.metadata.as_ref().map(|text| harmless_json(text.as_str()).into_owned())),
            ("Lease", lease),
        ])
    }
}

/// The answer of `read --value`.
pub struct BareValue(pub Value);

impl Render for BareValue {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.raw(&self.0)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        // The caller passes this to a program.
        screen.verbatim(self.0.as_str())?;
        screen.gap()
    }
}

/// The answer of `read --raw`.
pub struct RawText(pub Value);

impl Render for RawText {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.raw(&self.0)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        match self.0.to::<String>() {
            Ok(text) => screen.verbatim(text)?,
            Err(_) => screen.verbatim(self.0.as_str())?,
        }
        screen.gap()
    }
}

/// The answer of `read` if the key does not exist. Scripts compare it with `null`.
pub struct Missing;

impl Render for Missing {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.raw(&())
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        screen.line(format_args!("null"))
    }
}
