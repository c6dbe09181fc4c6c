//! Pages: cut off where it was asked for, and put together they are the whole, whatever happens meanwhile.

use blackboard::Board;
use blackboard::entry::{Value as EntryValue, Write};
use blackboard::work::{Create, Priority};
use serde_json::Value;

use crate::scratch::Scratch;
use crate::served::Served;

/// Many items, events and entries.
fn large() -> Served {
    let scratch = Scratch::new();
    let board = Board::open(&scratch.database()).unwrap();
    for number in 0..157 {
        let priority = Some(Priority::ALL[number % 3]);
        board
            .work()
            .create(&Create { priority, ..Create::new(&format!("item #{number}"), "A task") })
            .unwrap();
        let scope = format!("scope-{}", number % 4);
        board
            .scope(&scope)
            .write(&Write::new(&format!("key:{number}"), EntryValue::of(&number).unwrap()))
            .unwrap();
    }
    drop(board);
    Served::of(scratch, 0)
}

/// Follows the pages of a bare list.
fn bare(served: &Served, path: &str, column: &str, each: impl Fn(usize)) -> Vec<Value> {
    let (mut found, mut next, mut page) = (Vec::new(), None::<String>, 0);
    loop {
        let place = next.map_or(String::new(), |next| format!("&after={next}"));
        let reply = served.get(&format!("{path}{place}"));
        assert_eq!(reply.status, 200);
        found.extend(reply.json().as_array().unwrap().iter().map(|row| row[column].clone()));
        next = reply.header("blackboard-next").map(str::to_owned);
        if next.is_none() {
            return found;
        }
        each(page);
        page += 1;
    }
}

#[test]
fn pages_of_work_and_events_are_stable_while_others_write() {
    let served = large();
    let all = |path: &str, column: &str| -> Vec<Value> {
        served.json(path).as_array().unwrap().iter().map(|row| row[column].clone()).collect()
    };
    let (work, events) = (all("/api/work", "item_id"), all("/api/events?limit=1000", "id"));
    assert_eq!((work.len(), events.len()), (157, 314));
    let board = Board::open(&served.database()).unwrap();
    let disturb = |page: usize| {
        let id = format!("new {page}");
        board.work().create(&Create { priority: Some(Priority::P1), ..Create::new(&id, "New") }).unwrap();
    };
    assert_eq!(bare(&served, "/api/work?limit=10", "item_id", disturb), work);
    let last = events[0].as_i64().unwrap() + 1;
    let (mut paged, mut before) = (Vec::new(), Some(last.to_string()));
    while let Some(place) = before {
        let reply = served.get(&format!("/api/events?limit=7&before={place}"));
        paged.extend(reply.json().as_array().unwrap().iter().map(|event| event["id"].clone()));
        before = reply.header("blackboard-next").map(str::to_owned);
    }
    assert_eq!(paged, events);
}

#[test]
fn pages_of_entries_go_through_every_scope() {
    let served = large();
    let key =
        |entry: &Value| format!("{}/{}", entry["scope"].as_str().unwrap(), entry["key"].as_str().unwrap());
    let all = served.json("/api/entries?limit=1000");
    let all: Vec<String> = all["items"].as_array().unwrap().iter().map(key).collect();
    assert_eq!(all.len(), 157);
    assert!(all.is_sorted());
    for limit in [1, 10, 39, 40, 157] {
        let (mut found, mut next) = (Vec::new(), String::new());
        loop {
            let page = served.json(&format!("/api/entries?limit={limit}{next}"));
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= limit && page["count"] == items.len());
            found.extend(items.iter().map(key));
            let Some(after) = page.get("next") else { break };
            let after = after.as_str().unwrap().replace('\n', "%0A");
            next = format!("&after={after}");
        }
        assert_eq!(found, all, "pages of {limit}");
    }
}

#[test]
fn large_entries_are_shortened_in_lists_and_end_a_page() {
    let scratch = Scratch::new();
    let board = Board::open(&scratch.database()).unwrap();
    let long = "ü".repeat(300_000);
    for number in 0..20 {
        let scope = if number < 10 { "first" } else { "second" };
        let write = Write::new(&format!("key:{number:02}"), EntryValue::of(&long).unwrap());
        board.scope(scope).write(&write).unwrap();
    }
    let list = EntryValue::of(&vec![1; 5000]).unwrap();
    board.scope("third").write(&Write::new("list", list)).unwrap();
    for number in 0..20 {
        let value = EntryValue::of(&format!("{number} {long}")).unwrap();
        board.scope("first").write(&Write::new("key:00", value)).unwrap();
    }
    board.scope("first").write(&Write::new("key:00", EntryValue::of(&long).unwrap())).unwrap();
    board.scope("third").write(&Write::new("small", EntryValue::of("as it is").unwrap())).unwrap();
    drop(board);
    let served = Served::of(scratch, 0);
    for (path, expected) in [("/api/entries?limit=1000", 22), ("/api/entries?limit=1000&scope=first", 10)] {
        let (mut found, mut next, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let reply = served.get(&format!("{path}{next}"));
            assert!(reply.body.len() < 500_000, "{} bytes", reply.body.len());
            let page = reply.json();
            found.extend(page["items"].as_array().unwrap().iter().cloned());
            pages += 1;
            let Some(after) = page.get("next") else { break };
            next = format!("&after={}", after.as_str().unwrap().replace('\n', "%0A"));
        }
        let keys: Vec<_> = found.iter().map(|entry| entry["key"].as_str().unwrap().to_owned()).collect();
        assert_eq!(keys.len(), expected, "{keys:?}");
        assert!(keys.is_sorted(), "none is missing, and none comes twice: {keys:?}");
        assert!(pages > 1, "so much is not read for one page");
        assert_eq!((&found[0]["truncated"], &found[0]["value"]), (&true.into(), &"ü".repeat(2048).into()));
        if expected == 22 {
            let list = found[20]["value"].as_str().unwrap();
            assert!(list.starts_with("[1,1,") && list.len() == 4096 && found[20]["truncated"] == true);
            assert_eq!(found[21]["value"], "as it is");
            assert!(found[21].get("truncated").is_none());
        }
    }
    let whole = served.json("/api/entries/history?scope=first&key=key:00&limit=1");
    assert_eq!(whole["items"][0]["value"], long);
    let versions = served.json("/api/entries/history?scope=first&key=key:00&limit=200");
    let versions = versions["items"].as_array().unwrap();
    assert_eq!(versions[0]["value"], long);
    assert!((2..10).contains(&versions.len()), "{} versions of 600 kB", versions.len());
}

/// The keys that a search finds, page by page, and how many entries it looked through.
fn search(served: &Served, query: &str) -> (Vec<String>, u64, usize) {
    let (mut found, mut searched, mut pages, mut next) = (Vec::new(), 0, 0, String::new());
    loop {
        let page = served.json(&format!("/api/entries?{query}{next}"));
        let items = page["items"].as_array().unwrap();
        found.extend(items.iter().map(|entry| entry["key"].as_str().unwrap().to_owned()));
        searched += page["searched"].as_u64().unwrap();
        pages += 1;
        let Some(after) = page.get("next") else { return (found, searched, pages) };
        next = format!("&after={}", after.as_str().unwrap().replace('\n', "%0A"));
    }
}

#[test]
fn a_search_looks_through_all_entries_and_reports_how_many() {
    let scratch = Scratch::new();
    let board = Board::open(&scratch.database()).unwrap();
    for batch in 0..41 {
        board
            .transaction(|tx| {
                for number in 0..500 {
                    let number = batch * 500 + number;
                    let scope = if number < 300 { "a" } else { "b" };
                    let key = format!("fact:{}:{number:05}", number % 200);
                    tx.scope(scope).write(&Write::new(&key, EntryValue::of(&number)?))?;
                }
                Ok(())
            })
            .unwrap();
    }
    let long = format!("{} Ümlaut at its \"end\"", "x".repeat(50_000));
    let tags = vec!["Tagged".to_owned()];
    board.scope("b").write(&Write { tags, ..Write::new("long", EntryValue::of(&long).unwrap()) }).unwrap();
    let spaced = EntryValue::parse(r#"{ "a" : [ 1 , "\u00e4" ] }"#, 1000).unwrap();
    board.scope("c").write(&Write::new("spaced", spaced)).unwrap();
    drop(board);
    let served = Served::of(scratch, 0);
    let found = |query: &str| search(&served, query).0;
    let keys = |found: &[String], expected: &[&str]| assert_eq!(found, expected);
    // The last entry but two, which is behind what one answer searches.
    let (last, searched, pages) = search(&served, "search=20499");
    keys(&last, &["fact:99:20499"]);
    assert_eq!((searched, pages), (20_502, 2));
    let first = served.json("/api/entries?search=no+such+thing");
    assert_eq!((&first["count"], &first["searched"]), (&0.into(), &20_000.into()));
    assert!(first["next"].is_string(), "it does not say that there is nothing");
    keys(&found("search=no+such+thing"), &[]);
    // Whole values, tags, any case, several words, as people read them.
    for query in ["%C3%BCMLAUT", "TAGGED", "end+x+tagged", "its+%22end%22", "xxxx"] {
        keys(&found(&format!("scope=b&search={query}")), &["long"]);
    }
    for query in ["%22a%22:%5B1,%22%C3%A4%22%5D", "%5Cu00e4", "%C3%A4+spaced"] {
        keys(&found(&format!("scope=c&search={query}")), &["spaced"]);
    }
    keys(&found("scope=a&search=20499"), &[]);
    keys(&found("search=fact:99:&prefix=long"), &[]);
    // Pages of any size give the same, and nothing twice.
    let all = found("scope=a&search=fact&limit=1000");
    assert_eq!(all.len(), 300);
    for limit in [1, 7, 299, 300] {
        let (same, count, _) = search(&served, &format!("scope=a&search=fact&limit={limit}"));
        assert_eq!((same, count), (all.clone(), 300), "pages of {limit}");
    }
    let many = "a+".repeat(17);
    assert_eq!(served.get(&format!("/api/entries?search={many}")).status, 400);
}
