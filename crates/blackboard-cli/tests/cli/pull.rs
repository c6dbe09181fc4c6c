pub mod hub;
mod round_trip;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::Duration;

use blackboard::Code;
use rustix::process::Signal;
use testkit::process::RunToEnd as _;

use self::hub::{
    FILE, LINK, SUBMODULE, TestHub, health, problems, spoke, status_of_a_board, status_of_the_design,
};
use crate::hanging::HangingProgram;
use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, registered_projects_are_read_from_their_path];

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

fn human_output_matches_transcript() {
    transcript::check("pull");
}

/// A hub with a spoke of every kind.
fn hub_of_every_kind() -> Option<TestHub> {
    let hub = TestHub::new("a hub of repositories")?;
    hub.spoke("fresh", &status_of_a_board(3 * MINUTE, 2, 2));
    hub.spoke("quiet", &status_of_the_design(MINUTE, ""));
    let changed = "tests: {passing: 3, failing: 1}\ngit: {branch: main, dirty: true, behindRemote: 4}\n";
    hub.spoke("changed", &status_of_the_design(MINUTE, changed));
    hub.spoke("stale", &status_of_a_board(8 * DAY, 1, 0));
    hub.spoke("broken", "schemaVersion: '1.0'\ngeneratedAt: [\n");
    hub.spoke("bomb", &bomb());
    hub.spoke("long-bomb", &format!("a: &a {}\nb: [{}]\n", "x".repeat(185_000), "*a,".repeat(23_000)));
    hub.spoke("deep", &"[".repeat(50_000));
    hub.spoke("huge", &format!("{}# {}\n", status_of_a_board(MINUTE, 1, 0), "x".repeat(2 * 1024 * 1024)));
    hub.spoke("hostile", &status_of_the_design(MINUTE, HOSTILE));
    hub.project("missing", &format!("source: {{repo: '{}'}}\n", hub.url("missing")));
    let repository = |name: &str, entries: &[hub::Entry<'_>]| {
        hub.commit(name, "main", entries);
        hub.project(name, &format!("source: {{repo: '{}'}}\n", hub.url(name)));
    };
    let status = status_of_a_board(MINUTE, 1, 0);
    repository("link", &[(LINK, ".collab/status.yaml", b"../../../../etc/passwd")]);
    repository("linked-directory", &[(LINK, ".collab", b"/etc"), (FILE, "README", b"x")]);
    repository("submodule", &[(SUBMODULE, ".collab", b"")]);
    repository("binary", &[(FILE, ".collab/status.yaml", b"\xff\xfe\x00")]);
    repository("empty-directory", &[(FILE, ".collab/notes.txt", b"x")]);
    repository("without-collab", &[(FILE, "status.yaml", status.as_bytes())]);
    repository("executable", &[("100755", ".collab/status.yaml", status.as_bytes())]);
    hub.commit("branches", "develop", &[(FILE, ".collab/status.yaml", status.as_bytes())]);
    hub.project("other-branch", &format!("source: {{repo: '{}', branch: develop}}\n", hub.url("branches")));
    hub.project("no-branch", &format!("source: {{repo: '{}', branch: none}}\n", hub.url("branches")));
    hub.project(
        "bad-branch",
        &format!("source: {{repo: '{}', branch: --upload-pack=x}}\n", hub.url("branches")),
    );
    let commands = "git init -q --bare --template= repositories/nothing";
    assert!(hub.scratch.shell(commands).run_to_end().status.success());
    hub.project("nothing", &format!("source: {{repo: '{}'}}\n", hub.url("nothing")));
    hub.project("no-source", "");
    hub.project("archived-source", "source:\n");
    for (name, repo) in [
        ("program", "ext::sh -c touch% marker"),
        ("plain-http", "http://example.org/a/b"),
        ("option", "--upload-pack=touch marker"),
        ("path", "/etc"),
        ("relative", "../repositories/fresh"),
    ] {
        hub.project(name, &format!("source:\n  repo: \"{repo}\"\n"));
    }
    let outside = hub.scratch.path().join("outside").display().to_string();
    assert!(hub.scratch.shell("git init -q outside").run_to_end().status.success());
    hub.project("outside", &format!("source: {{repo: 'file://{outside}'}}\n"));
    hub.project(
        "upward",
        &format!("source: {{repo: 'file://{}/../outside'}}\n", hub.repositories().display()),
    );
    hub.write("projects/bad-project/PROJECT.yaml", b"name: [\n");
    hub.project("copy", "");
    hub.write("projects/copy/.collab/status.yaml", status.as_bytes());
    hub.project("linked-copy", "");
    fs::write(hub.scratch.path().join("secret.yaml"), "secret: 1").unwrap();
    fs::create_dir(hub.directory().join("projects/linked-copy/.collab")).unwrap();
    let link = hub.directory().join("projects/linked-copy/.collab/status.yaml");
    symlink(hub.scratch.path().join("secret.yaml"), link).unwrap();
    symlink("/etc", hub.directory().join("projects/linked-project")).unwrap();
    hub.write("projects/README.md", b"# Projects");
    Some(hub)
}

/// Text that would clear a terminal, hide what follows, or add a row to the table.
const HOSTILE: &str = "agentActivity:\n  activeAgents: 1\n  currentWork:\n    - agent: Ivy\n      task: \"a\\e[2Jb\\u202Ec\\nSPOKE\"\n";

fn bomb() -> String {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    bomb
}

const EXPECTED: [(&str, &str); 37] = [
    ("archived-source", "no_source"),
    ("bad-branch", "unreachable"),
    ("bad-project", "no_source"),
    ("binary", "broken"),
    ("bomb", "broken"),
    ("broken", "broken"),
    ("changed", "fresh"),
    ("copy", "fresh"),
    ("deep", "broken"),
    ("empty-directory", "no_collab"),
    ("executable", "fresh"),
    ("fresh", "fresh"),
    ("hostile", "fresh"),
    ("huge", "broken"),
    ("link", "broken"),
    ("linked-copy", "broken"),
    ("linked-directory", "broken"),
    ("long-bomb", "broken"),
    ("missing", "unreachable"),
    ("no-branch", "unreachable"),
    ("no-source", "no_source"),
    ("nothing", "unreachable"),
    ("option", "unreachable"),
    ("other-branch", "fresh"),
    ("outside", "unreachable"),
    ("path", "unreachable"),
    ("plain-http", "unreachable"),
    ("program", "unreachable"),
    ("quiet", "fresh"),
    ("relative", "unreachable"),
    ("stale", "stale"),
    ("submodule", "broken"),
    ("upward", "unreachable"),
    ("without-collab", "no_collab"),
    ("z-1", "fresh"),
    ("z-2", "fresh"),
    ("z-3", "fresh"),
];

#[test]
fn a_hub_with_spokes_of_every_kind_is_read_with_and_without_a_cache_and_offline() {
    let Some(hub) = hub_of_every_kind() else { return };
    for name in ["z-1", "z-2", "z-3"] {
        hub.spoke(name, &status_of_a_board(MINUTE, 1, 1));
    }
    let expected = EXPECTED.map(|(name, health)| (name.to_owned(), health.to_owned())).into();
    let first = hub.json(&["pull"]);
    assert_eq!(health(&first), expected);
    for (project, problem) in [
        ("bad-branch", "the name of its branch is not valid"),
        ("binary", "status.yaml is not UTF-8"),
        ("bomb", "aliases that repeat too many"),
        ("broken", "status.yaml: line 2, column 14"),
        ("deep", "status.yaml: line"),
        ("huge", "status.yaml is too large"),
        ("link", "status.yaml is a symbolic link"),
        ("linked-copy", "status.yaml is a symbolic link"),
        ("linked-directory", ".collab is a symbolic link"),
        ("long-bomb", "aliases that copy more than 1048576 bytes"),
        ("missing", "does not appear to be a git repository"),
        ("no-branch", "it has no branch none"),
        ("nothing", "it is empty"),
        ("option", "begins with a hyphen"),
        ("outside", "is a path that no --allow-path names"),
        ("path", "is neither owner/repo nor a URL"),
        ("plain-http", "has the scheme http"),
        ("program", "contains a space"),
        ("submodule", ".collab is another repository"),
        ("upward", "is a path that no --allow-path names"),
    ] {
        assert!(problems(&first, project).contains(problem), "{project}: {}", problems(&first, project));
    }
    assert!(first["problems"][0].as_str().unwrap().contains("linked-project is a symbolic link"));
    assert!(!hub.scratch.path().join("marker").exists());
    assert_eq!((&first["fetched"], &first["noRepo"], &first["noCollab"]), (&11.into(), &3.into(), &2.into()));
    assert_eq!(first["failed"], 21);

    // A second pull asks every repository for its last commit, and fetches nothing.
    let (second, calls) = with_recorded_git(&hub, &["pull", "--json"]);
    assert_eq!(health(&second), expected);
    assert_eq!(spoke(&second, "fresh")["readCommit"], spoke(&first, "fresh")["readCommit"]);
    assert!(calls.contains(" ls-remote ") && !calls.contains(" fetch "), "{calls}");

    // Offline, no repository is needed at all.
    fs::remove_dir_all(hub.repositories()).unwrap();
    fs::create_dir(hub.repositories()).unwrap();
    let offline = hub.json(&["pull", "--offline"]);
    assert_eq!(health(&offline), expected);
    assert!(
        spoke(&offline, "fresh")["cachedAt"].is_string() && spoke(&offline, "copy")["cachedAt"].is_null()
    );
    assert!(problems(&offline, "missing").contains("it is not in the cache"));
    let shown = hub.run(&["pull", "--offline"]).success().stdout;
    assert!(shown.contains("\nOffline: the cache is "), "{shown}");
    assert!(shown.contains("\n11 spokes read from the cache, 21 failed, "), "{shown}");

    // Vanished remotes show their last state, marked as such.
    let vanished = hub.json(&["pull"]);
    assert_eq!(spoke(&vanished, "fresh")["health"], "cached");
    assert_eq!(spoke(&vanished, "fresh")["status"]["agentActivity"]["activeAgents"], 2);
    assert!(problems(&vanished, "fresh").contains("does not appear"));
    assert!(hub.run(&["pull"]).success().stdout.contains("[cached "));
}

/// Runs a call with a git that writes its arguments into a file first.
fn with_recorded_git(hub: &TestHub, words: &[&str]) -> (serde_json::Value, String) {
    let (programs, record) = (hub.scratch.path().join("programs"), hub.scratch.path().join("record"));
    fs::create_dir(&programs).unwrap();
    let git = Output::of(hub.scratch.shell("command -v git").run_to_end()).success().stdout;
    let script = format!("#!/bin/sh\necho \" $* \" >> {}\nexec {} \"$@\"\n", record.display(), git.trim());
    fs::write(programs.join("git"), script).unwrap();
    fs::set_permissions(programs.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = hub.scratch.command(hub.arguments(words));
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let output = Output::of(command.env("PATH", path).run_to_end());
    (output.success().json(), fs::read_to_string(record).unwrap())
}

#[test]
fn table_shows_what_each_spoke_reports() {
    let Some(hub) = hub_of_every_kind() else { return };
    let output = hub.run(&["pull"]).success();
    let row = |name: &str| {
        let row = output.stdout.lines().find(|line| line.split(' ').next() == Some(name));
        let row = row.unwrap_or_else(|| panic!("{name}: {output:?}"));
        row.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("fresh"), "building 2 3m ago 2 items claimed, 17P/0F");
    assert_eq!(row("quiet"), "review 0 1m ago no agent data");
    assert_eq!(row("changed"), "review 0 1m ago no agent data, 3P/1F [dirty] [4 behind]");
    assert_eq!(row("stale"), "building 1 8d ago [STALE] no current work, 17P/0F");
    assert_eq!(row("broken"), "-- -- -- [BROKEN]");
    assert_eq!(row("missing"), "-- -- -- unreachable");
    assert_eq!(row("hostile"), "review 1 1m ago abc SPOKE");
    assert!(!output.stdout.contains(['\u{1b}', '\u{202e}']));
    assert!(output.stdout.contains("\nProblems:\n"), "{output:?}");
    let last = output.stdout.lines().last();
    assert_eq!(
        last,
        Some("8 spokes fetched, 21 failed, 2 repositories without .collab/, 3 projects without a source")
    );
    for width in [40, 80, 120] {
        let shown = hub.scratch.on_terminal(width, hub.arguments(&["pull"]));
        assert!(shown.contains("fresh") && shown.contains("STATUS"), "{shown}");
    }
}

#[test]
fn a_forced_push_replaces_what_was_read() {
    let Some(hub) = TestHub::new("a forced push") else { return };
    hub.spoke("pushed", &status_of_a_board(MINUTE, 1, 1));
    let before = hub.json(&["pull"]);
    hub.spoke("pushed", &status_of_a_board(MINUTE, 7, 1));
    let after = hub.json(&["pull"]);
    let agents = |answer| spoke(answer, "pushed")["status"]["agentActivity"]["activeAgents"].clone();
    assert_eq!((agents(&before), agents(&after)), (1.into(), 7.into()));
    assert_ne!(spoke(&before, "pushed")["readCommit"], spoke(&after, "pushed")["readCommit"]);
    // The spoke can also lose its files, and get them back.
    hub.commit("pushed", "main", &[(FILE, "README", b"x")]);
    assert_eq!(hub.json(&["pull"])["noCollab"], 1);
    hub.spoke("pushed", &status_of_a_board(MINUTE, 3, 1));
    assert_eq!(agents(&hub.json(&["pull"])), 3);
}

#[test]
fn a_damaged_cache_is_read_again() {
    let Some(hub) = TestHub::new("a damaged cache") else { return };
    hub.spoke("one", &status_of_a_board(MINUTE, 1, 1));
    hub.json(&["pull"]);
    let cache = hub.scratch.home_file("hub-cache");
    let entry = fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();
    for (damage, file) in
        [("{", "snapshot.json"), ("rubbish", "repository.git/config"), ("x", "repository.git/HEAD")]
    {
        fs::write(entry.join(file), damage).unwrap();
        hub.spoke("one", &status_of_a_board(MINUTE, 2, 1));
        assert_eq!(health(&hub.json(&["pull"]))["one"], "fresh", "{file}");
    }
    fs::remove_dir_all(entry.join("repository.git/objects")).unwrap();
    hub.spoke("one", &status_of_a_board(MINUTE, 3, 1));
    assert_eq!(spoke(&hub.json(&["pull"]), "one")["status"]["agentActivity"]["activeAgents"], 3);
}

#[test]
fn a_hub_is_also_a_repository_itself() {
    let Some(hub) = TestHub::new("a hub in a repository") else { return };
    let status = status_of_a_board(MINUTE, 4, 0);
    hub.spoke("remote", &status_of_a_board(MINUTE, 1, 0));
    let project = fs::read(hub.directory().join("projects/remote/PROJECT.yaml")).unwrap();
    hub.commit(
        "hub",
        "main",
        &[
            (FILE, "REGISTRY.md", b"# Registry"),
            (FILE, "projects/README.md", b"# Projects"),
            (FILE, "projects/remote/PROJECT.yaml", &project),
            (FILE, "projects/remote/docs/large.md", &vec![b'x'; 3 * 1024 * 1024]),
            (FILE, "projects/copy/PROJECT.yaml", b"name: copy\n"),
            (FILE, "projects/copy/.collab/status.yaml", status.as_bytes()),
            (LINK, "projects/copy/.collab/manifest.yaml", b"/etc/passwd"),
            (LINK, "projects/linked", b"/etc"),
            (SUBMODULE, "projects/other", b""),
        ],
    );
    let (url, bare) = (hub.url("hub"), hub.repositories().join("hub"));
    let repositories = hub.repositories();
    let allowed = ["--allow-path", repositories.to_str().unwrap()];
    for named in [url.as_str(), bare.to_str().unwrap()] {
        let pulled = hub.scratch.json(["pull", "--hub", named].into_iter().chain(allowed));
        assert_eq!(pulled["hub"], url);
        let health = health(&pulled);
        assert_eq!((health["remote"].as_str(), health["copy"].as_str()), ("fresh", "fresh"));
        assert!(problems(&pulled, "copy").contains("manifest.yaml is a symbolic link"));
        assert_eq!(spoke(&pulled, "copy")["status"]["agentActivity"]["activeAgents"], 4);
        let problems = pulled["problems"].to_string();
        assert!(problems.contains("projects/linked is a symbolic link"), "{problems}");
        assert!(problems.contains("projects/other is another repository"), "{problems}");
    }
    // Only what is needed was fetched.
    let cache = hub.scratch.shell("du -sk .pai/blackboard/hub-cache | cut -f1").run_to_end();
    let kilobytes: u64 = Output::of(cache).stdout.trim().parse().unwrap();
    assert!(kilobytes < 1024, "{kilobytes} KB");
    // Without its repository, the hub is what it was.
    fs::rename(&bare, hub.repositories().join("moved")).unwrap();
    let cached =
        Output::of(hub.scratch.command(["pull", "--hub", &url].into_iter().chain(allowed)).run_to_end());
    assert!(cached.success().stderr.contains("warning: cannot read the hub: "));
    let offline = hub.scratch.json(["pull", "--offline", "--hub", &url].into_iter().chain(allowed));
    assert!(offline["hubCachedAt"].is_string() && offline["fetched"] == 2, "{offline}");
    let unknown = hub.url("never");
    let output = Output::of(hub.scratch.command(["pull", "--json", "--hub", &unknown]).run_to_end());
    output.refused(Code::Io);
}

#[test]
fn a_small_hub_with_much_text_is_read_up_to_a_limit() {
    const PROJECTS: usize = 150;
    let Some(hub) = TestHub::new("a hub with much text") else { return };
    // Git stores one object for all of them. Of their 37.5 MB, 134 texts fit into the limit.
    let status = status_of_a_board(MINUTE, 1, 0) + "#";
    let status = format!("{status}{}", "x".repeat(250_000 - status.len()));
    let paths: Vec<_> =
        (0..PROJECTS).map(|index| format!("projects/p-{index:03}/.collab/status.yaml")).collect();
    let entries: Vec<_> = paths.iter().map(|path| (FILE, path.as_str(), status.as_bytes())).collect();
    hub.commit("hub", "main", &entries);
    // A checkout has the same limit.
    for path in &paths {
        hub.write(path, status.as_bytes());
    }
    let (url, checkout) = (hub.url("hub"), hub.directory());
    for (named, option) in
        [(url.as_str(), None), (url.as_str(), Some("--offline")), (checkout.to_str().unwrap(), None)]
    {
        let pulled = hub.scratch.json(["pull", "--hub", named].into_iter().chain(option));
        assert_eq!((&pulled["fetched"], &pulled["failed"]), (&134.into(), &16.into()), "{named}");
        assert_eq!(health(&pulled)["p-133"], "fresh");
        let problem = "status.yaml was not read: only 32 MB are read from a hub";
        assert_eq!(problems(&pulled, "p-134"), problem);
        assert_eq!(problems(&pulled, "p-149"), problem);
    }
}

#[test]
fn an_interrupted_pull_ends_git_and_exits_with_130() {
    let Some(hub) = TestHub::new("an interrupted pull") else { return };
    hub.scratch.json(["init"]);
    let ssh = HangingProgram::new(&hub.scratch, "ssh");
    let program = ssh.directory.join("ssh");
    let remote = "ssh://git@example.org/ivy/hangs";
    hub.project("hangs", &format!("source:\n  repo: {remote}\n"));
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    for (words, sent) in [
        (hub.arguments(&["pull"]), Signal::INT),
        (owned(&["pull", "--hub", remote]), Signal::TERM),
        (owned(&["registry", "--check", "--hub", remote]), Signal::HUP),
    ] {
        let mut call = hub.scratch.command(&words);
        let ended = ssh.interrupt(call.env("GIT_SSH_COMMAND", &program), sent);
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (130, "", ""), "{words:?}");
    }
}

#[test]
fn projects_come_from_the_registry_if_there_are_no_files() {
    let Some(hub) = TestHub::new("a registry") else { return };
    hub.commit("one", "main", &[(FILE, ".collab/status.yaml", status_of_a_board(MINUTE, 1, 0).as_bytes())]);
    let row = format!("| one | @ivy | building | [repository]({}) | @oak |", hub.url("one"));
    hub.registry(&[&row, "| two | @oak | shipped | | |"]);
    let pulled = hub.json(&["pull"]);
    assert_eq!(spoke(&pulled, "one")["maintainer"], "ivy");
    assert_eq!(pulled["withoutSource"], serde_json::json!(["two"]));
}

#[test]
fn a_git_that_hangs_is_ended() {
    let Some(hub) = TestHub::new("a git that hangs") else { return };
    hub.spoke("fine", &status_of_a_board(MINUTE, 1, 0));
    hub.project("hangs", "source:\n  repo: ssh://git@example.org/ivy/hangs\n");
    let mut command = hub.scratch.command(hub.arguments(&["pull", "--json", "--timeout", "2s"]));
    let output = Output::of(command.env("GIT_SSH_COMMAND", "sleep 1000 #").run_to_end());
    let pulled = output.success().json();
    assert!(problems(&pulled, "hangs").contains("git did not end within 2 s"), "{pulled}");
    assert_eq!(spoke(&pulled, "hangs")["spoke"], "ivy/hangs");
    assert_eq!(health(&pulled)["fine"], "fresh");
}

#[test]
fn git_asks_no_question_and_uses_no_variable_of_another_repository() {
    let Some(hub) = TestHub::new("variables of git") else { return };
    hub.spoke("fine", &status_of_a_board(MINUTE, 1, 0));
    let mut command = hub.scratch.command(hub.arguments(&["pull", "--json"]));
    let marker = hub.scratch.path().join("asked");
    let ask = hub.scratch.path().join("ask");
    fs::write(&ask, format!("#!/bin/sh\ntouch {}\n", marker.display())).unwrap();
    let output = command
        .env("GIT_DIR", "/none")
        .env("GIT_WORK_TREE", "/none")
        .env("GIT_OBJECT_DIRECTORY", "/none")
        .env("GIT_ALLOW_PROTOCOL", "ext")
        .env("GIT_ASKPASS", &ask)
        .run_to_end();
    assert_eq!(health(&Output::of(output).success().json())["fine"], "fresh");
    assert!(!marker.exists());
}

#[test]
fn many_spokes_are_read_in_parallel_by_several_processes() {
    const SPOKES: u32 = 200;
    let Some(hub) = TestHub::new("many spokes") else { return };
    hub.spokes(SPOKES);
    let calls = [(); 2].map(|()| {
        let mut command = hub.scratch.command(hub.arguments(&["pull", "--json"]));
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    });
    for call in calls {
        let pulled = Output::of(call.run_to_end()).success().json();
        assert_eq!(pulled["fetched"], SPOKES, "{pulled}");
        for index in 0..SPOKES {
            let agents =
                &spoke(&pulled, &format!("spoke-{index}"))["status"]["agentActivity"]["activeAgents"];
            assert_eq!(agents, index);
        }
    }
}

fn registered_projects_are_read_from_their_path() {
    let scratch = Scratch::new();
    let project = scratch.path().join("work/signal");
    fs::create_dir_all(project.join(".collab")).unwrap();
    fs::write(project.join(".collab/status.yaml"), status_of_a_board(MINUTE, 2, 1)).unwrap();
    // A board that must not be opened: it is none.
    fs::create_dir(project.join(".blackboard")).unwrap();
    fs::write(project.join(".blackboard/local.db"), "not a board").unwrap();
    fs::create_dir_all(scratch.path().join("work/plain")).unwrap();
    scratch.json(["project", "register", "signal", "--name", "Signal", "--path", project.to_str().unwrap()]);
    let plain = scratch.path().join("work/plain");
    scratch.json(["project", "register", "plain", "--name", "Plain", "--path", plain.to_str().unwrap()]);
    let pulled = scratch.json(["pull"]);
    is_object(
        &pulled,
        &[
            "hub",
            "offline",
            "spokes",
            "fetched",
            "failed",
            "noRepo",
            "noCollab",
            "withoutSource",
            "withoutCollab",
            "problems",
        ],
    );
    assert_eq!((&pulled["hub"], &pulled["fetched"]), (&serde_json::Value::Null, &1.into()));
    let signal = spoke(&pulled, "signal");
    assert_eq!(
        (&signal["source"], &signal["health"], &signal["phase"]),
        (&"local".into(), &"fresh".into(), &"build".into())
    );
    // In a hub, the same project is read from its path too.
    fs::create_dir_all(scratch.path().join("hub/projects/signal")).unwrap();
    let file = scratch.path().join("hub/projects/signal/PROJECT.yaml");
    fs::write(file, "name: Signal\nmaintainer: ivy\nsource: {repo: ivy/signal}\n").unwrap();
    scratch.json(["project", "register", "signal", "--name", "Signal", "--repo", "ivy/signal"]);
    let pulled = scratch.json(["pull", "--hub", "hub"]);
    let signal = spoke(&pulled, "signal");
    assert_eq!((&signal["source"], &signal["maintainer"]), (&"local".into(), &"ivy".into()));
    assert_eq!(pulled["spokes"].as_array().map(Vec::len), Some(1));
    // Only the projects of a hub that the call names are shown.
    let other = scratch.path().join("work/other");
    fs::create_dir_all(other.join(".collab")).unwrap();
    fs::write(other.join(".collab/status.yaml"), status_of_a_board(MINUTE, 1, 0)).unwrap();
    scratch.json(["project", "register", "other", "--name", "Other", "--path", other.to_str().unwrap()]);
    assert_eq!(scratch.json(["pull", "--hub", "hub"])["spokes"].as_array().map(Vec::len), Some(1));
    let mut here = scratch.command(["pull", "--json"]);
    let here = Output::of(here.current_dir(scratch.path().join("hub")).run_to_end()).success().json();
    assert_eq!(here["spokes"].as_array().map(Vec::len), Some(2), "{here}");
    assert_eq!(fs::read_to_string(project.join(".blackboard/local.db")).unwrap(), "not a board");
}

#[test]
fn a_registered_project_whose_path_is_gone_is_reported() {
    let scratch = Scratch::new();
    let path = scratch.path().join("work/signal");
    fs::create_dir_all(path.join(".collab")).unwrap();
    fs::write(path.join(".collab/status.yaml"), status_of_a_board(MINUTE, 2, 1)).unwrap();
    scratch.json(["project", "register", "signal", "--name", "Signal", "--path", path.to_str().unwrap()]);
    assert_eq!(scratch.json(["pull"])["fetched"], 1);
    fs::remove_dir_all(&path).unwrap();
    let pulled = scratch.json(["pull"]);
    assert_eq!((&pulled["fetched"], &pulled["failed"]), (&0.into(), &1.into()));
    assert_eq!(health(&pulled)["signal"], "unreachable");
    let problem = format!("its registered path {} cannot be read: ", path.display());
    assert!(problems(&pulled, "signal").starts_with(&problem), "{pulled}");
    let shown = scratch.run(["pull"]).success().stdout;
    assert!(shown.contains("\nProblems:\n  Signal: its registered path "), "{shown}");
    // A hub that has a copy is read, and the path is reported.
    let hub = scratch.path().join("hub/projects/signal/.collab");
    fs::create_dir_all(&hub).unwrap();
    fs::write(hub.join("status.yaml"), status_of_a_board(MINUTE, 2, 1)).unwrap();
    let pulled = scratch.json(["pull", "--hub", "hub"]);
    assert_eq!(
        (spoke(&pulled, "signal")["source"].as_str(), pulled["failed"].as_u64()),
        (Some("hub"), Some(0))
    );
    assert!(problems(&pulled, "signal").starts_with(&problem), "{pulled}");
}

#[test]
fn a_directory_or_a_repository_that_is_not_a_hub_is_refused() {
    let Some(hub) = TestHub::new("a repository that is not a hub") else { return };
    fs::create_dir(hub.scratch.path().join("empty")).unwrap();
    hub.commit("plain", "main", &[(FILE, "README", b"x")]);
    let (url, bare) = (hub.url("plain"), hub.repositories().join("plain"));
    for named in ["empty", url.as_str(), bare.to_str().unwrap()] {
        for command in ["pull", "registry"] {
            let refused = hub.scratch.run([command, "--hub", named, "--json"]).refused(Code::InvalidValue);
            let error = refused["error"].as_str().unwrap();
            assert!(error.ends_with(" is not a hub: it has neither projects/ nor REGISTRY.md"), "{error}");
        }
    }
}

#[test]
fn the_hub_is_found_in_this_order() {
    let Some(hub) = TestHub::new("the order of hubs") else { return };
    let scratch = &hub.scratch;
    let directories = ["given", "here", "configured"];
    for name in directories {
        fs::create_dir_all(scratch.path().join(name).join("projects").join(name)).unwrap();
    }
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let named = |directory: &str, options: &[&str]| {
        let mut command = scratch.command(["pull", "--json"].iter().chain(options));
        command.current_dir(scratch.path().join(directory));
        Output::of(command.run_to_end())
    };
    fs::create_dir_all(scratch.path().join("project/.collab")).unwrap();
    let manifest = scratch.path().join("project/.collab/manifest.yaml");
    // Without any, the call is refused.
    named("project", &[]).refused(Code::Usage);
    // The manifest may name no path.
    fs::write(&manifest, format!("hub: file://{}\n", path("given"))).unwrap();
    let refused = named("project", &[]).refused(Code::InvalidValue);
    assert!(refused["error"].as_str().unwrap().contains("manifest.yaml"), "{refused}");
    // A URL is tried; there is no cache of it.
    fs::write(&manifest, "hub: ivy/none\n").unwrap();
    let refused = named("project", &["--offline"]).refused(Code::Io);
    assert!(refused["error"].as_str().unwrap().contains("https://github.com/ivy/none.git"), "{refused}");
    fs::create_dir_all(scratch.home_file("")).unwrap();
    let config = format!("{{\"hub\":{{\"url\":\"{}\"}}}}", path("configured"));
    fs::write(scratch.home_file("config.json"), config).unwrap();
    assert_eq!(named("project", &[]).success().json()["hub"], path("configured"));
    assert_eq!(named("here", &[]).success().json()["hub"], path("here"));
    let given = path("given");
    assert_eq!(named("here", &["--hub", &given]).success().json()["hub"], path("given"));
    named("here", &["--hub", "ftp://example.org/a"]).refused(Code::InvalidValue);
}

#[test]
fn a_path_that_is_not_a_directory_is_refused_as_a_path() {
    let scratch = Scratch::new();
    for hub in ["/nowhere", "./nowhere", "~/nowhere"] {
        let refused = scratch.run(["pull", "--hub", hub, "--json"]).refused(Code::InvalidValue);
        assert_eq!(refused["error"], format!("--hub: {hub} is not a directory"));
    }
}
