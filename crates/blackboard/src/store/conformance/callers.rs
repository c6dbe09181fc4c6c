//! Callers: what an agent may not see, it does not see in damaged or unusual cases, either.

use super::*;
use crate::event::Lines;

on_every_engine![only_the_operator_sees_an_event_of_an_entry_whose_scope_is_unknown];

fn only_the_operator_sees_an_event_of_an_entry_whose_scope_is_unknown(fixture: &Fixture) {
    let entry = |key: &str| NewEvent::new(EventType::EntryWritten, TargetType::Entry, key, "Damaged");
    let damaged = fixture.commit(|_| {
        let mut changes = Changes::new();
        changes.event(entry("without-metadata"));
        changes.event(entry("without-scope").with("op", "create"));
        changes.event(entry("with-another-type").with("scope", 7));
        Ok(changes)
    });
    damaged.unwrap();
    fixture.write("readable", "1");
    let keys = |board: &Board| -> Vec<_> {
        let newest = board.events().newest(&Lines::default()).unwrap().events;
        newest.into_iter().filter_map(|event| event.target_id).collect()
    };
    let all = ["readable", "with-another-type", "without-scope", "without-metadata"];
    assert_eq!(keys(&fixture.board), all);
    assert_eq!(keys(&fixture.board.with_caller(Actor::author("Oak"))), all[..1]);
}
