//! Setup hooks exactly the events and tools that are handled: setup writes their names, and the payload formats read
//! them.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::super::{PLATFORMS, Platform, claude};
use super::{environment, platform};
use crate::environment::Environment;
use crate::hooks::EventKind;
use crate::setup::{Part, SettingsDirs, SettingsLevel};

fn dirs(environment: Environment) -> SettingsDirs {
    SettingsDirs::new("/home/ivy".into(), "/project".into(), environment, "/work".into())
}

/// What setup hooks: the event, and the tools for which it is called, if not for all. `None` if a plugin makes the
/// calls.
fn hooked(platform: &Platform) -> Option<Vec<(String, Option<String>)>> {
    let targets = (platform.settings.targets)(&dirs(Environment::default()), SettingsLevel::User);
    let hooks =
        targets.iter().find(|target| matches!(target.part, Part::Hooks | Part::HooksAndServer)).unwrap();
    let settings: Value = serde_json::from_str(&hooks.content.alone()).ok()?;
    let events = settings["hooks"].as_object().unwrap().iter();
    let matcher = |list: &Value| list[0]["matcher"].as_str().map(str::to_owned);
    Some(events.map(|(event, list)| (event.clone(), matcher(list))).collect())
}

#[test]
fn the_tools_that_set_up_matches_are_those_that_edit_or_delegate() {
    for platform in PLATFORMS {
        let Some(hooked) = hooked(platform) else { continue };
        let format = &platform.payload;
        let known: BTreeSet<_> = format.edit_tools.iter().chain(format.delegate_tools).copied().collect();
        let is_before = |event: &str| format.events.contains(&(event, EventKind::BeforeTool));
        let matchers: Vec<_> = hooked.iter().filter(|(event, _)| is_before(event)).collect();
        assert_eq!(matchers.len(), 1, "{}: {hooked:?}", platform.id);
        if let Some(matcher) = &matchers[0].1 {
            assert_eq!(matcher.split('|').collect::<BTreeSet<_>>(), known, "{}", platform.id);
        }
        // Updates and heartbeats come with every tool, so only hooks for edits select tools.
        let mut others = hooked.iter().filter(|(event, _)| !is_before(event));
        assert_eq!(others.find_map(|(_, matcher)| matcher.as_ref()), None, "{}", platform.id);
    }
    let has_matcher =
        |id| hooked(platform(id)).is_some_and(|hooked| hooked.iter().any(|(_, matcher)| matcher.is_some()));
    assert!(["claude", "codex", "gemini", "copilot"].into_iter().all(has_matcher));
}

#[test]
fn every_event_that_set_up_hooks_is_understood() {
    for platform in PLATFORMS {
        for (event, _) in hooked(platform).unwrap_or_default() {
            let is_known = platform.payload.events.iter().any(|(name, _)| *name == event);
            assert!(is_known, "{}: {event}", platform.id);
        }
    }
}

#[test]
fn the_settings_of_an_agent_are_where_its_environment_says() {
    let moved = dirs(environment([
        ("CLAUDE_CONFIG_DIR", "/moved/claude"),
        ("CODEX_HOME", "/moved/codex"),
        ("GEMINI_CLI_HOME", "/moved"),
        ("XDG_CONFIG_HOME", "/moved"),
        ("COPILOT_HOME", "copilot"),
    ]));
    let usual = dirs(Environment::default());
    for (id, expected, expected_moved) in [
        ("claude", "/home/ivy/.claude", "/moved/claude"),
        ("codex", "/home/ivy/.codex", "/moved/codex"),
        ("gemini", "/home/ivy/.gemini", "/moved/.gemini"),
        ("opencode", "/home/ivy/.config/opencode", "/moved/opencode"),
        ("copilot", "/home/ivy/.copilot", "/work/copilot"),
        ("cursor", "/home/ivy/.cursor", "/home/ivy/.cursor"),
    ] {
        let directory = platform(id).settings.directory;
        assert_eq!(directory(&usual), Path::new(expected), "{id}");
        assert_eq!(directory(&moved), Path::new(expected_moved), "{id}");
    }
    let server = |dirs: &SettingsDirs| {
        let targets = (claude::CLAUDE.settings.targets)(dirs, SettingsLevel::User);
        targets.into_iter().find(|target| target.part == Part::Server).unwrap().file
    };
    assert_eq!(server(&usual), Path::new("/home/ivy/.claude.json"));
    assert_eq!(server(&moved), Path::new("/moved/claude/.claude.json"));
}
