//! What became of the items of another tracker, as human and JSON output.

use blackboard::Code;
use blackboard::work::{FieldChange, ImportedAs, ImportedItem};
use serde::Serialize;
use serde_json::Value;

use super::{Result, Screen, escape, row_limit, shortened};
use crate::envelope::Answer;
use crate::outcome::Render;
use crate::trackers::{Problem, TrackerFile};

/// The answer of `work import`.
#[derive(Serialize)]
pub struct ImportedWork {
    file: String,
    from: &'static str,
    dry_run: bool,
    created: usize,
    updated: usize,
    completed: usize,
    /// Items that were closed while a session holds them.
    closing: usize,
    reopened: usize,
    unchanged: usize,
    skipped: usize,
    refused: usize,
    /// Items that could not be read.
    unread: usize,
    items: Vec<ImportedItem>,
    problems: Vec<Problem>,
    /// How many more problems there are.
    unreported: usize,
    #[serde(skip)]
    limit: usize,
}

impl ImportedWork {
    /// The answer for this file.
    pub fn new(
        name: String,
        from: &'static str,
        file: TrackerFile,
        items: Vec<ImportedItem>,
        dry_run: bool,
        json: bool,
    ) -> ImportedWork {
        let count = |outcome| items.iter().filter(|item| item.outcome == outcome).count();
        ImportedWork {
            file: name,
            from,
            dry_run,
            created: count(ImportedAs::Created),
            updated: count(ImportedAs::Updated),
            completed: count(ImportedAs::Completed),
            closing: count(ImportedAs::Closing),
            reopened: count(ImportedAs::Reopened),
            unchanged: count(ImportedAs::Unchanged),
            skipped: count(ImportedAs::Skipped),
            refused: count(ImportedAs::Refused),
            unread: file.unread,
            items,
            problems: file.problems,
            unreported: file.unreported,
            limit: row_limit(None, json).unwrap_or(usize::MAX),
        }
    }

    /// Not 0 if something of the file is missing on the board that the caller may have wanted there.
    pub fn exit_code(&self) -> u8 {
        if self.refused + self.unread > 0 { Code::Conflict.exit_code() } else { 0 }
    }

    fn heading(&self) -> String {
        let counts = [
            (self.created, "created"),
            (self.updated, "updated"),
            (self.completed, "completed"),
            (self.closing, "closing"),
            (self.reopened, "reopened"),
            (self.unchanged, "unchanged"),
            (self.skipped, "skipped"),
            (self.refused, "refused"),
            (self.unread, "not readable"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<_> = counts.map(|(count, what)| format!("{count} {what}")).collect();
        let counts = if counts.is_empty() { "no items".to_owned() } else { counts.join(", ") };
        let file = escape(&self.file);
        if self.dry_run {
            format!("Would import: {file} ({counts}; dry run, nothing is changed)")
        } else {
            format!("Imported: {file} ({counts})")
        }
    }
}

impl Render for ImportedWork {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.report(self.exit_code() == 0, self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        screen.line(format_args!("{}", self.heading()))?;
        // Unchanged items and closed ones say nothing, unless something was left out of them.
        let is_shown = |item: &&ImportedItem| {
            !matches!(item.outcome, ImportedAs::Unchanged | ImportedAs::Skipped) || !item.notes.is_empty()
        };
        let shown = || self.items.iter().filter(is_shown);
        for item in shown().take(self.limit) {
            show(item, screen)?;
        }
        let more = shown().count().saturating_sub(self.limit);
        if more > 0 {
            screen.line(format_args!("  and {more} more; all of them: --json"))?;
        }
        let is_owned = |item: &ImportedItem| item.code == Some(Code::AlreadyExists.as_str());
        if self.items.iter().any(is_owned) {
            screen.line(format_args!(
                "  To change items of other sources too, repeat the import with --adopt"
            ))?;
        }
        for Problem { place, problem, .. } in self.problems.iter().take(self.limit) {
            let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
            screen.line(format_args!("  {place}{}", escape(problem)))?;
        }
        match self.problems.len().saturating_sub(self.limit) + self.unreported {
            0 => Ok(()),
            count => screen.line(format_args!("  and {count} more problems")),
        }
    }
}

fn show(item: &ImportedItem, screen: &mut Screen<'_>) -> Result {
    let facts = match (item.outcome, &item.reason, &item.held_by) {
        (_, Some(reason), _) => format!(": {reason}"),
        (ImportedAs::Closing, _, Some(holder)) => format!(": closed outside; {holder} holds it"),
        (ImportedAs::Created | ImportedAs::Completed | ImportedAs::Reopened, ..) => {
            format!("  {}", shortened(&item.title, 60))
        }
        _ => String::new(),
    };
    screen.line(format_args!("  {:9} {}{}", item.outcome.as_str(), escape(&item.item_id), escape(&facts)))?;
    for change in &item.changes {
        let (old, new) = (value(change, &change.old), value(change, &change.new));
        let field = change.field.replace('_', " ");
        screen.line(format_args!("    {field}: {} -> {}", escape(&old), escape(&new)))?;
    }
    item.notes.iter().try_for_each(|note| screen.line(format_args!("    note: {}", escape(note))))
}

/// A value of a diff on one line.
fn value(change: &FieldChange, value: &Value) -> String {
    let text = match value {
        Value::Null => "none".to_owned(),
        Value::String(text) if matches!(change.field, "title" | "description") => {
            format!("\"{}\"", text.split_whitespace().collect::<Vec<_>>().join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Array(list) if list.is_empty() => "none".to_owned(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    shortened(&text, 60).to_string()
}
