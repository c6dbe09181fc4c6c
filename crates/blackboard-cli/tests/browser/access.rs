//! The page is accessible: axe-core finds nothing serious in any view, dark or light, wide or narrow.

use std::path::Path;

use serde_json::Value;

use crate::browser::{Browser, VIEWS};
use crate::sections::furnish;
use crate::site::Site;

/// Where `cargo xtask test` puts it.
const AXE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/axe/node_modules/axe-core/axe.min.js");

/// The script of axe-core. Without it, the test says that it skips its judgement.
pub fn axe() -> Option<String> {
    let script = std::fs::read_to_string(Path::new(AXE)).ok();
    if script.is_none() {
        testkit::skip(
            "the judgement of axe-core",
            "axe-core, which `cargo xtask test --all` fetches with npm",
        );
    }
    script
}

/// Checks that axe-core, which the page has, finds nothing serious on it.
pub fn judge(browser: &Browser, what: &str) {
    let found = browser.script_with_callback(
        "const done = arguments[0];
         axe.run({ resultTypes: ['violations'] }).then(result => done(result.violations.map(violation => [
           violation.impact, violation.id, violation.help,
           violation.nodes.slice(0, 3).map(node => `${node.target} ${node.failureSummary}`)])),
         error => done([['critical', 'axe', String(error), []]]))",
    );
    let serious: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .filter(|violation| violation[0] == "serious" || violation[0] == "critical")
        .collect();
    assert!(serious.is_empty(), "{what}: {serious:#?}");
}

#[test]
fn axe_finds_nothing_serious() {
    let Some(axe) = axe() else { return };
    let site = Site::new();
    let team = furnish(&site);
    // An overdue agent and a stale one have their own colors.
    let silent = site.agent(&["--name", "Silent"]);
    site.tamper(
        "UPDATE agents SET last_seen_at = '2026-01-01T00:00:00.000Z', last_beat_at = '2026-01-01T00:00:00.000Z', \
         status = 'stale' WHERE session_id = ?1",
        [&silent],
    );
    let Some(browser) = Browser::start() else { return };
    for (scheme, width) in [("dark", 1400), ("light", 1400), ("dark", 390)] {
        browser.prefer(scheme);
        browser.resize(width, 900);
        browser.open(site.address());
        browser.script(&axe);
        let judge = |what: &str| judge(&browser, &format!("{what}, {scheme}, {width}"));
        for view in VIEWS {
            browser.view(view);
            browser.until(
                "the view has read the board",
                &format!(
                    "return document.querySelector('#view-{view} tbody tr, #view-{view} .item, #view-{view} .node, \
                     #view-{view} .lane')"
                ),
            );
            judge(view);
            browser.picture(&format!("{view}-{scheme}-{width}"));
        }
        browser.press(&["?"]);
        browser.until("the help is open", "return document.getElementById('help').open");
        judge("the help");
        browser.press(&["Escape"]);
        browser.view("agents");
        browser.until("the tree is there", &format!("return document.getElementById('agent-{}')", team.ivy));
        browser.script(&format!("document.getElementById('agent-{}').click()", team.ivy));
        browser.until("the drawer is filled", "return document.querySelector('#drawer-body dl')");
        judge("the drawer");
        browser.press(&["Escape"]);
    }
    assert_eq!(browser.script("return document.documentElement.lang"), Value::from("en"));
}
