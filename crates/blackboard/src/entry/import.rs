//! `import`: writes the entries of a file, and before them the policies and protocols of an export (`definitions.rs`).
//!
//! [`decide`] is the rule: the entry of the board and that of the file in, what happens out. It is read and decided in the
//! commit that writes. A commit has at most 500 entries, so that other writers never wait long; an import that is
//! interrupted can be repeated, because an entry that is the same is not written again.
//!
//! A dry run does the same on a view of the board that has its own changes (`plan.rs`).

mod definitions;
mod plan;
mod report;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use self::plan::{Plan, PlannedTx};
pub use self::report::{
    ComparedEntry, DefinitionKind, Difference, ImportOutcome, ImportReport, ImportedDefinition,
    ImportedEntry, SkipReason,
};
use super::rules::check_not_reserved;
use super::wording::named;
use super::{
    Actor, Entry, EntryEditor, EventWording, FILES, LOCK_PREFIX, LOCKS, Scope, Write, check_known_scope,
};
use crate::clock::Timestamp;
use crate::error::{Code, Error, Result};
use crate::import::{Definitions, ImportFile, escaped_key};
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::scope::{AccessOperation, prefetch_all_policies};
use crate::store::{OnBusy, Prefetch, Tx};
use crate::swarm::{FileEntry, IMPORTED, time_of_entry};
use crate::text::escape_json_for_terminal;

/// How many entries one commit writes.
const BATCH: usize = 500;

/// How many entries of a report have both the entry of the board and that of the file.
const MAX_DIFFERENCES: usize = 10_000;

/// How many bytes of values one commit writes, unless one value is larger.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// What an import does with the entry of the board: its report says whether that is the same.
const COMPARED_AND_WRITTEN: [AccessOperation; 2] = [AccessOperation::Read, AccessOperation::Write];

/// Which entry stays if the board has another one than the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// That of the board.
    Ours,
    /// That of the file.
    Theirs,
    /// The one that was written last. If both have the same time, the file's: a person has edited it there. If the file has no
    /// time, or one in the future, the board's.
    #[default]
    Newest,
}

/// How to import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Import {
    /// Which entry stays if there are two.
    pub keep: Keep,
    /// Percent-escapes keys that the board refuses.
    pub escape_keys: bool,
    /// Only reports what would happen.
    pub dry_run: bool,
}

/// What became of the entries of one commit.
struct Outcomes {
    each: Vec<Decided>,
    /// The time of the commit.
    now: Timestamp,
}

/// What becomes of one entry.
struct Decided {
    outcome: ImportOutcome,
    /// The key that is evicted for it.
    evicted: Option<String>,
    difference: Option<Difference>,
}

impl Pending for Outcomes {
    fn resolve(&mut self, _: Revision) {}
}

/// An entry of a file that may be written.
struct Item {
    /// Its position in the report.
    at: usize,
    scope: String,
    /// Without tags, metadata and time to live, which depend on the entry of the board.
    write: Write,
    author: Option<String>,
    timestamp: Option<Timestamp>,
    ttl: Option<Duration>,
    tags: Option<Vec<String>>,
    metadata: Option<Metadata>,
    /// The version and other members, for the metadata.
    origin: Map<String, Json>,
}

impl Item {
    /// Its time. One in the future would win against every later write, so it counts as not known.
    fn time(&self, now: Timestamp) -> Option<Timestamp> {
        self.timestamp.filter(|time| *time <= now)
    }

    /// When it expires, if it does and its time is known.
    fn expires_at(&self, now: Timestamp) -> Option<Timestamp> {
        Some(self.time(now)?.plus(self.ttl?))
    }
}

impl Scope<'_> {
    /// Writes the entries of a file, those without a scope into this one. What becomes of each is reported: one that
    /// cannot be written does not stop the others.
    ///
    /// The author of an entry is that of the file. Its time is kept in the metadata (`imported.timestamp`), and its time to
    /// live starts there. A repeated import changes nothing.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Import, ImportOutcome}, import};
    /// # let board = Board::memory();
    /// let file = import::read(r#"{"task:1": {"key": "task:1", "value": 42, "source_agent": "ivy"}}"#)?;
    /// let import = |board: &Board| board.scope("team-1").import(&file.content.entries, &Import::default());
    /// assert_eq!(import(&board)?.entries[0].outcome, ImportOutcome::Created);
    /// assert_eq!(import(&board)?.entries[0].outcome, ImportOutcome::Unchanged);
    /// assert_eq!(board.scope("team-1").entry("task:1")?.unwrap().updated_by, "ivy");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn import(&self, entries: &[FileEntry], import: &Import) -> Result<ImportReport> {
        self.import_all(&Definitions::default(), entries, *import)
    }

    /// Writes the policies and the protocols of a file, and then its entries as [`Scope::import`] does. Policies and
    /// protocols of the board are never changed: if the file has others, they are refused with the entries of their scope.
    /// With [`Keep::Ours`] those of the board stay, and the entries are imported.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Import, Value, Write}, import, scope::{CreateScope, Policies}};
    /// # let (board, other) = (Board::memory(), Board::memory());
    /// board.scopes().create(&CreateScope::new("cache", Policies { max_entries: Some(9), ..Policies::default() }))?;
    /// board.scope("cache").write(&Write::new("a", Value::of(&1)?))?;
    /// let export = serde_json::to_string(&board.export()?).unwrap();
    /// other.scope("default").import_file(&import::read(&export)?, &Import::default())?;
    /// assert_eq!(other.scopes().show("cache")?.policies.max_entries, Some(9));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn import_file(&self, file: &ImportFile, import: &Import) -> Result<ImportReport> {
        self.import_all(&file.definitions, &file.content.entries, *import)
    }

    fn import_all(
        &self,
        definitions: &Definitions,
        entries: &[FileEntry],
        import: Import,
    ) -> Result<ImportReport> {
        check_known_scope(&self.name)?;
        check_not_reserved(&self.name)?;
        let actor = self.board.checked_actor(&self.actor)?;
        let (authors, blocked, plan) = (BTreeMap::new(), BTreeMap::new(), Plan::default());
        let mut importer = Importer { scope: self, actor, import, authors, blocked, plan, differences: 0 };
        let mut report =
            ImportReport { definitions: importer.define(definitions)?, ..ImportReport::default() };
        let mut items: Vec<Item> = Vec::with_capacity(entries.len());
        // Where in `items` each key is.
        let mut positions: BTreeMap<(String, String), usize> = BTreeMap::new();
        for entry in entries {
            let at = report.entries.len();
            let (reported, item) = importer.prepare(entry, at)?;
            report.entries.push(reported);
            let Some(item) = item else { continue };
            let key = (item.scope.clone(), item.write.key.clone());
            if let Some(&position) = positions.get(&key) {
                let older = if item.timestamp >= items[position].timestamp {
                    std::mem::replace(&mut items[position], item).at
                } else {
                    item.at
                };
                report.entries[older].outcome = ImportOutcome::Skipped(SkipReason::Repeated);
            } else {
                positions.insert(key, items.len());
                items.push(item);
            }
        }
        for batch in batches(&items) {
            importer.run(batch, &mut report)?;
        }
        Ok(report)
    }
}

/// Parts of a list that one commit can write.
fn batches(items: &[Item]) -> impl Iterator<Item = &[Item]> {
    let mut rest = items;
    std::iter::from_fn(move || {
        let (mut count, mut bytes) = (0, 0);
        for item in rest.iter().take(BATCH) {
            bytes += item.write.value.as_str().len();
            if count > 0 && bytes > BATCH_BYTES {
                break;
            }
            count += 1;
        }
        let (batch, behind) = rest.split_at(count);
        rest = behind;
        (!batch.is_empty()).then_some(batch)
    })
}

struct Importer<'a> {
    scope: &'a Scope<'a>,
    actor: Actor,
    import: Import,
    /// The authors of the file, and why the board refuses one.
    authors: BTreeMap<String, Option<(Code, String)>>,
    /// The scopes that are not imported, and what becomes of their entries.
    blocked: BTreeMap<String, ImportOutcome>,
    /// What a dry run would have changed so far.
    plan: Plan,
    /// How many differences the report has.
    differences: usize,
}

impl Importer<'_> {
    /// Checks what needs no board.
    fn prepare(&mut self, entry: &FileEntry, at: usize) -> Result<(ImportedEntry, Option<Item>)> {
        let scope = entry.scope.clone().unwrap_or_else(|| self.scope.name.clone());
        let key = if self.import.escape_keys { escaped_key(&scope, &entry.key) } else { entry.key.clone() };
        let key_in_file = (key != entry.key).then(|| entry.key.clone());
        let (line, outcome) = (entry.line, ImportOutcome::Created);
        let mut imported = ImportedEntry {
            scope,
            key,
            key_in_file,
            line,
            outcome,
            evicted: None,
            difference: None,
            future_time: None,
        };
        let item = match self.item(entry, &imported, at) {
            Ok(item) => Some(item),
            Err(outcome) => {
                imported.outcome = outcome?;
                None
            }
        };
        Ok((imported, item))
    }

    fn item(
        &mut self,
        entry: &FileEntry,
        imported: &ImportedEntry,
        at: usize,
    ) -> Result<Item, Result<ImportOutcome>> {
        let skip = |reason| Err(Ok(ImportOutcome::Skipped(reason)));
        let ImportedEntry { scope, key, .. } = imported;
        if let Some(name) = entry.key.strip_prefix(LOCK_PREFIX) {
            return skip(SkipReason::Lock(name.to_owned()));
        }
        if entry.is_leased || [LOCKS, FILES].contains(&&**scope) {
            return skip(SkipReason::Leased);
        }
        if let Some(outcome) = self.blocked.get(scope) {
            return Err(Ok(outcome.clone()));
        }
        self.check_author(entry.author.as_deref())?;
        let checked = check_known_scope(scope).and_then(|()| check_not_reserved(scope)).and_then(|()| {
            let write = Write {
                tags: entry.tags.clone().unwrap_or_default(),
                metadata: entry.metadata.clone(),
                ..Write::new(key, entry.value.clone())
            };
            write.checked(scope, self.scope.board.settings())
        });
        let write = checked.map_err(refused)?;
        let mut origin = Map::new();
        origin.extend(entry.version.map(|version| ("version".to_owned(), json!(version))));
        if let Some(others) = &entry.others {
            let rules = &self.scope.board.settings().text;
            rules.check_json([others.as_str()]).map_err(refused)?;
            origin.insert("members".to_owned(), Json::Object(others.to_map()));
        }
        Ok(Item {
            at,
            scope: scope.clone(),
            tags: entry.tags.as_ref().map(|_| write.tags.clone()),
            write: Write { metadata: None, tags: Vec::new(), ..write },
            author: entry.author.clone().filter(|author| !author.is_empty()),
            timestamp: entry.timestamp,
            ttl: entry.ttl,
            metadata: entry.metadata.clone(),
            origin,
        })
    }

    fn check_author(&mut self, author: Option<&str>) -> Result<(), Result<ImportOutcome>> {
        let Some(author) = author.filter(|author| !author.is_empty()) else { return Ok(()) };
        if !self.authors.contains_key(author) {
            let problem = match self.scope.board.checked_actor(&Actor::author(author)) {
                Ok(_) => None,
                Err(Error::Refusal(refusal)) => Some((refusal.code, refusal.message)),
                Err(error) => return Err(Err(error)),
            };
            self.authors.insert(author.to_owned(), problem);
        }
        match &self.authors[author] {
            None => Ok(()),
            Some((code, reason)) => Err(Ok(ImportOutcome::Refused { code: *code, reason: reason.clone() })),
        }
    }

    /// Imports a batch. If the board refuses one of its entries, the others are imported without it.
    fn run(&mut self, items: &[Item], report: &mut ImportReport) -> Result<()> {
        let outcomes = if self.import.dry_run { self.plan(items) } else { self.commit(items) };
        match (outcomes, items) {
            (Ok(Outcomes { each, now }), _) => {
                for (item, decided) in items.iter().zip(each) {
                    let entry = &mut report.entries[item.at];
                    (entry.outcome, entry.evicted) = (decided.outcome, decided.evicted);
                    entry.difference = decided.difference.filter(|_| self.differences < MAX_DIFFERENCES);
                    self.differences += usize::from(entry.difference.is_some());
                    entry.future_time = item.timestamp.filter(|time| *time > now);
                }
                Ok(())
            }
            (Err(error), [item]) if is_about_entry(&error) => {
                let (code, reason) = (error.code(), error.to_string());
                report.entries[item.at].outcome = ImportOutcome::Refused { code, reason };
                Ok(())
            }
            (Err(error), [_, _, ..]) if is_about_entry(&error) => {
                let (first, second) = items.split_at(items.len() / 2);
                self.run(first, report)?;
                self.run(second, report)
            }
            (Err(error), _) => Err(error),
        }
    }

    fn plan(&mut self, items: &[Item]) -> Result<Outcomes> {
        let mut prefetch = self.prefetch(items);
        prefetch.push(Prefetch::Revision);
        let (changes, outcomes, revision) = self.scope.board.read(&prefetch, |tx| {
            let planned = PlannedTx::new(tx, &self.plan);
            let (editor, outcomes) = self.write(&planned, items)?;
            Ok((editor.finish()?, outcomes, tx.revision()?))
        })?;
        self.plan.add(changes, revision);
        Ok(outcomes)
    }

    fn commit(&self, items: &[Item]) -> Result<Outcomes> {
        self.scope.board.commit_with_on_busy(OnBusy::Wait, "import", &self.prefetch(items), |tx| {
            let (editor, outcomes) = self.write(tx, items)?;
            Ok((editor.finish()?, outcomes))
        })
    }

    fn prefetch<'i>(&'i self, items: &'i [Item]) -> Vec<Prefetch<'i>> {
        let entries = items.iter().map(|item| Prefetch::Entry(&item.scope, &item.write.key));
        let policies = prefetch_all_policies(items.iter().map(|item| item.scope.as_str()));
        entries.chain(self.actor.prefetch()).chain(policies).collect()
    }

    /// Writes the entries of one commit.
    fn write<'t>(&'t self, tx: &'t dyn Tx, items: &[Item]) -> Result<(EntryEditor<'t>, Outcomes)> {
        let session = self.actor.session.as_deref();
        let mut editor = EntryEditor::new(self.scope.board, tx, &self.actor)?;
        let own_author = editor.author.clone();
        let mut outcomes = Vec::with_capacity(items.len());
        for item in items {
            for operation in COMPARED_AND_WRITTEN {
                editor.check_access(operation, &item.scope, &item.write.key)?;
            }
            let before = editor.entry(&item.scope, &item.write.key)?;
            let outcome = decide(before.as_ref(), item, self.import.keep, session, tx.now());
            let mut evicted = None;
            if matches!(outcome, ImportOutcome::Created | ImportOutcome::Updated) {
                editor.author.clone_from(item.author.as_ref().unwrap_or(&own_author));
                let write = complete(item, before.as_ref(), tx.now())?;
                let what = named(&item.scope, &write.key);
                let words = format!("Imported {what}, written by agent \"{}\"", editor.author);
                evicted = editor.write(&item.scope, &write, EventWording::InWords(words))?.evicted;
            }
            let differs = matches!(outcome, ImportOutcome::Updated | ImportOutcome::Kept);
            let difference =
                before.filter(|_| differs).map(|before| difference(&before, item, &own_author, tx.now()));
            outcomes.push(Decided { outcome, evicted, difference });
        }
        Ok((editor, Outcomes { each: outcomes, now: tx.now() }))
    }
}

/// An entry that is refused, unless the error is a fault.
fn refused(error: Error) -> Result<ImportOutcome> {
    match error {
        Error::Refusal(refusal) => Ok(ImportOutcome::Refused { code: refusal.code, reason: refusal.message }),
        fault @ Error::Fault(_) => Err(fault),
    }
}

/// Whether a refusal is about one of the entries, and not about the caller or the board.
fn is_about_entry(error: &Error) -> bool {
    matches!(error, Error::Refusal(_))
        && matches!(
            error.code(),
            Code::InvalidValue | Code::Held | Code::ScopeFull | Code::ScopeEnded | Code::NotAllowed
        )
}

/// What becomes of an entry of a file, if the board has this one.
fn decide(
    before: Option<&Entry>,
    item: &Item,
    keep: Keep,
    session: Option<&str>,
    now: Timestamp,
) -> ImportOutcome {
    if let Some(expired) = item.expires_at(now).filter(|expires| *expires <= now) {
        return ImportOutcome::Skipped(SkipReason::Expired(expired));
    }
    let Some(before) = before else { return ImportOutcome::Created };
    if is_same(before, item, now) {
        return ImportOutcome::Unchanged;
    }
    let updates = match keep {
        Keep::Ours => false,
        Keep::Theirs => true,
        Keep::Newest => item.time(now).is_some_and(|time| time >= time_of_entry(before)),
    };
    if !updates {
        return ImportOutcome::Kept;
    }
    match &before.session_id {
        Some(holder) if session != Some(holder) => ImportOutcome::Skipped(SkipReason::Held),
        _ => ImportOutcome::Updated,
    }
}

type IsSame = fn(&Entry, &Item, Timestamp) -> bool;

/// What is compared, by its name in JSON output, and whether both have the same. A file need not have everything.
const COMPARED: [(&str, IsSame); 5] = [
    ("expires_at", |before, item, now| match (item.time(now), item.ttl) {
        (None, Some(_)) => before.expires_at.is_some(),
        _ => before.expires_at == item.expires_at(now),
    }),
    ("author", |before, item, _| item.author.as_ref().is_none_or(|author| *author == before.updated_by)),
    ("tags", |before, item, _| item.tags.as_ref().is_none_or(|tags| *tags == before.tags)),
    ("value", has_same_value),
    ("metadata", |before, item, _| {
        item.tags.is_none()
            || without_origin(before.metadata.as_ref()) == without_origin(item.metadata.as_ref())
    }),
];

/// Whether the board has the entry.
fn is_same(before: &Entry, item: &Item, now: Timestamp) -> bool {
    COMPARED.iter().all(|(_, is_same)| is_same(before, item, now))
}

fn has_same_value(before: &Entry, item: &Item, _: Timestamp) -> bool {
    before.value.says_the_same_as(&item.write.value) || {
        // A file may have hidden characters escaped.
        let [ours, theirs] =
            [&before.value, &item.write.value].map(|value| escape_json_for_terminal(value.as_str()));
        crate::json::without_white_space(&ours).eq(crate::json::without_white_space(&theirs))
    }
}

/// The entry of the board beside that of the file, whose author is the caller if it names none.
fn difference(before: &Entry, item: &Item, caller: &str, now: Timestamp) -> Difference {
    let differing = COMPARED.iter().filter(|(_, is_same)| !is_same(before, item, now));
    let author = item.author.as_deref().unwrap_or(caller);
    Difference {
        fields: differing.map(|(name, _)| *name).collect(),
        ours: ComparedEntry::new(&before.value, &before.updated_by, Some(time_of_entry(before))),
        theirs: ComparedEntry::new(&item.write.value, author, item.timestamp),
    }
}

fn without_origin(metadata: Option<&Metadata>) -> Map<String, Json> {
    let mut members = metadata.map(Metadata::to_map).unwrap_or_default();
    members.remove(IMPORTED);
    members
}

/// The write of an entry. Tags and metadata that the file does not have stay.
fn complete(item: &Item, before: Option<&Entry>, now: Timestamp) -> Result<Write> {
    let (tags, metadata) = match (&item.tags, before) {
        (Some(tags), _) => (tags.clone(), item.metadata.as_ref()),
        (None, Some(before)) => (before.tags.clone(), before.metadata.as_ref()),
        (None, None) => (Vec::new(), None),
    };
    let mut origin = item.origin.clone();
    origin.insert("at".to_owned(), json!(now));
    origin.extend(item.time(now).map(|time| ("timestamp".to_owned(), json!(time))));
    let mut imported = Map::new();
    imported.insert(IMPORTED.to_owned(), Json::Object(origin));
    let imported = Metadata::from(imported);
    let metadata = match metadata {
        Some(metadata) => metadata.merged_with(&imported)?,
        None => imported,
    };
    let ttl = match (item.expires_at(now), item.ttl) {
        (Some(expires), _) => Some(expires.since(now)),
        (None, ttl) => ttl,
    };
    Ok(Write { tags, metadata: Some(metadata), ttl, ..item.write.clone() })
}

#[cfg(test)]
mod tests;
