//! Locks, for people and programs.

use std::time::Duration;

use blackboard::lock::{Acquired, Lock, Released};

use super::{Cell, Column, Result, Screen, Table, escape, time};
use crate::envelope::Answer;
use crate::outcome::Render;

/// The answer of `lock acquire`: for people nothing but the fence, so that a shell can keep it.
pub struct AcquiredLock(pub Acquired);

impl Render for AcquiredLock {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(&self.0)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        screen.line(format_args!("{}", self.0.lock.fence))
    }
}

/// The answer of `lock release`.
pub struct ReleasedLock(pub Released);

impl Render for ReleasedLock {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(&self.0)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let name = escape(&self.0.name);
        if !self.0.released {
            return screen.line(format_args!("Nobody held lock {name}."));
        }
        let held = time::length(Duration::from_secs(self.0.held_seconds));
        screen.line(format_args!("Released lock: {name} (held for {held})"))
    }
}

/// The answer of `lock list`.
pub struct LockList(pub Vec<Lock>);

impl Render for LockList {
    fn is_list(&self) -> bool {
        true
    }

    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.list(&self.0)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        if self.0.is_empty() {
            return screen.line(format_args!("No locks are held."));
        }
        let mut table = Table::new([
            Column::fixed("lock"),
            Column::wrapping("held by"),
            Column::fixed("session"),
            Column::fixed("fence"),
            Column::fixed("age"),
            Column::fixed("ends in"),
            Column::wrapping("note"),
        ]);
        for lock in &self.0 {
            table.row([
                Cell::new(&lock.name),
                Cell::new(&lock.agent_name),
                Cell::new(&lock.session_id),
                Cell::new(lock.fence.to_string()),
                Cell::new(time::age(screen.now().since(lock.since))),
                Cell::optional(
                    lock.expires_at.map(|expires| time::age(expires.since(screen.now()))).as_ref(),
                ),
                Cell::optional(lock.note.as_ref()),
            ]);
        }
        screen.table(&table)
    }
}
