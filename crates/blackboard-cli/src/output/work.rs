//! Work items, as human and JSON output.

use std::time::Duration;

use blackboard::agent::label;
use blackboard::clock::Timestamp;
use blackboard::quota::SimilarEstimate;
use blackboard::text::grouped;
use blackboard::work::{
    AppendedEvent, Blocked, Claimed, Completed, CompletedProject, Created, Deleted, Edited, Hold, ListedItem,
    Reassigned, Released, Reset, ScoredItem, Status, Unblocked, UpdatedMetadata, WorkHistory, WorkItem,
    list_blockers,
};

use super::event::{EventLines, Style};
use super::quota::compact;
use super::{
    AgentNames, Cell, Column, ListPage, Result, Screen, Table, escape, render_list, render_object, time,
};
use crate::envelope::Answer;
use crate::outcome::Render;
use crate::quota::item_tokens::{AddedTokens, ItemTokens, WithTokens};

render_object! {
    /// The answer of `work release`.
    ReleasedItem(Released) = released;
    /// The answer of `work reassign`.
    ReassignedItem(Reassigned) = reassigned;
    /// The answer of `work edit`.
    EditedItem(Edited) = edited;
    /// The answer of `work complete --all`.
    CompletedItems(CompletedProject) = completed_project;
    /// The answer of `work update-metadata`.
    ItemMetadata(UpdatedMetadata) = metadata;
    /// The answer of `work append-event`.
    ItemEvent(AppendedEvent) = appended;
    /// The answer of `work block`.
    BlockedItem(Blocked) = blocked;
    /// The answer of `work unblock`.
    UnblockedItem(Unblocked) = unblocked;
    /// The answer of `work reset`.
    ResetItem(Reset) = reset;
    /// The answer of `work delete`.
    DeletedItem(Deleted) = deleted;
    /// The answer of `work wait`.
    AwaitedItem(WorkItem) = awaited;
}

/// Answers about one item, with what the token ledger adds if a quota is configured.
macro_rules! render_with_tokens {
    ($(#[doc = $doc:literal] $name:ident($value:ty) = $human:ident;)+) => {$(
        #[doc = $doc]
        pub struct $name(pub $value, pub AddedTokens);

        impl Render for $name {
            fn json(&self, answer: &mut Answer<'_>) -> Result {
                match &self.1 {
                    None => answer.object(&self.0),
                    tokens => answer.object(&WithTokens { answer: &self.0, tokens: tokens.as_deref() }),
                }
            }

            fn human(&self, screen: &mut Screen<'_>) -> Result {
                $human(&self.0, self.1.as_deref(), screen)
            }
        }
    )+};
}

render_with_tokens! {
    /// The answer of `work create`.
    CreatedItem(Created) = created;
    /// The answer of `work claim`.
    ClaimedItem(Claimed) = claimed;
    /// The answer of `work complete`.
    CompletedItem(Completed) = completed;
    /// The answer of `work status`.
    ItemDetails(WorkHistory) = details;
}

render_list! {
    /// The answer of `work list`, which hides completed items by default.
    WorkList(ListedItem) = items;
    /// The answer of `work list --show-scores`.
    ScoredList(ScoredItem) = scored_items;
}

/// What is shown instead of an empty list.
fn no_items<T>(page: &ListPage<T>, screen: &mut Screen<'_>) -> Result {
    if let Some(text) = page.no_rows {
        return screen.line(format_args!("{text}"));
    }
    if page.hides_some {
        let create = screen.command("work create ID --title TEXT");
        return screen.line(format_args!("No open work items. Add one: {}", escape(&create)));
    }
    screen.line(format_args!("No work items."))
}

fn scored_items(page: &ListPage<ScoredItem>, screen: &mut Screen<'_>) -> Result {
    if page.rows.is_empty() {
        return no_items(page, screen);
    }
    let mut table = Table::new([
        Column::typed("ITEM"),
        Column::text("TITLE").importance(5),
        Column::detail("PROJECT").importance(1).if_different(),
        Column::fixed("STATUS").importance(6),
        Column::fixed("PRIORITY").or_narrow("PRI").importance(3),
        Column::fixed("SCORE").importance(7),
        Column::fixed("AGE").importance(2),
    ]);
    for ScoredItem { listed, effective_score } in &page.rows {
        let item = &listed.item;
        table.row([
            Cell::new(&item.item_id),
            Cell::new(&item.title),
            Cell::optional(item.project_id.as_ref()),
            status(listed),
            Cell::word(item.priority.as_str()),
            Cell::new(format!("{effective_score:.1}")),
            Cell::new(time::age(screen.now().since(item.created_at))),
        ]);
    }
    screen.table(&table)?;
    page.note_more(screen)
}

fn items(page: &ListPage<ListedItem>, screen: &mut Screen<'_>) -> Result {
    let items = &page.rows;
    if items.is_empty() {
        return no_items(page, screen);
    }
    let mut table = Table::new([
        Column::typed("ITEM"),
        Column::text("TITLE").importance(5),
        Column::detail("PROJECT").importance(1).if_different(),
        Column::fixed("STATUS").importance(6),
        Column::fixed("PRIORITY").or_narrow("PRI").importance(3),
        Column::name("CLAIMED BY").importance(4),
        Column::fixed("AGE").importance(2),
    ]);
    let active = screen.active_agents();
    let names = holders(items, &active);
    for listed in items {
        let item = &listed.item;
        table.row([
            Cell::new(&item.item_id),
            Cell::new(&item.title),
            Cell::optional(item.project_id.as_ref()),
            status(listed),
            Cell::word(item.priority.as_str()),
            Cell::optional(holder_among(item, &names)),
            Cell::new(time::age(screen.now().since(since(item)))),
        ]);
    }
    screen.table(&table)?;
    page.note_more(screen)?;
    let mut missing = items.iter().filter(|listed| !listed.missing_blockers.is_empty()).peekable();
    if missing.peek().is_some() {
        screen.gap()?;
    }
    missing.try_for_each(|listed| {
        let blockers = list_blockers(&listed.missing_blockers, &listed.missing_blockers);
        screen.line(format_args!("{} is blocked by {}", escape(&listed.item.item_id), escape(&blockers)))
    })
}

/// The status of an item in a list, with the number of its blockers.
fn status(listed: &ListedItem) -> Cell {
    match listed.open_blockers.len() {
        0 => Cell::word(listed.item.status.as_str()),
        blockers => {
            let status = listed.item.status;
            Cell::in_tone_of(status.as_str(), format!("{status} ({blockers})"))
        }
    }
}

/// From when on the age of an item counts: from its claim if it is claimed, else from its creation.
fn since(item: &WorkItem) -> Timestamp {
    item.claimed_at.filter(|_| item.status == Status::Claimed).unwrap_or(item.created_at)
}

fn source(item: &WorkItem) -> String {
    match &item.source_ref {
        Some(reference) => format!("{} ({reference})", item.source),
        None => item.source.clone(),
    }
}

/// The names of the agents that hold these items, beside the active ones.
pub fn holders<'a>(
    items: impl IntoIterator<Item = &'a ListedItem>,
    active: &'a [(String, String)],
) -> AgentNames<'a> {
    let holder = |item: &'a WorkItem| Some((item.claimed_by_name.as_deref()?, item.claimed_by.as_deref()?));
    AgentNames::of(items.into_iter().filter_map(|listed| holder(&listed.item)), active)
}

/// The holder of one of these items.
pub fn holder_among(item: &WorkItem, names: &AgentNames<'_>) -> Option<String> {
    item.claimed_by_name.as_deref().map(|name| names.show(name, item.claimed_by.as_deref()))
}

fn created(created: &Created, _: Option<&ItemTokens>, screen: &mut Screen<'_>) -> Result {
    let item = &created.item;
    let verb = if created.created { "Created work item" } else { "Work item already exists" };
    let blockers = blocker_count(&created.open_blockers, &created.missing_blockers);
    screen.line(format_args!("{verb}: {} ({}{blockers})", escape(&item.item_id), item.priority))
}

/// How many blockers an item has, as the last facts of a confirmation. One that does not exist may be a typing error.
fn blocker_count(open: &[String], missing: &[String]) -> String {
    match (open.len(), missing.len()) {
        (0, _) => String::new(),
        (open, 0) => format!(", blocked by {open}"),
        (open, missing) => format!(", blocked by {open}, {missing} not created"),
    }
}

/// The same for a field, which is left out where nothing blocks.
fn blockers(open: &[String], missing: &[String]) -> Option<String> {
    (!open.is_empty()).then(|| list_blockers(open, missing))
}

fn claimed(claimed: &Claimed, tokens: Option<&ItemTokens>, screen: &mut Screen<'_>) -> Result {
    let item = &claimed.item;
    let id = escape(&item.item_id);
    if claimed.already_held {
        let age = time::age(screen.now().since(claimed.since));
        screen.line(format_args!("Already held: {id} (claimed {age} ago)"))?;
    } else if claimed.created {
        screen.line(format_args!("Created and claimed work item: {id}"))?;
    } else {
        screen.line(format_args!("Claimed work item: {id}"))?;
    }
    screen.fields([
        ("Title", Some(item.title.clone())),
        ("Project", item.project_id.clone()),
        ("Source", claimed.created.then(|| source(item))),
        ("Previously", (claimed.claimed && !claimed.created).then(|| "available".to_owned())),
        ("Claimed by", item.holder_label()),
        ("Fence", item.fence.map(|fence| fence.to_string())),
        ("Blocked by", blockers(&claimed.open_blockers, &claimed.missing_blockers)),
    ])?;
    show_similar(tokens, screen)
}

/// What similar items have used: `Estimate from similar: 31k ± 9k (7 items)`.
pub fn similar(estimate: &SimilarEstimate) -> String {
    let SimilarEstimate { tokens, deviation, items } = estimate;
    format!("Estimate from similar: {} ± {} ({items} items)", compact(*tokens), compact(*deviation))
}

fn show_similar(tokens: Option<&ItemTokens>, screen: &mut Screen<'_>) -> Result {
    match tokens.and_then(|tokens| tokens.estimate_from_similar) {
        Some(estimate) => screen.line(format_args!("{}", similar(&estimate))),
        None => Ok(()),
    }
}

fn used(tokens: Option<&ItemTokens>) -> Option<String> {
    tokens.and_then(|tokens| tokens.tokens_used).map(|used| format!("{} tokens", compact(used)))
}

fn released(released: &Released, screen: &mut Screen<'_>) -> Result {
    let item = &released.item;
    if !released.released {
        return screen.line(format_args!("Not claimed: {} (nothing to release)", escape(&item.item_id)));
    }
    screen.line(format_args!("Released work item: {}", escape(&item.item_id)))?;
    screen.line(format_args!(
        "Status: {} (was claimed by {} for {})",
        if released.completed { "completed, closed at its source" } else { item.status.as_str() },
        escape(&released.released_by),
        time::length(Duration::from_secs(released.held_seconds))
    ))?;
    match (released.failure_count, &released.on_hold) {
        (_, Some(reason)) => screen.line(format_args!("On hold: {}", escape(reason))),
        (Some(count), None) => screen.line(format_args!("Failures: {count}")),
        (None, None) => Ok(()),
    }
}

fn reassigned(reassigned: &Reassigned, screen: &mut Screen<'_>) -> Result {
    let item = &reassigned.item;
    let id = escape(&item.item_id);
    let holder = escape(&item.holder_label().unwrap_or_default()).into_owned();
    let fence = item.fence.map(|fence| format!(", fence {fence}")).unwrap_or_default();
    if reassigned.reassigned {
        let before = previous_holder(
            reassigned.previously_held_by.as_deref(),
            reassigned.previously_held_by_session.as_deref(),
        );
        let from = before.map(|holder| format!("from {} ", escape(&holder)));
        screen
            .line(format_args!("Reassigned work item: {id} ({}to {holder}{fence})", from.unwrap_or_default()))
    } else {
        screen.line(format_args!("Already held: {id} (by {holder}{fence})"))
    }
}

fn edited(edited: &Edited, screen: &mut Screen<'_>) -> Result {
    let id = escape(&edited.item.item_id);
    if edited.changes.is_empty() {
        return screen.line(format_args!("Unchanged work item: {id}"));
    }
    let fields: Vec<_> = edited.changes.iter().map(|change| change.field).collect();
    screen.line(format_args!("Edited work item: {id} ({})", fields.join(", ")))
}

fn completed(completed: &Completed, tokens: Option<&ItemTokens>, screen: &mut Screen<'_>) -> Result {
    let item = &completed.item;
    let verb = if completed.already_completed { "Already completed" } else { "Completed work item" };
    screen.line(format_args!("{verb}: {}", escape(&item.item_id)))?;
    // An item that was completed by force may have had no holder.
    if let Some(holder) = &item.claimed_by_name {
        let duration = time::length(Duration::from_secs(completed.held_seconds));
        screen.line(format_args!("Duration: {duration} (claimed by {})", escape(holder)))?;
    }
    if let Some(used) = used(tokens) {
        screen.line(format_args!("Used: {used}"))?;
    }
    now_available(&completed.unblocked, screen)
}

fn completed_project(completed: &CompletedProject, screen: &mut Screen<'_>) -> Result {
    let failed = match completed.failed_count {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let (count, project) = (completed.completed_count, escape(&completed.project_id));
    let items = if count == 1 { "item" } else { "items" };
    screen.line(format_args!("Completed: {count} work {items} of project {project}{failed}"))?;
    completed
        .items
        .iter()
        .filter_map(|one| Some((&one.item_id, one.error.as_ref()?)))
        .try_for_each(|(item, error)| screen.line(format_args!("  {}: {}", escape(item), escape(error))))
}

fn metadata(updated: &UpdatedMetadata, screen: &mut Screen<'_>) -> Result {
    let id = escape(&updated.item.item_id);
    if !updated.updated {
        return screen.line(format_args!("Metadata already has this: {id}"));
    }
    screen.line(format_args!("Updated metadata: {id} ({})", escape(&updated.changed.join(", "))))
}

fn appended(appended: &AppendedEvent, screen: &mut Screen<'_>) -> Result {
    let (id, event_type) = (escape(&appended.item_id), escape(&appended.event_type));
    screen.line(format_args!("Appended event: {event_type} to {id} (revision {})", appended.event_id))
}

fn now_available(unblocked: &[String], screen: &mut Screen<'_>) -> Result {
    if unblocked.is_empty() {
        return Ok(());
    }
    screen.line(format_args!("Unblocked: {}", escape(&unblocked.join(", "))))
}

fn blocked(blocked: &Blocked, screen: &mut Screen<'_>) -> Result {
    let blockers = blocked.open_blockers.join(", ");
    let missing = match &*blocked.missing_blockers {
        [] => String::new(),
        missing => format!("; not created: {}", missing.join(", ")),
    };
    screen.line(format_args!(
        "Blocked work item: {} (by {}{})",
        escape(&blocked.item.item_id),
        escape(&blockers),
        escape(&missing)
    ))
}

fn unblocked(unblocked: &Unblocked, screen: &mut Screen<'_>) -> Result {
    let item = &unblocked.item;
    let verb = match (unblocked.unblocked, unblocked.open_blockers.is_empty()) {
        (true, _) => "Unblocked work item",
        (false, false) => "Still blocked",
        (false, true) => "Not blocked",
    };
    let status = match blockers(&unblocked.open_blockers, &unblocked.missing_blockers) {
        Some(blockers) => format!("by {blockers}"),
        None => item.status.to_string(),
    };
    screen.line(format_args!("{verb}: {} ({})", escape(&item.item_id), escape(&status)))
}

fn reset(reset: &Reset, screen: &mut Screen<'_>) -> Result {
    let item = &reset.item;
    let holder =
        previous_holder(reset.previously_held_by.as_deref(), reset.previously_held_by_session.as_deref());
    let holder = holder.map(|holder| format!(" by {}", escape(&holder)));
    screen.line(format_args!(
        "Reset work item: {} (was {}{}{})",
        escape(&item.item_id),
        reset.previous_status,
        holder.unwrap_or_default(),
        blocker_count(&reset.open_blockers, &reset.missing_blockers)
    ))
}

fn previous_holder(name: Option<&str>, session: Option<&str>) -> Option<String> {
    let name = name?;
    Some(session.map_or_else(|| name.to_owned(), |session| label(name, session)))
}

fn deleted(deleted: &Deleted, screen: &mut Screen<'_>) -> Result {
    let unblocked = match &deleted.unblocked[..] {
        [] => String::new(),
        items => format!(" (unblocked {})", items.join(", ")),
    };
    screen.line(format_args!("Deleted work item: {}{}", escape(&deleted.item_id), escape(&unblocked)))
}

fn awaited(item: &WorkItem, screen: &mut Screen<'_>) -> Result {
    let by = match (item.status, item.holder_label()) {
        (Status::Claimed | Status::Completed, Some(holder)) => format!(" by {}", escape(&holder)),
        (Status::Available | Status::Blocked, _) | (_, None) => String::new(),
    };
    screen.line(format_args!("Waited for work item: {} ({}{by})", escape(&item.item_id), item.status))
}

fn failures(hold: &Hold, now: Timestamp) -> Option<String> {
    let last = hold.failed_at.map(|time| format!(", the last {}", time::detailed(time, now)));
    (hold.failure_count > 0).then(|| format!("{}{}", hold.failure_count, last.unwrap_or_default()))
}

fn details(details: &WorkHistory, tokens: Option<&ItemTokens>, screen: &mut Screen<'_>) -> Result {
    let item = &details.item;
    let list = |ids: &[String]| (!ids.is_empty()).then(|| ids.join(", "));
    let now = screen.now();
    let since = item.claimed_at.map(|since| format!(" at {}", time::detailed(since, now)));
    let since = since.unwrap_or_default();
    screen.fields([
        ("Item", Some(item.item_id.clone())),
        ("Title", Some(item.title.clone())),
        ("Project", item.project_id.clone()),
        ("Source", Some(source(item))),
        ("Status", Some(item.status.to_string())),
        ("Imported", item.imported_from().map(|from| format!("from {from}"))),
        ("Priority", Some(item.priority.to_string())),
        ("Labels", list(&item.labels())),
        ("Estimate", item.estimate().map(|tokens| format!("{} tokens", grouped(tokens)))),
        ("Used", used(tokens)),
        ("Claimed by", item.holder_label().map(|holder| format!("{holder}{since}"))),
        ("Fence", item.fence.map(|fence| fence.to_string())),
        ("Blocked by", blockers(&details.open_blockers, &details.missing_blockers)),
        ("On hold", details.hold.on_hold.clone()),
        ("Failures", failures(&details.hold, now)),
        ("Blocks", list(&details.dependents)),
        ("Created", Some(time::detailed(item.created_at, now))),
        ("Completed", item.completed_at.map(|completed| time::detailed(completed, now))),
        ("Summary", item.summary.clone()),
        ("Metadata", item.other_metadata().as_ref().map(|metadata| metadata.as_str().to_owned())),
    ])?;
    show_similar(tokens, screen)?;
    if let Some(description) = &item.description {
        screen.gap()?;
        for line in description.lines() {
            // The bar tells these lines from those of this program.
            screen.line(format_args!("  | {}", escape(line)))?;
        }
    }
    if !details.history.is_empty() {
        screen.gap()?;
        screen.heading("History:")?;
        let mut lines = EventLines::new(screen, Style::OfOneItem);
        details.history.iter().try_for_each(|event| lines.show(screen, event))?;
    }
    Ok(())
}
