//! Invariants of the entries of every board: they agree with the event log.

use std::collections::BTreeMap;
use std::path::Path;

use blackboard::agent::AgentStatus;
use blackboard::entry::{self, Entry, EntryVersion};
use blackboard::event::{Event, EventType, TargetType};
use blackboard::export::Exported;
use blackboard::store::{Range, Row, Store};
use blackboard::{Board, Code, Revision};
use rusqlite::Connection;

use crate::entries::{KEYS, LOCKS, SCOPES, TAGS};

/// Checked after every step: leases belong to live sessions.
pub fn check_leases(board: &Exported) -> Result<(), String> {
    for entry in &board.entries {
        if entry.session_id.is_some() != entry.fence.is_some() {
            return Err(format!("a lease without a fence, or the other way round: {entry:?}"));
        }
        let Some(session) = &entry.session_id else { continue };
        let holder = board.agents.iter().find(|agent| agent.session_id == *session);
        let alive = holder.map(|agent| agent.status);
        if !matches!(alive, Some(AgentStatus::Active | AgentStatus::Idle)) {
            return Err(format!("the dead hold it: {entry:?}, {alive:?}"));
        }
    }
    Ok(())
}

/// Checked after every step: a scope with a limit knows the number of its entries, and never has more than it may have.
pub fn check_sizes(board: &Exported) -> Result<(), String> {
    for scope in &board.scopes {
        let Some(limit) = scope.policies.max_entries else { continue };
        let entries = board.entries.iter().filter(|entry| entry.scope == scope.scope).count() as u64;
        if entries != scope.entries || entries > limit {
            return Err(format!("{entries} entries: {scope:?}"));
        }
    }
    Ok(())
}

/// Checks that the event log agrees with the stored entries.
pub fn check_entries(store: &dyn Store, board: &Board, log: &[Event]) -> Result<(), String> {
    let entries = board.export().unwrap().entries;
    let floor = log.first().map_or(Revision::ZERO, |event| event.id.previous());
    let version = |revision: Revision| {
        let mut found = None;
        store
            .read(&[], &mut |tx| {
                found = tx.version(revision)?;
                Ok(())
            })
            .unwrap();
        found
    };
    for entry in &entries {
        check_chain(entry, floor, &version)?;
    }
    check_events(log, &version)?;
    check_fold(board, floor, log, &entries, &version)?;
    check_tag_index(store, &entries)
}

fn check_chain(
    entry: &Entry,
    floor: Revision,
    version: &dyn Fn(Revision) -> Option<EntryVersion>,
) -> Result<(), String> {
    let current = version(entry.revision).ok_or_else(|| format!("no version: {entry:?}"))?;
    if current.removed || current.entry != *entry {
        return Err(format!("{entry:?} has another version: {current:?}"));
    }
    let mut newer = current;
    while let Some(previous) = newer.previous {
        if previous >= newer.entry.revision {
            return Err(format!("{newer:?} does not follow {previous}"));
        }
        let Some(older) = version(previous) else {
            if previous > floor {
                return Err(format!("{previous} is missing before {newer:?}"));
            }
            break;
        };
        let same_key = (&older.entry.scope, &older.entry.key) == (&entry.scope, &entry.key);
        let counts = newer.entry.version == older.entry.version + u64::from(!newer.removed);
        if !same_key || !counts {
            return Err(format!("{newer:?} follows {older:?}"));
        }
        newer = older;
    }
    if newer.previous.is_none() && newer.entry.version != 1 && !newer.is_purge() {
        return Err(format!("nothing comes before {newer:?}"));
    }
    Ok(())
}

/// Every event of an entry has its version, and no other event has one.
fn check_events(log: &[Event], version: &dyn Fn(Revision) -> Option<EntryVersion>) -> Result<(), String> {
    for event in log {
        let version = version(event.id);
        let erased = event.metadata.as_ref().is_some_and(|metadata| metadata.to_map().contains_key("purged"));
        if version.is_some() != (event.target_type == Some(TargetType::Entry) && !erased) {
            return Err(format!("{event:?} has {version:?}"));
        }
        let Some(version) = version else { continue };
        let agrees = version.entry.revision == event.id
            && event.target_id.as_ref() == Some(&version.entry.key)
            && version.removed == (event.event_type != EventType::EntryWritten);
        if !agrees {
            return Err(format!("{event:?} has {version:?}"));
        }
    }
    Ok(())
}

/// Applying the event log to the entries at its start results in the current entries.
fn check_fold(
    board: &Board,
    floor: Revision,
    log: &[Event],
    entries: &[Entry],
    version: &dyn Fn(Revision) -> Option<EntryVersion>,
) -> Result<(), String> {
    let mut folded = BTreeMap::new();
    let keys = SCOPES.iter().flat_map(|scope| KEYS.iter().map(move |key| (*scope, *key)));
    // The keys of records depend on their texts, so those that are there are looked up.
    let records = entries.iter().filter(|entry| entry.scope.starts_with("memory:"));
    let records = records.map(|entry| (entry.scope.as_str(), entry.key.as_str()));
    for (scope, key) in keys.chain(LOCKS.iter().map(|lock| (entry::LOCKS, *lock))).chain(records) {
        let entry = match board.scope(scope).entry_as_of(key, floor) {
            // It was purged since then: its history begins with the purge.
            Err(error) if error.code() == Code::Compacted => None,
            entry => entry.unwrap(),
        };
        if let Some(entry) = entry {
            folded.insert((scope.to_owned(), key.to_owned()), entry);
        }
    }
    for version in log.iter().filter_map(|event| version(event.id)) {
        let place = (version.entry.scope.clone(), version.entry.key.clone());
        if version.removed {
            folded.remove(&place);
        } else {
            folded.insert(place, version.entry);
        }
    }
    if folded.values().eq(entries) {
        Ok(())
    } else {
        Err(format!("the log from {floor} on gives {folded:#?}, and there is {entries:#?}"))
    }
}

fn check_tag_index(store: &dyn Store, entries: &[Entry]) -> Result<(), String> {
    for scope in SCOPES {
        for tag in TAGS {
            let mut found = Vec::new();
            store
                .read(&[], &mut |tx| {
                    found = tx.range(&Range::entries_tagged(scope, tag, ""))?;
                    Ok(())
                })
                .unwrap();
            let has = |entry: &&Entry| entry.scope == scope && entry.tags.iter().any(|known| known == tag);
            let expected = entries.iter().filter(has).cloned().map(Row::from);
            if !found.iter().cloned().eq(expected) {
                return Err(format!("tag {tag} in {scope} finds {found:?}"));
            }
        }
    }
    Ok(())
}

/// Checks the tables that repeat parts of versions, also where no verb reads them.
pub fn check_tables(path: &Path, entries: &[Entry]) -> Result<(), String> {
    let connection = Connection::open(path).unwrap();
    let rows = |sql: &str| {
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            (0..columns).map(|column| row.get::<_, Option<String>>(column)).collect::<Result<Vec<_>, _>>()
        });
        rows.unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    let some = |text: &str| Some(text.to_owned());
    let mut tags: Vec<_> = entries
        .iter()
        .flat_map(|entry| entry.tags.iter().map(|tag| vec![some(&entry.scope), some(tag), some(&entry.key)]))
        .collect();
    tags.sort();
    if rows("SELECT scope, tag, key FROM entry_tags ORDER BY 1, 2, 3") != tags {
        return Err(format!("the tags are {tags:?}"));
    }
    let repeated: Vec<_> = entries
        .iter()
        .map(|entry| {
            let expires = entry.expires_at.map(|moment| moment.to_string());
            vec![some(&entry.scope), some(&entry.key), expires, entry.session_id.clone()]
        })
        .collect();
    if rows("SELECT scope, key, expires_at, session_id FROM entries ORDER BY 1, 2") != repeated {
        return Err(format!("the entries are {repeated:?}"));
    }
    let both = "SELECT scope, key FROM entry_tombstones INTERSECT SELECT scope, key FROM entries";
    match rows(both) {
        none if none.is_empty() => Ok(()),
        both => Err(format!("both there and removed: {both:?}")),
    }
}
