use std::process::{Command, Stdio};

use blackboard::Board;
use blackboard::Revision;
use blackboard::agent::Register;
use blackboard::project::{ProgressNote, ProjectSelection};
use blackboard::text::TextRules;
use blackboard::work::{Claim, Create};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use testkit::process::RunToEnd as _;

use super::*;
use crate::spoke::Checked;

/// What an agent may have written: any characters, and what readers of YAML take for something else.
fn text() -> impl Strategy<Value = String> {
    let ambiguous = prop::sample::select(vec![
        "no",
        "on",
        "~",
        "null",
        "1e3",
        "0o7",
        "017",
        "12:30",
        "2026-01-02",
        "=",
        "<<",
        "- a",
        "a: b",
        "# a",
        "'",
        "\"",
        "%a",
        "\u{85}a",
        "a\u{2028}b",
        "\u{feff}a",
        " a ",
        "a\tb",
        "{a",
        "---",
        "...",
        "é",
        "\u{1f9c0}",
        "\u{fffe}x",
        "|",
        "!!str a",
    ]);
    prop_oneof![
        2 => proptest::collection::vec(any::<char>(), 0..40).prop_map(|characters| characters.into_iter().collect()),
        1 => "[ -~]{0,40}",
        1 => ambiguous.prop_map(str::to_owned),
    ]
}

/// What a board contains. Its rows are written without the verbs, whose filter would refuse most of it.
fn activity() -> impl Strategy<Value = Activity> {
    let board = Board::memory();
    let ivy = board.agents().register(&Register::named("Ivy")).expect("a session").agent.session_id;
    board.work().create(&Create::new("a", "A")).expect("an item");
    board.work().claim(&Claim::of("a", &ivy)).expect("a claim");
    let found = board.projects().activity(&ProjectSelection::All).expect("an activity");
    let (agent, item) = (found.live_agents[0].clone(), found.claimed[0].clone());
    let agents = (text(), proptest::option::of(text()), proptest::option::of(text()), 0..4_i64);
    let items =
        (text(), text(), proptest::option::of(text()), proptest::option::of(0..4_000_000_000_000_i64));
    (
        proptest::collection::vec(agents, 0..4),
        proptest::collection::vec(items, 0..4),
        proptest::collection::vec((text(), 0..4_000_000_000_000_i64), 0..12),
        any::<(u16, u16, u16)>(),
    )
        .prop_map(move |(agents, items, notes, (stale, available, blocked))| {
            let items: Vec<WorkItem> = items
                .into_iter()
                .map(|(id, title, summary, at)| WorkItem {
                    item_id: id,
                    title,
                    summary,
                    claimed_at: at.map(Timestamp::from_millis),
                    completed_at: at.map(Timestamp::from_millis),
                    ..item.clone()
                })
                .collect();
            let live_agents =
                agents.into_iter().enumerate().map(|(number, (name, work, project, status))| Agent {
                    session_id: number.to_string(),
                    agent_name: name,
                    current_work: work,
                    project,
                    status: if status == 0 { AgentStatus::Idle } else { AgentStatus::Active },
                    ..agent.clone()
                });
            Activity {
                projects: Vec::new(),
                live_agents: live_agents.collect(),
                stale_agents: stale.into(),
                available: available.into(),
                blocked: blocked.into(),
                completed: items.clone(),
                claimed: items,
                last_activity: notes.first().map(|(_, at)| Timestamp::from_millis(*at)),
                progress: notes
                    .into_iter()
                    .map(|(text, at)| ProgressNote {
                        at: Timestamp::from_millis(at),
                        revision: Revision::ZERO,
                        text,
                    })
                    .collect(),
            }
        })
}

fn any_status() -> impl Strategy<Value = StatusFile> {
    let git = (text(), any::<(bool, u16, u16)>());
    let redaction = any::<(bool, bool, bool, bool)>();
    (proptest::option::of(activity()), text(), proptest::option::of(git), 0..7_usize, redaction).prop_map(
        |(activity, project, git, phase, (agents, work, progress, branch))| {
            let git = git.map(|(branch, (dirty, behind, ahead))| GitStatus {
                branch,
                last_commit: Some("2026-02-03T16:30:00+01:00".into()),
                commit: Some("0123456789abcdef".into()),
                dirty,
                uncommitted_changes: dirty,
                behind_remote: behind.into(),
                ahead_of_remote: ahead.into(),
            });
            let sources = Sources {
                now: Timestamp::from_millis(1_770_000_000_000),
                project: &project,
                phase: Phase::ALL[phase],
                git,
                tests: None,
                activity: activity.as_ref(),
            };
            let redaction = Redaction { agents, work, progress, branch };
            status(sources, &Outgoing::new(&TextRules::default(), None), redaction)
        },
    )
}

proptest! {
    #[test]
    fn any_board_is_exported_to_yaml_that_is_read_back(status in any_status()) {
        testkit::limit_test();
        let text = status.write().expect("a status can be written");
        let read = StatusFile::check(&text);
        let missing_git = |message: &str| message == "git: required, but missing";
        prop_assert!(read.errors.iter().all(|error| missing_git(&error.message)), "{:?}\n{}", read.errors, text);
        prop_assert_eq!(Checked { errors: vec![], ..read }, Checked { value: Some(status), errors: vec![], notes: vec![] });
        // A terminal that prints it runs no sequence of it.
        prop_assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}

/// Many statuses at once: starting a process for each would take too long.
#[test]
fn a_reader_of_yaml_1_1_sees_the_values_of_any_board() {
    testkit::limit_test();
    if !testkit::machine::can("YAML 1.1", "python3", &["-c", "import yaml"]) {
        return;
    }
    let mut runner = TestRunner::deterministic();
    let strategy = any_status();
    let statuses: Vec<StatusFile> =
        (0..100).map(|_| strategy.new_tree(&mut runner).expect("a status").current()).collect();
    let texts: Vec<String> = statuses.iter().map(|status| status.write().expect("YAML")).collect();
    let script =
        "import json,sys,yaml\nprint(json.dumps([yaml.safe_load(text) for text in json.load(sys.stdin)]))";
    let mut python = Command::new("python3");
    python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = python.spawn().expect("it ran before");
    let (mut pipe, input) = (child.stdin.take().expect("a pipe"), serde_json::to_vec(&texts).expect("JSON"));
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut pipe, &input));
    let output = child.run_to_end();
    writer.join().expect("no panic").expect("all of it is read");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(read.len(), statuses.len());
    for ((status, text), read) in statuses.iter().zip(&texts).zip(read) {
        assert_eq!(serde_json::to_value(status).expect("JSON"), read, "{text}");
    }
}
