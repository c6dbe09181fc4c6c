//! The page of the dashboard in a real Chromium, served by the real program from a board of its own.
//!
//! Chromium is driven by `chromedriver` through its own protocol, WebDriver. Both come from Debian's packages
//! `chromium` and `chromium-driver`; `cargo xtask test` installs them where they are missing, and axe-core
//! from npm, which checks the accessibility of the page. What takes time is waited for until it is so;
//! nothing here measures time.
//!
//! With `BLACKBOARD_TEST_PICTURES=DIRECTORY` the tests write pictures of the page there, for a developer to
//! look at.

#![cfg(target_os = "linux")]
#![expect(unreachable_pub, reason = "a test has no public interface: `pub` means used outside of its module")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot continue has failed")]

mod access;
mod browser;
mod crowded;
mod hostile;
mod keyboard;
mod live;
mod quota;
mod sections;
mod site;
mod timeline;
mod token;
mod webdriver;

use testkit::{hostile_board, scratch};
