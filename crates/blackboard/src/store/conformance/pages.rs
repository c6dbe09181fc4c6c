//! Pages: mapped once, packed from the entries, and changed only together with their events.

use super::*;
use crate::page::check::{assert_fresh, stored_pages};
use crate::page::{Grouping, ListedPages, MapOutcome, MapScope, UnmapOutcome};
use crate::scope::{AccessRule, AccessRules, CreateScope, Effect, Policies, Visibility};

on_every_engine![
    a_scope_is_mapped_and_unmapped_once,
    a_change_of_entries_changes_their_pages_with_events,
    an_entry_that_is_gone_is_in_no_page,
    a_reader_sees_pages_that_are_not_stored,
    a_fold_that_is_too_late_changes_nothing,
    a_cursor_behind_the_oldest_kept_revision_rebuilds,
    many_changes_are_packed_in_parts,
    a_new_mapping_ignores_pages_that_are_left_over,
    another_caller_sees_pages_of_what_it_may_read,
    a_purge_leaves_no_tag_in_pages,
    pages_that_another_program_changed_are_packed_again,
];

fn map(fixture: &Fixture, grouping: Grouping) {
    let request = MapScope { grouping: Some(grouping), max_tokens: Some(64), ..MapScope::of("team") };
    assert_eq!(fixture.board.pages().map(&request).unwrap().outcome, MapOutcome::Mapped);
}

fn listed(fixture: &Fixture) -> ListedPages {
    fixture.board.pages().list(Some("team")).unwrap()
}

/// The groups of the pages, with their numbers of entries.
fn groups(listed: &ListedPages) -> Vec<(&str, u64)> {
    listed.pages.iter().map(|page| (page.locality.as_str(), page.entries)).collect()
}

/// Updates, and checks what is stored then.
fn update(fixture: &Fixture) -> Vec<EventType> {
    let (updated, events) = fixture.events_of(|| fixture.board.pages().update("team").unwrap());
    assert_eq!((updated.behind, updated.busy), (0, false));
    let count = |event_type: EventType| events.iter().filter(|found| **found == event_type).count() as u64;
    assert_eq!(updated.added, count(EventType::PageAdded));
    assert_eq!(updated.replaced, count(EventType::PageReplaced));
    assert_eq!(updated.invalidated, count(EventType::PageInvalidated));
    assert_fresh(&fixture.board, "team");
    events
}

fn write_tagged(fixture: &Fixture, key: &str, tags: &[&str]) {
    fixture.scope().write(&Write { tags: owned(tags), ..a_write(key, "1") }).unwrap();
}

fn a_scope_is_mapped_and_unmapped_once(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.write("a", "1");
    let request =
        MapScope { grouping: Some(Grouping::Prefix), session: Some(session), ..MapScope::of("team") };
    let pages = fixture.board.pages();
    let (mapped, events) = fixture.events_of(|| pages.map(&request).unwrap());
    assert_eq!((mapped.outcome, mapped.pages, mapped.entries), (MapOutcome::Mapped, 1, 1));
    assert_eq!(events, [EventType::ScopeMapped, EventType::PageAdded]);
    assert_fresh(&fixture.board, "team");
    let (again, events) = fixture.events_of(|| pages.map(&MapScope::of("team")).unwrap());
    assert_eq!(
        (again.outcome, again.by, again.revision),
        (MapOutcome::AlreadyMapped, Grouping::Prefix, None)
    );
    assert!(events.is_empty() && again.ignored.is_empty());
    let other = MapScope { grouping: Some(Grouping::Time), ..MapScope::of("team") };
    assert_eq!(pages.map(&other).unwrap().ignored, ["by"]);
    let (unmapped, events) = fixture.events_of(|| pages.unmap("team", None).unwrap());
    assert_eq!((unmapped.outcome, unmapped.pages), (UnmapOutcome::Unmapped, 1));
    assert_eq!(events, [EventType::ScopeUnmapped]);
    let (again, events) = fixture.events_of(|| pages.unmap("team", None).unwrap());
    assert_eq!((again.outcome, events.len()), (UnmapOutcome::NotMapped, 0));
    assert_eq!(code(pages.list(Some("team"))), Code::NotMapped);
    assert_eq!(code(pages.update("team")), Code::NotMapped);
    assert_eq!(pages.list(None).unwrap().pages, []);
    assert_eq!(fixture.read(|tx| tx.count(&Range::all_pages())).unwrap(), 0);
    for reserved in ["locks", "files"] {
        assert_eq!(code(pages.map(&MapScope::of(reserved))), Code::InvalidValue);
    }
    for max_tokens in [0, 63, u64::MAX] {
        let request = MapScope { max_tokens: Some(max_tokens), ..MapScope::of("team") };
        assert_eq!(code(pages.map(&request)), Code::InvalidValue);
    }
}

fn a_change_of_entries_changes_their_pages_with_events(fixture: &Fixture) {
    use EventType::{PageAdded, PageInvalidated, PageReplaced};
    map(fixture, Grouping::Tag);
    assert!(update(fixture).is_empty());
    write_tagged(fixture, "a", &["x"]);
    assert_eq!(update(fixture), [PageAdded]);
    let event = fixture.events().pop().unwrap();
    let details = metadata(&event);
    assert_eq!((event.target_id.as_deref(), event.target_type), (Some("team"), Some(TargetType::Scope)));
    assert_eq!((&details["entries"], details["page"].as_str().unwrap().len()), (&1.into(), 16));
    write_tagged(fixture, "b", &["y", "x", "z", "w"]);
    assert_eq!(update(fixture), [PageAdded]);
    assert_eq!(groups(&listed(fixture)), [("w+x+y", 1), ("x", 1)]);
    // Written twice, packed once.
    write_tagged(fixture, "a", &["x"]);
    write_tagged(fixture, "a", &["x"]);
    assert_eq!(update(fixture), [PageReplaced]);
    write_tagged(fixture, "a", &["w", "x", "y"]);
    assert_eq!(update(fixture), [PageReplaced, PageInvalidated]);
    assert_eq!(groups(&listed(fixture)), [("w+x+y", 2)]);
    let replaced = fixture.events().into_iter().rev().find(|event| event.event_type == PageReplaced).unwrap();
    assert_ne!(metadata(&replaced)["replaces"], metadata(&replaced)["page"]);
    // Other scopes and their events change nothing.
    fixture.board.scope("other").write(&a_write("a", "1")).unwrap();
    assert!(update(fixture).is_empty());
}

fn an_entry_that_is_gone_is_in_no_page(fixture: &Fixture) {
    let policies = Policies { max_entries: Some(4), ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("team", policies)).unwrap();
    map(fixture, Grouping::Prefix);
    for key in ["deleted:a", "cleared:a", "purged:a"] {
        fixture.write(key, "1");
    }
    let expiring = Write { ttl: Some(Duration::from_secs(1)), ..a_write("expired:a", "1") };
    fixture.scope().write(&expiring).unwrap();
    update(fixture);
    assert_eq!(groups(&listed(fixture)).len(), 4);
    fixture.scope().delete("deleted:a").unwrap();
    fixture.scope().clear("cleared:*").unwrap();
    fixture.scope().purge("purged:a").unwrap();
    fixture.pass(2);
    // A page is shown without it before the sweep removes it.
    let page = listed(fixture).pages.pop().unwrap();
    assert_eq!(fixture.board.pages().show(&page.id).unwrap().entries, []);
    fixture.sweep();
    assert_eq!(groups(&listed(fixture)), []);
    update(fixture);
    assert_eq!(stored_pages(&fixture.board, "team").unwrap(), []);
    for key in ["a:1", "b:1", "c:1", "d:1", "e:1"] {
        fixture.pass(1);
        fixture.write(key, "1");
    }
    update(fixture);
    // The first one was evicted.
    assert_eq!(groups(&listed(fixture)), [("b", 1), ("c", 1), ("d", 1), ("e", 1)]);
}

fn a_reader_sees_pages_that_are_not_stored(fixture: &Fixture) {
    map(fixture, Grouping::Prefix);
    fixture.write("a:1", "\"first\"");
    update(fixture);
    fixture.write("a:1", "\"second\"");
    fixture.write("b:1", "1");
    let revision = fixture.revision();
    let found = listed(fixture);
    assert_eq!((groups(&found), found.behind(), found.revision), (vec![("a", 1), ("b", 1)], 0, revision));
    let page = &found.pages[0];
    for name in [&page.id, &page.hash] {
        let shown = fixture.board.pages().show(name).unwrap();
        assert_eq!((&shown.id, shown.locality.as_str(), shown.by), (&page.id, "a", Grouping::Prefix));
        assert_eq!(shown.entries[0].value.as_str(), "\"second\"");
        assert_eq!((shown.tokens, shown.revision), (page.tokens, page.revision));
    }
    // Nothing was stored by that, and an update stores exactly these pages.
    assert_eq!(fixture.revision(), revision);
    assert_eq!(stored_pages(&fixture.board, "team").unwrap().len(), 1);
    update(fixture);
    assert_eq!(listed(fixture).pages, found.pages);
    for unknown in ["bb:team:a:0000000000000000", "0000000000000000", "bb:", ""] {
        assert_eq!(code(fixture.board.pages().show(unknown)), Code::PageNotFound, "{unknown}");
    }
}

fn a_fold_that_is_too_late_changes_nothing(fixture: &Fixture) {
    map(fixture, Grouping::Tag);
    fixture.write("a", "1");
    let pages = fixture.board.pages();
    let late = pages.planned("team").unwrap();
    let twin = pages.planned("team").unwrap();
    fixture.write("b", "1");
    write_tagged(fixture, "a", &["moved"]);
    update(fixture);
    let (applied, events) = fixture.events_of(|| pages.apply_planned(&late).unwrap());
    assert_eq!((applied, events.len()), (false, 0));
    assert_fresh(&fixture.board, "team");
    fixture.board.pages().unmap("team", None).unwrap();
    assert!(!pages.apply_planned(&twin).unwrap());
    map(fixture, Grouping::Tag);
    assert!(!pages.apply_planned(&twin).unwrap());
    assert_fresh(&fixture.board, "team");
}

fn a_cursor_behind_the_oldest_kept_revision_rebuilds(fixture: &Fixture) {
    map(fixture, Grouping::Tag);
    for key in ["a", "b", "c"] {
        write_tagged(fixture, key, &[key]);
    }
    update(fixture);
    write_tagged(fixture, "a", &["other"]);
    fixture.scope().delete("b").unwrap();
    write_tagged(fixture, "d", &["d"]);
    // The events that say so are pruned.
    fixture.trim(fixture.revision().previous());
    assert_eq!(groups(&listed(fixture)), [("c", 1), ("d", 1), ("other", 1)]);
    assert_eq!(update(fixture).len(), 4);
    // The cursor is up to date again.
    assert!(update(fixture).is_empty());
}

fn many_changes_are_packed_in_parts(fixture: &Fixture) {
    map(fixture, Grouping::Tag);
    let keys: Vec<_> = (0..1_003).map(|number| format!("key-{number}")).collect();
    let writes: Vec<_> = keys.iter().map(|key| a_write(key, "1")).collect();
    fixture.scope().write_batch(&writes).unwrap();
    assert_eq!(listed(fixture).behind(), 3);
    let first = fixture.board.pages().update("team").unwrap();
    assert_eq!(first.behind, 3);
    assert_eq!(listed(fixture).behind(), 0);
    update(fixture);
    let entries: u64 = listed(fixture).pages.iter().map(|page| page.entries).sum();
    assert_eq!(entries, 1_003);
    assert!(listed(fixture).pages.iter().all(|page| page.tokens <= 64));
    // A mapping packs everything, however much it is.
    fixture.board.pages().unmap("team", None).unwrap();
    map(fixture, Grouping::Time);
    assert_fresh(&fixture.board, "team");
    let entries: u64 = listed(fixture).pages.iter().map(|page| page.entries).sum();
    assert_eq!(entries, 1_003);
}

fn a_new_mapping_ignores_pages_that_are_left_over(fixture: &Fixture) {
    map(fixture, Grouping::Tag);
    fixture.write("a", "1");
    update(fixture);
    // As if the process had been killed between two commits of an unmapping.
    let key = crate::page::PageMap::key_of("team");
    let removed = fixture.commit(|tx| {
        tx.get(&key)?;
        Ok(Changes { remove: vec![key.clone()], events: vec![an_event()], ..Changes::new() })
    });
    removed.unwrap();
    assert_eq!(fixture.read(|tx| tx.count(&Range::all_pages())).unwrap(), 1);
    fixture.write("b", "1");
    map(fixture, Grouping::Prefix);
    assert_fresh(&fixture.board, "team");
    assert_eq!(fixture.read(|tx| tx.count(&Range::all_pages())).unwrap(), 1);
    assert_eq!(groups(&listed(fixture)), [("other", 2)]);
}

fn another_caller_sees_pages_of_what_it_may_read(fixture: &Fixture) {
    let rules = [(Effect::Deny, "Oak:read:secret:*")];
    let rules = rules.iter().map(|(effect, rule)| AccessRule::parse(*effect, rule).unwrap());
    let access = AccessRules::new(rules.collect());
    let policies = Policies { access, ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("team", policies)).unwrap();
    map(fixture, Grouping::Tag);
    for key in ["a", "secret:a"] {
        fixture.write(key, "1");
    }
    update(fixture);
    let oak = fixture.board.with_caller(Actor::author("Oak"));
    let seen = oak.pages().list(Some("team")).unwrap();
    assert_eq!(groups(&seen), [("other", 1)]);
    assert_ne!(seen.pages, listed(fixture).pages);
    // The pages are those of a scope without the other entries.
    let shown = oak.pages().show(&seen.pages[0].id).unwrap();
    assert_eq!(shown.entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(code(oak.pages().show(&listed(fixture).pages[0].id)), Code::PageNotFound);
    fixture.write("secret:b", "1");
    assert_eq!(oak.pages().list(Some("team")).unwrap().pages, seen.pages);
    // Events of pages have numbers of all entries.
    let log = |board: &Board| {
        let observation =
            board.events().observe(&crate::event::Since::Revision(Revision::ZERO), &[]).unwrap();
        let batch = board.events().next(&observation, observation.after, 1000).unwrap();
        let events = batch.map(|batch| batch.events).unwrap_or_default();
        events.iter().filter(|event| event.event_type == EventType::PageAdded).count()
    };
    assert_eq!((log(&oak), log(&fixture.board)), (0, 1));
    // A scope of others is not found at all.
    let members =
        Policies { visibility: Visibility::Shared, members: owned(&["Ivy"]), ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("private", members)).unwrap();
    fixture.board.scope("private").write(&a_write("a", "1")).unwrap();
    fixture.board.pages().map(&MapScope::of("private")).unwrap();
    let private = fixture.board.pages().list(Some("private")).unwrap().pages[0].id.clone();
    assert!(oak.pages().list(None).unwrap().scopes.iter().all(|scope| scope.scope == "team"));
    assert_eq!(code(oak.pages().list(Some("private"))), Code::NotAllowed);
    assert_eq!(code(oak.pages().show(&private)), Code::PageNotFound);
    assert_eq!(code(oak.pages().map(&MapScope::of("private"))), Code::NotAllowed);
    let ivy = fixture.board.with_caller(Actor::author("Ivy"));
    assert_eq!(ivy.pages().show(&private).unwrap().entries.len(), 1);
}

fn a_purge_leaves_no_tag_in_pages(fixture: &Fixture) {
    map(fixture, Grouping::Tag);
    write_tagged(fixture, "key", &["hidden-tag"]);
    fixture.write("other", "1");
    update(fixture);
    assert!(stored_text(fixture).contains("hidden-tag"));
    fixture.scope().purge("key").unwrap();
    assert!(!stored_text(fixture).contains("hidden-tag"));
    assert_fresh(&fixture.board, "team");
}

/// Everything that the board stores about pages, and all of its events.
fn stored_text(fixture: &Fixture) -> String {
    let rows = fixture.read(|tx| tx.range(&Range::all_pages())).unwrap();
    format!("{rows:?} {:?}", fixture.events())
}

fn pages_that_another_program_changed_are_packed_again(fixture: &Fixture) {
    map(fixture, Grouping::Tag);
    for key in ["a", "b"] {
        write_tagged(fixture, key, &[key]);
    }
    update(fixture);
    let page = |locality: &str| {
        let rows = fixture.read(|tx| tx.rows::<crate::page::ContextPage>(&Range::pages_of("team"))).unwrap();
        rows.into_iter().find(|row| row.locality == locality).unwrap()
    };
    // The entry of one page is in the other one as well, and a change of that page is not noticed by its hash.
    let forged = crate::page::ContextPage { content: page("b").content, ..page("a") };
    fixture.put(&[forged.into()]);
    update(fixture);
    assert_eq!(groups(&listed(fixture)), [("a", 1), ("b", 1)]);
}
