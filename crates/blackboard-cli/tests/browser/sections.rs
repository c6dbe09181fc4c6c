//! Every section agrees with the commands.

use serde_json::Value;

use crate::browser::Browser;
use crate::scratch::with_dying_process;
use crate::site::Site;

/// A board with some of everything: who is on it.
pub struct Team {
    pub ivy: String,
    pub delegate: String,
    pub sage: String,
}

/// Puts some of everything on a board.
pub fn furnish(site: &Site) -> Team {
    site.json(&["project", "register", "--id", "shop", "--name", "Web shop", "--path", "/srv/shop"]);
    let ivy = site.agent(&["--name", "Ivy", "--project", "shop", "--work", "Planning"]);
    let delegate = site.agent(&["--parent", &ivy, "--work", "Running the tests"]);
    let sage = site.agent(&["--name", "Sage"]);
    for (id, title, priority) in [("schema", "Design the schema", "P1"), ("routes", "Write the routes", "P2")]
    {
        site.json(&[
            "work",
            "create",
            "--id",
            id,
            "--title",
            title,
            "--priority",
            priority,
            "--project",
            "shop",
        ]);
    }
    site.json(&[
        "work",
        "create",
        "--id",
        "docs",
        "--title",
        "Document the routes",
        "--blocked-by",
        "routes",
    ]);
    site.json(&["work", "create", "--id", "gh:acme/shop#7", "--title", "Fix the login", "--priority", "P3"]);
    site.json(&["work", "claim", "schema", "--session", &ivy]);
    site.json(&["work", "claim", "gh:acme/shop#7", "--session", &sage]);
    site.json(&["work", "complete", "gh:acme/shop#7", "--session", &sage]);
    site.json(&["agent", "heartbeat", "--session", &ivy, "--progress", "Half of the tables are there"]);
    site.json(&["write", "decision:db", r#"{"engine":"sqlite","rows":9007199254740993}"#, "--session", &ivy]);
    site.json(&[
        "write",
        "decision:db",
        r#"{"engine":"sqlite","rows":12}"#,
        "--tag",
        "db",
        "--session",
        &sage,
    ]);
    site.json(&["write", "plan", "\"ship it\"", "--scope", "swarm", "--session", &sage]);
    site.json(&["lock", "acquire", "deploy", "--session", &ivy, "--note", "shipping"]);
    site.json(&["file", "reserve", "src/**", "--session", &sage]);
    Team { ivy, delegate, sage }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("--").to_owned()
}

fn items(answer: &Value) -> &[Value] {
    answer["items"].as_array().unwrap()
}

#[test]
fn agent_whose_process_has_ended_is_shown_as_gone() {
    let site = Site::new();
    site.json(&["project", "register", "--id", "shop", "--name", "Web shop"]);
    let register = |pid: &str| site.agent(&["--name", "Oak", "--project", "shop", "--pid", pid]);
    with_dying_process(register);
    let Some(browser) = Browser::start() else { return };
    browser.open(site.address());
    browser.until_says("#agents-table .status", "active, gone");
    browser.until_says("#agents-count", "1, 1 gone");
    browser.view("agents");
    browser.until_says("#agents-tree .status", "active, gone");
    browser.view("projects");
    browser.until_says("#projects-table td.number", "1, 1 gone");
}

#[test]
fn overview_agrees_with_the_commands() {
    let site = Site::new();
    let team = furnish(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(site.address());

    let status = site.json(&["status"]);
    let number = |group: &str, name: &str| status[group][name].to_string();
    let cards = [
        ("Active Agents", number("agents", "active")),
        ("Stale Agents", number("agents", "stale")),
        ("Claimed Items", number("work_items", "claimed")),
        ("Available Items", number("work_items", "available")),
        ("Blocked Items", number("work_items", "blocked")),
        // All that are kept, also those of other days.
        ("Completed Items", site.json(&["work", "list", "--status", "completed"])["count"].to_string()),
        ("Projects", number("projects", "registered")),
        ("Events, 24 h", status["events_24h"].to_string()),
    ];
    for (label, value) in cards {
        let script = format!(
            "return [...document.querySelectorAll('.card')].some(card => card.textContent === '{label}{value}')"
        );
        browser.until(&format!("{label} is {value}"), &script);
    }

    let shown = browser.until(
        "all agents are there",
        "const rows = [...document.querySelectorAll('#agents-table tbody tr')];
         return rows.length === 3 && rows.map(row => [...row.cells].slice(0, 5).map(cell => cell.textContent))",
    );
    // The one that started last comes first, a delegate below the one it works for.
    assert_eq!(items(&site.json(&["agent", "list"])).len(), 3);
    let expected: Vec<_> = [&team.sage, &team.ivy, &team.delegate]
        .map(|session| {
            let agent = site.json(&["agent", "show", session]);
            let held = agent["work_items"].as_array().unwrap().len().to_string();
            let [name, project, work, status] =
                ["agent_name", "project", "current_work", "status"].map(|fact| text(&agent[fact]));
            [name, project, work, status, held]
        })
        .to_vec();
    assert_eq!(shown, serde_json::to_value(expected).unwrap());

    let work = site.json(&["work", "list"]);
    let expected: Vec<_> = items(&work)
        .iter()
        .map(|item| {
            ["priority", "title", "project_id", "status", "claimed_by_name"].map(|name| text(&item[name]))
        })
        .collect();
    let shown = browser.script(
        "return [...document.querySelectorAll('#work-table tbody tr')].map(row => \
         [...row.cells].slice(0, 5).map(cell => cell.textContent))",
    );
    assert_eq!(shown, serde_json::to_value(expected).unwrap());

    let observed = site.json(&["observe", "--since", "1h"]);
    // The types have the same names as in human output, which has a line for each event below the heading.
    let human = site.says(&["observe", "--since", "1h"]);
    let types: Vec<_> = human.lines().skip(2).filter_map(|line| line.split_whitespace().nth(1)).collect();
    let expected: Vec<_> = items(&observed)
        .iter()
        .zip(types)
        .rev()
        .map(|(event, shown_type)| [shown_type.to_owned(), text(&event["summary"])])
        .collect();
    for shown_type in ["lock_acquired", "files_reserved", "progress"] {
        assert!(expected.iter().any(|[shown, _]| shown == shown_type), "{human}");
    }
    // Only what can be seen is there: the list is compared row by row as it scrolls.
    for (index, [kind, summary]) in expected.iter().enumerate() {
        let script = format!(
            "const scroller = document.querySelector('#events-table').closest('.rows');
             scroller.scrollTop = {index} * document.querySelector('#events-table tbody tr').offsetHeight;
             const row = document.querySelector('#events-table tr[aria-rowindex=\"{}\"]');
             return row && row.cells[1].textContent === {} && row.cells[2].textContent === {}",
            index + 2,
            Value::from(kind.as_str()),
            Value::from(summary.as_str()),
        );
        browser.until(&format!("event {index} is {kind}: {summary}"), &script);
    }
    assert_eq!(browser.console(), Vec::<String>::new());
    browser.picture("overview");
}

#[test]
fn agents_are_a_tree_and_agree_with_the_command() {
    let site = Site::new();
    let team = furnish(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#agents", site.address()));
    let nodes = browser.until(
        "three sessions are there",
        "const nodes = [...document.querySelectorAll('#agents-tree [role=treeitem]')];
         return nodes.length === 3 && nodes.map(node => [node.id, node.getAttribute('aria-level'), \
         node.getAttribute('aria-expanded'), node.querySelector('.dot').className])",
    );
    let node = |session: &str, level: &str, expanded: Value| {
        serde_json::json!([format!("agent-{session}"), level, expanded, "dot dot-active"])
    };
    let expected = [
        node(&team.sage, "1", Value::Null),
        node(&team.ivy, "1", Value::from("true")),
        node(&team.delegate, "2", Value::Null),
    ];
    assert_eq!(nodes, Value::from(expected.to_vec()));

    browser.click(&format!("#agent-{}", team.ivy));
    let show = site.json(&["agent", "show", &team.ivy]);
    browser.until_says("#drawer-title", "Ivy");
    for fact in ["current_work", "progress", "project", "session_id", "status", "process"] {
        browser.until_says("#drawer-body dd", show[fact].as_str().unwrap());
    }
    for held in ["Design the schema", "deploy", "Ivy (delegate)"] {
        browser.until_says("#drawer-body li", held);
    }
    browser.picture("agent");
}

#[test]
fn work_is_a_board_with_dependencies() {
    let site = Site::new();
    furnish(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#work", site.address()));
    let all = site.json(&["work", "list", "--all"]);
    for status in ["available", "claimed", "blocked", "completed"] {
        let mut expected: Vec<_> = items(&all)
            .iter()
            .filter(|item| item["status"] == status)
            .map(|item| [text(&item["item_id"]), text(&item["title"])])
            .collect();
        expected.sort();
        let script = format!(
            "return JSON.stringify([...document.querySelectorAll('.column[data-status={status}] .item')].map(card => \
             [card.querySelector('.item-id').textContent, card.querySelector('.item-title').textContent]).sort()) \
             === {}",
            Value::from(serde_json::to_string(&expected).unwrap()),
        );
        browser.until(&format!("{status} has {expected:?}"), &script);
    }
    browser.until_says(".column[data-status=blocked] .item-waits", "blocked by Write the routes");
    browser.until_says(".column[data-status=available] .item-holds", "blocks 1");

    // Related rows are highlighted with the selected one.
    browser.script("document.querySelector('.column[data-status=blocked] .item').focus()");
    browser.until_says(".column[data-status=available] .item.related .item-title", "Write the routes");

    browser.click(".column[data-status=blocked] .item");
    browser.until_says("#drawer-title", "Document the routes");
    let status = site.json(&["work", "status", "docs"]);
    for event in status["history"].as_array().unwrap() {
        browser.until_says("#drawer-body .history", event["summary"].as_str().unwrap());
    }
    // To the item that it waits for, and back.
    browser.click("#drawer-body .links button");
    browser.until_says("#drawer-title", "Write the routes");
    browser.until_says("#drawer-body .links", "Document the routes");
    browser.press(&["Backspace"]);
    browser.until_says("#drawer-title", "Document the routes");
    browser.picture("item");
    browser.press(&["Escape"]);
    browser.until("the drawer is closed", "return !document.getElementById('drawer').open");

    // The filters.
    browser.script(
        "const find = document.getElementById('work-find'); find.value = 'login'; find.dispatchEvent(new Event('input'))",
    );
    browser.until(
        "one item is left",
        "const cards = [...document.querySelectorAll('.item')];
         return cards.length === 1 && cards[0].textContent.includes('Fix the login')",
    );
}

#[test]
fn every_blocker_shows_the_item_that_it_blocks() {
    let site = Site::new();
    for id in ["a", "b"] {
        site.json(&["work", "create", "--id", id, "--title", &format!("Item {id}")]);
    }
    site.json(&["work", "create", "--id", "c", "--title", "Item c", "--blocked-by", "a,b"]);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#work", site.address()));
    browser.until_says(".column[data-status=blocked] .item-waits", "blocked by Item a, Item b");
    browser.until(
        "both hold it up",
        "const cards = [...document.querySelectorAll('.column[data-status=available] .item')];
         return cards.length === 2 && cards.every(card => card.textContent.includes('blocks 1'))",
    );
    browser.script("document.querySelector('.column[data-status=blocked] .item').focus()");
    browser.until(
        "both belong to it",
        "return document.querySelectorAll('.column[data-status=available] .item.related').length === 2",
    );
    let session = site.agent(&["--name", "Ivy"]);
    site.json(&["work", "claim", "a", "--session", &session]);
    site.json(&["work", "complete", "a", "--session", &session]);
    browser.until(
        "it waits for the other one",
        "return document.querySelector('.column[data-status=blocked] .item-waits').textContent === 'blocked by Item b'",
    );
}

#[test]
fn page_opens_an_item_by_any_id() {
    let site = Site::new();
    let Some(browser) = Browser::start() else { return };
    for id in ["..", ".", "a/../b?c#d&e=%2e"] {
        let title = format!("Called {id}");
        site.json(&["work", "create", "--id", id, "--title", &title]);
        browser.open(&format!("{}#work", site.address()));
        browser.until_says(".item-title", &title);
        browser.script(&format!(
            "[...document.querySelectorAll('.item')].find(item => item.textContent.includes({})).click()",
            Value::from(title.as_str())
        ));
        browser.until_says("#drawer-body .history", "created");
        browser.press(&["Escape"]);
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn long_value_is_shortened_in_the_list_and_complete_in_the_drawer() {
    let site = Site::new();
    let ivy = site.agent(&["--name", "Ivy"]);
    let text = format!("{}the end", "long ".repeat(2000));
    site.json(&["write", "text", &Value::from(text.as_str()).to_string(), "--session", &ivy]);
    let object = serde_json::json!({ "words": text }).to_string();
    site.json(&["write", "object", &object, "--session", &ivy]);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#entries", site.address()));
    for (key, beginning) in [("text", "long long"), ("object", "{\"words\":\"long long")] {
        let script = format!(
            "const row = [...document.querySelectorAll('#entries-table tbody tr')].find(row => row.item.key === '{key}');
             if (!row || !row.cells[1].textContent.startsWith({})) return false;
             row.querySelector('button').click();
             return true",
            Value::from(beginning)
        );
        browser.until(&format!("{key} begins with {beginning}"), &script);
        browser.until_says("#drawer-title", key);
        browser.until_says("#drawer-body .value", "the end");
        browser.press(&["Escape"]);
        browser.until("the drawer is closed", "return !document.getElementById('drawer').open");
    }
}

#[test]
fn entries_are_grouped_by_scope_with_versions_and_history() {
    let site = Site::new();
    furnish(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#entries", site.address()));
    let mut expected = Vec::new();
    for scope in ["default", "swarm"] {
        let found = site.json(&["query", "--scope", scope]);
        expected.push([
            scope.to_owned(),
            format!("{} entry", items(&found).len()),
            String::new(),
            String::new(),
        ]);
        for entry in items(&found) {
            let value = serde_json::to_string(&entry["value"]).unwrap();
            expected.push([
                text(&entry["key"]),
                value,
                format!("v{}", entry["version"]),
                text(&entry["updated_by"]),
            ]);
        }
    }
    let script = format!(
        "return JSON.stringify([...document.querySelectorAll('#entries-table tbody tr')].map(row => \
         [...row.cells].slice(0, 4).map(cell => cell.textContent))) === {}",
        Value::from(serde_json::to_string(&expected).unwrap()),
    );
    browser.until(&format!("the entries are {expected:?}"), &script);

    browser.click("#entries-table tr:nth-child(2) button");
    browser.until_says("#drawer-title", "decision:db");
    browser.until_says("#drawer-body .value", "\"rows\": 12");
    browser.until_says("#drawer-body dd", "db");
    browser.until_says("#drawer-body .versions", "v1");
    // A number that JavaScript cannot represent is shown unchanged.
    browser.click("#drawer-body .versions li:nth-child(2) summary");
    browser.until_says("#drawer-body .versions details[open] .value", "9007199254740993");
    browser.picture("entry");
}

#[test]
fn locks_files_lanes_and_projects_agree_with_the_commands() {
    let site = Site::new();
    let team = furnish(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#locks", site.address()));
    let lock = &site.json(&["lock", "list"])["items"][0];
    for value in
        [text(&lock["name"]), text(&lock["agent_name"]), text(&lock["note"]), lock["fence"].to_string()]
    {
        browser.until_says("#locks-table tbody td", &value);
    }
    let file = &site.json(&["file", "list"])["items"][0];
    for name in ["pattern", "mode", "agent_name", "repository"] {
        browser.until_says("#files-table tbody td", file[name].as_str().unwrap());
    }

    browser.view("projects");
    for project in items(&site.json(&["project", "list"])) {
        for value in [&project["display_name"], &project["project_id"]] {
            browser.until_says("#projects-table tbody td", value.as_str().unwrap());
        }
    }

    browser.view("lanes");
    let lane = |name: &str, session: &str, bar: &str, title: &str| {
        let script = format!(
            "return [...document.querySelectorAll('.lane')].some(lane => lane.item.lane.session_id === '{session}' && \
             lane.querySelector('button').textContent === '{name}' && lane.querySelector('.bar-{bar}') && \
             lane.querySelector('svg').textContent.includes('{title}'))",
        );
        browser.until(&format!("{name} has a lane with {title}"), &script);
    };
    lane("Ivy", &team.ivy, "now", "Design the schema");
    lane("Sage", &team.sage, "completed", "Fix the login");
    browser.picture("lanes");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn work_is_listed_in_the_order_of_claims() {
    let site = Site::new();
    for (id, priority) in
        [("old-p3", "P3"), ("old-p2", "P2"), ("old-p1", "P1"), ("new-p2", "P2"), ("new-p1", "P1")]
    {
        site.json(&["work", "create", "--id", id, "--title", id, "--priority", priority]);
    }
    let session = site.agent(&["--name", "Ivy"]);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#work", site.address()));
    let mut expected = vec!["old-p1", "new-p1", "old-p2", "new-p2", "old-p3"];
    while !expected.is_empty() {
        let listed = serde_json::to_string(&expected).unwrap();
        for (view, cells) in [
            ("work", ".column[data-status=available] .item-id"),
            ("overview", "#work-table tbody tr:not(:has(.status-claimed)) td:nth-child(2)"),
        ] {
            browser.view(view);
            let script = format!(
                "return JSON.stringify([...document.querySelectorAll('{cells}')].map(cell => cell.textContent)) === {}",
                Value::from(listed.as_str())
            );
            browser.until(&format!("{view} has {listed}"), &script);
        }
        let claimed = site.json(&["work", "claim", "--next", "--session", &session]);
        assert_eq!(claimed["item_id"], expected.remove(0));
    }
}

#[test]
fn a_blocker_that_does_not_exist_is_marked() {
    let site = Site::new();
    site.json(&["work", "create", "--id", "a", "--title", "Item a"]);
    site.json(&["work", "create", "--id", "c", "--title", "Item c", "--blocked-by", "a,ghost,spook,b"]);
    site.json(&["work", "create", "--id", "b", "--title", "Item b"]);
    let Some(browser) = Browser::start() else { return };
    browser.open(site.address());
    browser.until(
        "the overview marks it",
        "const row = [...document.querySelectorAll('#work-table tbody tr')].find(row => row.item.item_id === 'c');
         return row && row.cells[3].title === 'blocked by ghost (not created), spook (not created), Item a, Item b'
           && getComputedStyle(row.cells[3], '::after').content.includes('not created')",
    );
    browser.view("work");
    browser.until_says(
        ".column[data-status=blocked] .item-waits",
        "blocked by ghost (not created), spook (not created), Item a, Item b",
    );
    browser.click(".column[data-status=blocked] .item");
    for blocker in ["Item a", "Item b", "ghost (not created)", "spook (not created)"] {
        browser.until_says("#drawer-body li", blocker);
    }
    browser.picture("missing-blocker");
    site.json(&["work", "create", "--id", "ghost", "--title", "No ghost"]);
    browser.until_says("#drawer-body li button", "No ghost");
    browser.press(&["Escape"]);
    browser.until_says(
        ".column[data-status=blocked] .item-waits",
        "blocked by spook (not created), Item a, Item b, No ghost",
    );
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn the_header_names_the_board_in_every_view() {
    let site = Site::new();
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#lanes", site.address()));
    // The board of the home directory is not that of a project: its database names it.
    browser.until("the board is named", "return document.getElementById('board-name').textContent !== ''");
    assert_eq!(
        browser.script("return document.getElementById('board-name').textContent"),
        "…/blackboard/local.db"
    );
    assert_eq!(
        browser.script("return document.getElementById('board-name').title"),
        site.database().display().to_string()
    );
    assert_eq!(browser.script("return document.title"), "…/blackboard/local.db · Blackboard");
    for (width, view) in [(1400, "work"), (390, "entries")] {
        browser.resize(width, 900);
        browser.view(view);
        assert_eq!(browser.script("return document.getElementById('board-name').offsetWidth > 0"), true);
        browser.assert_fits(&format!("{view} at {width}"));
    }
    browser.picture("header");
}

#[test]
fn a_board_of_a_project_is_named_by_its_directory() {
    let site = Site::in_project("shop");
    let Some(browser) = Browser::start() else { return };
    browser.open(site.address());
    browser.until("the board is named", "return document.getElementById('board-name').textContent !== ''");
    let name = browser.script("return document.getElementById('board-name').textContent");
    assert!(name.as_str().unwrap().starts_with("…/") && name.as_str().unwrap().ends_with("/shop"), "{name}");
    assert_eq!(browser.script("return document.title"), format!("{} · Blackboard", name.as_str().unwrap()));
    browser.until(
        "the title is the database",
        "return document.getElementById('board-name').title.endsWith('/shop/.blackboard/local.db')",
    );
}

#[test]
fn age_of_a_claimed_item_counts_from_its_claim() {
    let site = Site::new();
    furnish(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(site.address());
    let expected: Vec<_> = items(&site.json(&["work", "list"]))
        .iter()
        .map(|item| {
            let since = if item["status"] == "claimed" { "claimed_at" } else { "created_at" };
            assert_ne!(item["claimed_at"], item["created_at"]);
            [text(&item["title"]), text(&item[since])]
        })
        .collect();
    let expected = serde_json::to_string(&expected).unwrap();
    browser.until(
        "the ages",
        &format!(
            "const rows = [...document.querySelectorAll('#work-table tbody tr')];
             const shown = rows.map(row => [row.cells[1].textContent, row.cells[5].querySelector('time').dateTime]);
             return JSON.stringify(shown) === {expected:?}"
        ),
    );
}

#[test]
fn agents_with_the_same_name_are_shown_with_their_short_ids() {
    let site = Site::new();
    let sessions = ["one", "two"].map(|hint| site.agent(&["--name", "Ivy", "--session-hint", hint]));
    let sage = site.agent(&["--name", "Sage"]);
    for (item, session) in ["a", "b", "c"].into_iter().zip(sessions.iter().chain([&sage])) {
        site.json(&["work", "create", "--id", item, "--title", item]);
        site.json(&["work", "claim", item, "--session", session]);
        site.json(&["lock", "acquire", item, "--session", session]);
        site.json(&["file", "reserve", item, "--session", session]);
    }
    let Some(browser) = Browser::start() else { return };
    browser.open(site.address());
    let labels = sessions.each_ref().map(|session| format!("Ivy ({})", &session[..8]));
    let names = [labels[0].as_str(), &labels[1], "Sage"];
    // The text of a cell of each row, in any order.
    let shown = |view: &str, rows: &str, cell: &str, wanted: &[&str]| {
        browser.open(&format!("{}#{view}", site.plain_address()));
        let mut wanted = wanted.to_vec();
        wanted.sort_unstable();
        let wanted = serde_json::to_string(&wanted).unwrap();
        browser.until(
            &format!("{view} {cell} shows {wanted}"),
            &format!(
                "const shown = [...document.querySelectorAll('{rows}')].map(row => row.querySelector('{cell}').textContent);
                 return JSON.stringify(shown.sort()) === {wanted:?}"
            ),
        );
    };
    shown("overview", "#agents-table tbody tr", "td:nth-child(1)", &names);
    shown("overview", "#work-table tbody tr", "td:nth-child(5)", &names);
    shown("work", "#work-board .item", ".item-holder", &names);
    shown("agents", "#agents-tree .node", ".node-name", &names);
    shown("locks", "#locks-table tbody tr", "td:nth-child(2)", &names);
    shown("locks", "#files-table tbody tr", "td:nth-child(3)", &names);
    shown("lanes", "#lanes .lane", ".lane-name", &names);
    let claims = labels.each_ref().map(|label| label.replace("Ivy", "\"Ivy\""));
    for (claim, item) in claims.iter().zip(["a", "b"]) {
        browser.open(&format!("{}#timeline", site.plain_address()));
        browser.until(
            "the event names the session",
            &format!(
                "return [...document.querySelectorAll('#timeline-table tbody td:nth-child(3)')]
                   .some(cell => cell.textContent === 'Agent {claim} claimed \"{item}\"')"
            ),
        );
    }
    // The name of a single agent stays as it is.
    browser.until(
        "the event of the other agent",
        "return [...document.querySelectorAll('#timeline-table tbody td:nth-child(3)')]
           .some(cell => cell.textContent === 'Agent \"Sage\" claimed \"c\"')",
    );
}
