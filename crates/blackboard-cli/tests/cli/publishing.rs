//! A board is not published by accident: git ignores it where it is created, and one that git tracks is refused.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use blackboard::Code;
use serde_json::json;
use testkit::process::RunToEnd as _;
use testkit::wait_until;

use crate::machine::{can, can_trace};
use crate::scratch::{Output, Scratch, with_options};

const IDENTITY: &str = "-c user.name=a -c user.email=a@b -c init.defaultBranch=main -c commit.gpgsign=false";

/// Files that git creates can be read by others.
#[track_caller]
fn git(scratch: &Scratch, directory: &str, arguments: &str) -> String {
    git_with_umask(scratch, "022", directory, arguments)
}

#[track_caller]
fn git_with_umask(scratch: &Scratch, umask: &str, directory: &str, arguments: &str) -> String {
    let line = format!("umask {umask}; git -C {directory} {IDENTITY} {arguments}");
    Output::of(scratch.shell(&line).run_to_end()).success().stdout
}

/// A clone of a repository in which nothing but the configuration of its board is committed, if there is git here.
#[track_caller]
fn clone_with_configuration() -> Option<Scratch> {
    if !can("a board that git tracks", "git", &["--version"]) {
        return None;
    }
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path().join("origin/.blackboard")).unwrap();
    fs::write(scratch.path().join("origin/.blackboard/config.json"), r#"{"fileGuard": "deny"}"#).unwrap();
    git(&scratch, "origin", "init -q");
    git(&scratch, "origin", "add -A");
    git(&scratch, "origin", "commit -qm x");
    git(&scratch, ".", "clone -q origin clone");
    Some(scratch)
}

fn run_in(scratch: &Scratch, directory: &str, arguments: &[&str]) -> Output {
    let mut command = scratch.command(arguments);
    Output::of(command.current_dir(scratch.path().join(directory)).run_to_end())
}

/// Runs the hook of a session that starts there; it prints no errors.
#[track_caller]
fn start_session(scratch: &Scratch, directory: &str) -> Output {
    let directory = scratch.path().join(directory).canonicalize().unwrap();
    let call = json!({"session_id": "1", "hook_event_name": "SessionStart", "cwd": directory});
    let output = Output::fed(&mut scratch.command(["hook", "claude"]), call.to_string()).success();
    assert_eq!(output.stderr, "");
    output
}

fn status(scratch: &Scratch, directory: &str) -> String {
    git(scratch, directory, "status --porcelain -uall")
}

#[test]
fn the_first_use_of_a_cloned_project_keeps_its_board_out_of_git() {
    let calls: [fn(&Scratch); 3] = [
        |scratch| assert_ne!(start_session(scratch, "clone").stdout, ""),
        |scratch| _ = run_in(scratch, "clone", &["agent", "register", "--name", "Ivy"]).success(),
        |scratch| _ = run_in(scratch, "clone", &["init"]).success(),
    ];
    for call in calls {
        let Some(scratch) = clone_with_configuration() else { return };
        call(&scratch);
        assert!(scratch.path().join("clone/.blackboard/local.db").exists());
        assert_eq!(status(&scratch, "clone"), "?? .blackboard/.gitignore\n");
        git(&scratch, "clone", "add -A");
        git(&scratch, "clone", "commit -qm y");
        run_in(&scratch, "clone", &["write", "key", "1"]).success();
        assert_eq!(status(&scratch, "clone"), "");
    }
}

#[test]
fn lines_of_the_user_stay_and_the_board_is_ignored() {
    for lines in ["*.tmp\n!notes.md\n", "!*\n", "# nothing", ""] {
        let Some(scratch) = clone_with_configuration() else { return };
        let board = scratch.path().join("clone/.blackboard");
        fs::write(board.join(".gitignore"), lines).unwrap();
        fs::write(board.join("notes.md"), "").unwrap();
        run_in(&scratch, "clone", &["agent", "register", "--name", "Ivy"]).success();
        let after = fs::read_to_string(board.join(".gitignore")).unwrap();
        assert!(after.contains(lines), "{lines:?}: {after}");
        let mut expected = String::from("?? .blackboard/.gitignore\n");
        if lines.contains("!notes.md") || lines.contains("!*") {
            expected.push_str("?? .blackboard/notes.md\n");
        }
        assert_eq!(status(&scratch, "clone"), expected, "{lines:?}: {after}");
    }
}

#[test]
fn init_completes_the_ignored_files_of_an_older_board() {
    let Some(scratch) = clone_with_configuration() else { return };
    run_in(&scratch, "clone", &["init"]).success();
    let file = scratch.path().join("clone/.blackboard/.gitignore");
    fs::remove_file(&file).unwrap();
    assert!(status(&scratch, "clone").contains("local.db"));
    run_in(&scratch, "clone", &["init"]).success();
    assert_eq!(status(&scratch, "clone"), "?? .blackboard/.gitignore\n");
    // What earlier versions wrote is enough.
    fs::write(&file, "*\n").unwrap();
    run_in(&scratch, "clone", &["init"]).success();
    assert_eq!(fs::read_to_string(&file).unwrap(), "*\n");
}

#[test]
fn an_ignore_file_that_is_a_link_is_neither_followed_nor_replaced() {
    let Some(scratch) = clone_with_configuration() else { return };
    let elsewhere = scratch.path().join("elsewhere");
    fs::write(&elsewhere, "precious").unwrap();
    std::os::unix::fs::symlink(&elsewhere, scratch.path().join("clone/.blackboard/.gitignore")).unwrap();
    let call = ["agent", "register", "--name", "Ivy", "--json"];
    let refusal = run_in(&scratch, "clone", &call).refused(Code::UnsafePermissions);
    assert!(refusal["error"].as_str().unwrap().contains("/.gitignore is not a plain file"), "{refusal}");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious");
    assert_eq!(status(&scratch, "clone"), "?? .blackboard/.gitignore\n", "no file is left");
}

#[test]
fn a_new_board_that_git_would_add_is_reported() {
    let Some(scratch) = clone_with_configuration() else { return };
    fs::create_dir(scratch.path().join("clone/boards")).unwrap();
    let note = "git does not ignore it, and would publish it. To ignore it: printf ";
    for (db, pattern) in [("team.db", "'/team.db*'"), ("boards", "'/local.db*'")] {
        let said = run_in(&scratch, "clone", &["--db", db, "write", "key", "1"]).success().stderr;
        let command = said.split_once("To ignore it: ").unwrap_or_else(|| panic!("{said}")).1.trim_end();
        assert!(said.contains(note) && command.contains(pattern), "{said}");
        Output::of(scratch.shell(command).run_to_end()).success();
        assert!(!status(&scratch, "clone").contains(".db"), "{}", status(&scratch, "clone"));
        let again = run_in(&scratch, "clone", &["--db", db, "write", "key", "2"]).success();
        assert!(!again.stderr.contains("git"), "{}", again.stderr);
    }
    fs::write(scratch.path().join("clone/.gitignore"), "*.ignored*\n").unwrap();
    for db in ["a.ignored", "../outside.db"] {
        let said = run_in(&scratch, "clone", &["--db", db, "write", "key", "1"]).success().stderr;
        assert!(said.contains("created a new board") && !said.contains("git"), "{db}: {said}");
    }
}

#[test]
fn the_home_board_is_kept_out_of_a_repository_of_dotfiles() {
    if !can("a home directory in git", "git", &["--version"]) {
        return;
    }
    let scratch = Scratch::new();
    let home = scratch.path().join("home");
    fs::create_dir_all(&home).unwrap();
    git(&scratch, "home", "init -q");
    let mut command = scratch.command(["write", "key", "1"]);
    command
        .current_dir(scratch.path())
        .env_remove("BLACKBOARD_DB")
        .env_remove("BLACKBOARD_HOME")
        .env("HOME", &home);
    Output::of(command.run_to_end()).success();
    let status = status(&scratch, "home");
    assert!(status.contains(".gitignore") && !status.contains("local.db"), "{status}");
}

#[test]
fn a_board_that_git_forgets_is_not_added_again() {
    let Some(scratch) = clone_with_configuration() else { return };
    run_in(&scratch, "clone", &["init"]).success();
    fs::remove_file(scratch.path().join("clone/.blackboard/.gitignore")).unwrap();
    git(&scratch, "clone", "add -A");
    let hint = refused_as_tracked(&scratch, "clone", &["status"]);
    Output::of(scratch.shell(&hint).run_to_end()).success();
    run_in(&scratch, "clone", &["status"]).success();
    git(&scratch, "clone", "add -A");
    assert_eq!(git(&scratch, "clone", "diff --cached --name-only"), ".blackboard/.gitignore\n");
}

/// A board that an earlier version let git track, and a clone of it.
#[track_caller]
fn tracked() -> Option<Scratch> {
    let scratch = clone_with_configuration()?;
    run_in(&scratch, "origin", &["write", "secret-plan", "1"]).success();
    fs::remove_file(scratch.path().join("origin/.blackboard/.gitignore")).unwrap();
    git(&scratch, "origin", "add -A");
    git(&scratch, "origin", "commit -qm y");
    git(&scratch, ".", "clone -q origin second");
    Some(scratch)
}

#[track_caller]
fn refused_as_tracked(scratch: &Scratch, directory: &str, call: &[&str]) -> String {
    let call = with_options(call.iter().map(|word| (*word).to_owned()).collect(), ["--json".to_owned()]);
    let call: Vec<_> = call.iter().map(String::as_str).collect();
    let refusal = run_in(scratch, directory, &call).refused(Code::UnsafePermissions);
    let error = refusal["error"].as_str().unwrap();
    assert!(error.contains("/.blackboard/local.db is tracked by git"), "{call:?}: {refusal}");
    refusal["hint"].as_str().unwrap().to_owned()
}

#[test]
fn a_database_that_came_with_a_clone_is_refused_as_tracked_by_git() {
    let Some(scratch) = tracked() else { return };
    let board = scratch.path().join("second/.blackboard");
    let contents = |board: &Path| {
        let mut names: Vec<_> = fs::read_dir(board)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let before = contents(&board);
    let mut hint = String::new();
    for call in [
        &["work", "list"][..],
        &["read", "secret-plan"],
        &["write", "key", "1"],
        &["agent", "register", "--name", "Ivy"],
        &["init"],
        &["status"],
        &["sweep"],
    ] {
        hint = refused_as_tracked(&scratch, "second", call);
    }
    assert_eq!(contents(&board), before);
    // A hook prints nothing, and its log has the reason.
    assert_eq!(start_session(&scratch, "second").stdout, "");
    let log = fs::read_to_string(board.join("hook.log")).unwrap();
    assert!(log.contains("unsafe_permissions") && log.contains("is tracked by git"), "{log}");

    assert!(hint.starts_with("git -C ") && hint.contains(" rm --cached .blackboard/local.db"), "{hint}");
    assert!(scratch.shell(&hint).run_to_end().status.success(), "{hint}");
    let next = run_in(&scratch, "second", &["status", "--json"]).refused(Code::UnsafePermissions);
    assert!(next["hint"].as_str().unwrap().starts_with("chmod 600 "), "{next}");
}

/// Commands that open a board, each in another way.
const CALLS: [&[&str]; 12] = [
    &["agent", "register", "--name", "Ivy"],
    &["agent", "list"],
    &["run", "--", "true"],
    &["init"],
    &["status"],
    &["sweep"],
    &["serve", "--background"],
    &["read", "secret-plan"],
    &["write", "secret-plan", "2"],
    &["work", "claim", "--next", "--session", "1"],
    &["observe"],
    &["export"],
];

#[test]
fn a_private_database_that_git_tracks_is_refused_by_every_command() {
    let Some(scratch) = tracked() else { return };
    // The database of the origin was added by its owner. The other one came with a clone under a private umask.
    git_with_umask(&scratch, "077", ".", "clone -q origin private");
    for directory in ["origin", "private"] {
        let mode =
            fs::metadata(scratch.path().join(directory).join(".blackboard/local.db")).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "{directory}");
        for call in CALLS {
            refused_as_tracked(&scratch, directory, call);
        }
        assert_eq!(start_session(&scratch, directory).stdout, "");
        let hint = refused_as_tracked(&scratch, directory, &["status"]);
        assert!(scratch.shell(&hint).run_to_end().status.success(), "{hint}");
        run_in(&scratch, directory, &["status"]).success();
        run_in(&scratch, directory, &["read", "secret-plan"]).success();
    }
}

#[test]
fn a_database_that_was_added_after_a_check_is_refused() {
    let Some(scratch) = clone_with_configuration() else { return };
    run_in(&scratch, "clone", &["write", "secret-plan", "1"]).success();
    let index = scratch.path().join("clone/.git/index");
    let queue = scratch.path().join("clone/.blackboard/local.db-lock");
    wait_until("a command that leaves a note of its check", || {
        run_in(&scratch, "clone", &["read", "secret-plan"]).success();
        let (index, queue) = (fs::metadata(&index).unwrap(), fs::metadata(&queue).unwrap());
        ((index.ctime(), index.ctime_nsec()) == (queue.atime(), queue.atime_nsec())).then_some(())
    });
    if can_trace("a check of git that reads nothing") {
        let line = "strace -f -o trace -e trace=openat blackboard read secret-plan --value";
        let mut command = scratch.shell(line);
        let output = Output::of(command.current_dir(scratch.path().join("clone")).run_to_end());
        assert_eq!(output.success().stdout, "1\n");
        let trace = fs::read_to_string(scratch.path().join("clone/trace")).unwrap();
        assert!(trace.contains("local.db") && !trace.contains(".git/index"), "{trace}");
    }
    git(&scratch, "clone", "add -f .blackboard/local.db");
    for call in [&["read", "secret-plan"][..], &["write", "key", "1"]] {
        refused_as_tracked(&scratch, "clone", call);
    }
}

#[test]
fn no_database_is_created_where_git_tracks_one() {
    let Some(scratch) = tracked() else { return };
    for entry in fs::read_dir(scratch.path().join("second/.blackboard")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap() != "config.json" {
            fs::remove_file(path).unwrap();
        }
    }
    refused_as_tracked(&scratch, "second", &["write", "key", "1"]);
    assert!(!scratch.path().join("second/.blackboard/local.db").exists());
}
