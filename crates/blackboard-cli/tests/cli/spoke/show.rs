use blackboard::Code;
use serde_json::json;

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
