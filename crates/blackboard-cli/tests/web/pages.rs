//! Pages end at their limit, and together they are complete, whatever is written meanwhile. Gaps between ids are written into a
//! file, and the search of many entries runs on one.

use blackboard::entry::{Value as EntryValue, Write};
use blackboard::work::{Create, Priority};
use serde_json::Value;

use crate::client::Events;
use crate::scratch::Scratch;
use crate::served::Served;

testkit::on_each_engine![
    pages_of_work_and_events_are_stable_while_others_write,
    events_have_positions_among_those_that_are_kept,
    pages_of_entries_go_through_every_scope,
    large_entries_are_shortened_in_lists_and_end_a_page,
];

/// Many items, events and entries.
fn large() -> Served {
    Served::of(large_board(), 0)
}

fn large_board() -> Scratch {
    let scratch = Scratch::new();
    let board = scratch.board();
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
    scratch
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

fn pages_of_work_and_events_are_stable_while_others_write() {
    let served = large();
    let all = |path: &str, column: &str| -> Vec<Value> {
        served.json(path).as_array().unwrap().iter().map(|row| row[column].clone()).collect()
    };
    let (work, events) = (all("/api/work", "item_id"), all("/api/events?limit=1000", "id"));
    assert_eq!((work.len(), events.len()), (157, 314));
    let board = served.scratch.board();
    let disturb = |page: usize| {
        let id = format!("new {page}");
        board.work().create(&Create { priority: Some(Priority::P1), ..Create::new(&id, "New") }).unwrap();
    };
    assert_eq!(bare(&served, "/api/work?limit=10", "item_id", disturb), work);
    let (mut paged, mut place) = (Vec::new(), Some(format!("until={}", events[0])));
    while let Some(from) = place {
        let reply = served.get(&format!("/api/events?limit=7&{from}"));
        paged.extend(reply.json().as_array().unwrap().iter().map(|event| event["id"].clone()));
        place = reply.header("blackboard-next").map(|next| format!("before={next}"));
    }
    assert_eq!(paged, events);
}

/// The ids of events, and the headers that say where in the log they are: how many it has, the oldest, and the positions.
fn placed(served: &Served, query: &str) -> (Vec<i64>, [Option<String>; 3]) {
    let reply = served.get(&format!("/api/events?{query}"));
    let ids = reply.json().as_array().unwrap().iter().map(|event| event["id"].as_i64().unwrap()).collect();
    let headers = ["blackboard-events", "blackboard-oldest", "blackboard-positions"];
    (ids, headers.map(|name| reply.header(name).map(str::to_owned)))
}

/// All events page by page, the oldest first, and how many pages that took.
fn all_forwards(served: &Served, limit: usize, filter: &str) -> (Vec<i64>, usize) {
    let (mut found, mut pages, mut after) = (Vec::new(), 0, "0".to_owned());
    loop {
        let reply = served.get(&format!("/api/events?order=oldest&limit={limit}&after={after}{filter}"));
        found.extend(reply.json().as_array().unwrap().iter().map(|event| event["id"].as_i64().unwrap()));
        pages += 1;
        match reply.header("blackboard-next") {
            Some(next) => next.clone_into(&mut after),
            None => return (found, pages),
        }
    }
}

fn write_past_the_engine(scratch: &Scratch, sql: &str) {
    let connection = rusqlite::Connection::open(scratch.database()).unwrap();
    connection.busy_timeout(testkit::patience()).unwrap();
    connection.execute_batch(sql).unwrap();
}

fn events_have_positions_among_those_that_are_kept() {
    let served = large();
    let some = |kept: i64, oldest: i64, positions: &str| {
        [Some(kept.to_string()), Some(oldest.to_string()), Some(positions.to_owned())]
    };
    assert_eq!(placed(&served, "position=9&limit=3"), (vec![9, 8, 7], some(314, 1, "9,7")));
    assert_eq!(placed(&served, "limit=2"), (vec![314, 313], some(314, 1, "314,313")));
    assert_eq!(placed(&served, "position=99999&limit=1"), (vec![314], some(314, 1, "314,314")));
    let (ids, [kept, _, positions]) = placed(&served, "position=0");
    assert_eq!((ids, kept.as_deref(), positions), (vec![], Some("314"), None));
    assert_eq!(all_forwards(&served, 50, ""), ((1..=314).collect(), 7));
    let (created, _) = all_forwards(&served, 50, "&types=work_created");
    assert_eq!(created.len(), 157);
    served.scratch.prune(300, &[]);
    assert_eq!(placed(&served, "position=3&limit=2"), (vec![303, 302], some(14, 301, "3,2")));
    assert_eq!(all_forwards(&served, 5, ""), ((301..=314).collect(), 3));
}

#[test]
fn every_event_is_found_in_a_file_whose_ids_have_gaps() {
    let scratch = large_board();
    // SQLite assigns ids without gaps. A file with gaps is a copy of a board on another engine. It is complete before it is
    // served.
    write_past_the_engine(
        &scratch,
        "PRAGMA foreign_keys = OFF;
         UPDATE events SET id = id + 40000, commit_id = commit_id + 40000 WHERE id > 200;
         UPDATE events SET id = id + 900, commit_id = commit_id + 900 WHERE id > 100 AND id <= 200;
         INSERT INTO event_gaps (first_id, ordinal) VALUES (1001, 101), (40201, 201);",
    );
    let served = Served::of(scratch, 0);
    let log: Vec<i64> = (1..=100).chain(1001..=1100).chain(40_201..=40_314).collect();
    assert_eq!(all_forwards(&served, 30, "").0, log);
    let (mut paged, mut place) = (Vec::new(), "after=0".to_owned());
    loop {
        let reply = served.get(&format!("/api/events?limit=30&{place}"));
        paged.extend(reply.json().as_array().unwrap().iter().map(|event| event["id"].as_i64().unwrap()));
        let Some(next) = reply.header("blackboard-next") else { break };
        place = format!("before={next}");
    }
    assert!(paged.iter().rev().eq(&log), "{paged:?}");
    for (until, expected) in [(1000, 100), (1001, 1001), (40_000, 1100), (99_999, 40_314)] {
        assert_eq!(placed(&served, &format!("until={until}&limit=1")).0, [expected]);
    }
    // A stream continues from a revision in a gap.
    let mut events = Events::follow(served.port, Some(500), None).unwrap();
    let told: Vec<i64> = (100..log.len()).map(|_| events.next().unwrap().id).collect();
    assert_eq!(told, log[100..]);
}

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

fn large_entries_are_shortened_in_lists_and_end_a_page() {
    let scratch = Scratch::new();
    let board = scratch.board();
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

/// The keys that a search finds, page by page, and the number of entries that it searched.
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
    let board = scratch.board();
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
    // The third entry from the end, which is beyond what one answer searches.
    let (last, searched, pages) = search(&served, "search=20499");
    keys(&last, &["fact:99:20499"]);
    assert_eq!((searched, pages), (20_502, 2));
    let first = served.json("/api/entries?search=no+such+thing");
    assert_eq!((&first["count"], &first["searched"]), (&0.into(), &20_000.into()));
    assert!(first["next"].is_string(), "it does not say that there is nothing");
    keys(&found("search=no+such+thing"), &[]);
    // Complete values, tags, any case, several words, as they are displayed.
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
