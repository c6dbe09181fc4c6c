//! Files of a board are private to their user; others are refused.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Stdio;

use blackboard::Code;
use testkit::process::RunToEnd as _;

use crate::machine::can_give_files_away;
use crate::scratch::{Output, Scratch};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Every file and directory of a board, with its mode.
fn modes(directory: &Path) -> Vec<(String, u32)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let mut modes: Vec<_> =
        entries.map(|entry| (entry.file_name().into_string().unwrap(), mode(&entry.path()))).collect();
    modes.sort();
    modes
}

#[test]
fn a_board_is_private_under_every_umask() {
    for umask in ["000", "022", "027", "077", "777"] {
        let scratch = Scratch::new();
        Output::of(scratch.shell(&format!("umask {umask}; exec blackboard write first 1")).run_to_end())
            .success();
        // A command that waits creates one more file.
        let line = format!("umask {umask}; exec blackboard wait awaited --timeout 5m");
        let mut waiting = scratch.shell(&line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let home = scratch.path().join(".pai/blackboard");
        testkit::wait_until("the file of a waiting command", || {
            home.join("local.db-wake").exists().then_some(())
        });
        let line = format!("umask {umask}; exec blackboard write awaited 1");
        Output::of(scratch.shell(&line).run_to_end()).success();
        testkit::wait_until("the end of the wait", || waiting.try_wait().unwrap());
        for directory in [scratch.path().join(".pai"), home.clone()] {
            assert_eq!(mode(&directory), 0o700, "umask {umask}: {}", directory.display());
        }
        let modes = modes(&home);
        let names: Vec<&str> = modes.iter().map(|(name, _)| name.as_str()).collect();
        let files = ["local.db", "local.db-lock", "local.db-shm", "local.db-wake", "local.db-wal"];
        assert_eq!(names, [&[".gitignore"], &files[..]].concat(), "umask {umask}");
        for (name, mode) in modes {
            assert_eq!(mode, 0o600, "umask {umask}: {name} has {mode:o}");
        }
    }
}

#[test]
fn a_new_board_of_a_repository_is_private_under_every_umask() {
    for umask in ["000", "077"] {
        let scratch = Scratch::new();
        Output::of(scratch.shell(&format!("umask {umask}; exec blackboard init")).run_to_end()).success();
        let directory = scratch.path().join(".blackboard");
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(mode(&directory.join("local.db")), 0o600);
        assert_eq!(mode(&directory.join(".gitignore")), 0o600);
        let ignored = fs::read_to_string(directory.join(".gitignore")).unwrap();
        assert!(ignored.ends_with("\n*\n!.gitignore\n!config.json\n"), "{ignored}");
    }
}

#[test]
fn export_is_as_private_as_the_board() {
    let scratch = Scratch::new();
    let line = "umask 000; exec blackboard export --output board.json";
    Output::of(scratch.shell(line).run_to_end()).success();
    assert_eq!(mode(&scratch.path().join("board.json")), 0o600);
}

#[test]
fn export_replaces_an_older_file_and_leaves_no_other() {
    let scratch = Scratch::new();
    let copy = scratch.path().join("board.json");
    fs::write(&copy, "older, and longer than the new one ".repeat(1000)).unwrap();
    fs::set_permissions(&copy, Permissions::from_mode(0o644)).unwrap();
    scratch.run(["export", "--output", "board.json"]).success();
    assert_eq!(mode(&copy), 0o600);
    serde_json::from_slice::<serde_json::Value>(&fs::read(&copy).unwrap()).unwrap();
    assert_eq!(modes(scratch.path()), [("board.json".to_owned(), 0o600)]);
    let printed = scratch.run(["export", "--output", "-"]).success().stdout;
    // Only the time of the export differs.
    let [printed, stored] = [printed, fs::read_to_string(&copy).unwrap()].map(|text| {
        let mut state: serde_json::Value = serde_json::from_str(&text).unwrap();
        state.as_object_mut().unwrap().remove("exported_at");
        state
    });
    assert_eq!(printed, stored);
}

#[test]
fn export_is_never_written_through_a_link_or_to_a_device() {
    let scratch = Scratch::new();
    let elsewhere = scratch.path().join("elsewhere");
    fs::write(&elsewhere, "precious").unwrap();
    symlink(&elsewhere, scratch.path().join("link")).unwrap();
    symlink("nowhere", scratch.path().join("dangling")).unwrap();
    fs::create_dir(scratch.path().join("directory")).unwrap();
    let before = scratch.contents();
    for output in ["link", "dangling", "directory", "/dev/null", "."] {
        let refusal = scratch.run(["export", "--json", "--output", output]).refused(Code::UnsafePermissions);
        assert!(refusal["hint"].as_str().unwrap().contains("standard output"), "{output}: {refusal}");
    }
    scratch.run(["export", "--json", "--output", "no/such/place.json"]).refused(Code::Io);
    assert!(scratch.contents() == before);
}

#[test]
fn board_is_not_created_in_an_untrusted_directory() {
    let scratch = Scratch::new();
    let (directory, real) = (scratch.path().join(".blackboard"), scratch.path().join("real"));
    fs::create_dir(&real).unwrap();
    let refused = |reason: &str| {
        let refusal = scratch.run(["init", "--json"]).refused(Code::UnsafePermissions);
        let error = refusal["error"].as_str().unwrap();
        assert!(error.ends_with(&format!("/.blackboard cannot hold a board: {reason}")), "{refusal}");
        // The search reports the same.
        let warned = scratch.run(["status"]).success().stderr;
        assert!(warned.contains(&format!("/.blackboard: {reason}\n")), "{warned}");
    };
    symlink(&real, &directory).unwrap();
    refused("it is a symbolic link");
    fs::remove_file(&directory).unwrap();
    fs::write(&directory, "").unwrap();
    refused("it is not a directory");
    fs::remove_file(&directory).unwrap();
    if can_give_files_away() {
        fs::create_dir(&directory).unwrap();
        chown(&directory, Some(65534), None).unwrap();
        refused("it belongs to another user (uid 65534)");
    }
    assert_eq!(fs::read_dir(&real).unwrap().count(), 0);
}

#[test]
fn mode_of_an_existing_directory_is_never_changed() {
    for before in [0o755, 0o777, 0o1777, 0o700] {
        let scratch = Scratch::new();
        let here = scratch.path().join("here");
        fs::create_dir_all(here.join(".blackboard")).unwrap();
        for directory in [&here, &here.join(".blackboard")] {
            fs::set_permissions(directory, Permissions::from_mode(before)).unwrap();
        }
        for call in
            ["blackboard --db ./x.db agent register --name Ivy", "blackboard init", "blackboard status"]
        {
            let mut shell = scratch.shell(call);
            let output = Output::of(shell.current_dir(&here).run_to_end());
            assert_eq!(output.code, if before == 0o777 { 5 } else { 0 }, "{call} at {before:o}: {output:?}");
            assert_eq!(mode(&here), before, "{call}");
            assert_eq!(mode(&here.join(".blackboard")), before, "{call}");
        }
        assert!(before == 0o777 || mode(&here.join("x.db")) == 0o600);
    }
}

/// Modes in which a directory can be written by others than its owner. The group of a user who is not root may be private.
fn modes_for_others() -> &'static [u32] {
    let all = &[0o702, 0o777, 0o757, 0o770, 0o775];
    if rustix::process::geteuid().is_root() { all } else { &all[..3] }
}

#[test]
fn a_board_directory_that_others_can_write_is_refused_with_the_fix() {
    for (directory, options) in
        [(".blackboard", &[][..]), ("my dir", &["--db", "my dir/local.db"]), (".pai/blackboard", &[])]
    {
        for &mode in modes_for_others() {
            let scratch = Scratch::new();
            let path = scratch.path().join(directory);
            fs::create_dir_all(&path).unwrap();
            let run = |call: &[&str]| scratch.run(options.iter().chain(call).chain(&["--json"]));
            run(&["write", "key", "1"]).success();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let mut cure = String::new();
            // Another user may have moved the database away.
            for is_there in [true, false] {
                if !is_there {
                    fs::rename(path.join("local.db"), scratch.path().join("away.db")).unwrap();
                }
                let before = scratch.contents();
                for call in [&["read", "key"][..], &["list"], &["write", "key", "2"], &["status"], &["sweep"]]
                {
                    let refusal = run(call).refused(Code::UnsafePermissions);
                    let error = refusal["error"].as_str().unwrap();
                    assert!(
                        error.contains(&format!("can be written by others (mode {mode:04o})")),
                        "{refusal}"
                    );
                    refusal["hint"].as_str().unwrap().clone_into(&mut cure);
                }
                assert_eq!(scratch.contents(), before);
            }
            fs::rename(scratch.path().join("away.db"), path.join("local.db")).unwrap();
            assert!(scratch.shell(&cure).run_to_end().status.success(), "{cure}");
            run(&["read", "key"]).success();
        }
    }
}

#[test]
fn a_board_directory_of_another_user_is_refused() {
    if !can_give_files_away() {
        return;
    }
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path().join("d")).unwrap();
    scratch.run(["--db", "d/x.db", "write", "key", "1"]).success();
    chown(scratch.path().join("d"), Some(65534), None).unwrap();
    let refusal = scratch.run(["--db", "d/x.db", "read", "key", "--json"]).refused(Code::UnsafePermissions);
    assert!(refusal["error"].as_str().unwrap().contains("belongs to another user (uid 65534)"), "{refusal}");
}

#[test]
fn a_configuration_that_others_can_write_is_refused_with_the_fix() {
    for directory in [".blackboard", ".pai/blackboard"] {
        let scratch = Scratch::new();
        let path = scratch.path().join(directory);
        fs::create_dir_all(&path).unwrap();
        scratch.run(["write", "key", "1"]).success();
        let config = path.join("config.json");
        fs::write(&config, "{}").unwrap();
        scratch.run(["read", "key"]).success();
        fs::set_permissions(&config, Permissions::from_mode(0o666)).unwrap();
        let mut cure = String::new();
        for call in [&["read", "key"][..], &["write", "key", "2"], &["status"], &["init"]] {
            let refusal = scratch.run(call.iter().chain(&["--json"])).refused(Code::UnsafePermissions);
            let error = refusal["error"].as_str().unwrap();
            assert!(error.ends_with("config.json can be written by others (mode 0666)"), "{refusal}");
            refusal["hint"].as_str().unwrap().clone_into(&mut cure);
        }
        // A hook prints nothing, and its log has the reason.
        let call = format!(
            "echo '{{\"session_id\": \"1\", \"hook_event_name\": \"SessionStart\", \"cwd\": \"{}\"}}' | blackboard hook claude",
            scratch.path().display()
        );
        let output = Output::of(scratch.shell(&call).run_to_end()).success();
        assert_eq!((&*output.stdout, &*output.stderr), ("", ""));
        let log = fs::read_to_string(path.join("hook.log")).unwrap();
        assert!(log.contains("unsafe_permissions") && log.contains("config.json"), "{log}");
        assert!(scratch.shell(&cure).run_to_end().status.success(), "{cure}");
        scratch.run(["read", "key"]).success();
        if can_give_files_away() {
            chown(&config, Some(65534), None).unwrap();
            let refusal = scratch.run(["read", "key", "--json"]).refused(Code::UnsafePermissions);
            let error = refusal["error"].as_str().unwrap();
            assert!(error.ends_with("config.json belongs to another user (uid 65534)"), "{refusal}");
        }
    }
}

/// A board, and what is wrong with it; the hint has to contain the words.
#[track_caller]
fn refused(break_it: impl Fn(&Path), hint: &str) {
    let scratch = Scratch::new();
    scratch.run(["--db", "x.db", "agent", "register", "--name", "Ivy"]).success();
    break_it(&scratch.path().join("x.db"));
    let before = scratch.contents();
    for call in [&["agent", "list"][..], &["agent", "register", "--name", "Oak"], &["init"], &["sweep"]] {
        let arguments = ["--db", "x.db", "--json"].into_iter().chain(call.iter().copied());
        let refusal = scratch.run(arguments).refused(Code::UnsafePermissions);
        assert!(refusal["hint"].as_str().unwrap().contains(hint), "{refusal}");
    }
    assert_eq!(scratch.contents(), before);
}

#[test]
fn database_that_others_can_open_is_refused_with_the_fix() {
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610, 0o666, 0o777] {
        refused(
            |database| fs::set_permissions(database, Permissions::from_mode(mode)).unwrap(),
            "chmod 600 ",
        );
    }
}

#[test]
fn the_suggested_fix_works() {
    let scratch = Scratch::new();
    scratch.run(["--db", "my board.db", "agent", "register", "--name", "Ivy"]).success();
    fs::set_permissions(scratch.path().join("my board.db"), Permissions::from_mode(0o644)).unwrap();
    let refusal = scratch.run(["--db", "my board.db", "--json", "status"]).refused(Code::UnsafePermissions);
    let cure = refusal["hint"].as_str().unwrap();
    assert!(scratch.shell(cure).run_to_end().status.success(), "{cure}");
    scratch.run(["--db", "my board.db", "status"]).success();
}

#[test]
fn a_link_to_a_database_is_refused() {
    refused(
        |database| {
            let real = database.with_extension("real");
            fs::rename(database, &real).unwrap();
            symlink(&real, database).unwrap();
        },
        "--db",
    );
    refused(|database| fs::hard_link(database, database.with_extension("second")).unwrap(), "copy");
}

#[test]
fn database_that_is_not_a_regular_file_is_refused() {
    refused(
        |database| {
            fs::remove_file(database).unwrap();
            let made = std::process::Command::new("mkfifo").arg(database).run_to_end().status;
            assert!(made.success());
        },
        "--db",
    );
}

#[test]
fn a_database_of_another_user_is_refused() {
    if !can_give_files_away() {
        return;
    }
    refused(|database| chown(database, Some(65534), None).unwrap(), "--db");
}
