//! Locks, as human and JSON output.

use std::time::Duration;

use blackboard::agent::ShortIds;
use blackboard::lock::{Acquired, Lock, Released};

use super::{Cell, Column, ListPage, Result, Screen, Table, escape, render_list, render_object, time};

render_object! {
    /// The answer of `lock acquire`: the human output is only the fence token, so that a shell can store it.
    AcquiredLock(Acquired) = acquired;
    /// The answer of `lock release`.
    ReleasedLock(Released) = released;
}

render_list! {
    /// The answer of `lock list`.
    LockList(Lock) = locks;
}

fn acquired(acquired: &Acquired, screen: &mut Screen<'_>) -> Result {
    screen.line(format_args!("{}", acquired.lock.fence))
}

fn released(released: &Released, screen: &mut Screen<'_>) -> Result {
    let name = escape(&released.name);
    if !released.released {
        return screen.line(format_args!("Not held: {name} (nothing to release)"));
    }
    let held = time::age(Duration::from_secs(released.held_seconds));
    screen.line(format_args!("Released lock: {name} (held for {held})"))
}

fn locks(page: &ListPage<Lock>, screen: &mut Screen<'_>) -> Result {
    let locks = &page.rows;
    if locks.is_empty() {
        return screen.line(format_args!("No locks held."));
    }
    let mut table = Table::new([
        Column::typed("LOCK"),
        Column::name("HELD BY").importance(6),
        Column::fixed("SESSION").importance(2),
        Column::fixed("FENCE").importance(3),
        Column::fixed("AGE").importance(4),
        Column::fixed("EXPIRES IN").importance(1),
        Column::text("NOTE").importance(5),
    ]);
    let ids = ShortIds::of(locks.iter().map(|lock| lock.session_id.as_str()));
    for lock in locks {
        table.row([
            Cell::new(&lock.name),
            Cell::new(&lock.agent_name),
            Cell::new(ids.shorten(&lock.session_id)),
            Cell::new(lock.fence.to_string()),
            Cell::new(time::age(screen.now().since(lock.since))),
            Cell::optional(lock.expires_at.map(|expires| time::left(expires.since(screen.now()))).as_ref()),
            Cell::optional(lock.note.as_ref()),
        ]);
    }
    screen.table(&table)?;
    page.note_more(screen)
}
