//! The timeline: filters, and the slider through the event log.

use std::ops::RangeInclusive;

use blackboard::agent::Register;
use blackboard::work::Create;

use crate::browser::Browser;
use crate::site::Site;

/// More than the page reads at once, and more than it keeps.
const ITEMS: usize = 2600;

/// A log of one project, `ITEMS` items and an agent in the middle of them.
fn long_log(site: &Site) -> String {
    let board = site.library();
    let create = |index: usize| {
        board.work().create(&Create::new(&format!("item-{index}"), &format!("Item {index}"))).unwrap();
    };
    (0..ITEMS / 2).for_each(create);
    let request = Register { pid: Some(std::process::id()), ..Register::named("Ivy") };
    let session = board.agents().register(&request).unwrap().agent.session_id;
    (ITEMS / 2..ITEMS).for_each(create);
    session
}

/// Waits until this event is the first one that can be seen.
pub fn top_row(browser: &Browser, revision: usize) {
    // Of the rows that can be seen, the first one; a row may be above the edge by less than its height.
    let script = format!(
        "const scroller = document.getElementById('timeline-rows');
         const edge = scroller.getBoundingClientRect().top + document.querySelector('#timeline-table thead').offsetHeight;
         const seen = [...document.querySelectorAll('#timeline-table tbody tr')]
           .filter(row => row.getBoundingClientRect().bottom > edge + 2).map(row => row.item.id);
         return Math.max(...seen) === {revision}"
    );
    browser.until(&format!("revision {revision} is on top"), &script);
}

/// Moves the slider to a position in the log.
pub fn slide(browser: &Browser, position: usize) {
    browser.script(&format!(
        "const slider = document.getElementById('timeline-slider'); slider.value = {position}; \
         slider.dispatchEvent(new Event('input'))"
    ));
}

/// Waits until the page counts so many events, and the slider runs over all of them and is at this position.
fn spans(browser: &Browser, kept: usize, position: usize) {
    browser.until(
        &format!("the slider is at {position} of {kept}"),
        &format!(
            "const slider = document.getElementById('timeline-slider');
             return slider.min === '1' && slider.max === '{kept}' && slider.value === '{position}' \
             && document.getElementById('timeline-count').textContent === ({kept}).toLocaleString('en') + ' total'"
        ),
    );
}

/// The id of an event in a page for which [`Browser::skip_revisions`] makes gaps.
fn with_gaps(revision: usize) -> usize {
    revision + 997 * (revision / 3)
}

/// The ids of these events in such a page.
fn all_with_gaps(revisions: RangeInclusive<usize>) -> Vec<i64> {
    revisions.map(|revision| i64::try_from(with_gaps(revision)).unwrap()).collect()
}

#[test]
fn the_slider_runs_over_events_although_their_ids_have_gaps() {
    let site = Site::new();
    let session = long_log(&site);
    let last = ITEMS + 2;
    let Some(browser) = Browser::start() else { return };
    browser.skip_revisions();
    browser.open(&format!("{}#timeline", site.address()));
    top_row(&browser, with_gaps(last));
    browser.until_says("#revision", &with_gaps(last).to_string());
    spans(&browser, last, last);
    browser.until_says("#timeline-oldest", "r1");
    for position in [1000, 1, 2000, 2, 40] {
        slide(&browser, position);
        top_row(&browser, with_gaps(position));
        browser.until_says("#timeline-place", &format!("r{} ", with_gaps(position)));
        spans(&browser, last, position);
    }
    browser.script("document.getElementById('timeline-slider').focus()");
    browser.press(&["ArrowRight", "ArrowRight"]);
    top_row(&browser, with_gaps(42));
    // What happens is counted, and does not move what is being read.
    site.json(&["project", "register", "--id", "late", "--name", "Late"]);
    spans(&browser, last + 1, 42);
    // All of the log is there by scrolling, both ways.
    let mut down = browser.until_all_scrolled("timeline-rows", with_gaps(1));
    down.sort_unstable();
    assert_eq!(down, all_with_gaps(1..=42));
    let mut up = browser.until_all_scrolled("timeline-rows", with_gaps(last + 1));
    up.sort_unstable();
    assert_eq!(up, all_with_gaps(1..=last + 1));
    // A filter finds its event, and without it the reader is where it was.
    let choose = |session: &str| {
        browser.script(&format!(
            "const agent = document.getElementById('timeline-agent'); agent.value = '{session}'; \
             agent.dispatchEvent(new Event('change'))"
        ));
    };
    browser.click("#timeline-live");
    top_row(&browser, with_gaps(last + 1));
    choose(&session);
    browser.until(
        "only the event of the agent is left",
        "return document.querySelectorAll('#timeline-table tbody tr').length === 1",
    );
    slide(&browser, last - 10);
    browser.until(
        "the slider has left the end",
        "return document.getElementById('timeline-live').getAttribute('aria-pressed') === 'false'",
    );
    let registered = ITEMS / 2 + 2;
    top_row(&browser, with_gaps(registered));
    choose("");
    top_row(&browser, with_gaps(registered));
    spans(&browser, last + 1, registered);
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn the_slider_runs_over_what_is_kept_after_pruning() {
    let site = Site::new();
    long_log(&site);
    let last = ITEMS + 2;
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#timeline", site.address()));
    spans(&browser, last, last);
    // Retention removes the oldest events while the page is open; it counts again when its view is opened.
    let pruned = 2000;
    site.tamper(&format!("DELETE FROM events WHERE id <= {pruned}"), []);
    browser.view("overview");
    browser.view("timeline");
    let kept = last - pruned;
    spans(&browser, kept, kept);
    browser.until_says("#timeline-oldest", &format!("r{}", pruned + 1));
    for position in [1, 300, 17] {
        slide(&browser, position);
        top_row(&browser, pruned + position);
        spans(&browser, kept, position);
    }
    browser.script("document.getElementById('timeline-slider').focus()");
    browser.press(&["Home"]);
    top_row(&browser, pruned + 1);
    browser.press(&["End"]);
    top_row(&browser, last);
    site.json(&["project", "register", "--id", "late", "--name", "Late"]);
    top_row(&browser, last + 1);
    spans(&browser, kept + 1, kept + 1);
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn the_slider_goes_to_any_position_and_back_to_live() {
    let mut site = Site::new();
    let session = long_log(&site);
    let last = ITEMS + 2;
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#timeline", site.address()));
    top_row(&browser, last);
    let live = |pressed: bool| {
        let script = format!(
            "return document.getElementById('timeline-live').getAttribute('aria-pressed') === '{pressed}'"
        );
        browser.until(&format!("live is {pressed}"), &script);
    };
    live(true);
    spans(&browser, last, last);

    for revision in [1000, 1, 2000, 40] {
        slide(&browser, revision);
        top_row(&browser, revision);
        live(false);
        browser.until_says("#timeline-place", &format!("r{revision} "));
    }
    // What happens now does not move what is being read.
    site.json(&["project", "register", "--id", "late", "--name", "Late"]);
    browser.until_says("#revision", &(last + 1).to_string());
    top_row(&browser, 40);
    // By the keyboard too.
    browser.script("document.getElementById('timeline-slider').focus()");
    browser.press(&["ArrowRight", "ArrowRight"]);
    top_row(&browser, 42);
    browser.press(&["Home"]);
    top_row(&browser, 1);

    browser.click("#timeline-live");
    top_row(&browser, last + 1);
    live(true);
    site.json(&["project", "register", "--id", "later", "--name", "Later"]);
    top_row(&browser, last + 2);

    // Scrolling to the start: no event is left out, and not all of them stay in the document.
    let seen = browser.until_all_scrolled("timeline-rows", 1);
    let expected: Vec<i64> = site.log().into_iter().rev().collect();
    assert_eq!(seen, expected);
    let kept = browser.script("return document.querySelectorAll('#timeline-table tbody tr').length");
    assert!(kept.as_u64().unwrap() < 100, "{kept} rows are in the document");
    // And up again.
    let seen = browser.until_all_scrolled("timeline-rows", last + 2);
    assert_eq!(seen.iter().max(), expected.iter().max());
    assert_eq!(seen.len(), expected.len(), "some were left out on the way up");

    // The one agent is found wherever it is.
    browser.script(&format!(
        "const agent = document.getElementById('timeline-agent'); agent.value = '{session}'; \
         agent.dispatchEvent(new Event('change'))"
    ));
    browser.until(
        "only the agent's event is left",
        "const rows = [...document.querySelectorAll('#timeline-table tbody tr')];
         return rows.length === 1 && rows[0].textContent.includes('Agent \"Ivy\" registered')",
    );
    site.kill();
}

#[test]
fn filters_select_event_types_also_of_new_events() {
    let site = Site::new();
    long_log(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#timeline", site.address()));
    top_row(&browser, ITEMS + 2);
    let kinds = |expected: &[&str]| {
        let script = format!(
            "const found = new Set([...document.querySelectorAll('#timeline-table .event-type')].map(e => e.textContent));
             return JSON.stringify([...found].sort()) === {}",
            serde_json::Value::from(serde_json::to_string(expected).unwrap()),
        );
        browser.until(&format!("{expected:?} are shown"), &script);
    };
    kinds(&["work_created"]);
    browser.click(".chip.kind-projects");
    kinds(&["project_registered"]);
    browser.click(".chip.kind-agents");
    kinds(&["agent_registered", "project_registered"]);
    // Events that do not match stay out, matching ones appear.
    site.json(&["work", "create", "--id", "unseen", "--title", "Unseen"]);
    site.json(&["project", "register", "--id", "seen", "--name", "Seen"]);
    browser.until_says("#timeline-table tbody td", "Project \"Seen\" registered");
    kinds(&["agent_registered", "project_registered"]);
    browser.click(".chip.kind-projects");
    browser.click(".chip.kind-agents");
    kinds(&["project_registered", "work_created"]);
    browser.until_says("#timeline-table tbody td", "Work item \"Unseen\" created");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn events_that_arrive_during_a_read_leave_no_gap() {
    let site = Site::new();
    long_log(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#timeline", site.address()));
    top_row(&browser, ITEMS + 2);
    let more = 600;
    let last = ITEMS + 2 + more;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let board = site.library();
            for index in 0..more {
                board.work().create(&Create::new(&format!("more-{index}"), "More")).unwrap();
            }
        });
        // Down while events come in at the top, and pages at the bottom.
        let seen = browser.until_all_scrolled("timeline-rows", 1200);
        assert!(seen.contains(&1200), "{seen:?}");
    });
    browser.until_says("#revision", &last.to_string());
    let mut seen = browser.until_all_scrolled("timeline-rows", last);
    seen.sort_unstable();
    let first = seen[0];
    assert!(first <= 1200, "the way up begins at {first}");
    assert_eq!(seen, site.log().into_iter().filter(|id| *id >= first).collect::<Vec<_>>());
    assert_eq!(browser.console(), Vec::<String>::new());
}
