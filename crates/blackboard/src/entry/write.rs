//! `write`: a key gets a value, if it may.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::draft::refuse_reserved;
use super::{
    DEFAULT_SCOPE, Draft, Entry, MAX_OPERATIONS, Scope, Told, Value, check_known_key, check_known_scope,
    known_tag_set, tag_set,
};
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::fingerprint::Fingerprint;
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::settings::Settings;
use crate::store::Prefetch;
use crate::text::shell_word;

/// What to write, and under which condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Value,
    /// Its tags. A write replaces tags, metadata and time to live, unless it merges.
    pub tags: Vec<String>,
    /// How long it lives from now on.
    pub ttl: Option<Duration>,
    /// What to store with it.
    pub metadata: Option<Metadata>,
    /// Adds to the tags and metadata that are there, and keeps the time to live if none is given.
    pub merge: bool,
    /// Only if nobody can see such a key.
    pub if_absent: bool,
    /// Only if the entry has this revision; zero means that there is none.
    pub if_revision: Option<Revision>,
    /// The entry dies with the session that writes it, and nobody else can change it.
    pub lease: bool,
}

impl Write {
    /// A value without anything more.
    pub fn new(key: &str, value: Value) -> Write {
        Write {
            key: key.to_owned(),
            value,
            tags: Vec::new(),
            ttl: None,
            metadata: None,
            merge: false,
            if_absent: false,
            if_revision: None,
            lease: false,
        }
    }
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
    /// How often it was written.
    pub version: u64,
    /// The event of this write: what `if_revision` compares with.
    pub revision: Revision,
    /// Whether there was none before.
    pub created: bool,
    /// From when on it is invisible.
    pub expires_at: Option<Timestamp>,
    /// The revision at which its session took it, if it has a lease.
    pub fence: Option<Revision>,
}

impl Written {
    pub(super) fn of(entry: &Entry, created: bool) -> Written {
        Written {
            scope: entry.scope.clone(),
            key: entry.key.clone(),
            version: entry.version,
            revision: entry.revision,
            created,
            expires_at: entry.expires_at,
            fence: entry.fence,
        }
    }
}

impl Pending for Written {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
        self.fence.resolve(first);
    }
}

impl Scope<'_> {
    /// Writes one entry.
    ///
    /// ```
    /// # use blackboard::{Board, Code, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// let first = scope.write(&Write::new("counter", Value::of(&1)?))?;
    /// let next = Write { if_revision: Some(first.revision), ..Write::new("counter", Value::of(&2)?) };
    /// assert_eq!(scope.write(&next)?.version, 2);
    /// // Somebody was faster: the same condition does not hold any more.
    /// assert_eq!(scope.write(&next).unwrap_err().code(), Code::Conflict);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn write(&self, write: &Write) -> Result<Written> {
        let write = self.checked_write(write)?;
        let prefetch = [Prefetch::Entry(&self.name, &write.key)];
        self.commit(
            "write",
            |asked| write.asked(asked),
            &prefetch,
            |draft| draft.write(&self.name, &write, Told::AsEntry),
        )
    }

    /// Writes many entries, all of them or none.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// let good = Write::new("a", Value::of(&1)?);
    /// let bad = Write::new("not:a:*", Value::of(&2)?);
    /// assert!(scope.write_batch(&[good, bad]).is_err());
    /// assert!(scope.entry("a")?.is_none());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn write_batch(&self, writes: &[Write]) -> Result<Vec<Written>> {
        check_count(writes.len())?;
        let writes = writes.iter().map(|write| self.checked_write(write)).collect::<Result<Vec<_>>>()?;
        let prefetch: Vec<_> = writes.iter().map(|write| Prefetch::Entry(&self.name, &write.key)).collect();
        let asked = |asked: Fingerprint| asked.each(&writes, |asked, write| write.asked(asked));
        self.commit("write batch", asked, &prefetch, |draft| {
            writes.iter().map(|write| draft.write(&self.name, write, Told::AsEntry)).collect()
        })
    }

    /// Commits what `f` does to entries on behalf of whoever this scope acts for. What it was asked for is added to a
    /// fingerprint.
    pub(super) fn commit<T: Pending + Serialize + serde::de::DeserializeOwned>(
        &self,
        name: &'static str,
        asked: impl FnOnce(Fingerprint) -> Fingerprint,
        prefetch: &[Prefetch<'_>],
        mut f: impl FnMut(&mut Draft<'_>) -> Result<T>,
    ) -> Result<T> {
        check_known_scope(&self.name)?;
        let by = self.board.checked_by(&self.by)?;
        let asked = || asked(Fingerprint::new().text(&self.name));
        let prefetch: Vec<_> = prefetch.iter().cloned().chain(by.prefetch()).collect();
        let (operation, session) = (by.operation.as_deref(), by.session.as_deref());
        self.board.commit_once(operation, session, name, asked, &prefetch, |tx| {
            let mut draft = Draft::new(self.board, tx, &by)?;
            let answer = f(&mut draft)?;
            Ok((draft.finish()?, answer))
        })
    }

    fn checked_write(&self, write: &Write) -> Result<Write> {
        refuse_reserved(&self.name)?;
        write.checked(&self.name, self.board.settings())
    }
}

/// Refuses a time to live in which nobody could see anything.
pub(crate) fn check_ttl(ttl: Option<Duration>) -> Result<()> {
    match ttl {
        Some(ttl) if ttl.as_millis() == 0 => {
            Err(Error::invalid("what lives for less than a millisecond would never be seen"))
        }
        _ => Ok(()),
    }
}

/// Refuses more operations than one commit takes.
pub(super) fn check_count(count: usize) -> Result<()> {
    if count <= MAX_OPERATIONS {
        return Ok(());
    }
    let message = format!("{count} operations are too many for one commit; {MAX_OPERATIONS} are allowed");
    Err(Refusal::new(Code::InvalidValue, message).hint("split them over several calls").into())
}

impl Write {
    /// Adds what it asks for to a fingerprint.
    pub(super) fn asked(&self, asked: Fingerprint) -> Fingerprint {
        asked
            .text(&self.key)
            .text(self.value.as_str())
            .each(&self.tags, |asked, tag| asked.text(tag))
            .maybe(self.ttl.map(|ttl| ttl.as_nanos()))
            .maybe(self.metadata.as_ref().map(Metadata::as_str))
            .of(self.merge)
            .of(self.if_absent)
            .maybe(self.if_revision)
            .of(self.lease)
    }

    /// The same with sorted tags, if everything about it is allowed.
    pub(crate) fn checked(&self, scope: &str, settings: &Settings) -> Result<Write> {
        // Whether it is new, and so has to pass `check_key`, is known in the commit.
        check_known_key(scope, &self.key)?;
        self.value.check_size(settings.max_value_bytes)?;
        let tags = tag_set(self.tags.clone())?;
        let rules = &settings.text;
        rules.check_unaltered(tags.iter().map(String::as_str).chain([scope, &self.key]))?;
        rules.check_json(
            [self.value.as_str()].into_iter().chain(self.metadata.as_ref().map(Metadata::as_str)),
        )?;
        Ok(Write { tags, ..self.clone() })
    }

    /// What the key becomes. Its author is filled in by whoever knows.
    pub(super) fn decide(
        &self,
        before: Option<&Entry>,
        scope: &str,
        version: u64,
        revision: Revision,
        session: Option<&str>,
        now: Timestamp,
    ) -> Result<Entry> {
        check_ttl(self.ttl)?;
        self.condition_holds(scope, before)?;
        let leased = before.and_then(|before| before.session_id.clone());
        let session_id = leased.clone().or_else(|| session.filter(|_| self.lease).map(str::to_owned));
        let fence = match leased {
            Some(_) => before.and_then(|before| before.fence),
            None => session_id.is_some().then_some(revision),
        };
        let (mut tags, mut metadata) = (self.tags.clone(), self.metadata.clone());
        let mut expires_at = self.ttl.map(|ttl| now.plus(ttl));
        if let Some(before) = before.filter(|_| self.merge) {
            tags = known_tag_set(tags.into_iter().chain(before.tags.iter().cloned()).collect())?;
            metadata = merged(before.metadata.as_ref(), metadata)?;
            expires_at = expires_at.or(before.expires_at);
        }
        Ok(Entry {
            scope: scope.to_owned(),
            key: self.key.clone(),
            value: self.value.clone(),
            version,
            revision,
            created_at: before.map_or(now, |before| before.created_at),
            created_by: before.map(|before| before.created_by.clone()).unwrap_or_default(),
            updated_at: now,
            updated_by: String::new(),
            expires_at,
            tags,
            metadata,
            session_id,
            fence,
        })
    }

    fn condition_holds(&self, scope: &str, before: Option<&Entry>) -> Result<()> {
        if let Some(before) = before.filter(|_| self.if_absent) {
            return Err(exists(scope, before));
        }
        match self.if_revision {
            Some(expected) if expected != before.map_or(Revision::ZERO, |before| before.revision) => {
                Err(conflict(scope, &self.key, expected, before))
            }
            _ => Ok(()),
        }
    }
}

fn merged(before: Option<&Metadata>, after: Option<Metadata>) -> Result<Option<Metadata>> {
    match (before, after) {
        (Some(before), Some(after)) => before.merged_with(&after).map(Some),
        (before, after) => Ok(after.or_else(|| before.cloned())),
    }
}

fn exists(scope: &str, entry: &Entry) -> Error {
    let in_scope =
        if scope == DEFAULT_SCOPE { String::new() } else { format!(" --scope {}", shell_word(scope)) };
    let since = entry.created_at;
    let message = format!("{} exists: {} wrote it at {since}", entry.key, entry.created_by);
    Refusal::new(Code::AlreadyExists, message)
        .hint(format!("read it first: blackboard read {}{in_scope}", shell_word(&entry.key)))
        .held_by(entry.session_id.clone(), entry.created_by.clone(), Some(since))
        .detail("revision", entry.revision.get())
        .detail("version", entry.version)
        .into()
}

/// Somebody changed a key in between.
pub(super) fn conflict(scope: &str, key: &str, expected: Revision, found: Option<&Entry>) -> Error {
    let refusal = match found {
        Some(found) => Refusal::new(
            Code::Conflict,
            format!(
                "{key} is at revision {}, not {expected}: {} wrote it at {}",
                found.revision, found.updated_by, found.updated_at
            ),
        )
        .detail("version", found.version)
        .detail("updated_by", found.updated_by.clone())
        .detail("updated_at", found.updated_at.to_string()),
        None => Refusal::new(Code::Conflict, format!("there is no {key}; revision {expected} was expected")),
    };
    refusal
        .hint("read it again, and decide anew")
        .detail("scope", scope)
        .detail("key", key)
        .detail("expected", expected.get())
        .detail("revision", found.map_or(0, |found| found.revision.get()))
        .into()
}
