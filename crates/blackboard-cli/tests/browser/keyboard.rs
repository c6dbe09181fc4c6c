//! The keyboard can do everything that the mouse can.

use serde_json::Value;

use crate::browser::{Browser, VIEWS};
use crate::sections::furnish;
use crate::site::Site;

#[test]
fn tabs_shortcuts_and_help_work_without_a_mouse() {
    let site = Site::new();
    furnish(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(site.address());
    let shown = |view: &str| {
        browser.until(
            &format!("{view} is shown"),
            &format!("return !document.getElementById('view-{view}').hidden"),
        );
        let selected = browser.script("return document.querySelector('[role=tab][aria-selected=true]').id");
        assert_eq!(selected, format!("tab-{view}"));
    };

    // The first stop leads past the tabs, to the view that is shown.
    browser.open(&format!("{}#agents", site.address()));
    browser.press(&["Tab"]);
    assert_eq!(browser.script("return document.activeElement.className"), "skip");
    browser.press(&["Enter"]);
    browser.until("the board has the focus", "return document.activeElement.id === 'main'");
    shown("agents");

    for (index, view) in VIEWS.iter().enumerate() {
        browser.press(&[&(index + 1).to_string()]);
        shown(view);
    }
    browser.press(&["]"]);
    shown("overview");
    browser.press(&["["]);
    shown("projects");
    browser.script("document.getElementById('tab-projects').focus()");
    browser.press(&["ArrowRight"]);
    shown("overview");
    browser.press(&["End", "ArrowLeft"]);
    shown("lanes");
    browser.press(&["Home"]);
    shown("overview");
    // The address names the view, and the back button returns to the previous one.
    browser.press(&["3"]);
    shown("work");
    assert_eq!(browser.script("return location.hash"), "#work");
    browser.script("history.back()");
    shown("overview");

    browser.press(&["2", "/"]);
    browser.until("the search has the focus", "return document.activeElement.id === 'agents-find'");
    browser.press(&["3", "s", "a", "g", "e"]);
    // What is typed is no shortcut.
    assert_eq!(browser.script("return document.activeElement.value"), "3sage");
    shown("agents");

    browser.script("document.activeElement.blur()");
    browser.press(&["?"]);
    browser.until("the help is open", "return document.getElementById('help').open");
    browser.press(&["Escape"]);
    browser.until("the help is closed", "return !document.getElementById('help').open");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn arrow_keys_move_through_the_tree() {
    let site = Site::new();
    let team = furnish(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#agents", site.address()));
    browser.until("the tree is there", "return document.querySelectorAll('[role=treeitem]').length === 3");
    browser.script("document.getElementById('agents-tree').focus()");
    let active = |session: &str| {
        let script = format!(
            "return document.getElementById('agents-tree').getAttribute('aria-activedescendant') === 'agent-{session}' \
             && document.getElementById('agent-{session}').getAttribute('aria-selected') === 'true'"
        );
        browser.until("the session is chosen", &script);
    };
    let count = |count: usize| {
        let script = format!("return document.querySelectorAll('[role=treeitem]').length === {count}");
        browser.until(&format!("{count} sessions are shown"), &script);
    };
    active(&team.sage);
    browser.press(&["ArrowDown"]);
    active(&team.ivy);
    browser.press(&["ArrowRight"]);
    active(&team.delegate);
    browser.press(&["ArrowLeft"]);
    active(&team.ivy);
    browser.press(&["ArrowLeft"]);
    count(2);
    browser.press(&["ArrowRight"]);
    count(3);
    browser.press(&["End"]);
    active(&team.delegate);
    browser.press(&["Enter"]);
    browser.until_says("#drawer-title", "Ivy (delegate)");
    browser.press(&["Escape"]);
    browser.until("the tree has the focus again", "return document.activeElement.id === 'agents-tree'");
    browser.press(&["Home"]);
    active(&team.sage);

    // A delegate that was found is below its parent.
    browser.script(
        "const find = document.getElementById('agents-find'); find.value = 'running tests'; \
         find.dispatchEvent(new Event('input'))",
    );
    count(2);
    browser.until(
        "parent and delegate are left",
        &format!(
            "return document.getElementById('agent-{}') && document.getElementById('agent-{}')",
            team.ivy, team.delegate
        ),
    );
    browser.script("const find = document.getElementById('agents-find'); find.value = ''; find.dispatchEvent(new Event('input'))");

    // Ended sessions are shown on request.
    site.json(&["agent", "deregister", "--session", &team.sage]);
    count(2);
    browser.click("#agents-ended");
    count(3);
}

#[test]
fn keyboard_moves_through_rows_and_opens_them() {
    let site = Site::new();
    furnish(&site);
    let Some(browser) = Browser::start() else { return };
    browser.open(site.address());
    browser.until("work is there", "return document.querySelectorAll('#work-table tbody tr').length === 3");
    browser.until(
        "one row of it is a stop of the Tab key",
        "return document.querySelectorAll('#work-table button[tabindex=\"0\"]').length === 1",
    );
    browser.script("document.querySelector('#work-table button[tabindex=\"0\"]').focus()");
    let title = |title: &str| {
        let script = format!("return document.activeElement.textContent === {}", Value::from(title));
        browser.until(&format!("the focus is on {title}"), &script);
    };
    title("Design the schema");
    browser.press(&["ArrowDown", "ArrowDown"]);
    title("Document the routes");
    browser.press(&["ArrowUp"]);
    title("Write the routes");
    browser.press(&["Home"]);
    title("Design the schema");
    browser.press(&["End", "Enter"]);
    browser.until_says("#drawer-title", "Document the routes");
    browser.press(&["Escape"]);
    title("Document the routes");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn keyboard_opens_the_spans_of_the_lanes() {
    let site = Site::new();
    let team = furnish(&site);
    // Two at a time: the second one has its own row, without a name.
    site.json(&["work", "claim", "routes", "--session", &team.ivy]);
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("{}#lanes", site.address()));
    let focus = |title: &str| {
        let script = format!(
            "return (document.activeElement.getAttribute('aria-label') || '').startsWith({})",
            Value::from(title)
        );
        browser.until(&format!("the focus is on {title}"), &script);
    };
    browser.until_says(".lane .span", "Write the routes");
    browser.until_says(".lane .span", "Design the schema");
    browser.script(
        "[...document.querySelectorAll('.lane button')].find(name => name.textContent === 'Ivy').focus()",
    );
    browser.press(&["Tab"]);
    focus("Design the schema, ");
    browser.press(&["ArrowDown"]);
    focus("Write the routes, ");
    // New events do not move the focus.
    site.json(&["work", "create", "--id", "late", "--title", "Something late"]);
    site.json(&["work", "claim", "late", "--session", &team.sage]);
    browser.until_says(".lane .span", "Something late");
    focus("Write the routes, ");
    for key in ["Enter", " "] {
        browser.press(&[key]);
        browser.until_says("#drawer-title", "Write the routes");
        browser.press(&["Escape"]);
        browser.until("the drawer is closed", "return !document.getElementById('drawer').open");
        focus("Write the routes, ");
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}
