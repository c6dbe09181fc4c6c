use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use blackboard::Code;
use serde_json::json;
use testkit::process::RunToEnd as _;

use super::{MANIFEST, write};
use crate::hostile_board::PAYLOAD;
use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("spoke show");
}

#[test]
fn json_has_every_file_and_its_errors() {
    let scratch = Scratch::new();
    scratch.run(["spoke", "show", "--json"]).refused(Code::EntryNotFound);
    write(&scratch, "manifest.yaml", &MANIFEST.replace("license: MIT", "license: GPL"));
    write(
        &scratch,
        "operator.yaml",
        "schemaVersion: '1.0'\nhandle: ivy\navailability: open\nskills: [rust]\n",
    );
    let shown = scratch.json(["spoke", "show"]);
    is_object(&shown, &["directory", "manifest", "status", "operator", "errors"]);
    assert_eq!((&shown["manifest"]["hub"], &shown["status"]), (&json!("mellanon/the-hive"), &json!(null)));
    assert_eq!(shown["operator"]["skills"], json!(["rust"]));
    let errors: Vec<_> =
        shown["errors"].as_array().unwrap().iter().map(|error| (&error["file"], &error["line"])).collect();
    assert_eq!(errors, [(&json!("manifest.yaml"), &json!(6)), (&json!("operator.yaml"), &json!(1))]);
    assert!(!scratch.path().join("ran").exists());
}

#[test]
fn hostile_files_reach_the_terminal_escaped() {
    let scratch = Scratch::new();
    let text = serde_json::to_string(PAYLOAD).unwrap();
    write(
        &scratch,
        "manifest.yaml",
        &MANIFEST.replace("name: pai-collab", &format!("name: {text}\n{text}: 1")),
    );
    write(
        &scratch,
        "status.yaml",
        &format!("schemaVersion: {text}\nphase: {text}\nrecentProgress: [{text}]\n"),
    );
    for call in [&["spoke", "show"][..], &["spoke", "validate"]] {
        let shown = scratch.run(call).stdout;
        let forged = |line: &str| line.starts_with("FORGED");
        assert!(
            !shown.contains(['\u{1b}', '\u{202e}', '\u{2028}', '\u{8}']) && !shown.lines().any(forged),
            "{shown}"
        );
    }
}

#[test]
fn a_spoke_that_a_hub_refuses_is_refused() {
    let scratch = Scratch::new();
    write(&scratch, "manifest.yaml", MANIFEST);
    fs::rename(scratch.path().join(".collab"), scratch.path().join("reports")).unwrap();
    symlink("reports", scratch.path().join(".collab")).unwrap();
    for call in ["show", "validate", "init"] {
        scratch.run(["spoke", call, "--json"]).refused(Code::UnsafePermissions);
    }
    fs::remove_file(scratch.path().join(".collab")).unwrap();
    // A hub reads at most 256 KB.
    write(&scratch, "status.yaml", &format!("# {}\n", "x".repeat(256 * 1024)));
    assert_eq!(scratch.json(["spoke", "show"])["status"], json!(null));
    scratch.run(["spoke", "validate", ".collab/status.yaml", "--json"]).refused(Code::ProtocolMismatch);
    let pipe = scratch.path().join(".collab/status.yaml");
    fs::remove_file(&pipe).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).run_to_end().status.success());
    assert_eq!(scratch.json(["spoke", "show"])["errors"][0]["message"], "the file is not a plain file");
}

#[test]
fn values_that_are_wrong_are_missing() {
    let scratch = Scratch::new();
    write(
        &scratch,
        "status.yaml",
        "schemaVersion: '1.0'\ngeneratedAt: yesterday\ngeneratedBy: x\nphase: flying\ntests: {passing: \"3\", failing: 0}\n\
         git: {branch: main, lastCommit: 2026-02-03, dirty: maybe, behindRemote: 2}\n\
         agentActivity: {activeAgents: many}\nproject: {phase: building}\nrecentProgress: [done]\n",
    );
    write(&scratch, "operator.yaml", "schemaVersion: '2'\nhandle: ivy\navailability: away\n");
    let shown = scratch.json(["spoke", "show"]);
    let status =
        json!({"schemaVersion": "1.0", "generatedBy": "x", "recentProgress": ["done"], "phase": "build"});
    assert_eq!(shown["status"], status);
    assert_eq!(
        (&shown["operator"]["availability"], &shown["operator"]["schemaVersion"]),
        (&json!(null), &json!(null))
    );
    write(
        &scratch,
        "status.yaml",
        "schemaVersion: '1.0'\ngeneratedAt: yesterday\nphase: flying\ntests: {passing: \"3\"}\n",
    );
    assert_eq!(scratch.json(["spoke", "show"])["status"], json!({"schemaVersion": "1.0"}));
    let human = scratch.run(["spoke", "show"]).success().stdout;
    for invented in ["Phase:", "Generated:", "Tests:", "Availability:", "1970"] {
        assert!(!human.contains(invented), "{human}");
    }
    assert!(
        human.contains("phase: unknown word flying; expected specify, proposed, build, building"),
        "{human}"
    );
}
