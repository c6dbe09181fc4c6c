//! From boards to a hub: two machines export what their agents do, and a third one reads it.

use std::fs;
use std::process::Command;

use serde_json::json;
use testkit::process::RunToEnd as _;

use super::hub::{TestHub, spoke};
use crate::machine::can_trace;
use crate::scratch::{Output, Scratch};

/// A machine with a repository, a board in it, and an agent that works on two items.
fn machine(hub: &TestHub, name: &str, agent: &str) -> Scratch {
    let scratch = Scratch::new();
    let script = format!(
        "set -e
        git init -q -b main . && git config user.name Ivy && git config user.email ivy@example.org
        git commit -q --allow-empty -m Start
        blackboard init
        blackboard project register {name} --name {name} --path \"$PWD\"
        blackboard agent register --name {agent} --session-hint {agent} --project {name}
        blackboard work claim one --title 'First item' --project {name} --session {agent}
        blackboard work claim two --title 'Second item' --project {name} --session {agent}
        blackboard status --export --phase harden
        git add .collab && git commit -q -m 'Report status'
        git init -q --bare --template= '{repositories}/{name}'
        git push -q '{repositories}/{name}' main",
        repositories = hub.repositories().display()
    );
    let output = Output::of(scratch.shell(&script).run_to_end());
    assert_eq!(output.code, 0, "{output:?}");
    hub.project(name, &format!("source: {{repo: '{}'}}\n", hub.url(name)));
    scratch
}

/// The call, with every file that it or git opens.
fn traced(hub: &TestHub, words: &[&str]) -> Option<(Output, String)> {
    if !can_trace("the files that a pull opens") {
        return None;
    }
    let file = hub.scratch.path().join("trace");
    let inner = hub.scratch.command(hub.arguments(words));
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-s", "4096", "-e", "trace=%file", "-o"]).arg(&file);
    command.arg(inner.get_program()).args(inner.get_args()).env_clear().current_dir(hub.scratch.path());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = Output::of(command.run_to_end());
    Some((output, fs::read_to_string(file).unwrap()))
}

#[test]
fn a_hub_shows_the_work_of_two_machines_and_opens_none_of_their_boards() {
    let Some(hub) = TestHub::new("two machines") else { return };
    let machines = [machine(&hub, "signal", "Ivy"), machine(&hub, "tools", "Oak")];
    let (ivy, oak) = (&machines[0], &machines[1]);
    if let Some((output, trace)) = traced(&hub, &["pull", "--json"]) {
        assert_eq!(output.success().json()["fetched"], 2);
        assert!(trace.contains("PROJECT.yaml") && trace.contains("repositories/signal"), "{trace}");
        for machine in &machines {
            assert!(!trace.contains(machine.path().to_str().unwrap()), "a machine was accessed: {trace}");
        }
    }
    // The hub needs neither machine.
    fs::remove_dir_all(oak.path().join(".blackboard")).unwrap();
    let pulled = hub.json(&["pull"]);
    for (project, agent) in [("signal", "Ivy"), ("tools", "Oak")] {
        let spoke = spoke(&pulled, project);
        assert_eq!((&spoke["health"], &spoke["phase"]), (&json!("fresh"), &json!("harden")), "{spoke}");
        let activity = &spoke["status"]["agentActivity"];
        assert_eq!((&activity["activeAgents"], &activity["claimedItems"]), (&json!(1), &json!(2)), "{spoke}");
        assert!(activity.to_string().contains(agent), "{activity}");
    }
    let shown = hub.run(&["pull"]).success().stdout;
    let row = |name: &str| shown.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    for name in ["signal", "tools"] {
        let row = row(name);
        assert!(row.contains("hardening") && row.contains("2 items claimed"), "{shown}");
    }
    // A project that is registered here is read from its path. Its board stays closed.
    let path = ivy.path().to_str().unwrap();
    hub.scratch.json(["project", "register", "signal", "--name", "Signal", "--path", path]);
    if let Some((output, trace)) = traced(&hub, &["pull", "--json"]) {
        let pulled = output.success().json();
        assert_eq!(spoke(&pulled, "signal")["source"], "local");
        assert!(trace.contains(path), "nothing was traced");
        assert!(!trace.contains(&format!("{path}/.blackboard")) && !trace.contains(&format!("{path}/.pai")));
        assert_eq!(trace.matches(".blackboard/").count(), 0, "{trace}");
    }
}
