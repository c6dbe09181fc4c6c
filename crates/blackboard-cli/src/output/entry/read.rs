//! One entry, or none.

use blackboard::agent::short_id;
use blackboard::entry::{Entry, Value};

use super::{left, unusual};
use crate::envelope::Answer;
use crate::outcome::Render;
use crate::output::{Result, Screen, harmless_json, time};

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
            // What is read as of a revision may have been over for long.
            let rest = if expires > now { format!("{} left", left(expires, now)) } else { "over".to_owned() };
            format!("{ttl}s ({rest})")
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
