//! Messages of models that no provider has. They are not counted, but how many there are is.

use rusqlite::Connection;
use serde::Serialize;

use super::config::Config;
use super::fold;
use super::ledger::Ledger;
use super::record::number_of;
use super::usage::check_text;
use crate::clock::Timestamp;
use crate::error::Result;

/// How many models are kept. Names come from other programs.
const MOST_MODELS: i64 = 200;

/// A longer name of a model is ignored.
const LONGEST_MODEL: usize = 200;

/// A message of a model that no provider has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncountedMessage {
    /// The id of the message.
    pub id: String,
    /// The model; empty if it is not known.
    pub model: String,
    /// When the message ended.
    pub at: Timestamp,
}

/// A model that no provider has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UncountedModel {
    /// The model; empty if it is not known.
    pub model: String,
    /// How many of its messages were not counted.
    pub messages: u64,
}

impl Ledger {
    /// Notes messages that are not counted, each once. A message whose model gets a provider later can still be recorded.
    /// Returns how many were new.
    pub fn note_uncounted(&self, messages: &[UncountedMessage]) -> Result<u64> {
        const SEEN: &str = "INSERT OR IGNORE INTO seen (id, minute) VALUES (?1, ?2)";
        const NOTE: &str = "INSERT INTO uncounted (model, messages, minute)
            SELECT ?1, 1, ?2 WHERE EXISTS (SELECT 1 FROM uncounted WHERE model = ?1)
            OR (SELECT count(*) FROM uncounted) < ?3
            ON CONFLICT (model) DO UPDATE SET messages = messages + 1, minute = max(minute, ?2)";
        let now = self.now();
        self.write(|connection| {
            let clock = fold::maintain(connection, &self.config, now)?;
            let mut new = 0;
            for message in messages {
                let minute = fold::minute_of(message.at).min(fold::minute_of(now));
                let model = &message.model;
                let is_usable = model.is_empty() || check_text("model", model, LONGEST_MODEL).is_ok();
                if !is_usable || minute < clock.horizon {
                    continue;
                }
                // Another number than that of the recorded message.
                let number = number_of(&format!("uncounted:{}", message.id));
                if connection.prepare_cached(SEEN)?.execute((number, minute))? > 0 {
                    new += 1;
                    connection.prepare_cached(NOTE)?.execute((model, minute, MOST_MODELS))?;
                }
            }
            Ok(new)
        })
    }
}

impl Ledger {
    /// The models whose messages were not counted and that have a provider now. Their messages can be recorded, if they can
    /// be read again; then [`Ledger::forget_uncounted`] removes them from this list.
    pub fn newly_counted_models(&self) -> Result<Vec<String>> {
        const MODELS: &str = "SELECT model FROM uncounted ORDER BY model";
        let mut models: Vec<String> = self.read(|connection| {
            let mut statement = connection.prepare_cached(MODELS)?;
            statement.query_map([], |row| row.get(0))?.collect()
        })?;
        models.retain(|model| self.config.provider_of_message(model).is_some());
        Ok(models)
    }

    /// Forgets that messages of these models were not counted.
    pub fn forget_uncounted(&self, models: &[String]) -> Result<()> {
        const FORGET: &str = "DELETE FROM uncounted WHERE model = ?1";
        self.write(|connection| {
            let mut statement = connection.prepare_cached(FORGET)?;
            models.iter().try_for_each(|model| statement.execute([model]).map(drop))
        })
    }
}

/// The models whose messages were not counted and which still have no provider, the one with most messages first.
pub(super) fn models(connection: &Connection, config: &Config) -> rusqlite::Result<Vec<UncountedModel>> {
    const MODELS: &str = "SELECT model, messages FROM uncounted ORDER BY messages DESC, model";
    let mut statement = connection.prepare_cached(MODELS)?;
    let rows = statement.query_map([], |row| {
        Ok(UncountedModel { model: row.get(0)?, messages: row.get::<_, i64>(1)?.unsigned_abs() })
    })?;
    let mut models = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    models.retain(|uncounted| config.provider_of_message(&uncounted.model).is_none());
    Ok(models)
}
