//! Tests of every platform's settings, and of edge cases of editing files.

use super::content::{Content, EditError, Removal};
use super::*;
use crate::environment::Environment;
use crate::platforms::PLATFORMS;

fn dirs() -> SettingsDirs {
    SettingsDirs::new("/home/ivy".into(), "/project".into(), Environment::default(), "/work".into())
}

/// Every target of every platform at every level.
fn targets() -> Vec<(&'static str, SettingsLevel, Target)> {
    let dirs = dirs();
    let levels = PLATFORMS
        .iter()
        .flat_map(|platform| platform.settings.levels.iter().map(move |level| (platform, *level)));
    let targets = levels.flat_map(|(platform, level)| {
        (platform.settings.targets)(&dirs, level).into_iter().map(move |target| (platform.id, level, target))
    });
    targets.collect()
}

/// Our server in a TOML file.
const SERVERS: Content = Content::Toml("mcp_servers");

fn claude(part: Part) -> Content {
    let mut targets = targets().into_iter();
    targets.find(|(name, _, target)| *name == "claude" && target.part == part).unwrap().2.content
}

#[test]
fn settings_contain_no_path_and_no_version() {
    for (platform, _, target) in targets() {
        let text = target.content.alone();
        assert!(text.contains("blackboard"), "{platform}: {text}");
        assert!(!text.contains(env!("CARGO_PKG_VERSION")), "{platform}: {text}");
        assert!(!text.contains("/blackboard") && !text.contains("\\blackboard"), "{platform}: {text}");
    }
}

#[test]
fn every_platform_gets_hooks_a_server_and_a_skill_in_every_scope_that_it_has() {
    for platform in PLATFORMS {
        for scope in platform.settings.levels {
            let targets = (platform.settings.targets)(&dirs(), *scope);
            let has = |parts: &[Part]| targets.iter().any(|target| parts.contains(&target.part));
            assert!(has(&[Part::Hooks, Part::HooksAndServer]), "{} {scope:?}", platform.id);
            assert!(has(&[Part::Server, Part::HooksAndServer]), "{} {scope:?}", platform.id);
            // Only Claude Code has a third settings level, which has no skills.
            assert_eq!(has(&[Part::Skill]), *scope != SettingsLevel::Local, "{} {scope:?}", platform.id);
            let root = if *scope == SettingsLevel::User { "/home/ivy" } else { "/project" };
            for target in targets.iter().filter(|target| !target.is_private) {
                assert!(target.file.starts_with(root), "{} {scope:?}: {:?}", platform.id, target.file);
            }
        }
    }
}

#[test]
fn a_new_file_is_set_up_stays_as_it_is_and_is_empty_without_us() {
    for (platform, _, target) in targets() {
        let text = target.content.alone();
        assert!(text.ends_with('\n'), "{platform}");
        assert_eq!(target.content.state(&text), Ok(State::SetUp), "{platform}");
        assert_eq!(target.content.with(Some(&text)), Ok(text.clone()), "{platform}");
        assert!(target.content.without(&text, None).unwrap().is_empty, "{platform}");
    }
}

#[test]
fn hooks_of_ivy_blackboard_are_replaced_and_others_stay() {
    let hooks = claude(Part::Hooks);
    let handler = |command: &str| format!(r#"{{ "type": "command", "command": "{command}" }}"#);
    let replaced = [
        "bun ~/.claude/hooks/blackboard-register.ts",
        "${PAI_DIR}/hooks/blackboard-register.ts",
        "bun run /home/ivy/.claude/hooks/blackboard-register.ts",
        "/usr/local/bin/bun /x/blackboard-heartbeat.ts",
        "~/.bun/bin/bun run ~/.claude/hooks/blackboard-deregister.ts",
        "ivy-blackboard agent register --name Ivy",
        "/home/ivy/bin/ivy-blackboard agent heartbeat --session x",
    ];
    let kept = [
        "say done",
        "bun ~/.claude/hooks/blackboard-register.ts --verbose now",
        "bun ~/.claude/hooks/my-blackboard-register.ts",
        "/usr/local/bin/bunny /x/blackboard-heartbeat.ts",
        "cat blackboard-register.ts | sh",
        "blackboard agent heartbeat",
        "ivy-blackboard status",
    ];
    for (commands, stays) in [(&replaced[..], false), (&kept[..], true)] {
        for command in commands {
            let before = format!(
                "{{\n  \"hooks\": {{\n    \"SessionStart\": [\n      {{ \"hooks\": [{}] }}\n    ]\n  }}\n}}\n",
                handler(command)
            );
            let after = hooks.with(Some(&before)).unwrap();
            assert_eq!(after.contains(command), stays, "{command}: {after}");
            assert_eq!(hooks.state(&after), Ok(State::SetUp), "{command}");
            let others = hooks.without_predecessors(&before).unwrap();
            assert_eq!(others.contains(command), stays, "{command}: {others}");
        }
    }
    // In a group with another one.
    let both = format!("{}, {}", handler(replaced[0]), handler("say done"));
    let before = format!(r#"{{ "hooks": {{ "SessionStart": [{{ "hooks": [{both}] }}] }} }}"#);
    let after = hooks.with(Some(&before)).unwrap();
    assert!(after.contains("say done") && !after.contains(replaced[0]), "{after}");
}

#[test]
fn a_handler_in_a_group_of_others_is_brought_up_to_date_alone() {
    let hooks = claude(Part::Hooks);
    let before = r#"{
  "hooks": {
    "Stop": [
      {
        "hooks": [
          { "type": "command", "command": "say done" }, // mine
          { "type": "command", "command": "/opt/bin/blackboard hook claude" }
        ]
      }
    ]
  }
}
"#;
    let after = hooks.with(Some(before)).unwrap();
    assert!(after.contains("{ \"type\": \"command\", \"command\": \"say done\" }, // mine"), "{after}");
    assert!(!after.contains("/opt/bin/blackboard"), "{after}");
    assert_eq!(hooks.state(before), Ok(State::OutOfDate));
    assert_eq!(hooks.state(&after), Ok(State::SetUp));
    let without = hooks.without(&after, None).unwrap().text;
    assert!(without.contains("say done") && !without.contains("blackboard"), "{without}");
}

#[test]
fn old_and_duplicate_hooks_are_removed() {
    let hooks = claude(Part::Hooks);
    let before = r#"{ "hooks": {
  "Notification": [{ "hooks": [{ "type": "command", "command": "blackboard hook claude" }] }, { "hooks": [] }],
  "PreCompact": [{ "hooks": [{ "type": "command", "command": "blackboard hook claude" }] }],
  "Stop": [
    { "hooks": [{ "type": "command", "command": "blackboard", "args": ["hook", "claude"], "timeout": 5 }] },
    { "hooks": [{ "type": "command", "command": "blackboard hook claude" }] }
  ]
} }"#;
    let after = hooks.with(Some(before)).unwrap();
    let value: serde_json::Value = serde_json::from_str(&after).unwrap();
    assert_eq!(value["hooks"]["Notification"].as_array().map(Vec::len), Some(1), "{after}");
    assert_eq!(value["hooks"].get("PreCompact"), None, "{after}");
    assert_eq!(value["hooks"]["Stop"].as_array().map(Vec::len), Some(1), "{after}");
}

#[test]
fn empty_file_is_restored() {
    let hooks = claude(Part::Hooks);
    for (before, expected) in [
        ("{\n  \"a\": 1\n}\n", "{\n  \"a\": 1\n}\n"),
        ("{\n  \"hooks\": {}\n}\n", "{\n  \"hooks\": {}\n}\n"),
        ("{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n", "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n"),
    ] {
        let after = hooks.with(Some(before)).unwrap();
        assert_eq!(hooks.without(&after, Some(before)).unwrap().text, expected);
    }
}

#[test]
fn a_server_of_ours_keeps_what_the_user_has_added_to_it() {
    let server = claude(Part::Server);
    let text = r#"{"mcpServers": {"blackboard": {"type": "stdio", "command": "blackboard", "args": ["mcp"], "env": {"A": "1"}}}}"#;
    assert_eq!(server.with(Some(text)), Ok(text.to_owned()));
    let text = "[mcp_servers.blackboard]\ncommand = \"/opt/blackboard\" # mine\nargs = [\"mcp\", \"--old\"]\nenabled = true\n\n[mcp_servers.blackboard.env]\nA = \"1\"\n\n[last]\n";
    let expected = text.replace("\"/opt/blackboard\"", "\"blackboard\"");
    assert_eq!(SERVERS.with(Some(text)), Ok(expected.clone()));
    assert_eq!(SERVERS.without(&expected, None).unwrap().text, "\n[last]\n");
}

#[test]
fn a_server_with_arguments_of_the_user_keeps_them_and_all_else_that_it_has() {
    for (platform, scope, target) in targets() {
        let Content::Json(wanted) = &target.content else { continue };
        if !matches!(target.part, Part::Server | Part::HooksAndServer) {
            continue;
        }
        let alone = target.content.alone();
        // A separate list for the arguments, or one list for the complete command.
        let (old, program, more) = if alone.contains("\"args\"") {
            let more = r#"["mcp", "--db", "/srv/board.db"], "env": { "A": "1" }"#;
            (r#"["mcp"]"#, r#""command": "blackboard""#, more)
        } else {
            (r#""mcp""#, r#""blackboard""#, r#""mcp", "--db", "/srv/board.db""#)
        };
        let squeezed: String =
            alone.split_whitespace().collect::<Vec<_>>().join(" ").replace("[ ", "[").replace(" ]", "]");
        let mcp = squeezed.rfind(old).unwrap_or_else(|| panic!("{platform} {scope:?}: {squeezed}"));
        let theirs = format!("{}{more}{}", &squeezed[..mcp], &squeezed[mcp + old.len()..]);
        assert_eq!(
            target.content.with(Some(&theirs)),
            Ok(theirs.clone()),
            "{platform} {scope:?}: {wanted:?}"
        );
        let start = theirs.rfind(program).unwrap();
        let moved = theirs[start..].replacen("blackboard\"", "/opt/bin/blackboard\"", 1);
        let moved = format!("{}{moved}", &theirs[..start]);
        assert_ne!(moved, theirs);
        assert_eq!(target.content.with(Some(&moved)), Ok(theirs), "{platform} {scope:?}");
    }
}

#[test]
fn a_server_that_was_switched_off_stays_off() {
    let mut targets = targets().into_iter();
    let opencode = |(name, _, target): &(&str, SettingsLevel, Target)| {
        *name == "opencode" && target.part == Part::Server
    };
    let server = targets.find(opencode).unwrap().2.content;
    let text =
        r#"{"mcp": {"blackboard": {"type": "local", "command": ["blackboard", "mcp"], "enabled": false}}}"#;
    assert_eq!(server.with(Some(text)), Ok(text.to_owned()));
}

#[test]
fn manual_toml_text_matches_the_file() {
    let before = "mcp_servers = { a = {} }\n";
    assert!(SERVERS.with(Some(before)).is_err());
    let by_hand = SERVERS.by_hand(Some(before));
    let line = by_hand.lines().last().unwrap();
    let after = before.replace("a = {}", &format!("a = {{}}, {line}"));
    assert_eq!(SERVERS.state(&after), Ok(State::SetUp), "{after}");
    assert_eq!(SERVERS.with(Some(&after)), Ok(after.clone()));
    assert_eq!(SERVERS.by_hand(Some("not TOML")), SERVERS.alone());
}

#[test]
fn a_server_that_was_switched_off_is_told_apart() {
    let text = SERVERS.alone() + "enabled = false\n";
    assert_eq!(SERVERS.state(&text), Ok(State::SwitchedOff));
    assert_eq!(SERVERS.state(&text.replace("false", "true")), Ok(State::SetUp));
    for (platform, _, target) in targets().iter().filter(|(_, _, target)| target.part == Part::Server) {
        let Content::Json(_) = &target.content else { continue };
        let alone = target.content.alone();
        let off = if alone.contains("\"enabled\"") {
            alone.replace("\"enabled\": true", "\"enabled\": false")
        } else {
            alone.replace("\"command\":", "\"disabled\": true, \"command\":")
        };
        assert_eq!(target.content.state(&off), Ok(State::SwitchedOff), "{platform}: {off}");
    }
}

#[test]
fn a_command_that_does_more_than_ours_is_the_users() {
    let hooks = claude(Part::Hooks);
    for command in [
        "blackboard hook claude 2>>/tmp/log; notify-send done",
        "blackboard hook claude && say done",
        "blackboard hook claude | tee /tmp/log",
        "blackboard hook claude\\nsay done",
        "blackboard hook",
    ] {
        let theirs = format!(
            r#"{{ "matcher": "Bash", "hooks": [{{ "type": "command", "command": "{command}", "timeout": 60 }}] }}"#
        );
        let text = format!("{{ \"hooks\": {{ \"PostToolUse\": [{theirs}] }} }}");
        assert_eq!(hooks.state(&text), Ok(State::Missing), "{command}");
        let after = hooks.with(Some(&text)).unwrap();
        let one = |text: &str, index: usize| {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            value["hooks"]["PostToolUse"][index].clone()
        };
        assert_eq!(one(&after, 0), one(&text, 0), "{command}");
        assert_eq!(one(&after, 1)["hooks"][0]["args"], serde_json::json!(["hook", "claude"]), "{command}");
        let without = hooks.without(&after, Some(&text)).unwrap().text;
        assert_eq!(one(&without, 0), one(&text, 0), "{command}");
        assert!(one(&without, 1).is_null(), "{command}: {without}");
    }
}

#[test]
fn a_hook_with_arguments_of_the_user_keeps_them_and_has_no_second_one_beside_it() {
    let hooks = claude(Part::Hooks);
    let alone = hooks.alone();
    let stop = alone.find("\"Stop\"").unwrap();
    let theirs = alone[stop..].replacen("\"claude\"", "\"claude\", \"--db\", \"/srv/board.db\"", 1);
    let theirs = theirs.replacen("\"timeout\": 5", "\"timeout\": 5, \"async\": true", 1);
    let text = format!("{}{theirs}", &alone[..stop]);
    assert_ne!(text, alone);
    assert_eq!(hooks.with(Some(&text)), Ok(text.clone()));
    let moved = text.replace("\"command\": \"blackboard\"", "\"command\": \"/opt/bin/blackboard\"");
    assert_eq!(hooks.with(Some(&moved)), Ok(text));
}

#[test]
fn a_file_with_a_comment_is_not_empty_without_us() {
    for (platform, _, target) in targets() {
        let (Content::Json(_) | Content::Toml(_)) = &target.content else { continue };
        let comment = if matches!(target.content, Content::Toml(_)) { "# mine\n" } else { "// mine\n" };
        let text = format!("{comment}{}", target.content.alone());
        let without = target.content.without(&text, None).unwrap();
        assert!(without.text.starts_with(comment) && !without.is_empty, "{platform}: {without:?}");
    }
}

#[test]
fn unexpected_structure_is_refused() {
    testkit::limit_test();
    let deep = format!("{{\"hooks\": {}{}}}", "[".repeat(1000), "]".repeat(1000));
    for (part, text, reason) in [
        (Part::Hooks, "[]", "the file is not an object"),
        (Part::Hooks, r#"{"hooks": []}"#, "\"hooks\" is not an object"),
        (Part::Hooks, r#"{"hooks": {"Stop": {}}}"#, "\"Stop\" is not a list"),
        (Part::Hooks, r#"{"hooks": {}, "hooks": {}}"#, "\"hooks\" occurs more than once"),
        (Part::Hooks, &deep, "it is nested too deeply"),
        (Part::Server, r#"{"mcpServers": 1}"#, "\"mcpServers\" is not an object"),
        (
            Part::Server,
            r#"{"mcpServers": {"blackboard": {"command": "chalk"}}}"#,
            "\"mcpServers.blackboard\" is used for something else: rename that, and run this command again",
        ),
    ] {
        assert_eq!(claude(part).with(Some(text)), Err(EditError(reason.to_owned())), "{text}");
    }
    for text in ["{", "{'a': 1}", "{a: 1}", "{\"a\": 1 \"b\": 2}", "{\"a\": 0x10}", "{} {}", "no"] {
        let Err(EditError(reason)) = claude(Part::Hooks).with(Some(text)) else {
            panic!("{text} is accepted")
        };
        assert!(reason.starts_with("it is not valid JSON ("), "{text}: {reason}");
    }
    for (text, reason) in [
        ("mcp_servers = 1\n", "\"mcp_servers\" is not a table"),
        ("mcp_servers = { a = {} }\n", "\"mcp_servers\" has a form that cannot be extended"),
        (
            "[mcp_servers.blackboard]\ncommand = \"chalk\"\n",
            "\"mcp_servers.blackboard\" is used for something else: rename that, and run this command again",
        ),
    ] {
        assert_eq!(SERVERS.with(Some(text)), Err(EditError(reason.to_owned())), "{text}");
    }
}

#[test]
fn programs_of_others_are_not_ours() {
    let hooks = claude(Part::Hooks);
    for command in
        ["blackboard-lint hook claude", "echo blackboard hook", "blackboard", "my/blackboarder hook x"]
    {
        let text = format!(r#"{{"hooks": {{"Stop": [{{"hooks": [{{"command": "{command}"}}]}}]}}}}"#);
        assert_eq!(hooks.without(&text, None), Ok(Removal::nothing_of_ours(&text)), "{command}");
    }
}

#[test]
fn a_checkout_with_other_line_endings_is_set_up() {
    for (platform, _, target) in targets().iter().filter(|(_, _, target)| target.part == Part::Skill) {
        let text = target.content.alone().replace('\n', "\r\n");
        assert_eq!(target.content.state(&text), Ok(State::SetUp), "{platform}");
    }
}
