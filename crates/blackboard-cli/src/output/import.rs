//! What became of the entries of a file, as human and JSON output.

use std::collections::BTreeMap;

use blackboard::Code;
use blackboard::entry::{
    ComparedEntry, DEFAULT_SCOPE, DefinitionKind, ImportOutcome, ImportReport, ImportedDefinition,
    ImportedEntry, SkipReason,
};
use blackboard::import::{Format, ImportFile};
use blackboard::swarm::{Dialect, MAX_REPORTED, Note, Problem};
use serde::{Serialize, Serializer};

use super::time::age;
use super::{Result, Screen, escape, harmless_json, row_limit, shortened};
use crate::envelope::Answer;
use crate::hints::argument;
use crate::outcome::Render;

/// The answer of `import`.
#[derive(Serialize)]
pub struct ImportedFile {
    file: String,
    format: Format,
    #[serde(skip_serializing_if = "Option::is_none")]
    dialect: Option<Dialect>,
    dry_run: bool,
    created: usize,
    updated: usize,
    unchanged: usize,
    kept: usize,
    skipped: usize,
    refused: usize,
    /// Entries that full scopes evicted for those of the file.
    evicted: usize,
    /// Entries of the file that could not be read.
    unread: usize,
    /// Its protocols and the policies of its scopes.
    definitions: Vec<ImportedDefinition>,
    entries: Vec<Row>,
    /// The sections of an export that are not imported, with the number of their rows.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    not_imported: BTreeMap<String, usize>,
    problems: Vec<Problem>,
    notes: Vec<Note>,
    /// How many more problems and notes there are.
    unreported: usize,
    #[serde(skip)]
    limit: usize,
}

/// One entry of the file.
struct Row(ImportedEntry);

impl Row {
    /// The command for what is not an entry.
    fn command(&self) -> Option<String> {
        match &self.0.outcome {
            ImportOutcome::Skipped(SkipReason::Lock(name)) => {
                Some(format!("lock acquire {}", argument(name)))
            }
            _ => None,
        }
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct WithHint<'a> {
            #[serde(flatten)]
            entry: &'a ImportedEntry,
            #[serde(skip_serializing_if = "Option::is_none")]
            hint: Option<String>,
        }
        let hint = self.command().map(|words| format!("blackboard {words}"));
        WithHint { entry: &self.0, hint }.serialize(serializer)
    }
}

impl ImportedFile {
    /// The answer for this file.
    pub fn new(
        name: String,
        file: &ImportFile,
        report: ImportReport,
        dry_run: bool,
        json: bool,
    ) -> ImportedFile {
        let content = &file.content;
        let in_future = report.entries.iter().filter_map(|entry| {
            let problem = format!(
                "entry \"{}\": its time, {}, is in the future; it is left out",
                entry.key, entry.future_time?
            );
            Some(Problem { line: entry.line, problem })
        });
        let mut problems = content.problems.clone();
        let rest = MAX_REPORTED.saturating_sub(problems.len());
        problems.extend(in_future.take(rest));
        ImportedFile {
            file: name,
            format: file.format,
            dialect: file.dialect(),
            dry_run,
            created: report.count("created"),
            updated: report.count("updated"),
            unchanged: report.count("unchanged"),
            kept: report.count("kept"),
            skipped: report.count("skipped"),
            refused: report.count("refused"),
            evicted: report.evicted(),
            unread: content.unread,
            definitions: report.definitions,
            not_imported: file.definitions.not_imported.clone(),
            entries: report.entries.into_iter().map(Row).collect(),
            problems,
            notes: content.notes.clone(),
            unreported: content.unreported,
            limit: row_limit(None, json).unwrap_or(usize::MAX),
        }
    }

    /// Not 0 if something of the file is missing on the board that the caller may have wanted there.
    pub fn exit_code(&self) -> u8 {
        let refused = self.definitions.iter().any(|definition| definition.outcome.code().is_some());
        if refused || self.refused + self.unread > 0 { Code::Conflict.exit_code() } else { 0 }
    }

    /// The protocols and policies that are new or not imported.
    fn definitions(&self, screen: &mut Screen<'_>) -> Result {
        let changed =
            || self.definitions.iter().filter(|definition| definition.outcome != ImportOutcome::Unchanged);
        for ImportedDefinition { kind, name, outcome } in changed().take(self.limit) {
            let what = match kind {
                DefinitionKind::Protocol => "protocol",
                DefinitionKind::Scope => "policies of scope",
            };
            let reason = outcome.reason().map(|reason| format!(": {}", escape(&reason)));
            let (outcome, reason) = (outcome.as_str(), reason.unwrap_or_default());
            screen.line(format_args!("  {outcome:9} {what} {}{reason}", escape(name)))?;
        }
        match changed().count().saturating_sub(self.limit) {
            0 => Ok(()),
            more => screen.line(format_args!("  and {more} more; all of them: --json")),
        }
    }

    fn heading(&self) -> String {
        let counts = [
            (self.created, "created"),
            (self.updated, "updated"),
            (self.unchanged, "unchanged"),
            (self.kept, "kept"),
            (self.skipped, "skipped"),
            (self.refused, "refused"),
            (self.unread, "not readable"),
            (self.evicted, "evicted"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<_> = counts.map(|(count, what)| format!("{count} {what}")).collect();
        let counts = if counts.is_empty() { "no entries".to_owned() } else { counts.join(", ") };
        let file = escape(&self.file);
        if self.dry_run {
            format!("Would import: {file} ({counts}; dry run, nothing is changed)")
        } else {
            format!("Imported: {file} ({counts})")
        }
    }
}

impl Render for ImportedFile {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.report(self.exit_code() == 0, self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        screen.line(format_args!("{}", self.heading()))?;
        self.definitions(screen)?;
        let changed = || self.entries.iter().filter(|row| row.0.outcome != ImportOutcome::Unchanged);
        for row in changed().take(self.limit) {
            let (outcome, key) = (row.0.outcome.as_str(), named(&row.0));
            let reason = row.0.outcome.reason().map(|reason| format!(": {}", escape(&reason)));
            let evicted = row.0.evicted.as_ref().map(|key| format!(", evicts {}", escape(key)));
            let difference = row.0.difference.as_ref().filter(|_| self.dry_run);
            let fields = difference.map(|difference| format!(": {}", difference.fields.join(", ")));
            let command = row.command().map(|words| format!(" (use: {})", escape(&screen.command(words))));
            screen.line(format_args!(
                "  {outcome:9} {key}{}{}{}{}",
                fields.unwrap_or_default().replace('_', " "),
                reason.unwrap_or_default(),
                evicted.unwrap_or_default(),
                command.unwrap_or_default()
            ))?;
            if let Some(difference) = difference {
                compared("ours:  ", &difference.ours, screen)?;
                compared("theirs:", &difference.theirs, screen)?;
            }
        }
        let more = changed().count().saturating_sub(self.limit);
        if more > 0 {
            screen.line(format_args!("  and {more} more; all of them: --json"))?;
        }
        if !self.not_imported.is_empty() {
            let sections = self.not_imported.iter();
            let sections: Vec<_> =
                sections.map(|(section, count)| format!("{} ({count})", section.replace('_', " "))).collect();
            screen.line(format_args!("  not imported: {}", sections.join(", ")))?;
        }
        for Problem { line, problem } in self.problems.iter().take(self.limit) {
            screen.line(format_args!("  line {line}: {}", escape(problem)))?;
        }
        for note in self.notes.iter().take(self.limit) {
            let (section, text) = (escape(&note.section), shortened(&note.text, 60));
            let section = if section.is_empty() { section } else { format!(", {section}").into() };
            screen.line(format_args!("  note in line {}{section}: {}", note.line, escape(&text)))?;
        }
        let hidden =
            self.problems.len().saturating_sub(self.limit) + self.notes.len().saturating_sub(self.limit);
        match hidden + self.unreported {
            0 => Ok(()),
            count => screen.line(format_args!("  and {count} more problems and notes")),
        }
    }
}

/// One of two entries that differ.
fn compared(whose: &str, entry: &ComparedEntry, screen: &mut Screen<'_>) -> Result {
    // So that a line has 80 columns if the name of the author is short.
    const VALUE: usize = 40;
    let beginning = entry.value.to::<String>().ok().filter(|_| entry.shortened);
    let value = match &beginning {
        Some(text) => escape(text),
        None => harmless_json(entry.value.as_str()),
    };
    let written = entry.timestamp.map(|time| format!(", {} ago", age(screen.now().since(time))));
    let (value, author) = (shortened(&value, VALUE), escape(&entry.author));
    screen.line(format_args!("    {whose} {value} ({author}{})", written.unwrap_or_default()))
}

/// The key, with its scope unless that is the default one, and as the file has it.
fn named(entry: &ImportedEntry) -> String {
    let key = escape(&entry.key);
    let scope = match &*entry.scope {
        DEFAULT_SCOPE => String::new(),
        scope => format!(" in scope {}", escape(scope)),
    };
    let in_file = entry.key_in_file.as_ref().map(|key| format!(" ({} in the file)", escape(key)));
    format!("{key}{scope}{}", in_file.unwrap_or_default())
}
