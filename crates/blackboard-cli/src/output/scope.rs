//! Scopes and their policies, as human and JSON output.

use std::time::Duration;

use blackboard::scope::{self, AllowedValues, Eviction, Policies, ScopeDetails, ScopeStatus, ScopeUpdated};

use super::{
    Cell, Column, ListPage, Result, Screen, Table, escape, harmless_json, render_list, render_object, time,
};

render_object! {
    /// The answer of `scope create`.
    CreatedScope(scope::CreatedScope) = created;
    /// The answer of `scope set`.
    UpdatedScope(ScopeUpdated) = updated;
    /// The answer of `scope show`.
    ShownScope(ScopeDetails) = details;
    /// The answer of `scope delete`.
    DeletedScope(scope::DeletedScope) = deleted;
}

render_list! {
    /// The answer of `scope list`.
    ScopeList(ScopeDetails) = scopes;
}

fn created(created: &scope::CreatedScope, screen: &mut Screen<'_>) -> Result {
    let verb = if created.created { "Created scope" } else { "Scope already has these policies" };
    screen.line(format_args!("{verb}: {}", escape(&created.scope.scope)))?;
    screen.fields(policies(&created.scope))
}

fn updated(updated: &ScopeUpdated, screen: &mut Screen<'_>) -> Result {
    let verb = if updated.updated { "Updated scope" } else { "Scope already has these policies" };
    screen.line(format_args!("{verb}: {}", escape(&updated.scope.scope)))?;
    screen.fields(policies(&updated.scope))
}

fn details(details: &ScopeDetails, screen: &mut Screen<'_>) -> Result {
    let age = |moment| format!("{} ago", time::age(screen.now().since(moment)));
    let changed = details.updated_at.zip(details.updated_by.as_ref());
    let changed = changed.map(|(moment, author)| format!("{} by {}", age(moment), screen.name(author)));
    let [entries, visibility, members, work_item, access, ttl, values] = policies(details);
    let scope = ("Scope", Some(details.scope.clone()));
    let status = Some(details.policies.status).filter(|status| *status != ScopeStatus::Live);
    let status = ("Status", status.map(|status| status.to_string()));
    let changed = ("Changed", changed);
    screen.fields([scope, status, entries, visibility, members, work_item, access, ttl, values, changed])?;
    for rule in details.policies.validation.as_slice() {
        if let AllowedValues::Schema(schema) = &rule.values {
            screen.gap()?;
            screen.heading(&format!("Schema of {}:", escape(&rule.keys)))?;
            // Each line by itself, because one line of text would lose its line breaks.
            schema
                .as_str()
                .lines()
                .try_for_each(|line| screen.line(format_args!("  {}", harmless_json(line))))?;
        }
    }
    Ok(())
}

/// The fields that every answer about a scope has.
fn policies(details: &ScopeDetails) -> [(&'static str, Option<String>); 7] {
    let Policies { visibility, members, work_item, access, ttl, max_entries, eviction, validation, .. } =
        &details.policies;
    let entries = match (max_entries, eviction) {
        (Some(_), _) => format!("{} of {}", details.entries, limit(&details.policies)),
        (None, Eviction::Lru) => details.entries.to_string(),
        // It was chosen, and has no effect yet.
        (None, eviction) => format!("{} ({eviction}, but no limit)", details.entries),
    };
    let listed = |texts: Vec<String>| Some(texts.join(", ")).filter(|text| !text.is_empty());
    let rules: Vec<_> = validation.as_slice().iter().map(ToString::to_string).collect();
    let access: Vec<_> = access.as_slice().iter().map(ToString::to_string).collect();
    [
        ("Entries", Some(entries)),
        ("Visibility", Some(visibility.to_string())),
        ("Members", listed(members.clone())),
        ("Ends with", work_item.as_ref().map(|id| format!("work item {id}"))),
        ("Access", listed(access)),
        ("TTL", ttl.map(seconds)),
        ("Values", listed(rules)),
    ]
}

/// A time to live, exactly, as the commands of entries show it.
fn seconds(ttl: Duration) -> String {
    format!("{}s", ttl.as_secs_f64())
}

/// The limit, and what happens beyond it.
fn limit(policies: &Policies) -> String {
    let Policies { max_entries, eviction, .. } = policies;
    max_entries.map_or_else(String::new, |limit| format!("{limit} ({eviction})"))
}

/// The number of access rules, if there are any.
fn rules(policies: &Policies) -> Option<String> {
    match policies.access.as_slice().len() {
        0 => None,
        1 => Some("1 rule".to_owned()),
        count => Some(format!("{count} rules")),
    }
}

fn scopes(page: &ListPage<ScopeDetails>, screen: &mut Screen<'_>) -> Result {
    if page.rows.is_empty() {
        return screen.line(format_args!("No scopes."));
    }
    let mut table = Table::new([
        Column::typed("SCOPE"),
        Column::fixed("ENTRIES").importance(4),
        Column::fixed("LIMIT").importance(3),
        Column::fixed("TTL").importance(2),
        Column::fixed("VISIBILITY").importance(1),
        Column::fixed("ACCESS").importance(1),
    ]);
    for listed in &page.rows {
        let policies = &listed.policies;
        table.row([
            Cell::new(&listed.scope),
            Cell::new(listed.entries.to_string()),
            Cell::optional(policies.max_entries.map(|_| limit(policies)).as_ref()),
            Cell::optional(policies.ttl.map(seconds).as_ref()),
            Cell::new(policies.visibility.to_string()),
            Cell::optional(rules(policies).as_ref()),
        ]);
    }
    screen.table(&table)?;
    page.note_more(screen)
}

fn deleted(deleted: &scope::DeletedScope, screen: &mut Screen<'_>) -> Result {
    let number = |count| if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") };
    let (what, entries) = match (deleted.deleted_entries, deleted.kept_entries) {
        (0, 0) => ("scope", String::new()),
        (0, kept) => {
            let verb = if kept == 1 { "stays" } else { "stay" };
            ("policies of scope", format!(" ({} {verb}, open to every caller)", number(kept)))
        }
        (count, _) => ("scope", format!(" (and {})", number(count))),
    };
    screen.line(format_args!("Deleted {what}: {}{entries}", escape(&deleted.scope)))
}
