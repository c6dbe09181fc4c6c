//! The arguments of the script of a commit: what a run has read, and its changes as fields, members and events.

use std::collections::HashSet;

use super::bytes::{self, Member};
use super::last_seen::{WrittenContent, WrittenRow};
use super::layout::{self, StoredRow};
use super::view::View;
use crate::clock::Timestamp;
use crate::error::{Code, Fault, Result};
use crate::event::Event;
use crate::revision::Revision;
use crate::store::{Changes, Erasure, Key, Page, Row, Tx};

/// The arguments of the script, in its order.
#[derive(Default)]
pub(super) struct Arguments {
    pub(super) list: Vec<Vec<u8>>,
}

impl Arguments {
    fn add(&mut self, argument: impl Into<Vec<u8>>) {
        self.list.push(argument.into());
    }

    fn add_number(&mut self, number: usize) {
        self.add(number.to_string());
    }

    fn add_list(&mut self, list: Vec<Vec<u8>>) {
        self.add_number(list.len());
        self.list.extend(list);
    }

    pub(super) fn add_reads(&mut self, view: &View<'_>) {
        let reads = view.reads.borrow();
        self.add_number(reads.rows.len());
        for (field, read) in &reads.rows {
            self.add(&field[..]);
            self.add(&read.stamp[..]);
        }
        self.add_number(reads.ranges.len());
        for (bounds, count) in &reads.ranges {
            self.add(&bounds.from[..]);
            self.add(&bounds.before[..]);
            self.add_number(*count);
        }
    }

    /// The new content of erased events. A pruned event needs none.
    pub(super) fn add_erasures(&mut self, view: &View<'_>, erasures: &[Erasure]) -> Result<()> {
        let mut changed = Vec::new();
        for Erasure { event, summary, metadata } in erasures {
            let page = Page { after: event.previous(), until: *event, types: &[], limit: 1 };
            if let Some(found) = view.events(&page)?.into_iter().next() {
                let event = Event { summary: summary.clone(), metadata: metadata.clone(), ..found };
                changed.push((event.id, layout::store_event(&event)));
            }
        }
        self.add_number(changed.len());
        for (id, payload) in changed {
            self.add(id.to_string());
            self.add(payload);
        }
        Ok(())
    }

    /// Everything else. Returns the rows that are written.
    pub(super) fn add_changes(&mut self, view: &View<'_>, changes: Changes) -> Result<Vec<WrittenRow>> {
        let Changes { put, remove, events, erase, trim_events, remove_versions } = changes;
        self.add_number(events.len());
        let mut event_versions = Vec::with_capacity(events.len());
        for (number, mut event) in events.into_iter().enumerate() {
            let version = event.version.take().map(|version| version.to_stored()).unwrap_or_default();
            let event = event.at(Revision::of_event(number), Revision::of_event(0), Timestamp::EPOCH);
            self.add(layout::store_event(&event));
            self.add(version.as_bytes());
            event_versions.push(version);
        }
        let rows = RowChanges::new(view, put, remove)?;
        let all = rows.written(&event_versions);
        let mut gone = rows.gone;
        let versions = remove_versions.into_iter().chain(erase.iter().map(|erasure| erasure.event));
        gone.extend(versions.map(layout::version_field));
        self.add_list(gone);
        self.add_list(rows.left);
        self.add_list(rows.appended);
        self.add_number(rows.unreadable.len());
        for (field, bounds) in rows.unreadable {
            self.add(field);
            self.add_list(bounds);
        }
        self.add_number(rows.put.len());
        for PutRow { field, kind, event, payload } in rows.put {
            self.add(field);
            self.add(kind);
            self.add(event.map(|event| event.to_string()).unwrap_or_default());
            self.add(payload);
        }
        self.add_number(rows.entered.len());
        for Member { head, event, tail } in rows.entered {
            self.add(head);
            self.add(event.map(|event| event.to_string()).unwrap_or_default());
            self.add(tail);
        }
        self.add(trim_events.unwrap_or(Revision::ZERO).to_string());
        Ok(all)
    }
}

/// The changes of rows and of their members in indexes.
#[derive(Default)]
struct RowChanges {
    put: Vec<PutRow>,
    /// The fields that are removed.
    gone: Vec<Vec<u8>>,
    /// The members that rows leave.
    left: Vec<Vec<u8>>,
    entered: Vec<Member>,
    /// The fields of rows that contain their members.
    appended: Vec<Vec<u8>>,
    /// The fields of rows whose members are unknown, and where these may be.
    unreadable: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
}

struct PutRow {
    field: Vec<u8>,
    kind: &'static str,
    event: Option<usize>,
    payload: Vec<u8>,
}

impl RowChanges {
    fn new(view: &View<'_>, put: Vec<Row>, remove: Vec<Key>) -> Result<RowChanges> {
        let mut changes = RowChanges::default();
        for key in remove {
            let field = RowChanges::writable_field(view, &key)?;
            let before = changes.members_before(view, &key, &field)?;
            changes.left.extend(before.into_iter().map(|member| member.head));
            changes.gone.push(field);
        }
        // Of several rows with one key the last one stays.
        let mut fields = HashSet::new();
        for row in put.into_iter().rev() {
            let key = row.key();
            let field = RowChanges::writable_field(view, &key)?;
            if !fields.insert(field.clone()) {
                continue;
            }
            let (before, after) = (changes.members_before(view, &key, &field)?, bytes::members_of(&row)?);
            let left = before.iter().filter(|member| !after.contains(member));
            changes.left.extend(left.map(|member| member.head.clone()));
            // The script removes the members of an appended row, so that all of them have to be added again.
            changes.entered.extend(after.into_iter().filter(|member| !before.contains(member)));
            let (kind, event, payload) = layout::store_row(&row)?;
            changes.put.push(PutRow { field, kind, event, payload });
        }
        Ok(changes)
    }

    /// The rows after the commit.
    fn written(&self, event_versions: &[String]) -> Vec<WrittenRow> {
        let gone = self.gone.iter().map(|field| WrittenRow { field: field.clone(), content: None });
        let put = self.put.iter().map(|PutRow { field, kind, event, payload }| {
            let version = event.and_then(|event| event_versions.get(event).cloned());
            let content = WrittenContent { kind, payload: payload.clone(), event: *event, version };
            WrittenRow { field: field.clone(), content: Some(content) }
        });
        gone.chain(put).collect()
    }

    /// The field of a row that the run may write.
    fn writable_field(view: &View<'_>, key: &Key) -> Result<Vec<u8>> {
        let field = bytes::row_field(key)?;
        let reads = view.reads.borrow();
        if key.table().appended || reads.rows.get(&field).is_some_and(|read| read.may_be_written) {
            return Ok(field);
        }
        Err(Fault::new(Code::Internal, format!("{key:?} is written without being read")).into())
    }

    /// The members of the stored row, if the client knows them.
    fn members_before(&mut self, view: &View<'_>, key: &Key, field: &[u8]) -> Result<Vec<Member>> {
        if key.table().appended {
            self.appended.push(field.to_vec());
            return Ok(Vec::new());
        }
        let answers = view.answers.borrow();
        match answers.rows.get(field).and_then(Option::as_ref).map(StoredRow::read) {
            None => Ok(Vec::new()),
            Some(Ok(row)) => bytes::members_of(&row),
            Some(Err(_)) => {
                self.unreadable.push((field.to_vec(), bytes::bounds_of_table(key.table())?));
                Ok(Vec::new())
            }
        }
    }
}
