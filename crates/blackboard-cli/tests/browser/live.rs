//! The page follows the board: changes appear without a reload, also after the server was restarted.

use blackboard::Board;
use blackboard::work::Create;

use crate::browser::Browser;
use crate::scratch::Scratch;
use crate::sections::furnish;
use crate::site::Site;

#[test]
fn page_shows_changes_without_a_reload() {
    let site = Site::new();
    let team = furnish(&site);
    let Some(browser) = Browser::start() else { return };
    browser.only_what_is_told();
    browser.open(site.address());
    // A reload would forget this.
    browser.script("window.notReloaded = true");
    let card = |label: &str, value: &str| {
        let script = format!(
            "return [...document.querySelectorAll('.card')].some(card => card.textContent === '{label}{value}')"
        );
        browser.until(&format!("{label} is {value}"), &script);
    };

    site.agent(&["--name", "Rowan", "--work", "Reviewing"]);
    browser.until_says("#agents-table tbody td", "Rowan");
    browser.until_says("#events-table tbody td", "Agent \"Rowan\" registered");
    card("Active Agents", "4");

    site.json(&["work", "create", "--id", "fresh", "--title", "A fresh task", "--priority", "P1"]);
    browser.until_says("#work-table tbody td", "A fresh task");
    card("Available Items", "2");

    browser.view("agents");
    site.json(&[
        "agent",
        "heartbeat",
        "--session",
        &team.sage,
        "--work",
        "Looking around",
        "--progress",
        "Started",
    ]);
    browser.until_says(".node-work", "Looking around");

    browser.view("work");
    site.json(&["work", "claim", "fresh", "--session", &team.sage]);
    browser.until_says(".column[data-status=claimed] .item-title", "A fresh task");
    site.json(&["work", "complete", "fresh", "--session", &team.sage]);
    browser.until_says(".column[data-status=completed] .item-title", "A fresh task");

    browser.view("entries");
    site.json(&["write", "note", "\"first\"", "--session", &team.sage]);
    browser.until_says("#entries-table tbody td", "\"first\"");
    browser.script(
        "[...document.querySelectorAll('#entries-table button')].find(b => b.textContent === 'note').click()",
    );
    browser.until_says("#drawer-body .value", "first");
    site.json(&["write", "note", "\"second\"", "--session", &team.sage]);
    browser.until_says("#drawer-body .value", "second");
    browser.press(&["Escape"]);

    browser.view("locks");
    site.json(&["lock", "acquire", "migrations", "--session", &team.sage]);
    browser.until_says("#locks-table tbody td", "migrations");
    site.json(&["lock", "release", "migrations", "--session", &team.sage]);
    browser.until(
        "the lock is gone",
        "return ![...document.querySelectorAll('#locks-table tbody td')].some(cell => cell.textContent === 'migrations')",
    );

    browser.view("timeline");
    site.json(&["project", "register", "--id", "late", "--name", "Late project"]);
    browser.until_says("#timeline-table tbody td", "Project \"Late project\" registered");
    browser.view("projects");
    browser.until_says("#projects-table tbody td", "Late project");

    browser.view("lanes");
    site.json(&["work", "claim", "routes", "--session", &team.sage]);
    browser.until_says(".lane svg", "Write the routes");

    assert_eq!(browser.script("return window.notReloaded"), true);
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// Fails unless the rows of the timeline are the newest events of the log, each once.
#[track_caller]
fn assert_newest_are_shown(site: &Site, browser: &Browser) {
    let ids = browser
        .script("return [...document.querySelectorAll('#timeline-table tbody tr')].map(row => row.item.id)");
    let ids: Vec<i64> = serde_json::from_value(ids).unwrap();
    assert!(ids.len() > 15, "{ids:?}");
    let newest: Vec<i64> = site.log().into_iter().rev().take(ids.len()).collect();
    assert_eq!(ids, newest, "something is left out, or there twice");
}

#[test]
fn page_catches_up_when_the_server_restarts() {
    let mut site = Site::new();
    let team = furnish(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#timeline", site.address()));
    browser.until_says("#timeline-table tbody td", "reserved files");
    browser.script("window.notReloaded = true");
    let state = |state: &str| {
        let script = format!("return document.getElementById('connection').dataset.state === '{state}'");
        browser.until(&format!("the connection is {state}"), &script);
    };

    site.kill();
    state("reconnecting");
    state("stale");
    browser.until_says("#connection", "stale since");
    browser.picture("stale");
    // The board has no server, and its agents continue.
    for index in 0..30 {
        let progress = format!("step {index}");
        site.json(&["agent", "heartbeat", "--session", &team.ivy, "--progress", &progress]);
    }
    site.json(&["work", "claim", "routes", "--session", &team.ivy]);
    site.start();
    // It has a new token: the page says how to get it, and continues when a tab has it.
    browser.until_says("#trouble", "blackboard serve --status");
    browser.open_beside(site.address());
    state("live");
    browser.until("there is no trouble", "return document.getElementById('trouble').hidden");
    browser.until_says("#timeline-table tbody td", "claimed \"Write the routes\"");
    browser.until_says("#timeline-table tbody td", "step 29");
    // Every event is shown once, and none is missing.
    assert_newest_are_shown(&site, &browser);

    browser.view("work");
    browser.until_says(".column[data-status=claimed] .item-title", "Write the routes");
    // And it continues.
    site.json(&["work", "release", "routes", "--session", &team.ivy]);
    browser.until_says(".column[data-status=available] .item-title", "Write the routes");
    assert_eq!(browser.script("return window.notReloaded"), true);
}

#[test]
fn timeline_shows_events_that_were_read_before_the_stream_sent_them() {
    let mut site = Site::new();
    let team = furnish(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#timeline", site.address()));
    browser.until_says("#timeline-table tbody td", "reserved files");
    // Events of the stream wait for a frame. No frame comes before the newest events were read again.
    browser.script(
        "const [frame, ask] = [requestAnimationFrame, fetch];
         const held = [];
         window.requestAnimationFrame = (show) => held.push(show);
         window.fetch = async (path, ...rest) => {
           const response = await ask(path, ...rest);
           if (!path.startsWith('/api/events?since')) return response;
           const text = await response.text();
           setTimeout(() => { window.readAgain = true; });
           return new Response(text, response);
         };
         window.heldFrames = () => held.length;
         window.letFramesCome = () => {
           window.requestAnimationFrame = frame;
           for (const show of held.splice(0)) show(performance.now());
         };",
    );

    site.kill();
    for index in 0..15 {
        let progress = format!("step {index}");
        site.json(&["agent", "heartbeat", "--session", &team.ivy, "--progress", &progress]);
    }
    site.start();
    browser.renew(site.address());
    browser
        .until("the events were read again and told", "return window.readAgain && window.heldFrames() > 0");
    browser.script("window.letFramesCome()");
    browser.until_says("#timeline-table tbody td", "step 14");
    assert_newest_are_shown(&site, &browser);
}

#[test]
fn page_shows_another_board_from_its_start_after_a_restart() {
    let mut site = Site::new();
    furnish(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(site.address());
    browser.until_says("#agents-table tbody td", "Ivy");
    site.kill();
    site.remove_board();
    site.agent(&["--name", "Newcomer"]);
    site.start();
    browser.renew(site.address());
    browser.until_says("#agents-table tbody td", "Newcomer");
    browser.until(
        "the old ones are gone",
        "return !document.querySelector('#agents-table').textContent.includes('Ivy')",
    );
    browser.until_says("#events-table tbody td", "Agent \"Newcomer\" registered");
    browser.until(
        "what happened on the other board is gone",
        "return !document.querySelector('#events-table').textContent.includes('Ivy')",
    );
    browser.until_says("#revision", "1");
}

/// A separate board with this many items, and as many events.
fn board_of(items: usize) -> Scratch {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.database().parent().unwrap()).unwrap();
    let board = Board::open(&scratch.database()).unwrap();
    for index in 0..items {
        board.work().create(&Create::new(&format!("other-{index}"), &format!("Other {index}"))).unwrap();
    }
    scratch
}

#[test]
fn page_does_not_mix_a_board_with_the_one_that_it_replaces() {
    let site = Site::new();
    furnish(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#timeline", site.address()));
    browser.until_says("#timeline-table tbody td", "reserved files");
    let timeline = |summaries: &[&str]| {
        let script = format!(
            "const rows = [...document.querySelectorAll('#timeline-table tbody tr')];
             return JSON.stringify(rows.map(row => row.item.summary)) === {}",
            serde_json::Value::from(serde_json::to_string(summaries).unwrap()),
        );
        browser.until(&format!("the timeline is {summaries:?}"), &script);
    };

    // A board with more events: its revisions would continue where the others ended.
    site.replace_board(&board_of(25));
    browser.until_says("#timeline-table tbody td", "Work item \"Other 24\" created");
    let summaries: Vec<_> =
        (0..25).rev().map(|index| format!("Work item \"Other {index}\" created")).collect();
    timeline(&summaries.iter().map(String::as_str).collect::<Vec<_>>());
    browser.until_says("#revision", "25");
    site.json(&["project", "register", "--id", "late", "--name", "Late"]);
    browser.until_says("#timeline-table tbody td", "Project \"Late\" registered");
    browser.view("overview");
    browser.until_says("#events-table tbody td", "Project \"Late\" registered");
    assert_eq!(
        browser.script("return document.getElementById('events-table').textContent.includes('reserved')"),
        false
    );

    // A board with fewer events: the page does not wait for the events of the other one.
    browser.script(
        "const ask = fetch;
         window.fetch = (...question) => { window.lastAsked = performance.now(); return ask(...question); };
         window.lastAsked = performance.now();",
    );
    site.replace_board(&board_of(2));
    browser.until(
        "the revision is that of the board",
        "return document.getElementById('revision').textContent === '2'",
    );
    browser.until_says("#work-count", "2");
    browser.until("no more requests", "return performance.now() - window.lastAsked > 1500");
    browser.view("timeline");
    timeline(&["Work item \"Other 1\" created", "Work item \"Other 0\" created"]);

    // None at all.
    site.remove_board();
    timeline(&[]);
    browser.until("there is no revision", "return document.getElementById('revision').textContent === '0'");
    site.json(&["project", "register", "--id", "again", "--name", "Again"]);
    timeline(&["Project \"Again\" registered"]);
}

#[test]
fn page_reports_unreadable_rows_only_in_their_view() {
    let site = Site::new();
    let Some(browser) = Browser::start() else { return };
    browser.open(site.address());
    browser.script(
        "const ask = fetch;
         window.fetch = (path, ...rest) => path.startsWith('/api/locks')
           ? Promise.resolve(new Response('{\"error\":\"no locks today\"}', { status: 503 }))
           : ask(path, ...rest);",
    );
    browser.view("locks");
    browser.until_says("#trouble", "no locks today");
    browser.view("projects");
    browser.until("it is no longer said", "return document.getElementById('trouble').hidden");
    browser.view("locks");
    browser.until_says("#trouble", "no locks today");
}
