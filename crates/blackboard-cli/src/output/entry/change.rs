//! What was done to entries.

use blackboard::Revision;
use blackboard::entry::{
    ClearPlan, Cleared, Deleted, Entry, OperationResult, PurgePlan, Purged, TxnResult, Value, Written,
};
use serde::Serialize;

use super::{glimpse, unusual};
use crate::envelope::Answer;
use crate::outcome::Render;
use crate::output::{Result, Screen, escape, harmless_json};

/// The answer of `write` and `append`.
pub struct WrittenEntry(pub Written);

impl Render for WrittenEntry {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(&self.0)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        written(&self.0, None, screen)
    }
}

/// The answer of `increment`.
#[derive(Serialize)]
pub struct CountedEntry {
    /// What was written.
    #[serde(flatten)]
    pub written: Written,
    /// The number, unless the call was repeated after its version was pruned.
    pub value: Option<Value>,
}

impl Render for CountedEntry {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        written(&self.written, self.value.as_ref(), screen)
    }
}

fn written(written: &Written, value: Option<&Value>, screen: &mut Screen<'_>) -> Result {
    let facts = [
        value.map(|value| format!("value {}", harmless_json(value.as_str()))),
        unusual(&written.scope).map(|scope| format!("scope {}", escape(&scope))),
        Some(format!("version {}, revision {}", written.version, written.revision)),
        written.expires_at.map(|expires| format!("TTL {}", super::left(expires, screen.now()))),
        written.fence.map(|fence| format!("fence {fence}")),
        written.evicted.as_ref().map(|key| format!("evicted {}", escape(key))),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    screen.line(format_args!("Written: {} ({})", escape(&written.key), facts.join(", ")))
}

/// The answer of `delete`.
pub struct DeletedEntry(pub Deleted);

impl Render for DeletedEntry {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(&self.0)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        screen.line(format_args!("Deleted: {}", escape(&self.0.key)))
    }
}

/// The answer of `clear`.
pub struct ClearedEntries(pub Cleared);

#[derive(Serialize)]
struct Gone<'a> {
    scope: &'a str,
    count: usize,
    keys: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<Revision>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

impl Render for ClearedEntries {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let Cleared { scope, keys, revision } = &self.0;
        answer.object(&Gone { scope, count: keys.len(), keys, revision: Some(*revision), dry_run: false })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        screen.line(format_args!("Cleared: {}", counted(self.0.keys.len())))
    }
}

/// The answer of `clear --dry-run`.
pub struct WouldClear(pub ClearPlan);

impl Render for WouldClear {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let ClearPlan { scope, keys } = &self.0;
        answer.object(&Gone { scope, count: keys.len(), keys, revision: None, dry_run: true })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let keys = &self.0.keys;
        screen.line(format_args!("Would clear: {} (dry run, nothing is changed)", counted(keys.len())))?;
        keys.iter().try_for_each(|key| screen.line(format_args!("  {}", escape(key))))
    }
}

/// The answer of `purge`.
pub struct PurgedKey(pub Purged);

impl Render for PurgedKey {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(&self.0)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let Purged { scope, key, versions, answers, revision, scrubbed, remains } = &self.0;
        let versions = match versions {
            0 => "nothing was left to erase".to_owned(),
            count => counted_versions(*count),
        };
        let answers = match answers {
            0 => String::new(),
            1 => ", 1 remembered answer".to_owned(),
            count => format!(", {count} remembered answers"),
        };
        screen
            .line(format_args!("Purged: {} ({versions}{answers}, revision {revision})", named(scope, key)))?;
        if *scrubbed {
            return Ok(());
        }
        screen.gap()?;
        for reason in remains {
            screen.line(format_args!(
                "The files of the board may still hold the old values: {}.",
                escape(reason)
            ))?;
        }
        screen.line(format_args!("Run the command again when that is no longer so."))
    }
}

/// The answer of `purge --dry-run`.
pub struct WouldPurge(pub PurgePlan);

#[derive(Serialize)]
struct Plan<'a> {
    #[serde(flatten)]
    plan: &'a PurgePlan,
    dry_run: bool,
}

impl Render for WouldPurge {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(&Plan { plan: &self.0, dry_run: true })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let PurgePlan { scope, key, versions, .. } = &self.0;
        let count = counted_versions(*versions);
        screen.line(format_args!("Would purge: {}, {count} (dry run, nothing is changed)", named(scope, key)))
    }
}

fn counted_versions(versions: usize) -> String {
    format!("{versions} {}", if versions == 1 { "version" } else { "versions" })
}

fn counted(entries: usize) -> String {
    format!("{entries} {}", if entries == 1 { "entry" } else { "entries" })
}

/// The answer of `txn`.
pub struct ComparedEntries(pub TxnResult);

impl Render for ComparedEntries {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(&self.0)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let TxnResult { succeeded, results, revision } = &self.0;
        let what = if *succeeded { "Succeeded" } else { "A comparison failed; did \"else\"" };
        screen.line(format_args!("{what} (revision {revision})"))?;
        results.iter().try_for_each(|result| match result {
            OperationResult::Write(Written { scope, key, version, evicted, .. }) => {
                let evicted = evicted.as_ref().map(|key| format!(", evicted {}", escape(key)));
                let evicted = evicted.unwrap_or_default();
                screen.line(format_args!("  Written: {} (version {version}{evicted})", named(scope, key)))
            }
            OperationResult::Delete(Some(Deleted { scope, key, .. })) => {
                screen.line(format_args!("  Deleted: {}", named(scope, key)))
            }
            OperationResult::Delete(None) => screen.line(format_args!("  Deleted: nothing was there")),
            OperationResult::Read(Some(Entry { scope, key, value, .. })) => {
                let value = glimpse(value, screen);
                screen.fitted_line(&format!("  Read: {} = ", named(scope, key)), &value, "")
            }
            OperationResult::Read(None) => screen.line(format_args!("  Read: null")),
        })
    }
}

/// A key, with its scope where that is not the usual one.
fn named(scope: &str, key: &str) -> String {
    match unusual(scope) {
        Some(scope) => format!("{} in scope {}", escape(key), escape(&scope)),
        None => escape(key).into_owned(),
    }
}
