//! The location of the board: the option, then the environment, then the project, then the home. Directories, worktrees and
//! links are those of files.

use std::fs;
use std::path::Path;

use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};

testkit::on_each_engine![
    board_of_the_option_or_the_environment_overrides_those_of_the_project_and_the_home,
    commands_in_lists_name_the_board_that_was_given_by_db,
];

/// The board that a call from `directory` uses.
fn database(scratch: &Scratch, directory: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> String {
    let mut command = scratch.command(["status", "--json"].iter().chain(arguments));
    let output = command.current_dir(directory).envs(variables.iter().copied()).run_to_end();
    Output::of(output).success().json()["database"].as_str().unwrap().to_owned()
}

fn git(directory: &Path, line: &str) {
    let mut command = std::process::Command::new("git");
    command.current_dir(directory).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("HOME", directory).args(["-c", "user.name=Ivy", "-c", "user.email=ivy@example.org"]);
    let output = command.args(line.split(' ')).run_to_end();
    assert!(output.status.success(), "git {line}: {output:?}");
}

#[test]
fn option_overrides_environment_overrides_project_overrides_home() {
    let scratch = Scratch::new();
    let project = scratch.path().join("project");
    fs::create_dir_all(project.join(".blackboard")).unwrap();
    let all = [("BLACKBOARD_DB", "from-environment.db"), ("BLACKBOARD_HOME", "/somewhere/home")];
    let inside = |name: &str| project.join(name).to_str().unwrap().to_owned();
    assert_eq!(database(&scratch, &project, &all, &["--db", "from-option.db"]), inside("from-option.db"));
    assert_eq!(database(&scratch, &project, &all, &[]), inside("from-environment.db"));
    assert_eq!(database(&scratch, &project, &all[1..], &[]), inside(".blackboard/local.db"));
    assert_eq!(database(&scratch, scratch.path(), &all[1..], &[]), "/somewhere/home/local.db");
    assert_eq!(database(&scratch, scratch.path(), &[], &[]), scratch.database().to_str().unwrap());
}

fn board_of_the_option_or_the_environment_overrides_those_of_the_project_and_the_home() {
    let scratch = Scratch::with_file("team.db");
    scratch.run(["work", "create", "named", "--title", "Named"]).success();
    let project = scratch.path().join("project");
    fs::create_dir_all(project.join(".blackboard")).unwrap();
    let items = |variable: &str, arguments: &[&str]| {
        let mut command = scratch.command(["work", "list", "--json"].iter().chain(arguments));
        command.current_dir(&project).env("BLACKBOARD_DB", variable);
        Output::of(command.run_to_end()).success().json()["count"].clone()
    };
    let location = scratch.location();
    assert_eq!(items(&location, &[]), 1);
    assert_eq!(items("", &["--db", &location]), 1);
    assert_eq!(items("other.db", &["--db", &location]), 1);
    assert_eq!(items("", &[]), 0);
    assert_eq!(items(&location, &["--db", "other.db"]), 0);
}

#[test]
fn directory_means_the_board_in_it() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path().join("boards")).unwrap();
    let expected = scratch.path().join("boards/local.db");
    for text in ["boards", "boards/", "./boards/local.db"] {
        assert_eq!(database(&scratch, scratch.path(), &[], &["--db", text]), expected.to_str().unwrap());
    }
}

#[test]
fn worktrees_and_subdirectories_of_a_repository_share_one_board() {
    let scratch = Scratch::new();
    let main = scratch.path().join("main");
    fs::create_dir_all(main.join("deep/down")).unwrap();
    for line in ["init -q", "commit -q --allow-empty -m first", "worktree add -q ../second -b second"] {
        git(&main, line);
    }
    let second = scratch.path().join("second");
    fs::create_dir_all(second.join("deep/down")).unwrap();
    let mut init = scratch.command(["init"]);
    Output::of(init.current_dir(second.join("deep")).run_to_end()).success();

    let expected = fs::canonicalize(&main).unwrap().join(".blackboard/local.db");
    for directory in [&main, &main.join("deep/down"), &second, &second.join("deep/down")] {
        assert_eq!(database(&scratch, directory, &[], &[]), expected.to_str().unwrap());
    }
    let mut register = scratch.command(["agent", "register", "--name", "Ivy"]);
    Output::of(register.current_dir(&main).run_to_end()).success();
    let mut list = scratch.command(["agent", "list", "--json"]);
    let listed = Output::of(list.current_dir(second.join("deep/down")).run_to_end()).success().json();
    assert_eq!(listed["items"][0]["agent_name"], "Ivy");
    // Git sees nothing of it, in either worktree, but what keeps it out.
    for (directory, expected) in [(&main, "?? .blackboard/.gitignore\n"), (&second, "")] {
        let call = ["status", "--short", "-uall"];
        let status = std::process::Command::new("git").current_dir(directory).args(call).run_to_end();
        assert_eq!(String::from_utf8(status.stdout).unwrap(), expected);
    }
}

#[test]
fn untrusted_directory_is_ignored_with_a_warning() {
    let scratch = Scratch::new();
    let project = scratch.path().join("project");
    fs::create_dir_all(&project).unwrap();
    std::os::unix::fs::symlink("/tmp", project.join(".blackboard")).unwrap();
    let mut status = scratch.command(["status", "--json"]);
    let output = Output::of(status.current_dir(&project).run_to_end()).success();
    assert_eq!(output.json()["database"], scratch.database().to_str().unwrap());
    assert!(output.stderr.starts_with("warning: skipped "), "{output:?}");
}

#[test]
fn missing_home_is_reported_with_the_variable_to_set() {
    let scratch = Scratch::new();
    let output = Output::of(scratch.command(["status", "--json"]).env_remove("HOME").run_to_end());
    let refusal = output.refused(blackboard::Code::Usage);
    assert!(refusal["hint"].as_str().unwrap().contains("BLACKBOARD_HOME"), "{refusal}");
}

fn commands_in_lists_name_the_board_that_was_given_by_db() {
    let scratch = Scratch::with_file("team board.db");
    let location = scratch.location();
    let db = if scratch.is_served() { location.as_str() } else { "team board.db" };
    let run = |call: &[&str]| scratch.run(call.iter().chain(&["--db", db])).success().stdout;
    run(&["project", "register", "pai", "--name", "PAI"]);
    let empty = run(&["work", "list"]);
    let next = format!("Add one: blackboard --db '{db}' work create ID --title TEXT\n");
    assert_eq!(empty, format!("No open work items. {next}"));
    let library = scratch.board();
    for number in 0..60 {
        let create = blackboard::work::Create {
            project: Some("pai".to_owned()),
            ..blackboard::work::Create::new(&format!("item-{number}"), "Item")
        };
        library.work().create(&create).unwrap();
    }
    let shown = scratch.on_terminal(100, ["project", "status", "pai", "--db", db]);
    let more = format!("… and 10 more: blackboard --db '{db}' work list --project pai");
    assert!(shown.contains(&more), "{shown}");
}
