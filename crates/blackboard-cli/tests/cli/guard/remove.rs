use std::fs;

use blackboard::Code;

use super::{git, hook, hooks, repository, write_hook};
use crate::machine::can;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    nothing_is_left_of_an_installation,
    guard_is_removed_also_from_an_unused_hooks_directory,
    hooks_of_other_programs_are_left_unchanged,
];

fn human_output_matches_transcript() {
    if can("a commit", "git", &["--version"]) {
        transcript::check("guard remove");
    }
}

fn nothing_is_left_of_an_installation() {
    for theirs in [
        None,
        Some((&b"#!/bin/sh\nexit 0\n"[..], 0o755)),
        Some((b"#!/usr/bin/env python3\r\n\xff\0no end of line", 0o710)),
        Some((b"", 0o700)),
    ] {
        let Some(scratch) = repository() else { return };
        if let Some((content, mode)) = theirs {
            write_hook(&scratch, content, mode);
        }
        let before = hooks(&scratch);
        for install in [&["guard", "install"][..], &["guard", "install", "--warn"]] {
            scratch.json(install);
            assert!(hooks(&scratch) != before);
            let removed = scratch.json(["guard", "remove"]);
            is_object(&removed, &["hook", "removed", "restored"]);
            assert_eq!((&removed["removed"], &removed["restored"]), (&true.into(), &theirs.is_some().into()));
            assert!(hooks(&scratch) == before, "byte for byte, with its mode");
        }
        assert_eq!(scratch.json(["guard", "remove"])["removed"], false);
        assert!(hooks(&scratch) == before);
    }
}

fn guard_is_removed_also_from_an_unused_hooks_directory() {
    let Some(scratch) = repository() else { return };
    let before = hooks(&scratch);
    scratch.json(["guard", "install"]);
    git(&scratch, "config core.hooksPath .husky/_");
    assert_eq!(scratch.json(["guard", "remove"])["removed"], true);
    assert!(hooks(&scratch) == before);
}

fn hooks_of_other_programs_are_left_unchanged() {
    let Some(scratch) = repository() else { return };
    write_hook(&scratch, b"#!/bin/sh\n", 0o755);
    scratch.json(["guard", "install"]);
    let ours = fs::read_to_string(hook(&scratch)).unwrap();
    write_hook(&scratch, format!("{ours}make lint\n").as_bytes(), 0o755);
    let before = hooks(&scratch);
    scratch.run(["guard", "remove", "--json"]).refused(Code::AlreadyExists);
    assert!(hooks(&scratch) == before);
    // Another program has replaced it: the hook from before stays where it can be found.
    write_hook(&scratch, b"#!/bin/sh\nlefthook run\n", 0o755);
    let before = hooks(&scratch);
    assert_eq!(scratch.json(["guard", "remove"])["removed"], false);
    assert!(hooks(&scratch) == before);
    // The user has deleted our hook: the previous one is restored.
    fs::remove_file(hook(&scratch)).unwrap();
    assert_eq!(scratch.json(["guard", "remove"])["restored"], true);
    assert_eq!(fs::read(hook(&scratch)).unwrap(), b"#!/bin/sh\n");
}
