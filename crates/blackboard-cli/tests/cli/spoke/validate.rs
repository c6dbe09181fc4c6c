use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;

use blackboard::Code;
use serde_json::json;

use super::{MANIFEST, write};
use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("spoke validate");
}

#[test]
fn json_has_all_errors_with_their_places() {
    let scratch = Scratch::new();
    write(&scratch, "manifest.yaml", &MANIFEST.replace("ivy", "i v y").replace("MIT", "GPL-3.0"));
    write(&scratch, "status.yaml", "schemaVersion: \"1.0\"\n");
    let output = scratch.run(["spoke", "validate", "--json"]);
    let checked = output.refused(Code::ProtocolMismatch);
    assert_eq!(checked["error"], "2 files of the spoke are invalid");
    assert_eq!((&checked["valid"], checked["files"].as_array().unwrap().len()), (&json!(false), 2));
    let errors = checked["files"][0]["errors"].as_array().unwrap();
    let places: Vec<_> =
        errors.iter().map(|error| (error["line"].as_u64(), error["column"].as_u64())).collect();
    assert_eq!(places, [(Some(5), Some(13)), (Some(6), Some(10))]);
    // One file, by its path.
    let one = scratch.run(["spoke", "validate", ".collab/status.yaml", "--json"]);
    assert_eq!((one.code, one.json()["files"].as_array().unwrap().len()), (4, 1));
    // What an export writes is valid.
    scratch.json(["status", "--export"]);
    is_object(&scratch.json(["spoke", "validate", ".collab/status.yaml"]), &["valid", "files"]);
    let status = scratch.run(["spoke", "validate", ".collab/status.yaml"]);
    assert_eq!((status.code, status.stdout.as_str()), (0, "Valid: .collab/status.yaml\n"), "{status:?}");
}

#[test]
fn bombs_and_links_are_refused() {
    let scratch = Scratch::new();
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let repeated = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(laughs, "a{level}: &a{level} [{repeated}]").unwrap();
    }
    for (text, message) in [
        (laughs, "more than 50000 values"),
        ("[".repeat(100_000), "recursion limit"),
        ("a: b: c".to_owned(), ""),
        ("name: a\nname: b\n".to_owned(), "the key name occurs twice"),
    ] {
        write(&scratch, "manifest.yaml", &text);
        let output = scratch.run(["spoke", "validate", "--json"]);
        let error = output.json()["files"][0]["errors"][0]["message"].clone();
        assert!(output.code == 4 && error.as_str().unwrap().contains(message), "{output:?}");
    }
    scratch.run(["spoke", "validate", "/dev/null", "--json"]).refused(Code::UnsafePermissions);
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_the_others_are_checked() {
    let scratch = Scratch::new();
    let file = scratch.path().join(".collab/manifest.yaml");
    write(&scratch, "manifest.yaml", "");
    scratch.json(["status", "--export"]);
    for (content, message) in [
        (Some(b"name: \xff".to_vec()), "the file is not UTF-8"),
        (Some(vec![b'#'; 256 * 1024 + 1]), "the file is too large: 262145 bytes, at most 262144 are read"),
        (None, "the file is a symbolic link"),
    ] {
        fs::remove_file(&file).unwrap();
        match content {
            Some(content) => fs::write(&file, content).unwrap(),
            None => symlink("/dev/zero", &file).unwrap(),
        }
        let checked = scratch.run(["spoke", "validate", "--json"]).refused(Code::ProtocolMismatch);
        assert_eq!(checked["files"][0]["errors"][0]["message"], message);
        assert_eq!(checked["files"][1]["valid"], json!(true), "{checked}");
        let one = scratch.run(["spoke", "validate", ".collab/manifest.yaml", "--json"]);
        assert_eq!(one.refused(Code::ProtocolMismatch)["files"][0]["errors"][0]["message"], message);
        let human = scratch.run(["spoke", "validate"]);
        assert_eq!(human.code, 4, "{human:?}");
        assert!(human.stdout.contains(&format!("\n  error: {message}\nValid: ")), "{human:?}");
        let shown = scratch.json(["spoke", "show"]);
        assert_eq!((&shown["errors"][0]["message"], &shown["manifest"]), (&json!(message), &json!(null)));
        assert_eq!(shown["status"]["phase"], "build");
    }
}

#[test]
fn a_second_document_is_an_error_with_its_line() {
    let scratch = Scratch::new();
    write(&scratch, "manifest.yaml", &format!("{MANIFEST}---\nfoo: 1\n"));
    let checked = scratch.run(["spoke", "validate", "--json"]).refused(Code::ProtocolMismatch);
    let error = &checked["files"][0]["errors"][0];
    assert_eq!((&error["line"], &error["column"]), (&json!(12), &json!(1)), "{checked}");
}

#[test]
fn a_directory_without_a_spoke_and_other_files_are_refused() {
    let scratch = Scratch::new();
    scratch.run(["spoke", "validate", "--json"]).refused(Code::EntryNotFound);
    scratch.run(["spoke", "validate", "missing.yaml", "--json"]).refused(Code::InvalidValue);
    fs::write(scratch.path().join("other.yaml"), "a: 1\n").unwrap();
    scratch.run(["spoke", "validate", "other.yaml", "--json"]).refused(Code::InvalidValue);
}
