//! What is hooked and what is understood are one: set-up writes the names of events and tools, the dialects read them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::call::Meaning;
use super::super::{PLATFORMS, Platform};
use crate::environment::Environment;
use crate::setup::{self, Part, Places, Scope};

/// What set-up hooks: the event, and the tools for which it is called, if not for all. `None` where a plugin calls.
fn hooked(platform: &Platform) -> Option<Vec<(String, Option<String>)>> {
    let places = Places::new("/home/ivy".into(), "/project".into(), Environment::default(), "/work".into());
    let known = setup::PLATFORMS.into_iter().find(|known| known.name == platform.id).unwrap();
    let targets = (known.targets)(&places, Scope::User);
    let hooks =
        targets.iter().find(|target| matches!(target.part, Part::Hooks | Part::HooksAndServer)).unwrap();
    let settings: Value = serde_json::from_str(&hooks.content.alone()).ok()?;
    let events = settings["hooks"].as_object().unwrap().iter();
    let matcher = |list: &Value| list[0]["matcher"].as_str().map(str::to_owned);
    Some(events.map(|(event, list)| (event.clone(), matcher(list))).collect())
}

#[test]
fn the_tools_that_set_up_matches_are_those_that_edit_or_delegate() {
    let mut checked = Vec::new();
    for platform in PLATFORMS {
        let Some(hooked) = hooked(platform) else { continue };
        let dialect = &platform.dialect;
        let known: BTreeSet<_> = dialect.edit_tools.iter().chain(dialect.delegate_tools).copied().collect();
        let is_before = |event: &str| {
            platform
                .dialect
                .events
                .iter()
                .any(|(name, means)| *name == event && *means == Meaning::BeforeTool)
        };
        let matchers: Vec<_> = hooked.iter().filter(|(event, _)| is_before(event)).collect();
        assert_eq!(matchers.len(), 1, "{}: {hooked:?}", platform.id);
        if let Some(matcher) = &matchers[0].1 {
            assert_eq!(matcher.split('|').collect::<BTreeSet<_>>(), known, "{}", platform.id);
            checked.push(platform.id);
        }
        // News and heartbeats come with every tool, so that nothing but edits is picked.
        let mut others = hooked.iter().filter(|(event, _)| !is_before(event));
        assert_eq!(others.find_map(|(_, matcher)| matcher.as_ref()), None, "{}", platform.id);
    }
    assert_eq!(checked, ["claude", "codex", "gemini", "copilot"], "the others are called for every tool");
}

#[test]
fn every_event_that_set_up_hooks_is_understood() {
    for platform in PLATFORMS {
        for (event, _) in hooked(platform).unwrap_or_default() {
            let is_known = platform.dialect.events.iter().any(|(name, _)| *name == event);
            assert!(is_known, "{}: {event}", platform.id);
        }
    }
}
