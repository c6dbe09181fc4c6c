//! A board with many rows and many events is shown like any other.

use blackboard::agent::Register;
use blackboard::entry::{Value, Write};
use blackboard::work::{Claim, Complete, Create};

use crate::browser::Browser;
use crate::site::Site;
use crate::timeline::{slide, top_row};

const AGENTS: usize = 500;
const ITEMS: usize = 5000;
const EVENTS: u32 = 100_000;

#[test]
fn page_shows_all_of_many_rows_and_keeps_few_in_the_document() {
    let site = Site::new();
    let board = site.library();
    for index in 0..AGENTS {
        let request =
            Register { pid: Some(std::process::id()), ..Register::named(&format!("Agent {index}")) };
        board.agents().register(&request).unwrap();
    }
    for index in 0..ITEMS {
        board.work().create(&Create::new(&format!("item-{index}"), &format!("Item {index}"))).unwrap();
    }
    // The rest of a long log, which commands would take minutes to write.
    site.tamper(
        "INSERT INTO events (id, timestamp, event_type, summary, commit_id)
         WITH RECURSIVE numbers(id) AS
           (SELECT max(id) + 1 FROM events UNION ALL SELECT id + 1 FROM numbers WHERE id < ?1)
         SELECT id, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'heartbeat_received', 'Step ' || id, id FROM numbers",
        [EVENTS],
    );
    let board = site.library();
    let Some(browser) = Browser::start() else { return };
    browser.open(site.address());
    browser.until_says("#agents-count", &AGENTS.to_string());
    browser.until_says("#work-count", &ITEMS.to_string());
    // The last of them can be reached.
    for (table, last) in [("agents-table", "Agent 0"), ("work-table", "Item 4999")] {
        browser.script(&format!(
            "const scroller = document.getElementById('{table}').closest('.rows'); scroller.scrollTop = scroller.scrollHeight"
        ));
        browser.until_says(&format!("#{table} tbody td"), last);
    }
    browser.view("work");
    browser.until_says(".column[data-status=available] .count", &ITEMS.to_string());
    browser.view("agents");
    browser.until_says("#tree-count", &AGENTS.to_string());
    let elements = browser.script("return document.querySelectorAll('*').length").as_u64().unwrap();
    assert!(elements < 5000, "{elements} elements are in the document");

    // The page follows many changes; at the end it shows the current state.
    browser.view("overview");
    for index in 0..2000 {
        board.work().create(&Create::new(&format!("more-{index}"), &format!("More {index}"))).unwrap();
    }
    browser.until_says("#work-count", &(ITEMS + 2000).to_string());
    browser.until_says("#revision", &(EVENTS + 2000).to_string());
    browser.until_says("#events-table tbody td", "Work item \"More 1999\" created");
    browser.view("timeline");
    browser.until_says("#timeline-table tbody td", "Work item \"More 1999\" created");
    // Every position of the event log takes the same time, and matching events are found at all of them.
    for revision in [50_000, 7, 99_000] {
        slide(&browser, revision);
        top_row(&browser, revision);
    }
    browser.click("#timeline-live");
    browser.click(".chip.kind-agents");
    browser.until_says("#timeline-table tbody td", &format!("Agent \"Agent {}\" registered", AGENTS - 1));
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn page_finds_scopes_and_keys_beyond_the_entries_that_it_read() {
    let site = Site::new();
    let board = site.library();
    let write = |scope: &str, key: &str| {
        board.scope(scope).write(&Write::new(key, Value::of(&"a fact").unwrap())).unwrap();
    };
    for index in 0..1001 {
        write("first", &format!("key-{index:04}"));
    }
    write("second", "zebra:stripes");
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#entries", site.address()));
    let keys = |keys: &[&str]| {
        let script = format!(
            "const rows = [...document.querySelectorAll('#entries-table tbody tr:not(.group)')];
             return JSON.stringify(rows.map(row => row.item.key)) === {}",
            serde_json::Value::from(serde_json::to_string(keys).unwrap()),
        );
        browser.until(&format!("the keys are {keys:?}"), &script);
    };
    let set = |id: &str, value: &str, event: &str| {
        browser.script(&format!(
            "const element = document.getElementById('{id}'); element.value = '{value}'; \
             element.dispatchEvent(new Event('{event}'))"
        ));
    };
    browser.until_says("#entries-read", "1,000 of 1,002 entries loaded");
    browser.until_says("#entries-count", "1000 of 1002");
    set("entries-find", "stripes zebra", "input");
    keys(&["zebra:stripes"]);
    set("entries-find", "no such thing", "input");
    keys(&[]);
    browser.until_says("#entries-empty", "No matching entries.");
    set("entries-find", "", "input");

    browser.until_says("#entries-scope option", "second");
    set("entries-scope", "second", "change");
    keys(&["zebra:stripes"]);
    browser.until("all of it was read", "return document.getElementById('entries-foot').hidden");
    set("entries-find", "key-1000", "input");
    keys(&[]);
    browser.until_says("#entries-empty", "No matching entries.");
    set("entries-scope", "first", "change");
    keys(&["key-1000"]);
    set("entries-find", "", "input");
    browser.until_says("#entries-read", "1,000 of 1,001 entries loaded");
    browser.click("#entries-more");
    browser.until("all of it was read", "return document.getElementById('entries-foot').hidden");
    browser.until_says("#entries-count", "1001");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn search_finds_entries_that_the_page_did_not_read_and_reports_its_limit() {
    let site = Site::new();
    let board = site.library();
    // Values of which a list has only the beginning.
    let write = |key: &str, value: &str| {
        let value = format!("{}{value}", "long ".repeat(2000));
        board.scope("team").write(&Write::new(key, Value::of(&value).unwrap())).unwrap();
    };
    for index in 0..1100 {
        write(&format!("fact:{index:04}"), &format!("number {index}"));
    }
    write("zz", "needle");
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#entries", site.address()));
    browser.until_says("#entries-read", "entries loaded");
    let find = |text: &str| {
        browser.script(&format!(
            "const find = document.getElementById('entries-find'); find.value = '{text}'; \
             find.dispatchEvent(new Event('input'))"
        ));
    };
    let shown = |keys: &[&str]| {
        let script = format!(
            "const rows = [...document.querySelectorAll('#entries-table tbody tr:not(.group)')];
             return JSON.stringify(rows.map(row => row.item.key)) === {}",
            serde_json::Value::from(serde_json::to_string(keys).unwrap()),
        );
        browser.until(&format!("the keys are {keys:?}"), &script);
    };
    find("1099");
    shown(&["fact:1099"]);
    // It is at the end of a long value, of the last entry.
    find("Needle");
    shown(&["zz"]);
    // What is written now is found too.
    write("yy", "a second needle");
    shown(&["yy", "zz"]);

    // A server that searches only some at a time: entries that were not searched are not reported as missing.
    browser.script(
        "const ask = fetch;
         window.fetch = async (path, ...rest) => {
           if (!path.startsWith('/api/entries?') || !path.includes('search=')) return ask(path, ...rest);
           const after = Number(new URL(path, location).searchParams.get('after') ?? 0);
           const more = after + 100;
           const answer = { ok: true, count: 0, items: [], searched: 100, revision: 0 };
           if (more < 1000) answer.next = String(more);
           else answer.items = [{ scope: 'team', key: 'found', value: 1, version: 1, updated_by: 'x', updated_at: null }];
           return new Response(JSON.stringify(answer), { headers: { 'Blackboard-Revision': '99999' } });
         };",
    );
    find("elsewhere");
    browser.until_says("#entries-empty", "No match so far. Searched 500 of 1,102 entries.");
    browser.until_says("#entries-more", "Search more");
    browser.click("#entries-more");
    shown(&["found"]);
    // Nothing is reported as missing before the answer arrives.
    browser.script("window.fetch = () => new Promise(() => {})");
    find("never");
    browser.until_says("#entries-empty", "Searching…");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn page_shows_the_last_completed_items_of_many() {
    let site = Site::new();
    let board = site.library();
    let request = Register { pid: Some(std::process::id()), ..Register::named("Ivy") };
    let session = board.agents().register(&request).unwrap().agent.session_id;
    for index in 0..1001 {
        board.work().create(&Create::new(&format!("item-{index}"), &format!("Item {index}"))).unwrap();
    }
    for index in 1..1001 {
        let id = format!("item-{index}");
        board.work().claim(&Claim::of(&id, &session)).unwrap();
        board.work().complete(&Complete::of(&id, &session)).unwrap();
    }
    // The oldest of all is completed last; by a command, which takes longer than a tick of the clock.
    site.json(&["work", "claim", "item-0", "--session", &session]);
    site.json(&["work", "complete", "item-0", "--session", &session]);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#work", site.address()));
    let first = |title: &str| {
        let script = format!(
            "const card = document.querySelector('.column[data-status=completed] .item-title');
             return card && card.textContent === '{title}'"
        );
        browser.until(&format!("{title} is the first"), &script);
    };
    first("Item 0");
    browser.until_says(".column[data-status=completed] .count", "1000+");
}
