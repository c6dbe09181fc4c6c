//! Concurrent writers, on threads: everything that a commit read is still true when it commits.

use super::*;
use crate::store::{Key, Range, Tx};

on_every_engine![concurrent_writers_create_no_phantoms];

/// Eight threads add items as long as there are fewer than five, each under its own name. Without the check for
/// phantoms each would add one.
fn concurrent_writers_create_no_phantoms(fixture: &Fixture) {
    let start = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (start, engine) = (&start, fixture.engine.clone());
            scope.spawn(move || {
                start.wait();
                for round in 0..5 {
                    let commit = Commit { name: "test", prefetch: &[], on_busy: OnBusy::Wait, callers: &[] };
                    let add = &mut |tx: &dyn Tx| {
                        let mut changes = Changes::new();
                        if tx.range(&Range::work_items())?.len() < 5 {
                            let item = an_item(&format!("{thread}-{round}"));
                            tx.get(&Key::WorkItem(item.item_id.clone()))?;
                            changes.put(item);
                            changes.event(an_event());
                        }
                        Ok(changes)
                    };
                    engine.commit(&commit, add).unwrap();
                }
            });
        }
    });
    assert_eq!(fixture.board.export().unwrap().work_items.len(), 5);
    assert_eq!(fixture.revision(), fixture.id(5));
}
