//! [`Index`]: the open index of a board, and how documents get into it and leave it.
//!
//! The index has words, and no text. A document is removed with every trace of its words: its list of terms says where they
//! are. Documents are in parts, one for each scope, one for work items and one for events: a search reads only the
//! parts that its caller may read.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

use super::document::{Document, Kind, Name};
use super::postings::{Posting, decode, encode, push};
use super::words::each_word;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Fault, Result};
use crate::revision::Revision;
use crate::store::sqlite::{PrivateFile, SqliteOptions, TableFile};

/// The file of an index: "blse". A later format has another name, so that programs of both versions can be used.
const FILE: TableFile = TableFile { application_id: 0x626c_7365, steps: &[include_str!("schema.sql")] };

/// The most bytes of a block of postings. SQLite stores a longer row in pages of its own.
const BLOCK: usize = 900;

/// How many documents have their sizes in one row.
pub(super) const SIZES: u32 = 600;

/// How many bytes the size of a document has: its number of words and its time in seconds.
pub(super) const SIZE: usize = 6;

/// The highest count of a word in a document.
const MOST_COUNT: u32 = 255;

/// The most words that a document counts with.
const MOST_WORDS: u32 = 65_535;

/// How long a search waits for another program that writes the index.
const PATIENCE: Duration = Duration::from_millis(500);

/// How terms begin that are no words, but tags and authors of documents.
pub(super) const TAG: &str = "#";
pub(super) const AUTHOR: &str = "@";

/// Where the index of a board is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexLocation {
    /// In this file, which is created if it does not exist.
    File(PathBuf),
    /// In memory, for one search: every search reads the complete board.
    Memory,
}

/// An open index.
pub(super) struct Index {
    storage: Storage,
}

enum Storage {
    File(Box<PrivateFile>),
    Memory(Connection),
}

/// Why a step failed: the index, or the board.
#[derive(Debug)]
pub(super) enum Failure {
    Sql(rusqlite::Error),
    Board(Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        Failure::Sql(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Board(error)
    }
}

impl Index {
    /// Opens the index. One that is damaged, or a file of another kind in its place, is replaced by an empty one.
    pub(super) fn open(location: &IndexLocation) -> Result<Index> {
        let IndexLocation::File(path) = location else { return Index::in_memory() };
        let storage = match Index::open_file(path) {
            Err(error) if is_damaged(&error) => {
                remove(path)?;
                Index::open_file(path)?
            }
            opened => opened?,
        };
        Ok(Index { storage })
    }

    pub(super) fn in_memory() -> Result<Index> {
        let open = || {
            let connection = Connection::open_in_memory()?;
            FILE.fill(&connection, 0)?;
            connection.set_prepared_statement_cache_capacity(64);
            Ok(connection)
        };
        let connection = open().map_err(in_memory)?;
        Ok(Index { storage: Storage::Memory(connection) })
    }

    fn open_file(path: &Path) -> Result<Storage> {
        let options = SqliteOptions { busy_timeout: PATIENCE, ..SqliteOptions::default() };
        let file = PrivateFile::open(path, &FILE, &options)?;
        file.read(|connection| {
            connection.set_prepared_statement_cache_capacity(64);
            connection.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))
        })?;
        Ok(Storage::File(Box::new(file)))
    }

    /// Reads one state.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T> {
        self.run(read, |file, run| file.read(run))
    }

    /// Reads and writes in one transaction. An error changes nothing.
    pub(super) fn write<T>(&self, write: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T> {
        self.run(write, |file, run| file.write(run))
    }

    fn run<T>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, Failure>,
        on_file: impl FnOnce(&PrivateFile, &mut dyn FnMut(&Connection) -> rusqlite::Result<T>) -> Result<T>,
    ) -> Result<T> {
        let (mut f, mut failed) = (Some(f), None);
        let mut run = |connection: &Connection| {
            let outcome = f.take().map(|f| f(connection));
            match outcome {
                Some(Ok(outcome)) => Ok(outcome),
                Some(Err(Failure::Sql(error))) => Err(error),
                Some(Err(Failure::Board(error))) => {
                    failed = Some(error);
                    Err(rusqlite::Error::InvalidQuery)
                }
                None => Err(rusqlite::Error::InvalidQuery),
            }
        };
        let outcome = match &self.storage {
            Storage::File(file) => on_file(file, &mut run),
            Storage::Memory(connection) => (|| {
                let transaction = connection.unchecked_transaction()?;
                let outcome = run(&transaction)?;
                transaction.commit()?;
                Ok(outcome)
            })()
            .map_err(in_memory),
        };
        failed.map_or(outcome, Err)
    }

    /// Removes replaced pages from the log of the file, so that nothing of what was purged is left there.
    pub(super) fn scrub(&self) {
        if let Storage::File(file) = &self.storage {
            // A program that reads the index delays it to the next time.
            file.checkpoint();
        }
    }
}

fn in_memory(error: rusqlite::Error) -> Error {
    Fault::new(Code::Internal, "the index in memory cannot be used").because(error).into()
}

/// Whether an index cannot be used as it is, and is made again.
pub(super) fn is_damaged(error: &Error) -> bool {
    matches!(error.code(), Code::Corrupt | Code::ForeignDatabase | Code::NewerSchema)
}

/// Removes the files of an index.
pub(super) fn remove(path: &Path) -> Result<()> {
    for ending in ["-wal", "-shm", "-journal", ""] {
        let mut file = path.as_os_str().to_owned();
        file.push(ending);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("the search index {} cannot be removed", path.display());
                return Err(Fault::new(Code::Io, message).because(error).into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// A value of the state.
pub(super) fn state(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.prepare_cached("SELECT value FROM state WHERE name = ?1")?;
    statement.query_row([name], |row| row.get(0)).optional()
}

/// Stores a value of the state.
pub(super) fn set_state(connection: &Connection, name: &str, value: &str) -> rusqlite::Result<()> {
    const SET: &str = "INSERT OR REPLACE INTO state (name, value) VALUES (?1, ?2)";
    connection.prepare_cached(SET)?.execute((name, value)).map(drop)
}

/// Removes everything.
pub(super) fn clear(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "DELETE FROM state; DELETE FROM parts; DELETE FROM documents; DELETE FROM sizes; DELETE FROM terms; \
         DELETE FROM postings",
    )
}

/// A part of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) id: u32,
    pub(super) kind: Kind,
    pub(super) scope: String,
    pub(super) documents: i64,
    pub(super) words: i64,
}

/// All parts.
pub(super) fn parts(connection: &Connection) -> rusqlite::Result<Vec<Part>> {
    let mut statement =
        connection.prepare_cached("SELECT id, kind, scope, documents, words FROM parts ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut parts = Vec::new();
    while let Some(row) = rows.next()? {
        // A later version may know more kinds.
        if let Some(kind) = Kind::of_number(row.get(1)?) {
            let (id, scope, documents, words) = (row.get(0)?, row.get(2)?, row.get(3)?, row.get(4)?);
            parts.push(Part { id, kind, scope, documents, words });
        }
    }
    Ok(parts)
}

/// The stored row of a document.
pub(super) struct StoredDocument {
    pub(super) id: u32,
    pub(super) part: u32,
    pub(super) revision: Revision,
    terms: Vec<Posting>,
}

/// Writes documents into the index, in one transaction. What it knows of terms and parts stays valid only if no other
/// program has written the index since, so it lives as long as one transaction.
pub(super) struct Writer<'c> {
    connection: &'c Connection,
    terms: HashMap<Box<str>, u32>,
    parts: BTreeMap<u32, Part>,
    sizes: BTreeMap<u32, Vec<u8>>,
    changes: HashMap<(u32, u32), Vec<(u32, u32)>>,
    next_term: u32,
    next_document: u32,
    /// The first document that did not exist before this transaction.
    first_new: u32,
}

impl<'c> Writer<'c> {
    pub(super) fn new(connection: &'c Connection) -> Result<Writer<'c>, Failure> {
        let next = |table: &str| -> rusqlite::Result<u32> {
            connection
                .query_row(&format!("SELECT coalesce(max(id), 0) + 1 FROM {table}"), [], |row| row.get(0))
        };
        let (next_term, next_document) = (next("terms")?, next("documents")?);
        Ok(Writer {
            connection,
            terms: HashMap::new(),
            parts: parts(connection)?.into_iter().map(|part| (part.id, part)).collect(),
            sizes: BTreeMap::new(),
            changes: HashMap::new(),
            next_term,
            next_document,
            first_new: next_document,
        })
    }

    /// Adds a document, or replaces it by its current state.
    pub(super) fn put(&mut self, document: &Document) -> Result<(), Failure> {
        let stored = find(self.connection, &document.name)?;
        if stored.as_ref().is_some_and(|stored| stored.revision == document.revision) {
            return Ok(());
        }
        let (terms, words) = self.terms_of(document)?;
        let (id, part, before) = match stored {
            Some(stored) => (stored.id, stored.part, Some(stored.terms)),
            None => {
                let part = self.part_of(&document.name)?;
                let id = self.next_document;
                self.next_document += 1;
                (id, part, None)
            }
        };
        let words_before = before.is_some().then(|| self.size(id)).transpose()?.map(|(words, _)| words);
        self.count(part, words_before, Some(words));
        self.change(id, part, before.as_deref().unwrap_or_default(), &terms);
        self.set_size(id, words, document.time)?;
        let list = encode(0, &terms);
        let revision = document.revision.get();
        if before.is_some() {
            const UPDATE: &str = "UPDATE documents SET revision = ?2, terms = ?3 WHERE id = ?1";
            self.connection.prepare_cached(UPDATE)?.execute((id, revision, list))?;
        } else {
            const INSERT: &str = "INSERT INTO documents (id, part, hash, name, revision, terms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let Name { id: name, .. } = &document.name;
            self.connection.prepare_cached(INSERT)?.execute((
                id,
                part,
                document.name.hash(),
                name,
                revision,
                list,
            ))?;
        }
        Ok(())
    }

    /// Removes a document, if the index has it.
    pub(super) fn remove(&mut self, name: &Name) -> Result<(), Failure> {
        let Some(stored) = find(self.connection, name)? else { return Ok(()) };
        let (words, _) = self.size(stored.id)?;
        self.count(stored.part, Some(words), None);
        self.change(stored.id, stored.part, &stored.terms, &[]);
        self.set_size(stored.id, 0, Timestamp::EPOCH)?;
        self.connection.prepare_cached("DELETE FROM documents WHERE id = ?1")?.execute([stored.id])?;
        Ok(())
    }

    /// The terms of a document with their counts, and how many words it has.
    fn terms_of(&mut self, document: &Document) -> Result<(Vec<Posting>, u32), Failure> {
        let (mut counts, mut words) = (HashMap::<u32, u32>::new(), 0_u32);
        let mut failed = None;
        for (weight, text) in &document.texts {
            each_word(text, &mut |word| {
                match self.term(word.term) {
                    Ok(term) => *counts.entry(term).or_insert(0) += weight,
                    Err(error) => failed = Some(error),
                }
                if !word.is_whole_identifier {
                    words = words.saturating_add(*weight);
                }
            });
        }
        for tag in &document.tags {
            counts.insert(self.term(&format!("{TAG}{tag}"))?, 1);
        }
        if !document.author.is_empty() {
            counts.insert(self.term(&format!("{AUTHOR}{}", document.author))?, 1);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let mut terms: Vec<Posting> =
            counts.into_iter().map(|(term, count)| (term, count.min(MOST_COUNT))).collect();
        terms.sort_unstable();
        Ok((terms, words.min(MOST_WORDS)))
    }

    /// The id of a term, which is added if it is new.
    fn term(&mut self, term: &str) -> Result<u32, Failure> {
        if let Some(id) = self.terms.get(term) {
            return Ok(*id);
        }
        let known = term_id(self.connection, term)?;
        let id = match known {
            Some(id) => id,
            None => {
                let id = self.next_term;
                self.connection
                    .prepare_cached("INSERT INTO terms (id, term) VALUES (?1, ?2)")?
                    .execute((id, term))?;
                self.next_term += 1;
                id
            }
        };
        self.terms.insert(term.into(), id);
        Ok(id)
    }

    fn part_of(&mut self, name: &Name) -> Result<u32, Failure> {
        let known = self.parts.values().find(|part| part.kind == name.kind && part.scope == name.scope);
        if let Some(part) = known {
            return Ok(part.id);
        }
        let id = self.parts.last_key_value().map_or(1, |(id, _)| id + 1);
        let part = Part { id, kind: name.kind, scope: name.scope.clone(), documents: 0, words: 0 };
        self.parts.insert(id, part);
        Ok(id)
    }

    /// Counts a document of a part by its words, before and after a change.
    fn count(&mut self, part: u32, before: Option<u32>, after: Option<u32>) {
        let Some(part) = self.parts.get_mut(&part) else { return };
        part.documents += i64::from(after.is_some()) - i64::from(before.is_some());
        part.words += i64::from(after.unwrap_or(0)) - i64::from(before.unwrap_or(0));
    }

    /// Notes the differences between two lists of terms of a document. A count of 0 removes it.
    fn change(&mut self, document: u32, part: u32, before: &[Posting], after: &[Posting]) {
        let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
        loop {
            let (term, count) = match (before.peek(), after.peek()) {
                (None, None) => break,
                (Some(old), Some(new)) if old == new => {
                    before.next();
                    after.next();
                    continue;
                }
                (Some(&&(old, _)), new) if new.is_none_or(|new| old < new.0) => {
                    before.next();
                    (old, 0)
                }
                (old, Some(&&(new, count))) => {
                    if old.is_some_and(|old| old.0 == new) {
                        before.next();
                    }
                    after.next();
                    (new, count)
                }
                (Some(_), None) => break,
            };
            self.changes.entry((term, part)).or_default().push((document, count));
        }
    }

    fn sizes_of(&mut self, document: u32) -> Result<&mut Vec<u8>, Failure> {
        let block = document / SIZES;
        if !self.sizes.contains_key(&block) {
            let mut statement = self.connection.prepare_cached("SELECT data FROM sizes WHERE block = ?1")?;
            let mut data: Vec<u8> =
                statement.query_row([block], |row| row.get(0)).optional()?.unwrap_or_default();
            data.resize(SIZES as usize * SIZE, 0);
            self.sizes.insert(block, data);
        }
        Ok(self.sizes.entry(block).or_default())
    }

    fn size(&mut self, document: u32) -> Result<(u32, u32), Failure> {
        let place = (document % SIZES) as usize;
        Ok(size_at(self.sizes_of(document)?, place))
    }

    fn set_size(&mut self, document: u32, words: u32, time: Timestamp) -> Result<(), Failure> {
        let place = (document % SIZES) as usize * SIZE;
        let sizes = self.sizes_of(document)?;
        sizes[place..place + 2].copy_from_slice(&u16::try_from(words).unwrap_or(u16::MAX).to_le_bytes());
        sizes[place + 2..place + SIZE].copy_from_slice(&seconds(time).to_le_bytes());
        Ok(())
    }

    /// Writes what was noted.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let mut changes: Vec<_> = std::mem::take(&mut self.changes).into_iter().collect();
        changes.sort_unstable_by_key(|(term, _)| *term);
        let mut emptied = Vec::new();
        for ((term, part), mut documents) in changes {
            documents.sort_unstable_by_key(|(document, _)| *document);
            if self.apply(term, part, &documents)? {
                emptied.push(term);
            }
        }
        emptied.dedup();
        for term in emptied {
            const DELETE: &str =
                "DELETE FROM terms WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM postings WHERE term = ?1)";
            self.connection.prepare_cached(DELETE)?.execute([term])?;
        }
        for (block, data) in &self.sizes {
            if data.iter().all(|byte| *byte == 0) {
                self.connection.prepare_cached("DELETE FROM sizes WHERE block = ?1")?.execute([block])?;
            } else {
                const PUT: &str = "INSERT OR REPLACE INTO sizes (block, data) VALUES (?1, ?2)";
                self.connection.prepare_cached(PUT)?.execute((block, data))?;
            }
        }
        for part in self.parts.values() {
            if part.documents == 0 {
                self.connection.prepare_cached("DELETE FROM parts WHERE id = ?1")?.execute([part.id])?;
            } else {
                const PUT: &str = "INSERT OR REPLACE INTO parts (id, kind, scope, documents, words) VALUES (?1, ?2, ?3, ?4, ?5)";
                let Part { id, kind, scope, documents, words } = part;
                self.connection.prepare_cached(PUT)?.execute((id, kind.number(), scope, documents, words))?;
            }
        }
        Ok(())
    }

    /// Changes the documents of a term in a part. Returns whether a block became empty.
    fn apply(&self, term: u32, part: u32, documents: &[(u32, u32)]) -> Result<bool, Failure> {
        let old = documents.partition_point(|(document, _)| *document < self.first_new);
        let (mut changed, added) = documents.split_at(old);
        let mut has_emptied = false;
        while let Some(&(document, _)) = changed.first() {
            let (block, next) = self.block_for(term, part, document)?;
            let until = next.map_or(changed.len(), |next| changed.partition_point(|(one, _)| *one < next));
            let (now, later) = changed.split_at(until.max(1));
            changed = later;
            let mut postings: BTreeMap<u32, u32> = match &block {
                Some(block) => decode(block.first, &block.data).collect(),
                None => BTreeMap::new(),
            };
            for &(document, count) in now {
                if count == 0 {
                    postings.remove(&document);
                } else {
                    postings.insert(document, count);
                }
            }
            if let Some(block) = &block {
                self.delete_block(term, part, block.first)?;
            }
            has_emptied |= postings.is_empty();
            let postings: Vec<Posting> = postings.into_iter().collect();
            // A block that has become too long is split in halves.
            let halves = if encode(0, &postings).len() > BLOCK { 2 } else { 1 };
            for postings in postings.chunks(postings.len().div_ceil(halves).max(1)) {
                let (Some(&(first, _)), Some(&(last, _))) = (postings.first(), postings.last()) else {
                    continue;
                };
                self.put_block(term, part, &Block { first, last, data: encode(first, postings) })?;
            }
        }
        self.append(term, part, added)?;
        Ok(has_emptied)
    }

    /// Adds new documents after all others.
    fn append(&self, term: u32, part: u32, added: &[(u32, u32)]) -> Result<(), Failure> {
        let Some(&(first, _)) = added.first() else { return Ok(()) };
        const LAST: &str = "SELECT first, last, data FROM postings WHERE term = ?1 AND part = ?2 ORDER BY first DESC LIMIT 1";
        let last = self.connection.prepare_cached(LAST)?.query_row((term, part), Block::read).optional()?;
        let empty = |first| Block { first, last: first, data: Vec::new() };
        let mut block = last.filter(|last| last.data.len() < BLOCK).unwrap_or_else(|| empty(first));
        for &(document, count) in added {
            // It was added and removed in the same transaction.
            if count == 0 {
                continue;
            }
            if block.data.len() >= BLOCK {
                self.put_block(term, part, &block)?;
                block = empty(document);
            }
            if block.data.is_empty() {
                (block.first, block.last) = (document, document);
            }
            push(&mut block.data, document - block.last, count);
            block.last = document;
        }
        if block.data.is_empty() { Ok(()) } else { self.put_block(term, part, &block) }
    }

    /// The block that has a document or would have it, and where the next one begins.
    fn block_for(
        &self,
        term: u32,
        part: u32,
        document: u32,
    ) -> Result<(Option<Block>, Option<u32>), Failure> {
        const BEFORE: &str = "SELECT first, last, data FROM postings WHERE term = ?1 AND part = ?2 AND first <= ?3 \
                              ORDER BY first DESC LIMIT 1";
        const NEXT: &str =
            "SELECT first FROM postings WHERE term = ?1 AND part = ?2 AND first > ?3 ORDER BY first LIMIT 1";
        let before = self
            .connection
            .prepare_cached(BEFORE)?
            .query_row((term, part, document), Block::read)
            .optional()?;
        let next = self
            .connection
            .prepare_cached(NEXT)?
            .query_row((term, part, document), |row| row.get(0))
            .optional()?;
        Ok((before, next))
    }

    fn delete_block(&self, term: u32, part: u32, first: u32) -> Result<(), Failure> {
        const DELETE: &str = "DELETE FROM postings WHERE term = ?1 AND part = ?2 AND first = ?3";
        self.connection.prepare_cached(DELETE)?.execute((term, part, first))?;
        Ok(())
    }

    fn put_block(&self, term: u32, part: u32, block: &Block) -> Result<(), Failure> {
        const PUT: &str =
            "INSERT OR REPLACE INTO postings (term, part, first, last, data) VALUES (?1, ?2, ?3, ?4, ?5)";
        let Block { first, last, data } = block;
        self.connection.prepare_cached(PUT)?.execute((term, part, first, last, data))?;
        Ok(())
    }
}

/// A part of the documents of a term.
struct Block {
    first: u32,
    last: u32,
    data: Vec<u8>,
}

impl Block {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Block> {
        Ok(Block { first: row.get(0)?, last: row.get(1)?, data: row.get(2)? })
    }
}

/// The id of a term.
pub(super) fn term_id(connection: &Connection, term: &str) -> rusqlite::Result<Option<u32>> {
    let mut statement = connection.prepare_cached("SELECT id FROM terms WHERE term = ?1")?;
    statement.query_row([term], |row| row.get(0)).optional()
}

/// The row of a document.
pub(super) fn find(connection: &Connection, name: &Name) -> Result<Option<StoredDocument>, Failure> {
    const FIND: &str =
        "SELECT documents.id, part, revision, terms FROM documents JOIN parts ON parts.id = part
        WHERE hash = ?1 AND name = ?2 AND kind = ?3 AND scope = ?4";
    let mut statement = connection.prepare_cached(FIND)?;
    let found = statement.query_row((name.hash(), &name.id, name.kind.number(), &name.scope), |row| {
        let terms = row.get_ref(3)?.as_blob()?;
        Ok(StoredDocument {
            id: row.get(0)?,
            part: row.get(1)?,
            revision: Revision::new(row.get(2)?),
            terms: decode(0, terms).collect(),
        })
    });
    Ok(found.optional()?)
}

/// The number of words of a document and its time in seconds, at a place of a block of sizes.
pub(super) fn size_at(sizes: &[u8], place: usize) -> (u32, u32) {
    let at = place * SIZE;
    match sizes.get(at..at + SIZE) {
        Some(&[a, b, c, d, e, f]) => {
            (u32::from(u16::from_le_bytes([a, b])), u32::from_le_bytes([c, d, e, f]))
        }
        _ => (0, 0),
    }
}

/// Seconds since 1970.
pub(super) fn seconds(moment: Timestamp) -> u32 {
    u32::try_from(moment.millis() / 1000).unwrap_or(u32::MAX)
}
