use std::fs;

use blackboard::Code;
use serde_json::json;
use testkit::process::RunToEnd as _;

use crate::machine::can;
use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("spoke init");
}

#[test]
fn json_lists_what_is_missing() {
    let scratch = Scratch::new();
    let created = scratch.json(["spoke", "init", "--name", "no", "--maintainer", "ivy"]);
    is_object(&created, &["file", "missing"]);
    let missing: Vec<_> =
        created["missing"].as_array().unwrap().iter().map(|one| one["message"].clone()).collect();
    assert_eq!(
        missing,
        ["hub", "license", "identity.publicKey"].map(|key| json!(format!("{key}: required, but missing")))
    );
    let shown = scratch.json(["spoke", "show"]);
    assert_eq!((&shown["manifest"]["name"], &shown["manifest"]["project"]), (&json!("no"), &json!("no")));
}

#[test]
fn an_existing_manifest_is_replaced_only_by_force() {
    let scratch = Scratch::new();
    scratch.json(["spoke", "init", "--hub", "mellanon/the-hive"]);
    let file = scratch.path().join(".collab/manifest.yaml");
    let before = fs::read(&file).unwrap();
    scratch.run(["spoke", "init", "--hub", "a/b", "--json"]).refused(Code::AlreadyExists);
    assert_eq!(fs::read(&file).unwrap(), before);
    scratch.json(["spoke", "init", "--hub", "a/b", "--force"]);
    assert!(fs::read_to_string(&file).unwrap().contains("\nhub: 'a/b'\n"));
}

#[test]
fn options_that_would_make_an_invalid_manifest_are_refused() {
    let scratch = Scratch::new();
    for (option, value, message) in [
        ("--public-key", "ssh-rsa AAAA", "a public key that begins with ssh-ed25519"),
        ("--public-key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOn a\nb", "one line of text"),
        ("--name", "a\nb", "one line of text"),
        ("--name", "", "one line of text"),
        ("--project", "a\u{1b}[2Jb", "one line of text"),
    ] {
        let refused = scratch.run(["spoke", "init", option, value, "--json"]).refused(Code::Usage);
        assert!(refused.to_string().contains(message), "{option} {value}: {refused}");
    }
    assert!(!scratch.path().join(".collab").exists());
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOnNv4kLw ivy@example.org\n";
    scratch.json(["spoke", "init", "--public-key", key, "--name", "it's: #1"]);
    let manifest = scratch.json(["spoke", "show"])["manifest"].clone();
    assert_eq!(
        (&manifest["name"], &manifest["identity"]["publicKey"]),
        (&json!("it's: #1"), &json!(key.trim_end()))
    );
}

#[test]
fn remote_and_license_of_the_repository_are_used() {
    if !can("a repository", "git", &["--version"]) {
        return;
    }
    let scratch = Scratch::new();
    let script = "git init -q project && cd project && mkdir src && \
                  git remote add origin git@example.org:mellanon/pai-collab.git && \
                  printf 'Apache License\\n Version 2.0\\n' > LICENSE && cd src && blackboard spoke init";
    Output::of(scratch.shell(script).run_to_end()).success();
    let text = fs::read_to_string(scratch.path().join("project/.collab/manifest.yaml")).unwrap();
    for line in
        ["name: 'pai-collab'", "maintainer: 'mellanon'", "license: 'Apache-2.0'", "  handle: 'mellanon'"]
    {
        assert!(text.contains(&format!("\n{line}\n")), "{line}\n{text}");
    }
}
