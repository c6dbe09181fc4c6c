//! `status --export`: one file of `snapshots/status-export/` for each situation, and what readers of YAML make of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Duration;

use blackboard::agent::{Agent, Heartbeat, Register};
use blackboard::project::RegisterProject;
use blackboard::store::Range;
use blackboard::work::{Block, Claim, Complete, Create, Status, WorkItem};
use blackboard::{Board, Code};
use serde_json::{Value, json};
use testkit::process::RunToEnd as _;

use crate::hostile_board::PAYLOAD;
use crate::machine::can;
use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;

testkit::on_each_engine![
    every_situation_has_its_file,
    yaml_readers_of_both_versions_see_the_same_values,
    phase_and_test_results_stay_until_they_are_changed,
    only_this_project_is_exported,
    a_file_is_replaced_atomically_and_keeps_its_mode,
    links_are_refused,
    paths_and_host_names_are_not_exported,
    configuration_removes_more,
    no_program_of_the_repository_runs,
    a_partial_clone_fetches_nothing,
    variables_of_a_hook_name_no_other_repository,
    a_repository_with_many_changes_is_dirty,
];

/// The environment of git: the same commits on every machine.
const GIT: &str = "set -e; export GIT_AUTHOR_NAME=Ivy GIT_AUTHOR_EMAIL=ivy@example.org GIT_COMMITTER_NAME=Ivy \
                   GIT_COMMITTER_EMAIL=ivy@example.org GIT_AUTHOR_DATE='2026-02-03T16:30:00+0100' \
                   GIT_COMMITTER_DATE='2026-02-03T16:30:00+0100' GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null; ";

/// A repository with one commit, and a remote that is called `pai-collab`.
const REPOSITORY: &str = "git init -q -b main project; cd project; echo one > README.md; mkdir .collab; \
                          echo '*.tmp' > .gitignore; git add .; git commit -qm First; \
                          git remote add origin https://example.org/mellanon/pai-collab.git";

/// A name, what prepares the directory, what prepares the board, and the directory.
type Situation = (&'static str, &'static str, fn(&Scratch), &'static str);

const SITUATIONS: &[Situation] = &[
    ("no-git", "mkdir -p pai-collab", busy, "pai-collab"),
    ("no-board", REPOSITORY, |_| {}, "project"),
    (
        "dirty",
        "git init -q -b main project; cd project; echo one > a; git add .; git commit -qm A; echo two > a",
        |_| {},
        "project",
    ),
    (
        "detached-head",
        "git init -q -b main project; cd project; git commit -qm A --allow-empty; git checkout -q --detach",
        |_| {},
        "project",
    ),
    (
        "behind-its-remote",
        "git init -q -b main upstream; git -C upstream commit -qm A --allow-empty; git clone -q upstream project; \
         git -C upstream commit -qm B --allow-empty; git -C upstream commit -qm C --allow-empty; \
         git -C project fetch -q; git -C project commit -qm D --allow-empty",
        |_| {},
        "project",
    ),
    ("empty-board", REPOSITORY, |scratch| drop(scratch.board()), "project"),
    ("busy-board", REPOSITORY, busy, "project"),
    ("hostile-text", REPOSITORY, hostile, "project"),
];

fn register(board: &Board, name: &str, project: Option<&str>, work: Option<&str>) -> String {
    let request = Register {
        project: project.map(str::to_owned),
        work: work.map(str::to_owned),
        ..Register::named(name)
    };
    board.agents().register(&request).unwrap().agent.session_id
}

fn note(board: &Board, session: &str, text: &str) {
    let beat = Heartbeat { progress: Some(text.to_owned()), ..Heartbeat::of(session) };
    board.agents().heartbeat(&beat).unwrap();
}

/// Two projects, of which the first is exported.
fn busy(scratch: &Scratch) {
    let board = scratch.board();
    for (id, repo) in [("collab", "mellanon/pai-collab"), ("other", "mellanon/other")] {
        let request = RegisterProject { repo: Some(repo.to_owned()), ..RegisterProject::new(id, id) };
        board.projects().register(&request).unwrap();
    }
    let ivy = register(&board, "Ivy", Some("pai-collab"), Some("Design the schema"));
    let oak = register(&board, "Oak", Some("collab"), None);
    let elm = register(&board, "Elm", Some("other"), Some("A secret of another project"));
    for (id, title, project) in [
        ("design-schema", "Design the SQL schema", Some("collab")),
        ("gh:mellanon/pai-collab#78", "no", Some("collab")),
        ("run-tests", "Run the tests: all of them", Some("collab")),
        ("free", "Write the web component", Some("collab")),
        ("ship", "Ship it", Some("collab")),
        ("foreign", "Work of another project", Some("other")),
    ] {
        let request = Create { project: project.map(str::to_owned), ..Create::new(id, title) };
        board.work().create(&request).unwrap();
    }
    let block = Block { id: "ship".into(), blocked_by: vec!["free".into()], ..Block::default() };
    board.work().block(&block).unwrap();
    board.work().claim(&Claim::of("run-tests", &oak)).unwrap();
    let done = Complete { summary: Some("All tests pass".to_owned()), ..Complete::of("run-tests", &oak) };
    board.work().complete(&done).unwrap();
    board.work().claim(&Claim::of("design-schema", &ivy)).unwrap();
    board.work().claim(&Claim::of("gh:mellanon/pai-collab#78", &oak)).unwrap();
    board.work().claim(&Claim::of("foreign", &elm)).unwrap();
    note(&board, &ivy, "SQL schema designed, in /home/ivy/pai-collab/schema.sql");
    note(&board, &elm, "A secret of another project");
    // Their order must not depend on the speed of the machine.
    scratch.change_agents(|agent, now| {
        let minutes = if agent.agent_name == "Ivy" { 3 } else { 2 };
        agent.started_at = now.minus(Duration::from_mins(minutes));
    });
    scratch.change_rows::<WorkItem>(&Range::last_completed(), |item, now| {
        item.completed_at = Some(now.minus(Duration::from_mins(5)));
    });
}

/// Text that the board itself would never store.
fn hostile(scratch: &Scratch) {
    busy(scratch);
    let secret = ["AKIA", "IOSFODNN7EXAMPLE"].concat();
    scratch.change_agents(|agent: &mut Agent, _| {
        agent.agent_name = format!("{PAYLOAD}{}", agent.agent_name);
        agent.current_work = Some(format!("{PAYLOAD}- a: &b *c !!d | > %e @f `g`"));
        agent.progress = Some(format!("{secret} in ~/.aws/credentials"));
    });
    scratch.change_rows::<WorkItem>(&Range::work_queue(Status::Claimed), |item, _| {
        item.title = format!("12:30 \"{}\" '---\n...\n{PAYLOAD}", item.title);
    });
}

/// Runs a script that prepares the directory.
#[track_caller]
fn prepare(scratch: &Scratch, script: &str) {
    Output::of(scratch.shell(&format!("{GIT}{script}")).run_to_end()).success();
}

/// Runs the export in a directory of the scratch directory.
#[track_caller]
fn export(scratch: &Scratch, directory: &str, arguments: &[&str]) -> Output {
    let call = ["status", "--export"].iter().chain(arguments);
    let mut command = scratch.command(call);
    Output::of(command.current_dir(scratch.path().join(directory)).run_to_end())
}

/// Each situation with the YAML of its export.
fn situations() -> Option<Vec<(&'static str, String)>> {
    if !can("the status of a repository", "git", &["--version"]) {
        return None;
    }
    let exported = SITUATIONS.iter().map(|&(name, script, fill, directory)| {
        let scratch = Scratch::new();
        prepare(&scratch, script);
        fill(&scratch);
        (name, export(&scratch, directory, &["--stdout"]).success().stdout)
    });
    Some(exported.collect())
}

/// The text with fixed times and a fixed version. Dates of commits have another form and stay.
fn normalized(text: &str) -> String {
    text.replace(env!("CARGO_PKG_VERSION"), "VERSION")
        .split('\'')
        .map(|part| {
            let is_time = part.len() == 20 && part.ends_with('Z') && part.as_bytes()[10] == b'T';
            if is_time { "2026-02-03T15:30:00Z" } else { part }
        })
        .collect::<Vec<_>>()
        .join("'")
}

fn every_situation_has_its_file() {
    let Some(situations) = situations() else { return };
    for (name, text) in situations {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/cli/snapshots/status-export")
            .join(format!("{name}.yaml"));
        let seen = normalized(&text);
        if std::env::var_os("BLACKBOARD_WRITE_SNAPSHOTS").is_some() {
            fs::write(&file, &seen).unwrap();
        }
        let stored = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(seen, stored, "{} is not what happens", file.display());
    }
}

fn yaml_readers_of_both_versions_see_the_same_values() {
    if !can("YAML 1.1", "python3", &["-c", "import yaml"]) {
        return;
    }
    let Some(situations) = situations() else { return };
    let scratch = Scratch::new();
    for (name, text) in situations {
        let new = yaml_rust2::YamlLoader::load_from_str(&text)
            .unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        let script = "import json,sys,yaml; json.dump(yaml.safe_load(sys.stdin.buffer), sys.stdout)";
        let mut python = scratch.shell("exec python3 -c \"$SCRIPT\"");
        let old = Output::fed(python.env("SCRIPT", script), text.clone()).success().json();
        assert_eq!(old, as_json(&new[0]), "{name}:\n{text}");
        assert!(old["generatedAt"].is_string() && old["tests"]["passing"].is_u64(), "{name}: {old}");
        assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'), "{name}:\n{text}");
    }
}

/// What a reader of YAML 1.2 sees.
fn as_json(value: &yaml_rust2::Yaml) -> Value {
    use yaml_rust2::Yaml;
    match value {
        Yaml::String(text) => json!(text),
        Yaml::Integer(number) => json!(number),
        Yaml::Boolean(is) => json!(is),
        Yaml::Null => Value::Null,
        Yaml::Array(items) => items.iter().map(as_json).collect(),
        Yaml::Hash(entries) => {
            let entries =
                entries.iter().map(|(key, value)| (key.as_str().unwrap().to_owned(), as_json(value)));
            Value::Object(entries.collect())
        }
        other => panic!("a status has no such value: {other:?}"),
    }
}

#[test]
fn a_hyphen_is_standard_output() {
    let scratch = Scratch::new();
    let printed = scratch.run(["status", "--export", "--output", "-"]).success().stdout;
    assert!(printed.contains("\nschemaVersion: '1.0'\n"), "{printed}");
    assert!(!scratch.path().join("-").exists() && !scratch.path().join(".collab").exists());
}

#[test]
fn values_of_the_existing_file_that_are_wrong_are_replaced_with_a_note() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path().join(".collab")).unwrap();
    let file = scratch.path().join(".collab/status.yaml");
    let text = "schemaVersion: '1.0'\nphase: bogus\ntests: {passing: 3, failing: none}\n";
    fs::write(&file, text).unwrap();
    let noted = scratch.run(["status", "--export"]).success().stderr;
    for place in ["line 2, column 8: phase: unknown word bogus", "line 3, column 30: tests.failing: expected"]
    {
        let note = format!("note: a value of the existing status is not kept: {place}");
        assert!(noted.contains(&note), "{noted}");
    }
    // Nothing is said about a phase that the call replaces, or about what is missing.
    fs::write(&file, "schemaVersion: '1.0'\nphase: bogus\n").unwrap();
    let noted = scratch.run(["status", "--export", "--phase", "proposed"]).success().stderr;
    assert!(!noted.contains("not kept"), "{noted}");
    let refused = scratch.run(["status", "--export", "--phase", "bogus"]);
    assert!(refused.code == 2 && refused.stderr.contains("proposed") && refused.stderr.contains("building"));
}

fn phase_and_test_results_stay_until_they_are_changed() {
    let scratch = Scratch::new();
    let status = || fs::read_to_string(scratch.path().join(".collab/status.yaml")).unwrap();
    let first = scratch.json(["status", "--export"]);
    is_object(&first, &["output", "status"]);
    assert_eq!(
        (&first["status"]["phase"], &first["status"]["project"]["phase"]),
        (&json!("build"), &json!("building"))
    );
    assert_eq!(first["status"]["tests"], json!({"passing": 0, "failing": 0}));

    fs::write(scratch.path().join("results.json"), r#"{"passing": 380, "failing": 2}"#).unwrap();
    fs::write(scratch.path().join("lcov.info"), "SF:a\nLF:8\nLH:7\nend_of_record\n").unwrap();
    let call =
        ["status", "--export", "--phase", "hardening", "--tests", "results.json", "--tests", "lcov.info"];
    scratch.json(call);
    for _ in 0..2 {
        let kept = scratch.json(["status", "--export"]);
        assert_eq!(
            (&kept["status"]["phase"], &kept["status"]["tests"]["coverage"]),
            (&json!("harden"), &json!("87.5%"))
        );
        assert_eq!(kept["status"]["tests"]["failing"], 2);
        assert!(status().contains("\n  passing: 380\n"), "{}", status());
    }
    // Results and coverage are replaced separately.
    fs::write(scratch.path().join("more.info"), "SF:a\nLF:8\nLH:8\nend_of_record\n").unwrap();
    let covered = scratch.json(["status", "--export", "--tests", "more.info"])["status"]["tests"].clone();
    assert_eq!(
        (&covered["passing"], &covered["failing"], &covered["coverage"]),
        (&json!(380), &json!(2), &json!("100%"))
    );
    let refused =
        scratch.run(["status", "--export", "--tests", "lcov.info", "--tests", "lcov.info", "--json"]);
    refused.refused(Code::InvalidValue);
    fs::write(scratch.path().join(".collab/status.yaml"), "phase: [\n").unwrap();
    let broken = scratch.run(["status", "--export"]).success();
    assert!(broken.stderr.contains("its phase and tests are not kept: line 1, column 8"), "{broken:?}");
    assert!(status().contains("\nphase: 'build'\n"), "{}", status());
}

fn only_this_project_is_exported() {
    let scratch = Scratch::new();
    busy(&scratch);
    fs::create_dir_all(scratch.path().join("pai-collab/src")).unwrap();
    let of = |arguments: &[&str]| {
        let options = arguments.iter().copied().chain(["--json"]).collect::<Vec<_>>();
        export(&scratch, "pai-collab", &options).success().json()["status"].clone()
    };
    let own = of(&[]);
    let text = own.to_string();
    assert!(!text.contains("secret") && !text.contains("foreign") && !text.contains("Elm"), "{text}");
    assert!(!text.contains("/home/ivy") && text.contains("SQL schema designed, in [path]"), "{text}");
    // Oak works for the registered project, which only its repository connects with this directory, which has none.
    assert_eq!(own["agentActivity"]["activeAgents"], 1);
    let all = of(&["--all-projects"]);
    assert_eq!(
        (&all["agentActivity"]["activeAgents"], &all["agentActivity"]["claimedItems"]),
        (&json!(3), &json!(3))
    );
    // A project that is registered with this path is this one.
    let path = fs::canonicalize(scratch.path().join("pai-collab")).unwrap().display().to_string();
    let request = RegisterProject { path: Some(path), ..RegisterProject::new("other", "Other") };
    scratch.board().projects().register(&request).unwrap();
    assert_eq!(of(&[])["agentActivity"]["activeAgents"], 2);
}

fn a_file_is_replaced_atomically_and_keeps_its_mode() {
    let scratch = Scratch::new();
    let file = scratch.path().join(".collab/status.yaml");
    scratch.json(["status", "--export"]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    scratch.json(["status", "--export"]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    let names = fs::read_dir(file.parent().unwrap()).unwrap().map(|file| file.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["status.yaml"]);
    let other = scratch.json(["status", "--export", "--output", "other.yaml"]);
    assert_eq!(other["output"], "other.yaml");
    let printed = scratch.run(["status", "--export", "--stdout"]).success().stdout;
    assert!(printed.starts_with("# Generated by") && printed.contains("\nphase: 'build'\n"), "{printed}");
}

fn links_are_refused() {
    let scratch = Scratch::new();
    let (project, outside) = (scratch.path().join("project"), scratch.path().join("outside"));
    for directory in [&project, &outside] {
        fs::create_dir(directory).unwrap();
    }
    fs::write(outside.join("status.yaml"), "untouched").unwrap();
    symlink(&outside, project.join(".collab")).unwrap();
    export(&scratch, "project", &["--json"]).refused(Code::UnsafePermissions);
    fs::remove_file(project.join(".collab")).unwrap();
    fs::create_dir(project.join(".collab")).unwrap();
    symlink(outside.join("status.yaml"), project.join(".collab/status.yaml")).unwrap();
    export(&scratch, "project", &["--json"]).refused(Code::UnsafePermissions);
    assert_eq!(fs::read_to_string(outside.join("status.yaml")).unwrap(), "untouched");
    // A link that stays in the project is refused too: a hub does not follow it.
    fs::remove_file(project.join(".collab/status.yaml")).unwrap();
    fs::rename(project.join(".collab"), project.join("reports")).unwrap();
    symlink("reports", project.join(".collab")).unwrap();
    export(&scratch, "project", &["--json"]).refused(Code::UnsafePermissions);
    assert!(!project.join("reports/status.yaml").exists());
}

fn paths_and_host_names_are_not_exported() {
    if !can("the status of a repository", "git", &["--version"]) {
        return;
    }
    let scratch = Scratch::new();
    let host = rustix::system::uname().nodename().to_str().unwrap().to_owned();
    prepare(&scratch, &format!("{REPOSITORY}; git checkout -q -b 'on/{host}'"));
    let board = scratch.board();
    let home = scratch.path().display().to_string();
    let secrets = [
        "/opt/ivy/secret/plan".to_owned(),
        "-I/opt/ivy/secret".to_owned(),
        "vscode://file/opt/ivy/secret".to_owned(),
        "~ivy/secret".to_owned(),
        "'/opt/ivy/My Documents/secret'".to_owned(),
        r"C:\Users\ivy\secret".to_owned(),
        format!("x{home}/secret"),
        format!("on {host}"),
    ];
    let agent = register(&board, "Ivy", Some("/opt/ivy/secret"), Some("Work"));
    for text in &secrets {
        let id = text.replace(' ', "-");
        board.work().create(&Create::new(&id, text)).unwrap();
        board.work().claim(&Claim::of(&id, &agent)).unwrap();
        note(&board, &agent, text);
    }
    let exported = export(&scratch, "project", &["--stdout", "--all-projects"]).success().stdout;
    for secret in ["secret", "/opt", "Users", &home] {
        assert!(!exported.contains(secret), "{secret} is in {exported}");
    }
    // This name is the same on every machine.
    if host != "localhost" {
        assert!(
            exported.contains("branch: 'on/[host]'") && exported.contains("title: 'on [host]'"),
            "{exported}"
        );
    }
    for shown in ["project: '[path]'", "item: '-I[path]'", "title: \"'[path]'\""] {
        assert!(exported.contains(shown), "{shown} is missing in {exported}");
    }
}

fn configuration_removes_more() {
    let scratch = Scratch::new();
    busy(&scratch);
    fs::create_dir_all(scratch.home_file("")).unwrap();
    fs::create_dir(scratch.path().join("pai-collab")).unwrap();
    for (redact, present, absent) in [
        ("[]", &["Ivy", "Design the", "SQL schema designed"][..], &["agent 1"][..]),
        (r#"["agents"]"#, &["agent 1", "Design the", "SQL schema designed"], &["Ivy", "Oak"]),
        (r#"["work", "progress"]"#, &["\"activeAgents\":3"], &["Design the", "SQL schema designed", "Ivy"]),
    ] {
        let config = format!(r#"{{"export": {{"redact": {redact}}}}}"#);
        fs::write(scratch.home_file("config.json"), config).unwrap();
        let text = export(&scratch, "pai-collab", &["--all-projects", "--json"]).success().json()["status"]
            .to_string();
        for word in present {
            assert!(text.contains(word), "{redact}: {word} is missing in {text}");
        }
        for word in absent {
            assert!(!text.contains(word), "{redact}: {word} is in {text}");
        }
    }
}

fn no_program_of_the_repository_runs() {
    if !can("the status of a repository", "git", &["--version"]) {
        return;
    }
    let scratch = Scratch::new();
    prepare(
        &scratch,
        "git init -q -b main project; cd project; echo a > a.one; echo b > b.two; \
         printf '*.one filter=one\\n*.two filter=two.three\\n' > .gitattributes; git add .; git commit -qm A; \
         echo A > a.one; echo B > b.two; touch -d 2001-01-01 a.one b.two; \
         printf '#!/bin/sh\\ntouch ../ran\\n' > ../program; chmod +x ../program; \
         git config core.fsmonitor \"$PWD/../program\"; git config core.pager \"$PWD/../program\"; \
         git config gpg.program \"$PWD/../program\"; git config log.showSignature true; \
         git config core.hooksPath \"$PWD/..\"; cp ../program ../post-index-change; \
         git config diff.external \"$PWD/../program\"; \
         for name in one two.three; do git config filter.$name.clean \"$PWD/../program\"; \
         git config filter.$name.required true; done; git config filter.two.three.process \"$PWD/../program\"; \
         mkdir .collab; printf 'schemaVersion: \"1.0\"\\nstatus: {test: touch ../ran}\\n' > .collab/manifest.yaml",
    );
    let exported = export(&scratch, "project", &["--json"]).success().json();
    assert_eq!(exported["status"]["git"]["branch"], "main");
    assert!(!scratch.path().join("ran").exists());
    // The file itself is no change: only the manifest is.
    prepare(
        &scratch,
        "cd project; for name in one two.three; do git config --remove-section filter.$name; done; \
         git -c core.fsmonitor=false add --all .; git -c core.fsmonitor=false rm -q --cached .collab/status.yaml; \
                       git -c core.hooksPath=/dev/null -c core.fsmonitor=false commit -qm B",
    );
    let again = export(&scratch, "project", &["--json"]).success().json();
    assert_eq!(
        (&exported["status"]["git"]["dirty"], &again["status"]["git"]["dirty"]),
        (&json!(true), &json!(false))
    );
}

fn a_partial_clone_fetches_nothing() {
    if !can("the status of a repository", "git", &["--version"]) {
        return;
    }
    let scratch = Scratch::new();
    prepare(
        &scratch,
        "git init -q -b main upstream; cd upstream; echo one > a; git add .; git commit -qm A; \
         git config uploadpack.allowFilter true; cd ..; \
         git clone -q --no-checkout --filter=tree:0 \"file://$PWD/upstream\" project; cd project; \
         printf '#!/bin/sh\\ntouch ../ran\\nexec git-upload-pack \"$@\"\\n' > ../program; chmod +x ../program; \
         git config remote.origin.uploadpack \"$PWD/../program\"",
    );
    // Without the tree of the commit, git cannot know what has changed.
    let exported = export(&scratch, "project", &[]).success();
    assert!(exported.stderr.contains("git cannot read the repository"), "{exported:?}");
    assert!(!scratch.path().join("ran").exists());
}

fn variables_of_a_hook_name_no_other_repository() {
    if !can("the status of a repository", "git", &["--version"]) {
        return;
    }
    let scratch = Scratch::new();
    prepare(&scratch, "git init -q -b other elsewhere; git init -q -b main project");
    let mut command = scratch.command(["status", "--export", "--json"]);
    command.current_dir(scratch.path().join("project"));
    for variable in ["GIT_DIR", "GIT_COMMON_DIR"] {
        command.env(variable, scratch.path().join("elsewhere/.git"));
    }
    command.env("GIT_SHALLOW_FILE", scratch.path().join("none"));
    let exported = Output::of(command.run_to_end()).success().json();
    assert_eq!(exported["status"]["git"]["branch"], "main");
}

fn a_repository_with_many_changes_is_dirty() {
    if !can("the status of a repository", "git", &["--version"]) {
        return;
    }
    let scratch = Scratch::new();
    prepare(&scratch, "git init -q -b main project; cd project; git commit -qm A --allow-empty");
    for number in 0..700 {
        let name = format!("project/{number}-{}", "x".repeat(100));
        fs::write(scratch.path().join(name), "").unwrap();
    }
    let exported = export(&scratch, "project", &["--json"]).success().json()["status"]["git"].clone();
    assert_eq!((&exported["branch"], &exported["dirty"]), (&json!("main"), &json!(true)));
    assert!(exported["commit"].is_string(), "{exported}");
}
