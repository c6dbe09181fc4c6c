//! The token quota on the page.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use blackboard::clock::{Clock as _, SystemClock};

use crate::access::{axe, judge};
use crate::browser::Browser;
use crate::scratch::Scratch;
use crate::site::Site;

const QUOTA: &str = r#"{"quota": {
    "models": {"claude-*": "anthropic", "gpt-*": "openai"},
    "providers": {
        "anthropic": {
            "tier": "scale",
            "rateLimit": {"tokensPerMinute": 80000},
            "windows": {"5h": {"budget": 500000}, "7d": {"budget": 5000000}},
            "reservation": {"operator": 100000}
        },
        "openai": {"windows": {"1d": {"budget": 100000}}, "warnAt": [0.5]}
    }
}}"#;

/// A board with a quota of which some is used, also on another board, and for an item with a hostile name.
fn site() -> Site {
    let scratch = Scratch::new();
    let file = scratch.home_file("config.json");
    let directory = file.parent().unwrap();
    fs::create_dir_all(directory).unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(file, QUOTA).unwrap();
    for (name, hint) in [("Ivy", "ivy"), ("Sage", "sage")] {
        scratch.json(["agent", "register", "--name", name, "--session-hint", hint]);
    }
    scratch.json(["work", "create", "schema", "--title", "Design the schema"]);
    let other = scratch.path().join("other.db");
    let other = other.to_str().unwrap();
    let record = |model: &str, input: &str, more: &[&str]| {
        let call = ["quota", "record", "--model", model, "--input-tokens", input];
        scratch.json([&call[..], more].concat());
    };
    record("claude-opus", "210000", &["--session", "ivy", "--item", "schema", "--cache-read", "90000"]);
    record("claude-opus", "40000", &["--session", "sage", "--item", "<img src=x onerror=alert(1)>"]);
    record("claude-opus", "30000", &["--db", other]);
    record("gpt-5", "77000", &["--session", "sage"]);
    // Its model has no provider.
    let message = r#"{"id": "m", "model": "mystery <b>1</b>", "at": 1770000000000, "usage": {"input": 1}}"#;
    let message = message.replace("1770000000000", &SystemClock.now().millis().to_string());
    let spool = scratch.home_file("quota-spool");
    fs::write(&spool, format!(r#"{{"board": "b", "session": "s", "message": {message}}}"#) + "\n").unwrap();
    fs::set_permissions(&spool, fs::Permissions::from_mode(0o600)).unwrap();
    scratch.json([
        "quota",
        "check",
        "--provider",
        "anthropic",
        "--tokens",
        "50k",
        "--reserve",
        "--session",
        "ivy",
    ]);
    Site::serving(scratch)
}

#[test]
fn the_quota_has_a_card_and_a_view_and_stays_current() {
    let site = site();
    let Some(browser) = Browser::start() else { return };
    browser.read_often();
    browser.open(site.address());
    browser.script("window.notReloaded = true");
    let text = |selector: &str| {
        let script = format!("return document.querySelector({selector:?})?.textContent ?? ''");
        browser.script(&script).as_str().unwrap().to_owned()
    };
    let card = |value: &str| {
        let script = format!(
            "return [...document.querySelectorAll('.card')].some(card => card.textContent === 'Token quota{value}')"
        );
        browser.until(&format!("the card has {value}"), &script);
    };
    card("77%");
    for (scheme, width) in [("dark", 1400), ("light", 1400), ("dark", 390)] {
        browser.prefer(scheme);
        browser.resize(width, 1100);
        browser.view("quota");
        browser
            .until("the windows are shown", "return document.querySelectorAll('.quota-window').length === 3");
        browser.picture(&format!("quota-{scheme}-{width}"));
        browser.assert_fits(&format!("{scheme} {width}"));
    }
    browser.resize(1400, 1100);
    let label = browser.script("return document.querySelector('.quota-bar').getAttribute('aria-label')");
    let expected = "5h window: 289k of 500k used (57%), 50k reserved, 61k free for agents, 100k kept for you";
    assert_eq!(label, expected);
    let notes = text(".quota-notes");
    assert!(notes.contains("At this rate the 5h window is used up in"), "{notes}");
    assert!(notes.contains("Starts to free up in"), "{notes}");
    let tables = text(".quota-tables");
    for expected in ["Ivy", "Sage", "other boards", "schema", "<img src=x onerror=alert(1)>"] {
        assert!(tables.contains(expected), "{expected}: {tables}");
    }
    let uncounted = text(".quota-uncounted");
    assert!(uncounted.ends_with("no provider has the model: 1 message of mystery <b>1</b>"), "{uncounted}");
    let elements = browser.script("return document.querySelectorAll('.quota img, .quota b').length");
    assert_eq!(elements, 0, "names are text");
    let chart = browser.script("return document.querySelector('.quota-chart').getAttribute('aria-label')");
    assert!(chart.as_str().unwrap().starts_with("289k tokens since "), "{chart}");

    site.json(&["quota", "record", "--model", "gpt-5", "--input-tokens", "20000"]);
    browser.until(
        "the new usage is shown",
        "return [...document.querySelectorAll('.quota-percent')].some(percent => percent.textContent === '97%')",
    );
    browser.view("overview");
    card("97%");
    assert_eq!(browser.script("return window.notReloaded"), true);
    browser.press(&["9"]);
    browser.until("9 is the quota", "return !document.getElementById('view-quota').hidden");
    browser.script(
        "[...document.querySelectorAll('.quota .link')].find(link => link.textContent === 'schema').click()",
    );
    browser.until_says("#drawer-title", "Design the schema");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn axe_finds_nothing_serious_in_the_quota() {
    let Some(axe) = axe() else { return };
    let site = site();
    let Some(browser) = Browser::start() else { return };
    for (scheme, width) in [("dark", 1400), ("light", 1400), ("dark", 390)] {
        browser.prefer(scheme);
        browser.resize(width, 1100);
        browser.open(site.address());
        browser.script(&axe);
        browser.view("quota");
        browser
            .until("the windows are shown", "return document.querySelectorAll('.quota-window').length === 3");
        judge(&browser, &format!("{scheme}, {width}"));
    }
}

#[test]
fn a_page_without_a_quota_has_neither_card_nor_view() {
    let site = Site::new();
    let Some(browser) = Browser::start() else { return };
    browser.open(site.address());
    browser.until("the cards are shown", "return document.querySelectorAll('.card').length > 0");
    assert_eq!(browser.script("return document.getElementById('tab-quota').hidden"), true);
    assert_eq!(browser.script("return document.body.innerText.includes('Token quota')"), false);
    browser.script("location.hash = '#quota'");
    assert_eq!(browser.script("return document.getElementById('view-quota').hidden"), true);
}
