//! Hooks of ivy-blackboard in the settings of Claude Code.

use std::fs;

use super::changes;
use crate::scratch::Scratch;

/// Settings of Claude Code with the hooks of ivy-blackboard, as its documents tell its users to install them, beside others.
const WITH_IVY_BLACKBOARD: &str = r#"{
  // mine
  "model": "large",
  "hooks": {
    "SessionStart": [
      { "hooks": [{ "type": "command", "command": "bun ~/.claude/hooks/blackboard-register.ts" }] },
      { "matcher": "startup", "hooks": [{ "type": "command", "command": "~/bin/greet" }] }
    ],
    "PostToolUse": [
      {
        "matcher": "*",
        "hooks": [
          { "type": "command", "command": "${PAI_DIR}/hooks/blackboard-heartbeat.ts" },
          { "type": "command", "command": "~/bin/format --all" }
        ]
      }
    ],
    "SessionEnd": [
      { "hooks": [{ "type": "command", "command": "bun run /home/ivy/.claude/hooks/blackboard-deregister.ts" }] }
    ],
    "PreCompact": [
      { "hooks": [{ "type": "command", "command": "ivy-blackboard agent heartbeat --session x" }] }
    ],
    "Stop": [{ "hooks": [{ "type": "command", "command": "ivy-blackboard status" }] }]
  }
}
"#;

/// The commands of all hooks, in the order of the file.
fn hook_commands(settings: &str) -> Vec<String> {
    let commands = settings.split("\"command\": \"").skip(1);
    commands.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[test]
fn hooks_of_ivy_blackboard_are_replaced_and_come_back_with_the_removal() {
    let others = ["~/bin/greet", "~/bin/format --all", "ivy-blackboard status"];
    let scratch = Scratch::new();
    let file = scratch.path().join(".claude/settings.json");
    fs::create_dir(scratch.path().join(".claude")).unwrap();
    fs::write(&file, WITH_IVY_BLACKBOARD).unwrap();
    let before = scratch.contents();
    // The hooks that go are shown, and no other command.
    let plan = scratch.run(["setup", "claude", "--dry-run"]).success().stdout;
    for removed in [
        "bun ~/.claude/hooks/blackboard-register.ts",
        "bun /home/ivy/.claude/hooks/",
        "ivy-blackboard agent heartbeat …",
    ] {
        let removed = removed.replace("bun /home", "bun run /home");
        assert!(
            plan.lines().any(|line| line.starts_with('-') && line.contains(&removed)),
            "{removed}: {plan}"
        );
    }
    assert!(!plan.contains("greet") && !plan.contains("format --all"), "{plan}");
    let answer = scratch.json(["setup", "claude", "--yes"]);
    let change = changes(&answer).find(|change| change["part"] == "hooks").unwrap();
    assert_eq!((&change["file"], &change["action"]), (&file.to_str().unwrap().into(), &"change".into()));
    let text = fs::read_to_string(&file).unwrap();
    let (ours, rest): (Vec<_>, Vec<_>) =
        hook_commands(&text).into_iter().partition(|command| command == "blackboard");
    assert!(ours.len() > 3, "{text}");
    assert_eq!(rest, others, "{text}");
    assert!(text.contains("// mine\n  \"model\": \"large\""), "{text}");
    // A second run finds nothing to do.
    let again = scratch.json(["setup", "claude", "--yes"]);
    assert!(changes(&again).all(|change| change["action"] == "none"), "{again}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    // The file has not changed since: it is restored, with the hooks that were replaced.
    scratch.json(["setup", "remove", "claude", "--yes"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), WITH_IVY_BLACKBOARD);
    assert!(scratch.contents() == before, "something is left");
    // One that has changed loses only our hooks, and its backup has the old ones.
    scratch.json(["setup", "claude", "--yes"]);
    let changed = fs::read_to_string(&file).unwrap().replace("large", "small");
    fs::write(&file, changed).unwrap();
    scratch.json(["setup", "remove", "claude", "--yes"]);
    let left = fs::read_to_string(&file).unwrap();
    assert_eq!(hook_commands(&left), others, "{left}");
    assert!(left.contains("\"small\""), "{left}");
    let backup = scratch.path().join(".claude/settings.json.before-blackboard");
    assert_eq!(fs::read_to_string(backup).unwrap(), WITH_IVY_BLACKBOARD);
}
