use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("setup remove");
}

#[test]
fn changes_of_the_user_stay_after_removal() {
    let scratch = Scratch::new();
    let file = scratch.path().join(".gemini/settings.json");
    fs::create_dir(scratch.path().join(".gemini")).unwrap();
    let before = "{\n  // mine\n  \"theme\": \"dark\"\n}\n";
    fs::write(&file, before).unwrap();
    scratch.json(["setup", "gemini", "--yes"]);
    let changed = fs::read_to_string(&file).unwrap().replace("\"dark\"", "\"light\"");
    fs::write(&file, &changed).unwrap();
    let answer = scratch.json(["setup", "remove", "gemini", "--yes"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), before.replace("dark", "light"));
    // The backup no longer matches the file: it stays, and its path is printed.
    let backup = scratch.path().join(".gemini/settings.json.before-blackboard");
    assert_eq!(answer["platforms"][0]["changes"][0]["backup"], backup.to_str().unwrap());
    assert_eq!(fs::read_to_string(backup).unwrap(), before);
}

#[test]
fn second_setup_after_a_change_keeps_a_backup_of_the_change() {
    let scratch = Scratch::new();
    let file = scratch.path().join(".cursor/mcp.json");
    fs::create_dir(scratch.path().join(".cursor")).unwrap();
    fs::write(&file, "{\"a\": 1}").unwrap();
    scratch.json(["setup", "cursor", "--yes"]);
    fs::write(&file, "{\"b\": 2}").unwrap();
    scratch.json(["setup", "cursor", "--yes"]);
    scratch.json(["setup", "remove", "--yes"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"b\": 2}");
    let left: Vec<_> = fs::read_dir(scratch.path().join(".cursor"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(left.iter().all(|name| name == "mcp.json" || name == "skills"), "{left:?}");
}

#[test]
fn two_settings_levels_in_one_file_are_added_and_removed_in_any_order() {
    for before in [None, Some("{\"a\":1}"), Some("{\n  \"mcpServers\": {},\n  \"projects\": {}\n}\n")] {
        for setting_up in [["user", "local"], ["local", "user"]] {
            for removing in [["user", "local"], ["local", "user"]] {
                let scratch = Scratch::new();
                let project = scratch.path().join("project");
                fs::create_dir_all(project.join(".git")).unwrap();
                fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
                let file = scratch.path().join(".claude.json");
                if let Some(before) = before {
                    fs::write(&file, before).unwrap();
                }
                let everything = scratch.contents();
                let run = |command: &[&str], scope: &str| {
                    let call = command.iter().copied().chain(["claude", "--yes", "--scope", scope]);
                    let output = scratch.command(call).current_dir(&project).run_to_end();
                    assert!(output.status.success(), "{output:?}");
                };
                for scope in setting_up {
                    run(&["setup"], scope);
                }
                assert_eq!(fs::read_to_string(&file).unwrap().matches("\"blackboard\":").count(), 2);
                run(&["setup", "remove"], removing[0]);
                assert_eq!(fs::read_to_string(&file).unwrap().matches("\"blackboard\":").count(), 1);
                run(&["setup", "remove"], removing[1]);
                let is_as_before = scratch.contents() == everything;
                assert!(
                    is_as_before,
                    "{before:?} {setting_up:?} {removing:?}: {:?}",
                    fs::read_to_string(&file)
                );
            }
        }
    }
}

#[test]
fn nothing_is_removed_where_nothing_is_set_up() {
    let scratch = Scratch::new();
    let before = scratch.contents();
    assert_eq!(scratch.run(["setup", "remove"]).success().stdout, "Nothing is set up.\n");
    assert_eq!(scratch.json(["setup", "remove"])["written"], false);
    assert!(scratch.contents() == before);
}

#[test]
fn removal_names_the_other_settings_that_are_still_set_up() {
    let scratch = Scratch::new();
    let project = scratch.path().join("project");
    fs::create_dir_all(project.join(".git")).unwrap();
    fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let run = |call: &[&str]| {
        let output = scratch.command(call).current_dir(&project).run_to_end();
        Output::of(output).success().stdout
    };
    run(&["setup", "codex", "--settings", "project", "--yes"]);
    let line =
        "Codex is still set up in project settings: blackboard setup remove codex --settings project\n";
    let nothing = run(&["setup", "remove", "--yes"]);
    assert_eq!(nothing, format!("Nothing is set up in user settings.\n{line}"));
    assert!(run(&["setup", "remove", "codex", "--dry-run"]).ends_with(line));
    let answer: Value = serde_json::from_str(&run(&["setup", "remove", "--yes", "--json"])).unwrap();
    assert_eq!(answer["still_set_up"], serde_json::json!([{"platform": "codex", "scope": "project"}]));
    // Also if the call has removed something.
    run(&["setup", "codex", "--yes"]);
    let removed = run(&["setup", "remove", "codex", "--yes"]);
    assert!(removed.contains("  deleted ") && removed.ends_with(line), "{removed}");
    // Another platform is not concerned.
    assert!(!run(&["setup", "remove", "cursor", "--yes"]).contains("still set up"));
    // The printed command works, and nothing is left afterwards.
    let removed = run(&["setup", "remove", "codex", "--settings", "project", "--yes"]);
    assert!(!removed.contains("still set up"), "{removed}");
    assert_eq!(run(&["setup", "remove"]), "Nothing is set up.\n");
}

#[test]
fn in_the_home_directory_user_settings_are_not_named_as_project_settings_too() {
    let scratch = Scratch::new();
    scratch.json(["setup", "cursor", "--yes"]);
    for level in ["user", "project"] {
        let shown = scratch.run(["setup", "remove", "cursor", "--dry-run", "--settings", level]).success();
        assert!(!shown.stdout.contains("still set up"), "{shown:?}");
    }
}

#[test]
fn entries_of_an_older_version_are_removed_completely() {
    for platform in &super::platforms_with_examples() {
        let scratch = Scratch::new();
        let before = scratch.contents();
        let answer = scratch.json(["setup", platform, "--yes"]);
        for file in super::changes(&answer).map(|change| change["file"].as_str().unwrap()) {
            let text = fs::read_to_string(file).unwrap();
            let old = match file.rsplit('.').next() {
                Some("json" | "toml") => text
                    .replace("\"blackboard\"", "\"/opt/old/blackboard\"")
                    .replace("\"/opt/old/blackboard\":", "\"blackboard\":")
                    .replace("\"blackboard hook", "\"/opt/old/blackboard hook"),
                _ => text.clone() + "\nSomething that this version says in another way.\n",
            };
            assert_ne!(old, text);
            fs::write(file, old).unwrap();
        }
        let answer = scratch.json(["setup", platform, "--yes"]);
        for change in super::changes(&answer) {
            assert_eq!((&change["action"], change.get("backup")), (&"change".into(), None), "{change}");
        }
        scratch.json(["setup", "remove", platform, "--yes"]);
        let left = scratch.contents();
        assert_eq!(left.len(), before.len(), "{platform}: {left:?}");
    }
}

#[test]
fn backup_of_a_deleted_file_is_not_used_for_a_new_one() {
    let scratch = Scratch::new();
    let file = scratch.path().join(".cursor/mcp.json");
    fs::create_dir(scratch.path().join(".cursor")).unwrap();
    fs::write(&file, "{}\n").unwrap();
    scratch.json(["setup", "cursor", "--yes"]);
    let changed = fs::read_to_string(&file).unwrap().replacen('{', "{ \"a\": 1,", 1);
    fs::write(&file, changed).unwrap();
    scratch.json(["setup", "remove", "cursor", "--yes"]);
    let backup = scratch.path().join(".cursor/mcp.json.before-blackboard");
    assert!(backup.exists(), "the file is not as it was");
    fs::remove_file(&file).unwrap();
    scratch.json(["setup", "cursor", "--yes"]);
    scratch.json(["setup", "remove", "cursor", "--yes"]);
    assert!(!file.exists() && !backup.exists());
}

#[test]
fn agent_that_is_not_installed_is_not_found_after_removal() {
    for platform in &super::platforms_with_examples() {
        let scratch = Scratch::new();
        scratch.json(["setup", platform, "--yes"]);
        scratch.json(["setup", "remove", platform, "--yes"]);
        let output = scratch.command(["setup", "status", "--json"]).env("PATH", "/nowhere").run_to_end();
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let installed: Vec<_> =
            status["items"].as_array().unwrap().iter().filter(|one| one["installed"] == true).collect();
        assert!(installed.is_empty(), "{platform}: {installed:?}");
    }
    // A directory with something of the user's in it stays.
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path().join(".claude/skills/mine")).unwrap();
    scratch.json(["setup", "claude", "--yes"]);
    scratch.json(["setup", "remove", "claude", "--yes"]);
    assert!(scratch.path().join(".claude/skills/mine").is_dir());
    assert!(!scratch.path().join(".claude/skills/blackboard").exists());
}

#[test]
fn settings_in_a_linked_directory_are_changed_at_its_target() {
    let scratch = Scratch::new();
    let dotfiles = scratch.path().join("dotfiles/claude");
    fs::create_dir_all(&dotfiles).unwrap();
    symlink(&dotfiles, scratch.path().join(".claude")).unwrap();
    let before = scratch.contents();
    scratch.json(["setup", "claude", "--yes"]);
    assert!(dotfiles.join("settings.json").is_file());
    scratch.json(["setup", "remove", "claude", "--yes"]);
    assert!(scratch.contents() == before, "the link and its directory stay");
}

#[test]
fn removal_deletes_the_directories_that_setup_created_and_no_others() {
    for platform in &super::platforms_with_examples() {
        for level in ["user", "project"] {
            let run = |scratch: &Scratch, command: &[&str]| {
                let call = command.iter().copied().chain([platform, "--settings", level, "--yes", "--json"]);
                let output = scratch.command(call).current_dir(scratch.path().join("project")).run_to_end();
                Output::of(output).success().json()
            };
            let scratch = Scratch::new();
            fs::create_dir_all(scratch.path().join("project/.git")).unwrap();
            fs::write(scratch.path().join("project/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
            let before = scratch.contents();
            let answer = run(&scratch, &["setup"]);
            run(&scratch, &["setup", "remove"]);
            assert_eq!(scratch.contents(), before, "{platform} {level}: nothing existed");

            // The same directories, but the user has created them: from the outermost one to all of them.
            let files = super::changes(&answer).map(|change| change["file"].as_str().unwrap().to_owned());
            let mut directories: Vec<_> = files
                .flat_map(|file| Path::new(&file).ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>())
                .collect();
            directories.retain(|directory| !directory.exists());
            directories.sort();
            directories.dedup();
            for directory in directories {
                fs::create_dir(directory).unwrap();
                let before = scratch.contents();
                run(&scratch, &["setup"]);
                run(&scratch, &["setup", "remove"]);
                assert_eq!(scratch.contents(), before, "{platform} {level}");
            }
        }
    }
}

#[test]
fn removal_keeps_a_directory_that_the_user_created_again_after_setup() {
    let scratch = Scratch::new();
    let settings = scratch.path().join(".codex");
    scratch.json(["setup", "codex", "--yes"]);
    if fs::metadata(&settings).unwrap().created().is_err() {
        testkit::skip("the time of creation of a directory", "a file system that stores it");
        return;
    }
    fs::remove_dir_all(&settings).unwrap();
    fs::create_dir(&settings).unwrap();
    scratch.json(["setup", "codex", "--yes"]);
    scratch.json(["setup", "remove", "codex", "--yes"]);
    assert_eq!(fs::read_dir(&settings).unwrap().count(), 0);
}

#[test]
fn removal_leaves_no_record_of_directories_that_other_files_are_in() {
    let scratch = Scratch::new();
    let settings = scratch.path().join(".codex");
    scratch.json(["setup", "codex", "--yes"]);
    fs::write(settings.join("history.jsonl"), "").unwrap();
    scratch.json(["setup", "remove", "codex", "--yes"]);
    let left: Vec<_> = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, std::slice::from_ref(&settings), "also not the directory of the record");
    // The directory is the user's now.
    fs::remove_file(settings.join("history.jsonl")).unwrap();
    scratch.json(["setup", "codex", "--yes"]);
    scratch.json(["setup", "remove", "codex", "--yes"]);
    assert!(settings.is_dir());
}

#[test]
fn removal_at_one_level_keeps_the_record_of_directories_that_another_level_uses() {
    let scratch = Scratch::new();
    let before = scratch.contents();
    // In the home directory, both levels are in the same directory.
    for level in ["user", "local"] {
        scratch.json(["setup", "claude", "--yes", "--settings", level]);
    }
    for level in ["user", "local"] {
        scratch.json(["setup", "remove", "claude", "--yes", "--settings", level]);
    }
    assert_eq!(scratch.contents(), before);
}
