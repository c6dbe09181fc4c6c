//! Pages of mapped scopes, as human and JSON output.

use blackboard::Revision;
use blackboard::page::{self, MapOutcome, PageSummary, UnmapOutcome};
use serde::Serialize;

use super::{
    Cell, Column, ListPage, Rest, Result, Screen, Table, escape, harmless_json, render_object, time,
};
use crate::envelope::Answer;
use crate::outcome::Render;

render_object! {
    /// The answer of `page map`.
    MappedScope(page::Mapped) = mapped;
    /// The answer of `page unmap`.
    UnmappedScope(page::Unmapped) = unmapped;
    /// The answer of `page show`.
    ShownPage(page::ShownPage) = shown;
}

/// The answer of `page list`.
pub struct PageList {
    /// The pages.
    pub pages: ListPage<PageSummary>,
    /// The mapped scopes that they are of.
    pub scopes: Vec<page::MappedScope>,
    /// How many changed entries are not in them yet.
    pub behind: u64,
    /// The revision of that moment.
    pub revision: Revision,
}

#[derive(Serialize)]
struct More<'a> {
    scopes: &'a [page::MappedScope],
    behind: u64,
    revision: Revision,
    #[serde(flatten)]
    rest: Rest,
}

impl Render for PageList {
    fn is_list(&self) -> bool {
        true
    }

    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let PageList { pages, scopes, behind, revision } = self;
        let more = More { scopes, behind: *behind, revision: *revision, rest: pages.rest() };
        answer.list_with(&pages.rows, &more)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        if self.pages.rows.is_empty() {
            screen.line(format_args!("No pages."))?;
            return note_behind(self.behind, screen);
        }
        let mut table = Table::new([
            Column::typed("PAGE"),
            Column::typed("SCOPE"),
            Column::text("GROUP").importance(3),
            Column::fixed("ENTRIES").importance(2),
            Column::fixed("TOKENS").importance(1),
        ]);
        for page in &self.pages.rows {
            table.row([
                Cell::new(&page.hash),
                Cell::new(&page.scope),
                Cell::new(&page.locality),
                Cell::new(page.entries.to_string()),
                Cell::new(page.tokens.to_string()),
            ]);
        }
        screen.table(&table)?;
        self.pages.note_more(screen)?;
        note_behind(self.behind, screen)
    }
}

/// Reports that changed entries are missing, if there are some.
fn note_behind(behind: u64, screen: &mut Screen<'_>) -> Result {
    match behind {
        0 => Ok(()),
        1 => screen.line(format_args!("1 changed entry is not in the pages yet; run it again.")),
        count => screen.line(format_args!("{count} changed entries are not in the pages yet; run it again.")),
    }
}

/// A number of things in words.
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn mapped(mapped: &page::Mapped, screen: &mut Screen<'_>) -> Result {
    let verb = match mapped.outcome {
        MapOutcome::Mapped => "Mapped scope",
        MapOutcome::AlreadyMapped => "Scope is already mapped",
    };
    let (pages, entries) =
        (counted(mapped.pages, "page", "pages"), counted(mapped.entries, "entry", "entries"));
    screen.line(format_args!(
        "{verb}: {} by {}, {pages} with {entries}, at most {} tokens each",
        escape(&mapped.scope),
        mapped.by,
        mapped.max_tokens
    ))?;
    if !mapped.ignored.is_empty() {
        let options: Vec<_> =
            mapped.ignored.iter().map(|option| format!("--{}", option.replace('_', "-"))).collect();
        screen.line(format_args!("Ignored: {}; unmap the scope to change them.", options.join(", ")))?;
    }
    note_behind(mapped.behind, screen)
}

fn unmapped(unmapped: &page::Unmapped, screen: &mut Screen<'_>) -> Result {
    let scope = escape(&unmapped.scope);
    match unmapped.outcome {
        UnmapOutcome::Unmapped => {
            let pages = counted(unmapped.pages, "page", "pages");
            screen.line(format_args!("Unmapped scope: {scope}, {pages} removed"))
        }
        UnmapOutcome::NotMapped => screen.line(format_args!("Scope is not mapped: {scope}")),
    }
}

fn shown(page: &page::ShownPage, screen: &mut Screen<'_>) -> Result {
    screen.fields([
        ("Page", Some(page.id.clone())),
        ("Scope", Some(page.scope.clone())),
        ("Group", Some(format!("{} ({})", page.locality, page.by))),
        ("Entries", Some(page.entries.len().to_string())),
        ("Tokens", Some(page.tokens.to_string())),
        ("Revision", Some(page.revision.to_string())),
    ])?;
    for entry in &page.entries {
        let age = time::age(screen.now().since(entry.updated_at));
        let author = screen.name(&entry.updated_by).into_owned();
        screen.gap()?;
        screen.line(format_args!("{} ({}, {age} ago)", escape(&entry.key), escape(&author)))?;
        screen.line(format_args!("  {}", harmless_json(entry.value.as_str()).replace('\n', "\n  ")))?;
    }
    if page.behind > 0 {
        screen.gap()?;
    }
    note_behind(page.behind, screen)
}
