//! Reserved files, as human and JSON output.

use blackboard::agent::label;
use blackboard::clock::Timestamp;
use blackboard::file::{Checked, CheckedPath, Mode, ReleasedFiles, Reservation, Reserved};

use super::{
    AgentNames, Cell, Column, ListPage, Result, Screen, Table, escape, render_list, render_object, time,
};

render_object! {
    /// The answer of `file reserve`.
    ReservedFiles(Reserved) = reserved;
    /// The answer of `file release`.
    ReleasedPatterns(ReleasedFiles) = released;
    /// The answer of `file check`, if no other session has reserved any of them.
    CheckedFiles(Checked) = checked;
}

render_list! {
    /// The answer of `file list`.
    FileList(Reservation) = reservations;
}

fn reserved(reserved: &Reserved, screen: &mut Screen<'_>) -> Result {
    let now = screen.now();
    for (verb, is_new, renewed) in [
        ("Reserved files", true, false),
        ("Renewed file reservations", false, true),
        ("Already reserved", false, false),
    ] {
        let ones = reserved.reservations.iter();
        let ones = ones.filter(|one| one.reserved == is_new && (is_new || one.renewed == renewed));
        let patterns: Vec<String> = ones.map(|one| described(&one.reservation, now)).collect();
        if !patterns.is_empty() {
            screen.line(format_args!("{verb}: {}", patterns.join(", ")))?;
        }
    }
    reserved.elsewhere.iter().try_for_each(|other| show_elsewhere(other, screen))
}

/// A reservation in one line.
fn described(reservation: &Reservation, now: Timestamp) -> String {
    let left = reservation.expires_at.map(|expires| time::left(expires.since(now)));
    let facts: Vec<String> = (reservation.mode == Mode::Shared)
        .then(|| "shared".to_owned())
        .into_iter()
        .chain(left.map(|left| format!("expires in {left}")))
        .collect();
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    format!("{}{facts}", escape(&reservation.pattern))
}

/// Shows a reservation in another worktree.
fn show_elsewhere(other: &Reservation, screen: &mut Screen<'_>) -> Result {
    let note = other.note.as_ref().map(|note| format!(" ({})", escape(note))).unwrap_or_default();
    screen.line(format_args!(
        "In another worktree: {} reserved {} in {}{note}",
        escape(&label(&other.agent_name, &other.session_id)),
        escape(&other.pattern),
        escape(&other.worktree),
    ))
}

fn released(released: &ReleasedFiles, screen: &mut Screen<'_>) -> Result {
    if released.released.is_empty() && released.not_held.is_empty() {
        return screen.line(format_args!("No files reserved (nothing to release)"));
    }
    let rows = [
        ("Released files", &released.released, ""),
        ("Not reserved", &released.not_held, " (nothing to release)"),
    ];
    for (verb, patterns, fact) in rows {
        if !patterns.is_empty() {
            screen.line(format_args!("{verb}: {}{fact}", escape(&patterns.join(", "))))?;
        }
    }
    Ok(())
}

fn reservations(page: &ListPage<Reservation>, screen: &mut Screen<'_>) -> Result {
    let reservations = &page.rows;
    if reservations.is_empty() {
        return screen.line(format_args!("No files reserved."));
    }
    let mut table = Table::new([
        Column::typed("PATTERN"),
        Column::fixed("MODE").importance(5),
        Column::name("RESERVED BY").importance(6),
        Column::fixed("AGE").importance(3),
        Column::fixed("EXPIRES IN").importance(2),
        Column::text("NOTE").importance(4),
        Column::detail("WORKTREE").importance(1),
    ]);
    let holders = reservations.iter().map(|one| (one.agent_name.as_str(), one.session_id.as_str()));
    let active = screen.active_agents();
    let names = AgentNames::of(holders, &active);
    for reservation in reservations {
        let left = reservation.expires_at.map(|expires| time::left(expires.since(screen.now())));
        table.row([
            Cell::new(&reservation.pattern),
            Cell::word(reservation.mode.as_str()),
            Cell::new(names.show(&reservation.agent_name, Some(&reservation.session_id))),
            Cell::new(time::age(screen.now().since(reservation.since))),
            Cell::optional(left.as_ref()),
            Cell::optional(reservation.note.as_ref()),
            Cell::directory(&reservation.worktree),
        ]);
    }
    screen.table(&table)?;
    page.note_more(screen)
}

fn checked(checked: &Checked, screen: &mut Screen<'_>) -> Result {
    screen.line(format_args!("Not reserved by another session."))?;
    let own = checked.paths.iter().filter(|path| path.reserved_by_you);
    let own: Vec<_> = own.map(|path| escape(&path.path)).collect();
    if !own.is_empty() {
        screen.line(format_args!("Reserved by you: {}", own.join(", ")))?;
    }
    show_all_elsewhere(&checked.paths, screen)
}

/// Shows, once each, the reservations of these paths in other worktrees.
pub fn show_all_elsewhere(paths: &[CheckedPath], screen: &mut Screen<'_>) -> Result {
    let mut listed: Vec<&Reservation> = Vec::new();
    for other in paths.iter().flat_map(|path| &path.elsewhere) {
        if !listed.contains(&&other.reservation) {
            listed.push(&other.reservation);
            show_elsewhere(&other.reservation, screen)?;
        }
    }
    Ok(())
}
