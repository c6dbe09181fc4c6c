//! The token in a real browser: it leaves the address bar, and a cookie that no script can read takes its place.

use crate::browser::Browser;
use crate::site::Site;

#[test]
fn the_token_leaves_the_address_bar_and_no_script_can_read_the_cookie() {
    let site = Site::new();
    let Some(browser) = Browser::start() else { return };
    // Without the token, the page says how to get it.
    browser.go(&site.plain_address());
    browser.until_says("body", "blackboard serve --status");
    browser.open(&format!("{}#work", site.address()));
    assert_eq!(browser.script("return location.href"), format!("{}#work", site.plain_address()));
    assert_eq!(browser.script("return document.cookie"), "");
    assert_eq!(browser.script("return document.referrer"), "");
    // The cookie is enough from now on, also for the stream.
    browser.open(&site.plain_address());
    site.json(&["project", "register", "--id", "late", "--name", "Late"]);
    browser.until_says("#events-table tbody td", "Project \"Late\" registered");
}

#[test]
fn two_dashboards_in_one_browser_keep_their_cookies() {
    let (one, other) = (Site::new(), Site::new());
    let Some(browser) = Browser::start() else { return };
    browser.open(one.address());
    browser.open(other.address());
    for site in [&one, &other] {
        browser.open(&site.plain_address());
    }
}

#[test]
fn a_page_that_a_file_leads_to_is_shown() {
    let site = Site::new();
    // As `serve --open` writes it: to a browser, a file is another site.
    let directory = testkit::tempdir().unwrap();
    let file = directory.path().join("open.html");
    let page = format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url={}\">",
        site.address()
    );
    std::fs::write(&file, page).unwrap();
    let Some(browser) = Browser::start() else { return };
    browser.go(&format!("file://{}", file.display()));
    browser.until_live();
    assert_eq!(browser.script("return location.href"), site.plain_address());
    assert_eq!(browser.script("return document.cookie"), "");
}
