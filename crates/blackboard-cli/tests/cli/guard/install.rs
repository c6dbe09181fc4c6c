use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use blackboard::Code;
use testkit::process::RunToEnd as _;

use super::{git, hook, hooks, repository, write_hook};
use crate::machine::can;
use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    installing_twice_changes_nothing_the_second_time,
    hook_is_executable_under_every_umask,
    guard_is_installed_from_every_directory_and_without_a_hooks_directory,
    existing_hook_is_kept_unchanged_and_only_once,
    interrupted_installation_is_finished_by_the_next,
    hook_that_cannot_be_moved_is_left_unchanged_with_a_hint,
    hooks_of_another_tool_are_left_unchanged_and_the_line_to_add_is_printed,
    guard_is_installed_in_a_worktree_of_a_bare_repository_only,
    guard_is_refused_outside_of_a_repository,
];

fn human_output_matches_transcript() {
    if can("a commit", "git", &["--version"]) {
        transcript::check("guard install");
    }
}

fn installing_twice_changes_nothing_the_second_time() {
    let Some(scratch) = repository() else { return };
    let first = scratch.json(["guard", "install"]);
    is_object(&first, &["hook", "warn", "installed", "chained"]);
    assert_eq!((&first["installed"], &first["chained"]), (&true.into(), &false.into()));
    let mode = fs::metadata(hook(&scratch)).unwrap().permissions().mode();
    assert_eq!(mode & 0o100, 0o100, "git runs only what is executable");
    let before = hooks(&scratch);
    assert_eq!(scratch.json(["guard", "install"])["installed"], false);
    assert!(hooks(&scratch) == before);
    // The other mode replaces the first.
    assert_eq!(scratch.json(["guard", "install", "--warn"])["installed"], true);
    assert!(fs::read_to_string(hook(&scratch)).unwrap().contains("guard check --warn"));
    scratch.json(["guard", "install"]);
    assert!(hooks(&scratch) == before);
}

fn hook_is_executable_under_every_umask() {
    for umask in ["000", "111", "177", "777"] {
        let Some(scratch) = repository() else { return };
        let line = format!("umask {umask}; exec blackboard guard install");
        Output::of(scratch.shell(&line).run_to_end()).success();
        let mode = fs::metadata(hook(&scratch)).unwrap().permissions().mode();
        assert_eq!(mode & 0o700, 0o700, "umask {umask}: {mode:o}");
    }
}

fn guard_is_installed_from_every_directory_and_without_a_hooks_directory() {
    let Some(scratch) = repository() else { return };
    fs::remove_dir_all(scratch.path().join(".git/hooks")).unwrap();
    fs::create_dir_all(scratch.path().join("src/deep")).unwrap();
    let mut command = scratch.command(["guard", "install", "--json"]);
    let ended = command.current_dir(scratch.path().join("src/deep")).run_to_end();
    assert!(ended.status.success(), "{ended:?}");
    assert!(hook(&scratch).is_file());
}

fn existing_hook_is_kept_unchanged_and_only_once() {
    let Some(scratch) = repository() else { return };
    let theirs = b"#!/bin/sh\n\xff\xfe exit 0\n";
    write_hook(&scratch, theirs, 0o751);
    for _ in 0..2 {
        assert_eq!(scratch.json(["guard", "install"])["chained"], true);
        let kept = hook(&scratch).with_file_name("pre-commit.before-blackboard");
        assert_eq!(fs::read(&kept).unwrap(), theirs);
        assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o751);
    }
}

fn interrupted_installation_is_finished_by_the_next() {
    let Some(scratch) = repository() else { return };
    write_hook(&scratch, b"#!/bin/sh\n", 0o755);
    // It had given the hook its second name, and not written its own yet.
    let kept = hook(&scratch).with_file_name("pre-commit.before-blackboard");
    fs::hard_link(hook(&scratch), &kept).unwrap();
    assert_eq!(scratch.json(["guard", "install"])["chained"], true);
    assert_eq!(fs::read(&kept).unwrap(), b"#!/bin/sh\n");
    scratch.json(["guard", "remove"]);
    assert_eq!(fs::read(hook(&scratch)).unwrap(), b"#!/bin/sh\n");
}

fn hook_that_cannot_be_moved_is_left_unchanged_with_a_hint() {
    type Put = fn(&Scratch);
    let put: &[(&str, Put, &str)] = &[
        (
            "symbolic link",
            |scratch| symlink("../../theirs", hook(scratch)).unwrap(),
            "its target: blackboard guard check",
        ),
        ("not a regular file", |scratch| fs::create_dir(hook(scratch)).unwrap(), "move it"),
        ("not executable", |scratch| write_hook(scratch, b"#!/bin/sh\n", 0o644), "make it executable"),
        ("it was edited", edit_ours, "by hand"),
        ("already exists", replace_ours, "delete pre-commit.before-blackboard"),
    ];
    for (reason, put, hint) in put {
        let Some(scratch) = repository() else { return };
        fs::create_dir_all(hook(&scratch).parent().unwrap()).unwrap();
        put(&scratch);
        let before = hooks(&scratch);
        let refusal = scratch.run(["guard", "install", "--json"]).refused(Code::AlreadyExists);
        assert!(refusal["error"].as_str().unwrap().contains(reason), "{refusal}");
        assert!(refusal["hint"].as_str().unwrap().contains(hint), "{refusal}");
        assert!(hooks(&scratch) == before, "{reason}: something was touched");
    }
}

/// The user has added to the hook that was installed.
fn edit_ours(scratch: &Scratch) {
    scratch.json(["guard", "install"]);
    let edited = fs::read_to_string(hook(scratch)).unwrap() + "make lint\n";
    write_hook(scratch, edited.as_bytes(), 0o755);
}

/// Another program has put its own hook in the place of the one that was installed.
fn replace_ours(scratch: &Scratch) {
    write_hook(scratch, b"#!/bin/sh\n", 0o755);
    scratch.json(["guard", "install"]);
    write_hook(scratch, b"#!/bin/sh\nlefthook run\n", 0o755);
}

fn hooks_of_another_tool_are_left_unchanged_and_the_line_to_add_is_printed() {
    let Some(scratch) = repository() else { return };
    fs::create_dir(scratch.path().join("elsewhere")).unwrap();
    for path in [".husky/_", "elsewhere"] {
        git(&scratch, &format!("config core.hooksPath {path}"));
        let refusal = scratch.run(["guard", "install", "--json"]).refused(Code::AlreadyExists);
        assert!(refusal["hooks"].as_str().unwrap().ends_with(path), "{refusal}");
        assert!(refusal["hint"].as_str().unwrap().ends_with("blackboard guard check"), "{refusal}");
        assert!(!hook(&scratch).exists());
        assert!(!scratch.path().join(path).join("pre-commit").exists());
    }
    // A setting with the default value changes nothing.
    git(&scratch, "config core.hooksPath .git/hooks");
    assert_eq!(scratch.json(["guard", "install"])["installed"], true);
}

fn guard_is_installed_in_a_worktree_of_a_bare_repository_only() {
    let Some(scratch) = repository() else { return };
    git(&scratch, "-c user.name=Ivy -c user.email=ivy@example.org commit -qm first --allow-empty");
    git(&scratch, "clone -q --bare . bare.git");
    git(&scratch, "-C bare.git worktree add -q ../tree");
    let install = |directory: &str| {
        let mut command = scratch.command(["guard", "install", "--json"]);
        Output::of(command.current_dir(scratch.path().join(directory)).run_to_end())
    };
    let refusal = install("bare.git").refused(Code::InvalidValue);
    assert!(refusal["hint"].as_str().unwrap().contains("worktree"), "{refusal}");
    let hook = scratch.path().join("bare.git/hooks/pre-commit");
    assert!(!hook.exists());
    install("tree").success();
    assert!(hook.exists());
}

fn guard_is_refused_outside_of_a_repository() {
    if !can("a commit", "git", &["--version"]) {
        return;
    }
    let scratch = Scratch::new();
    for command in ["install", "remove"] {
        scratch.run(["guard", command, "--json"]).refused(Code::InvalidValue);
    }
    assert_eq!(scratch.contents().len(), 1, "nothing was created");
    let mut command = scratch.command(["guard", "install", "--json"]);
    let ended = command.env("PATH", scratch.path()).run_to_end();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(said.contains("git cannot be started"), "{said}");
}

/// What names the file.
mod of_a_file {
    use super::*;

    #[test]
    fn installation_with_a_named_board_reports_which_board_the_hook_uses() {
        let Some(scratch) = repository() else { return };
        let named = scratch.path().join("other.db");
        let named = named.to_str().unwrap();
        let expected = format!(
            "the hook finds the board as any command does: {}, unless BLACKBOARD_DB is set for git. \
         Set it to check commits against {named}",
            scratch.database().display()
        );
        let with_option = scratch.run(["guard", "install", "--db", named]).success();
        assert_eq!(with_option.stderr, format!("note: {expected}\n"));
        let mut command = scratch.command(["guard", "install", "--json"]);
        let with_variable = Output::of(command.env("BLACKBOARD_DB", named).run_to_end()).success();
        assert_eq!(with_variable.json()["note"], expected);
        // The board that commits use anyway needs no note.
        let database = scratch.database();
        for call in [&["guard", "install"][..], &["guard", "install", "--db", database.to_str().unwrap()]] {
            assert_eq!(scratch.run(call).success().stderr, "", "{call:?}");
        }
        assert!(!scratch.database().exists(), "the board is only named");
    }
}
