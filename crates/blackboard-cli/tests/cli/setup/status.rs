use std::collections::BTreeSet;
use std::fs;

use super::platforms_with_examples;
use crate::scratch::Scratch;
use crate::shapes::{has_fields, is_list};
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("setup status");
}

#[test]
fn json_has_every_file_of_every_platform() {
    let scratch = Scratch::new();
    scratch.json(["setup", "gemini", "--yes"]);
    let file = scratch.path().join(".gemini/settings.json");
    let answer = scratch.json(["setup", "status"]);
    is_list(&answer, &["platform", "title", "installed", "files"]);
    let items = answer["items"].as_array().unwrap();
    let platforms: BTreeSet<_> =
        items.iter().map(|one| one["platform"].as_str().unwrap().to_owned()).collect();
    assert_eq!(platforms, platforms_with_examples());
    let gemini = items.iter().find(|one| one["platform"] == "gemini").unwrap();
    assert_eq!((gemini["installed"].as_bool(), gemini["title"].as_str()), (Some(true), Some("Gemini CLI")));
    has_fields(&gemini["files"][0], &["scope", "part", "file", "state"]);
    let state = || {
        let answer = scratch.json(["setup", "status"]);
        let items = answer["items"].as_array().unwrap();
        items.iter().find(|one| one["platform"] == "gemini").unwrap()["files"][0].clone()
    };
    assert_eq!(state()["state"], "set_up");
    let old = fs::read_to_string(&file).unwrap().replace("\"blackboard hook", "\"/old/blackboard hook");
    fs::write(&file, old).unwrap();
    assert_eq!(state()["state"], "out_of_date");
    fs::write(&file, "{ broken").unwrap();
    assert_eq!(state()["state"], "unknown");
    assert!(state()["reason"].as_str().unwrap().contains("not valid JSON"), "{}", state());
}

#[test]
fn status_changes_nothing() {
    let scratch = Scratch::new();
    let before = scratch.contents();
    scratch.run(["setup", "status"]).success();
    assert!(scratch.contents() == before);
}
