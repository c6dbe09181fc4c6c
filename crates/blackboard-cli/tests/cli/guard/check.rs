use std::fs;

use blackboard::Code;
use blackboard::agent::label;
use blackboard::id::session_id_from_hint;
use testkit::process::RunToEnd as _;

use super::{git, repository};
use crate::machine::can;
use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_holder_of_each_staged_file,
    shared_reservation_conflicts_too,
    paths_are_those_of_the_worktree_in_every_directory,
    file_name_is_never_a_pattern,
    both_names_of_a_renamed_file_and_a_deleted_file_are_checked,
    link_is_checked_by_its_own_name_and_not_by_its_target,
    all_files_are_checked_when_they_exceed_one_batch,
    file_reserved_outside_of_a_process_with_several_sessions_is_refused,
    reservation_of_another_worktree_is_reported_and_stops_no_commit,
    errors_stop_no_commit_and_are_reported_in_one_line,
];

fn human_output_matches_transcript() {
    if can("a commit", "git", &["--version"]) {
        transcript::check("guard check");
    }
}

/// A repository in which Ivy has reserved `src/`, and some files.
#[track_caller]
fn with_files(files: &[&str]) -> Option<Scratch> {
    let scratch = repository()?;
    for name in ["Ivy", "Oak"] {
        scratch.json(["agent", "register", "--name", name, "--session-hint", &name.to_lowercase()]);
    }
    fs::create_dir_all(scratch.path().join("src")).unwrap();
    scratch.json(["file", "reserve", "src/", "--note", "rewriting", "--session", "ivy"]);
    for file in files {
        let file = scratch.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    Some(scratch)
}

fn json_has_the_holder_of_each_staged_file() {
    let Some(scratch) = with_files(&["src/lib.rs", "src/main.rs", "README.md"]) else { return };
    git(&scratch, "add README.md");
    let free = scratch.json(["guard", "check", "--session", "oak"]);
    is_object(&free, &["checked", "free", "staged", "complete", "paths"]);
    assert_eq!((&free["free"], &free["staged"], &free["complete"]), (&true.into(), &1.into(), &true.into()));
    git(&scratch, "add src");
    let refusal = scratch.run(["guard", "check", "--session", "oak", "--json"]).refused(Code::Held);
    assert_eq!((&refusal["held_by_name"], &refusal["note"]), (&"Ivy".into(), &"rewriting".into()));
    let paths: Vec<_> = refusal["paths"].as_array().unwrap().iter().map(|path| &path["path"]).collect();
    assert_eq!(paths, ["src/lib.rs", "src/main.rs"], "what is free is not repeated");
    assert_eq!(scratch.json(["guard", "check", "--session", "ivy"])["free"], true);
    let warned = scratch.json(["guard", "check", "--session", "oak", "--warn"]);
    assert_eq!((&warned["free"], warned["paths"].as_array().map(Vec::len)), (&false.into(), Some(2)));
}

fn shared_reservation_conflicts_too() {
    let Some(scratch) = with_files(&["docs/cli.md"]) else { return };
    scratch.json(["file", "reserve", "docs/", "--shared", "--session", "ivy"]);
    git(&scratch, "add docs");
    assert_eq!(scratch.run(["guard", "check", "--json"]).refused(Code::Held)["mode"], "shared");
}

fn paths_are_those_of_the_worktree_in_every_directory() {
    let Some(scratch) = with_files(&["src/lib.rs", "docs/lib.rs"]) else { return };
    git(&scratch, "config diff.relative true");
    git(&scratch, "add src/lib.rs");
    let mut command = scratch.command(["guard", "check", "--json"]);
    let asked = Output::of(command.current_dir(scratch.path().join("docs")).run_to_end());
    assert_eq!(asked.refused(Code::Held)["path"], "src/lib.rs");
}

fn file_name_is_never_a_pattern() {
    let Some(scratch) = with_files(&[]) else { return };
    // `**` inside of a name is no pattern at all, and these bytes are no text.
    for name in ["a**b", "a?b[c]", "{x}", " space \" ' $HOME", "two\nlines"] {
        fs::write(scratch.path().join("src").join(name), "").unwrap();
        fs::write(scratch.path().join(name), "").unwrap();
    }
    let bytes = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"x\xff");
    fs::write(scratch.path().join("src").join(bytes), "").unwrap();
    git(&scratch, "add src");
    let refusal = scratch.run(["guard", "check", "--json"]).refused(Code::Held);
    assert_eq!(refusal["paths"].as_array().map(Vec::len), Some(6), "{refusal}");
    git(&scratch, "rm -rq --cached src");
    git(&scratch, "add -- a* {x} ' '* two*");
    let free = scratch.json(["guard", "check"]);
    assert_eq!((&free["free"], &free["staged"]), (&true.into(), &5.into()));
}

fn both_names_of_a_renamed_file_and_a_deleted_file_are_checked() {
    let Some(scratch) = with_files(&["src/lib.rs", "src/old.rs"]) else { return };
    fs::write(scratch.path().join("src/lib.rs"), "the same content, as git sees it\n".repeat(9)).unwrap();
    git(&scratch, "add src");
    git(&scratch, "-c user.name=Ivy -c user.email=ivy@example.org commit -qm first");
    assert_eq!(scratch.json(["guard", "check"])["staged"], 0);
    git(&scratch, "mv src/lib.rs moved.rs");
    assert_eq!(scratch.run(["guard", "check", "--json"]).refused(Code::Held)["path"], "src/lib.rs");
    git(&scratch, "reset -q --hard");
    git(&scratch, "rm -q src/old.rs");
    assert_eq!(scratch.run(["guard", "check", "--json"]).refused(Code::Held)["path"], "src/old.rs");
}

fn link_is_checked_by_its_own_name_and_not_by_its_target() {
    let Some(scratch) = with_files(&["src/lib.rs"]) else { return };
    std::os::unix::fs::symlink("src/lib.rs", scratch.path().join("link.rs")).unwrap();
    git(&scratch, "add link.rs");
    assert_eq!(scratch.json(["guard", "check"])["free"], true);
}

fn all_files_are_checked_when_they_exceed_one_batch() {
    let Some(scratch) = with_files(&[]) else { return };
    // Nothing but names: no file of them has to exist.
    let script = "blob=$(git hash-object -w --stdin </dev/null); \
                  for n in $(seq 10005); do printf '100644 %s 0\\tdocs/%s\\n' $blob $n; done \
                  | git update-index --index-info; \
                  printf '100644 %s 0\\tsrc/last.rs\\n' $blob | git update-index --index-info";
    assert!(scratch.shell(script).run_to_end().status.success());
    let warned = scratch.json(["guard", "check", "--warn"]);
    assert_eq!((&warned["staged"], &warned["paths"][0]["path"]), (&10_006.into(), &"src/last.rs".into()));
}

fn file_reserved_outside_of_a_process_with_several_sessions_is_refused() {
    let Some(scratch) = with_files(&["src/lib.rs", "docs/cli.md"]) else { return };
    let pid = std::os::unix::process::parent_id().to_string();
    scratch.json(["agent", "register", "--name", "Rose", "--session-hint", "rose", "--pid", &pid]);
    scratch.json(["file", "reserve", "docs/", "--session", "rose"]);
    let check = || {
        let mut command = scratch.command(["guard", "check", "--json"]);
        Output::of(command.env("CLAUDE_PID", std::process::id().to_string()).run_to_end())
    };
    git(&scratch, "add src");
    let own = check().success();
    assert!(own.json()["checked"] == true && own.json()["free"] == true, "{own:?}");
    assert!(own.stderr.starts_with("warning: src/lib.rs is reserved by Ivy, which may be you: "), "{own:?}");
    git(&scratch, "add docs");
    let refusal = check().refused(Code::Held);
    assert_eq!((&refusal["path"], &refusal["held_by_name"]), (&"docs/cli.md".into(), &"Rose".into()));
    let hint = refusal["hint"].as_str().unwrap();
    assert!(hint.ends_with("if the holder is you: BLACKBOARD_SESSION_ID=ID git commit"), "{hint}");
    // Only a program that asks for JSON sees which session it is.
    let session = refusal["held_by"].as_str().unwrap();
    let mut command = scratch.command(["guard", "check"]);
    let shown = Output::of(command.env("CLAUDE_PID", std::process::id().to_string()).run_to_end());
    assert_eq!(shown.code, 4, "{shown:?}");
    assert!(!shown.stderr.contains(&session[..8]), "{shown:?}");
}

fn reservation_of_another_worktree_is_reported_and_stops_no_commit() {
    let Some(scratch) = with_files(&["README.md"]) else { return };
    git(&scratch, "-c user.name=Ivy -c user.email=ivy@example.org commit -qm first --allow-empty");
    git(&scratch, "worktree add -q ../tree-of-$(basename $PWD)");
    let name = format!("tree-of-{}", scratch.path().file_name().unwrap().to_str().unwrap());
    let tree = scratch.path().with_file_name(name);
    fs::create_dir(tree.join("src")).unwrap();
    fs::write(tree.join("src/lib.rs"), "").unwrap();
    let script = format!("cd {} && git add src && blackboard guard check --session oak", tree.display());
    let told = Output::of(scratch.shell(&script).run_to_end()).success();
    fs::remove_dir_all(&tree).unwrap();
    assert!(
        told.stdout.starts_with(&format!(
            "No staged file is reserved by another session.\nIn another worktree: {} reserved src/",
            label("Ivy", &session_id_from_hint("ivy"))
        )),
        "{told:?}"
    );
}

fn errors_stop_no_commit_and_are_reported_in_one_line() {
    let Some(scratch) = with_files(&["src/lib.rs"]) else { return };
    git(&scratch, "add src");
    fs::write(scratch.path().join("notes.txt"), "no board ".repeat(1000)).unwrap();
    // No file system takes names that long.
    for broken in ["notes.txt", &"x".repeat(300), "ftp://board"] {
        let told = scratch.run(["guard", "check", "--db", broken]).success();
        assert_eq!((told.stdout.as_str(), told.stderr.lines().count()), ("", 1), "{told:?}");
        assert!(told.stderr.starts_with("warning: staged files were not checked: "), "{told:?}");
        let json = scratch.json(["guard", "check", "--db", broken]);
        assert_eq!(json["checked"], false);
        assert!(json["reason"].is_string() && json["reason_code"].is_string(), "{json}");
    }
    // A board that is not there has no reservations, and is not created.
    assert_eq!(scratch.json(["guard", "check", "--db", "missing.db"])["free"], true);
    assert!(!scratch.path().join("missing.db").exists());
    // A session of another board has reserved nothing here.
    let mut command = scratch.command(["guard", "check", "--json"]);
    let session = "00000000-0000-4000-8000-000000000000";
    Output::of(command.env("BLACKBOARD_SESSION_ID", session).run_to_end()).refused(Code::Held);
    let elsewhere = Scratch::new();
    assert_eq!(elsewhere.json(["guard", "check"])["checked"], false, "no repository");
}
