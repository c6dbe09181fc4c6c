//! Hostile text of agents stays text and changes nothing else on the page.

use serde_json::Value;

use crate::browser::{Browser, VIEWS};
use crate::hostile_board::{Extent, Generator, PAYLOAD};
use crate::site::Site;

/// What would run, break out, turn around or push aside.
const HOSTILE: [&str; 9] = [
    "<img src=x onerror=\"window.hacked=1\">",
    "<script>window.hacked=1</script>",
    "\"><svg onload=window.hacked=1>'\"`",
    "</style></script><h1>Not a heading</h1>",
    "javascript:window.hacked=1",
    "{nonce} {style} {script} ${window.hacked=1} {{7-7}}",
    "\u{202e}gnirts desrever\u{202c} \u{2066}isolated \u{200f}right to left",
    "a\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301} \u{0}\u{7}\u{1b}[31m\u{85}\u{2028}lines\nand\ttabs",
    "in\u{ad}vi\u{fe0f}si\u{34f}ble\u{3164}\u{2800}\u{e0041}\u{e0100} runs\u{200d}\u{200d}\u{200c}of joiners",
];

fn long_word() -> String {
    "W".repeat(10_000)
}

/// Fills the board with it. What the program would not store is written without it.
fn furnish(site: &Site) {
    let texts: Vec<String> = HOSTILE.iter().map(|text| (*text).to_owned()).chain([long_word()]).collect();
    let mut parent: Option<String> = None;
    for (index, text) in texts.iter().enumerate() {
        let hint = format!("hostile-{index}");
        let mut register = vec!["--name", "Placeholder", "--session-hint", &hint];
        if let Some(parent) = &parent {
            register.extend(["--parent", parent]);
        }
        let session = site.agent(&register);
        let project = format!("project-{index}");
        site.json(&["project", "register", "--id", &project, "--name", "Placeholder"]);
        let id = format!("item-{index}");
        site.json(&["work", "create", "--id", &id, "--title", "Placeholder", "--project", &project]);
        if index % 3 == 1 {
            site.json(&["work", "claim", &id, "--session", &session]);
        } else if index % 3 == 2 {
            let before = format!("item-{}", index - 1);
            site.json(&["work", "block", &id, "--blocked-by", &before]);
        }
        let value = Value::from(text.as_str()).to_string();
        let key = format!("key-{index}");
        site.json(&["write", &key, &value, "--session", &session]);
        let object = serde_json::json!({ text.as_str(): [text, { "deep": text }] }).to_string();
        site.json(&["write", &key, &object, "--session", &session, "--scope", "objects"]);
        let lock = format!("lock-{index}");
        site.json(&["lock", "acquire", &lock, "--session", &session]);
        let file = format!("src/{index}");
        site.json(&["file", "reserve", &file, "--session", &session]);
        let stored = text.replace('\0', "");
        site.tamper(
            "UPDATE agents SET agent_name = ?1, current_work = ?1, project = ?1, progress = ?1 WHERE session_id = ?2",
            [&stored, &session],
        );
        site.tamper(
            "UPDATE projects SET display_name = ?1, local_path = ?1, remote_repo = ?1 WHERE project_id = ?2",
            [&stored, &project],
        );
        site.tamper(
            "UPDATE work_items SET title = ?1, description = ?1, source_ref = ?1 WHERE item_id = ?2",
            [&stored, &id],
        );
        site.tamper(
            "UPDATE events SET summary = ?1 WHERE target_id IN (?2, ?3, ?4)",
            [&stored, &session, &id, &key],
        );
        site.tamper("UPDATE events SET event_type = ?1 WHERE target_id = ?2", [&stored, &key]);
        site.tamper("UPDATE work_items SET summary = ?1 WHERE item_id = ?2", [&stored, &id]);
        if index == 0 {
            parent = Some(session);
        }
    }
    // Keys, ids, names of locks and patterns are stored unchanged if they are short enough.
    let session = site.agent(&["--name", "Writer"]);
    for text in &HOSTILE[..6] {
        site.json(&["write", text, "1", "--session", &session]);
        site.json(&["lock", "acquire", text, "--session", &session]);
        site.json(&["work", "create", "--id", text, "--title", &format!("Title {text}")]);
        if !text.contains('{') {
            site.json(&["file", "reserve", text, "--session", &session]);
        }
    }
}

/// Looks at everything in all views, wide and narrow.
#[track_caller]
fn walk_all_views(browser: &Browser, address: &str, has_rows: impl Fn(&str) -> usize) {
    for (width, height) in [(1400, 900), (390, 800)] {
        browser.resize(width, height);
        browser.open(address);
        for view in VIEWS {
            browser.view(view);
            // Something hostile is to be seen before it can be harmless.
            browser.until(
                "the view has read the board",
                &format!(
                    "return document.querySelectorAll('#view-{view} tbody tr, #view-{view} .item, #view-{view} .node, \
                     #view-{view} .lane').length >= {}",
                    has_rows(view)
                ),
            );
            browser.assert_fits(&format!("{view} at {width}"));
            browser.picture(&format!("hostile-{view}-{width}"));
            if view == "timeline" || view == "projects" {
                continue;
            }
            // Everything about each of the first few.
            for index in 0..4 {
                let opened = browser.script(&format!(
                    "const rows = [...document.querySelectorAll('#view-{view} td:first-child .link, #view-{view} td .link, \
                     #view-{view} .item, #view-{view} .node, #view-{view} .lane .link')].filter(row => row.offsetParent);
                     if (!rows[{index}]) return false;
                     rows[{index}].click();
                     return document.getElementById('drawer').open"
                ));
                if opened != true {
                    continue;
                }
                browser.until(
                    "the drawer is filled, or says why it is not",
                    "const body = document.getElementById('drawer-body');
                     return body.querySelector('dl') || (body.textContent && body.textContent !== 'Loading…')",
                );
                browser.assert_fits(&format!("the drawer of {view} at {width}"));
                browser.press(&["Escape"]);
                browser.until("the drawer is closed", "return !document.getElementById('drawer').open");
            }
        }
        assert_eq!(browser.script("return window.hacked ?? null"), Value::Null, "a script of the board ran");
        // The server refuses ids that no board should have, and the console reports each refusal.
        let is_refused = |line: &String| line.contains("the server responded with a status of 4");
        let console: Vec<String> = browser.console().into_iter().filter(|line| !is_refused(line)).collect();
        assert_eq!(console, Vec::<String>::new());
        assert_eq!(browser.script("return document.querySelectorAll('h1').length"), 1);
        assert_eq!(
            browser.script("return document.querySelectorAll('img, main script, main style').length"),
            0
        );
    }
}

#[test]
fn hostile_text_runs_nothing_and_breaks_nothing() {
    let site = Site::new();
    furnish(&site);
    let Some(browser) = Browser::start() else { return };
    walk_all_views(&browser, site.address(), |_| 3);
    // It is all there as text, and what turns text around is named.
    browser.resize(1400, 900);
    browser.view("agents");
    browser.until_says(".node-name", HOSTILE[0]);
    browser.until_says(".node-name", "\\u{202e}gnirts");
    browser.until_says(".node-name", "in\\u{ad}vi\\u{fe0f}si\\u{34f}ble\\u{3164}\\u{2800}");
    browser.view("locks");
    browser.until_says("#locks-table td", HOSTILE[2]);
}

#[test]
fn page_shows_hostile_text_in_every_column_as_text() {
    let generator = Generator::shared();
    let Some(browser) = Browser::start() else { return };
    for extent in [Extent::Everything, Extent::AllButIdentities] {
        let site =
            Site::serving(generator.board(extent, &format!("{PAYLOAD}<script>window.hacked=1</script>")));
        // Without its scope and its type of event, nothing is a lock or a span of work.
        let may_be_empty = |view: &str| extent == Extent::Everything && ["locks", "lanes"].contains(&view);
        walk_all_views(&browser, site.address(), |view| usize::from(!may_be_empty(view)));
        // Hidden characters are shown as escapes, and markup is text.
        browser.resize(1400, 900);
        browser.view("timeline");
        browser.until_says("#timeline-table td", "\\u{1b}]0;pwn\\u{7}");
        browser.until_says("#timeline-table td", "<script>window.hacked=1</script>");
        for view in VIEWS {
            browser.view(view);
            let shown = browser.script(&format!("return document.getElementById('view-{view}').innerText"));
            let shown = shown.as_str().unwrap();
            let is_hostile = |character: char| !character.is_ascii() && PAYLOAD.contains(character);
            assert_eq!(shown.find(is_hostile), None, "{extent:?}, {view}: {shown:?}");
        }
        // The page does not see its server end.
        browser.go("about:blank");
    }
}
