//! Queries: by pattern, prefix, tags, author and time, with stable pages.

use super::watched::ValuesRead;
use super::*;
use crate::entry::{Order, Query};

on_every_engine![
    query_finds_matches_newest_first,
    every_condition_has_to_hold,
    limit_and_offset_select_a_part,
    pages_by_key_miss_and_repeat_nothing_under_concurrent_writes,
    pages_of_the_newest_end_under_concurrent_writes,
    prefix_ends_correctly_for_any_last_character,
    large_scopes_give_the_same_answers_as_small_ones,
    a_list_and_a_snapshot_have_everything_by_key,
    list_has_the_requested_part,
    a_list_reads_no_values_where_an_index_decides,
    tags_are_found_as_long_as_an_entry_has_them,
    time_and_author_of_the_last_write_count,
];

fn keys(fixture: &Fixture, query: &Query) -> Vec<String> {
    fixture.scope().query(query).unwrap().entries.into_iter().map(|entry| entry.key).collect()
}

fn matching(pattern: &str) -> Query {
    Query { pattern: Some(pattern.to_owned()), ..Query::default() }
}

fn starting(prefix: &str) -> Query {
    Query { prefix: Some(prefix.to_owned()), ..Query::default() }
}

fn by_key(query: Query) -> Query {
    Query { order: Order::Key, ..query }
}

fn tagged(key: &str, tags: &[&str]) -> Write {
    Write { tags: owned(tags), ..a_write(key, "1") }
}

/// All pages of a query, one after the other.
fn all_pages(fixture: &Fixture, query: &Query, mut between: impl FnMut(usize)) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut query = query.clone();
    loop {
        let page = fixture.scope().query(&query).unwrap();
        pages.push(page.entries.into_iter().map(|entry| entry.key).collect());
        query.after = page.next;
        if query.after.is_none() {
            return pages;
        }
        between(pages.len());
    }
}

fn query_finds_matches_newest_first(fixture: &Fixture) {
    for key in ["agent:b:results", "agent:a:results", "agent:a:x:results", "agent:a", "task:1", "task:10"] {
        fixture.write(key, "1");
    }
    fixture.write("agent:b:results", "2");
    fixture.board.scope("other").write(&a_write("agent:z:results", "1")).unwrap();
    for (pattern, expected) in [
        ("agent:*:results", &["agent:b:results", "agent:a:x:results", "agent:a:results"][..]),
        ("task:?", &["task:1"]),
        ("task:[0-9]*", &["task:10", "task:1"]),
        ("[!a]*", &["task:10", "task:1"]),
        ("agent:a", &["agent:a"]),
        ("agent", &[]),
        ("*", &["agent:b:results", "task:10", "task:1", "agent:a", "agent:a:x:results", "agent:a:results"]),
    ] {
        assert_eq!(keys(fixture, &matching(pattern)), expected, "{pattern}");
        let mut sorted = expected.to_vec();
        sorted.sort_unstable();
        assert_eq!(keys(fixture, &by_key(matching(pattern))), sorted, "{pattern}");
    }
    let page = fixture.scope().query(&Query::default()).unwrap();
    assert_eq!((page.revision, page.next), (fixture.revision(), None));
    assert_eq!(page.entries[0], fixture.entry("agent:b:results").unwrap());
}

fn every_condition_has_to_hold(fixture: &Fixture) {
    let scope = |author| fixture.scope().acting_as(Actor::author(author));
    scope("Ivy").write(&tagged("task:a", &["urgent", "finance"])).unwrap();
    scope("Ivy").write(&tagged("task:b", &["urgent"])).unwrap();
    scope("Oak").write(&tagged("task:c", &["urgent", "finance"])).unwrap();
    scope("Oak").write(&tagged("result:c", &["urgent", "finance", "x"])).unwrap();
    let urgent = Query { tags: owned(&["urgent"]), ..Query::default() };
    assert_eq!(keys(fixture, &urgent), ["result:c", "task:c", "task:b", "task:a"]);
    let both = Query { tags: owned(&["urgent", "finance"]), ..Query::default() };
    assert_eq!(keys(fixture, &both), ["result:c", "task:c", "task:a"]);
    let tasks = Query { prefix: Some("task:".to_owned()), ..both.clone() };
    assert_eq!(keys(fixture, &tasks), ["task:c", "task:a"]);
    let of_ivy = Query { author: Some("Ivy".to_owned()), ..tasks.clone() };
    assert_eq!(keys(fixture, &of_ivy), ["task:a"]);
    assert!(keys(fixture, &Query { pattern: Some("*c".to_owned()), ..of_ivy }).is_empty());
    assert_eq!(keys(fixture, &Query { pattern: Some("*c".to_owned()), ..tasks.clone() }), ["task:c"]);
    // A prefix and a pattern that contradict each other.
    assert!(keys(fixture, &Query { pattern: Some("result:*".to_owned()), ..tasks.clone() }).is_empty());
    assert!(
        fixture.scope().list(&Query { pattern: Some("result:*".to_owned()), ..tasks }).unwrap().is_empty()
    );
    assert!(keys(fixture, &Query { tags: owned(&["no session has it"]), ..Query::default() }).is_empty());
}

fn limit_and_offset_select_a_part(fixture: &Fixture) {
    for number in 0..105 {
        fixture.write(&format!("{number:03}"), "1");
    }
    let page = fixture.scope().query(&Query::default()).unwrap();
    assert_eq!(page.entries.len(), 100, "if no limit is given");
    assert_eq!(page.next, Some(fixture.id(6).to_string()));
    let part = |order, offset, limit| {
        keys(fixture, &Query { order, offset, limit: Some(limit), ..Query::default() })
    };
    assert_eq!(part(Order::Newest, 0, 2), ["104", "103"]);
    assert_eq!(part(Order::Newest, 103, 5), ["001", "000"]);
    assert_eq!(part(Order::Key, 2, 2), ["002", "003"]);
    assert!(part(Order::Key, 105, 5).is_empty() && part(Order::Key, 0, 0).is_empty());
    let exact = Query { limit: Some(105), ..Query::default() };
    assert_eq!(fixture.scope().query(&exact).unwrap().next, None, "there is no empty page at the end");
}

fn pages_by_key_miss_and_repeat_nothing_under_concurrent_writes(fixture: &Fixture) {
    for key in ["b", "d", "f", "h", "j"] {
        fixture.scope().write(&tagged(key, &["t"])).unwrap();
    }
    for query in [Query::default(), Query { tags: owned(&["t"]), ..Query::default() }, matching("?")] {
        let query = by_key(Query { limit: Some(2), ..query });
        let pages = all_pages(fixture, &query, |_| {
            // Before, at and after the end of the page.
            for key in ["a", "d", "j"] {
                fixture.scope().write(&tagged(key, &["t"])).unwrap();
            }
            fixture.scope().delete("a").unwrap();
        });
        assert_eq!(pages, [owned(&["b", "d"]), owned(&["f", "h"]), owned(&["j"])], "{query:?}");
    }
    // The key at the end of a page may be deleted.
    let query = by_key(Query { limit: Some(2), ..Query::default() });
    let pages = all_pages(fixture, &query, |page| {
        if page == 1 {
            fixture.scope().delete("d").unwrap();
        }
    });
    assert_eq!(pages.concat(), ["b", "d", "f", "h", "j"]);
}

fn pages_of_the_newest_end_under_concurrent_writes(fixture: &Fixture) {
    for key in ["a", "b", "c", "d", "e"] {
        fixture.write(&format!("k:{key}"), "1");
    }
    for query in [Query::default(), starting("k:"), matching("k:*")] {
        let query = Query { limit: Some(2), ..query };
        let pages = all_pages(fixture, &query, |_| drop(fixture.write("k:new", "1")));
        assert_eq!(pages.concat().len(), 5, "{query:?}: {pages:?}");
        let mut seen = pages.concat();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 5, "nothing comes twice");
        fixture.scope().delete("k:new").unwrap();
    }
}

fn prefix_ends_correctly_for_any_last_character(fixture: &Fixture) {
    let prefixes = [
        "a",
        "a\u{7f}x",
        "\u{d7ff}",
        "a\u{d7ff}",
        "\u{e000}",
        "\u{ffff}",
        "\u{10ffff}",
        "a\u{10ffff}\u{10ffff}",
    ];
    for prefix in prefixes {
        if crate::entry::check_key("team", prefix).is_err() {
            continue;
        }
        fixture.scope().clear("*").unwrap();
        let inside = ["", "!", "z", "\u{d7ff}", "\u{e000}", "\u{10ffff}", "\u{10ffff}\u{10ffff}"];
        let mut inside: Vec<_> = inside.iter().map(|end| format!("{prefix}{end}")).collect();
        for key in &inside {
            fixture.scope().write(&tagged(key, &["t"])).unwrap();
        }
        for key in ["A", "b", "\u{d7fe}", "\u{e001}", "\u{10fffe}", "\u{fffe}"] {
            fixture.scope().write(&tagged(key, &["t"])).unwrap();
        }
        inside.sort();
        assert_eq!(keys(fixture, &by_key(starting(prefix))), inside, "{prefix:?}");
        let pages = all_pages(fixture, &by_key(Query { limit: Some(2), ..starting(prefix) }), |_| {});
        assert_eq!(pages.concat(), inside, "{prefix:?}");
        let with_tag = Query { tags: owned(&["t"]), ..by_key(starting(prefix)) };
        assert_eq!(keys(fixture, &with_tag), inside, "{prefix:?}");
    }
}

/// Above some sizes a query reads in parts, or uses another index. The answers have to be the same.
fn large_scopes_give_the_same_answers_as_small_ones(fixture: &Fixture) {
    let count = 12_000;
    let writes: Vec<_> = (0..count).map(|number| tagged(&format!("k:{number:05}"), &["t"])).collect();
    for part in writes.chunks(6000) {
        fixture.scope().write_batch(part).unwrap();
    }
    fixture.write("z", "1");
    let newest = |query: Query, after: Option<&str>| {
        let query = Query { limit: Some(2), after: after.map(str::to_owned), ..query };
        let page = fixture.scope().query(&query).unwrap();
        (page.entries.into_iter().map(|entry| entry.key).collect::<Vec<_>>(), page.next)
    };
    let with_tag = || Query { tags: owned(&["t"]), ..Query::default() };
    for query in
        [starting("k:"), with_tag(), matching("k:*"), Query { prefix: Some("k:".to_owned()), ..with_tag() }]
    {
        let (first, next) = newest(query.clone(), None);
        let expected = (owned(&["k:11999", "k:11998"]), Some(fixture.id(11999).to_string()));
        assert_eq!((first, next), expected, "{query:?}");
        let (last, next) = newest(query.clone(), Some(&fixture.id(3).to_string()));
        assert_eq!((last, next), (owned(&["k:00001", "k:00000"]), None), "{query:?}");
    }
    let rare = matching("*00");
    assert_eq!(
        fixture.scope().query(&Query { limit: Some(1000), ..rare.clone() }).unwrap().entries.len(),
        120
    );
    assert_eq!(keys(fixture, &by_key(rare))[1], "k:00100");
    assert_eq!(fixture.scope().list(&with_tag()).unwrap().len(), count);
    assert_eq!(fixture.scope().snapshot(&starting("k:119")).unwrap().entries.len(), 100);
    fixture.pass(100);
    fixture.write("k:00500", "2");
    let recent = Query { updated_since: Some(fixture.now()), ..Query::default() };
    assert_eq!(keys(fixture, &recent), ["k:00500"]);
    assert_eq!(keys(fixture, &Query { prefix: Some("k:".to_owned()), ..recent }), ["k:00500"]);
}

fn a_list_and_a_snapshot_have_everything_by_key(fixture: &Fixture) {
    let writes: Vec<_> = (0..150).map(|number| a_write(&format!("{number:03}"), "1")).collect();
    fixture.scope().write_batch(&writes).unwrap();
    let list = fixture.scope().list(&Query::default()).unwrap();
    assert_eq!(list.len(), 150);
    assert!(list.is_sorted_by(|a, b| a.key < b.key));
    let snapshot = fixture.scope().snapshot(&Query::default()).unwrap();
    assert_eq!(snapshot.revision, fixture.revision());
    assert_eq!(snapshot.entries, fixture.board.export().unwrap().entries);
    let some = fixture.scope().list(&matching("14?")).unwrap();
    assert_eq!(some.len(), 10);
    let short = Write { ttl: Some(Duration::from_secs(5)), ..a_write("short", "1") };
    let expires_at = fixture.scope().write(&short).unwrap().expires_at;
    assert_eq!(fixture.scope().list(&matching("short")).unwrap()[0].expires_at, expires_at);
}

fn list_has_the_requested_part(fixture: &Fixture) {
    fixture.scope().write_batch(&["a", "b", "c", "d"].map(|key| a_write(key, "1"))).unwrap();
    let page = |after: Option<&str>, offset, limit| {
        let query = Query { after: after.map(str::to_owned), offset, limit, ..Query::default() };
        let listed = fixture.scope().list(&query).unwrap();
        listed.into_iter().map(|listed| listed.key).collect::<String>()
    };
    assert_eq!(page(None, 0, None), "abcd");
    assert_eq!(page(None, 0, Some(2)), "ab");
    assert_eq!(page(Some("b"), 0, Some(1)), "c");
    assert_eq!(page(Some("a"), 1, None), "cd");
}

fn a_list_reads_no_values_where_an_index_decides(fixture: &Fixture) {
    fixture.scope().write_batch(&[tagged("a", &["x"]), tagged("b", &["x", "y"]), tagged("c", &[])]).unwrap();
    let values = ValuesRead::on(fixture.board.clone(), fixture.clock.clone());
    let read = |query: &Query| {
        let listed = values.board.scope(fixture.scope().name()).list(query).unwrap();
        (listed.len(), values.take() / fixture.runs_of_a_read())
    };
    assert_eq!(read(&Query { tags: owned(&["x"]), ..Query::default() }), (2, 0));
    assert_eq!(read(&Query { tags: owned(&["x"]), limit: Some(1), ..Query::default() }), (1, 0));
    assert_eq!(read(&Query { prefix: Some("a".to_owned()), ..Query::default() }), (1, 0));
    assert_eq!(read(&Query { tags: owned(&["x", "y"]), ..Query::default() }), (1, 2));
}

fn tags_are_found_as_long_as_an_entry_has_them(fixture: &Fixture) {
    let with = |tag: &str| keys(fixture, &Query { tags: owned(&[tag]), ..Query::default() });
    fixture.scope().write(&tagged("a", &["x", "y"])).unwrap();
    assert_eq!((with("x"), with("y")), (owned(&["a"]), owned(&["a"])));
    fixture.scope().write(&tagged("a", &["y", "z"])).unwrap();
    assert_eq!((with("x"), with("y"), with("z")), (vec![], owned(&["a"]), owned(&["a"])));
    fixture.scope().delete("a").unwrap();
    assert!(with("y").is_empty());
    fixture.write("a", "1");
    assert!(with("y").is_empty() && with("z").is_empty());
    // In one commit, the last write counts.
    fixture.scope().write_batch(&[tagged("b", &["x"]), tagged("b", &["y"])]).unwrap();
    assert_eq!((with("x"), with("y")), (vec![], owned(&["b"])));
    fixture.board.scope("other").write(&tagged("c", &["y"])).unwrap();
    assert_eq!(with("y"), ["b"]);
    // Tags whose names and keys would be the same if they were joined.
    fixture.scope().write(&tagged("q", &["y b"])).unwrap();
    assert_eq!((with("y"), with("y b")), (owned(&["b"]), owned(&["q"])));
}

fn time_and_author_of_the_last_write_count(fixture: &Fixture) {
    let since = |seconds: u64| Query {
        updated_since: Some(fixture.now().minus(Duration::from_secs(seconds))),
        ..Query::default()
    };
    let scope = |author| fixture.scope().acting_as(Actor::author(author));
    scope("Ivy").write(&a_write("a", "1")).unwrap();
    scope("Ivy").write(&a_write("b", "1")).unwrap();
    fixture.pass(10);
    scope("Oak").write(&a_write("a", "2")).unwrap();
    assert_eq!(keys(fixture, &since(0)), ["a"]);
    assert_eq!(keys(fixture, &since(9)), ["a"]);
    assert_eq!(keys(fixture, &since(10)), ["a", "b"]);
    assert_eq!(keys(fixture, &by_key(since(9))), ["a"]);
    assert_eq!(keys(fixture, &Query { author: Some("Ivy".to_owned()), ..Query::default() }), ["b"]);
    assert_eq!(keys(fixture, &Query { author: Some("Oak".to_owned()), ..since(10) }), ["a"]);
    // Entries that were written before the oldest kept event are found as well.
    fixture.pass_days(31);
    fixture.write("c", "1");
    while fixture.board.prune().unwrap().more {}
    assert_eq!(keys(fixture, &since(40 * 86_400)), ["c", "a", "b"]);
    assert_eq!(keys(fixture, &since(86_400)), ["c"]);
}
