use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Command;

use tempfile::TempDir;
use testkit::process::RunToEnd as _;

use super::*;

/// A home directory and a directory outside of it, both real.
struct TestTree {
    root: PathBuf,
    _directory: TempDir,
}

impl TestTree {
    fn new() -> TestTree {
        let directory = testkit::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("home/ivy")).unwrap();
        TestTree { root, _directory: directory }
    }

    fn home(&self) -> PathBuf {
        self.root.join("home/ivy")
    }

    /// Creates the directory and its parents.
    fn directory(&self, path: &str) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn home_configuration(&self, content: &str) {
        let directory = self.directory("home/ivy/.pai/blackboard");
        fs::write(directory.join(CONFIG_FILE), content).unwrap();
    }

    fn request(&self, current_dir: &Path) -> Request {
        let environment = Environment { user_home: Some(self.home().into()), ..Environment::default() };
        Request { db: None, environment, current_dir: current_dir.to_owned() }
    }

    fn find(&self, current_dir: &Path) -> Location {
        find(&self.request(current_dir)).unwrap()
    }

    fn home_board(&self) -> Target {
        Target::File(self.home().join(".pai/blackboard/local.db"))
    }
}

fn git(directory: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=Ivy", "-c", "user.email=ivy@example.com", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .run_to_end();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn repository(directory: &Path) {
    git(directory, &["init", "--quiet"]);
    git(directory, &["commit", "--quiet", "--allow-empty", "--message", "start"]);
}

fn board_of(project: &Path) -> (Target, Source) {
    let directory = project.join(".blackboard");
    (Target::File(directory.join("local.db")), Source::Project(directory))
}

#[test]
fn without_anything_else_it_is_the_board_of_this_user() {
    let place = TestTree::new();
    let home = place.home().join(".pai/blackboard");
    assert_eq!(
        place.find(&place.directory("home/ivy/work")),
        Location {
            target: Target::File(home.join("local.db")),
            source: Source::Home,
            home_config: Some(home.join("config.json")),
            project_config: None,
            home: Some(home),
            is_missing_in_repository: false,
            warnings: vec![],
        }
    );
}

#[test]
fn option_environment_project_home_configuration_and_home_decide_in_this_order() {
    let place = TestTree::new();
    let project = place.directory("home/ivy/project");
    place.directory("home/ivy/project/.blackboard");
    place.home_configuration(r#"{"database": {"operatorPath": "~/boards/mine.db"}}"#);
    let mut request = place.request(&project);
    request.db = Some("/option.db".into());
    request.environment.database = Some("/environment.db".into());
    let decided = |request: &Request| {
        let location = find(request).unwrap();
        (location.target, location.source)
    };

    assert_eq!(decided(&request), (Target::File("/option.db".into()), Source::Option));
    request.db = None;
    assert_eq!(decided(&request), (Target::File("/environment.db".into()), Source::Environment));
    request.environment.database = None;
    assert_eq!(decided(&request), board_of(&project));
    fs::remove_dir(project.join(".blackboard")).unwrap();
    let configured = Target::File(place.home().join("boards/mine.db"));
    assert_eq!(decided(&request), (configured, Source::HomeConfiguration));
    place.home_configuration("{}");
    assert_eq!(decided(&request), (place.home_board(), Source::Home));
    request.environment.home = Some("/elsewhere".into());
    assert_eq!(decided(&request), (Target::File("/elsewhere/local.db".into()), Source::Home));
}

#[test]
fn the_home_of_the_board_brings_its_own_configuration() {
    let place = TestTree::new();
    place.home_configuration(r#"{"database": {"operatorPath": "/never.db"}}"#);
    let home = place.directory("home/ivy/other home");
    fs::write(home.join(CONFIG_FILE), r#"{"database": {"operatorPath": "boards/one.db"}}"#).unwrap();
    let mut request = place.request(&place.directory("home/ivy/work"));
    request.environment.home = Some("../other home".into());
    let location = find(&request).unwrap();
    assert_eq!(location.source, Source::HomeConfiguration);
    let Target::File(file) = location.target else { panic!("not a file") };
    assert_eq!(file, place.home().join("work/../other home/boards/one.db"));
}

#[test]
fn a_name_can_be_a_file_a_directory_or_a_url_of_redis() {
    let place = TestTree::new();
    let work = place.directory("work");
    place.directory("work/directory");
    let cases = [
        ("board.db", Target::File(work.join("board.db"))),
        ("./board.db", Target::File(work.join("board.db"))),
        ("new/board", Target::File(work.join("new/board"))),
        ("new/", Target::File(work.join("new/local.db"))),
        ("directory", Target::File(work.join("directory/local.db"))),
        ("directory/", Target::File(work.join("directory/local.db"))),
        ("/absolute.db", Target::File("/absolute.db".into())),
        ("./strange :// name", Target::File(work.join("strange :/ name"))),
        ("./redis:notes.db", Target::File(work.join("redis:notes.db"))),
        ("redis-notes.db", Target::File(work.join("redis-notes.db"))),
        ("notes:redis.db", Target::File(work.join("notes:redis.db"))),
        ("redis://localhost:6379/0", Target::Redis("redis://localhost:6379/0".to_owned())),
        ("rediss://ivy:secret@host", Target::Redis("rediss://ivy:secret@host".to_owned())),
    ];
    for (name, target) in cases {
        let mut request = place.request(&work);
        request.db = Some(name.into());
        assert_eq!(find(&request).unwrap().target, target, "--db {name}");
        request.db = None;
        request.environment.database = Some(name.into());
        assert_eq!(find(&request).unwrap().target, target, "BLACKBOARD_DB={name}");
    }
}

#[test]
fn the_home_configuration_can_name_redis() {
    let place = TestTree::new();
    place.home_configuration(r#"{"database": {"operatorPath": "rediss://board.example"}}"#);
    let location = place.find(&place.directory("home/ivy/work"));
    assert_eq!(location.target, Target::Redis("rediss://board.example".to_owned()));
    assert_eq!(location.source, Source::HomeConfiguration);
}

#[test]
fn a_name_that_is_not_utf_8_is_a_file_like_any_other() {
    let place = TestTree::new();
    let name = OsStr::from_bytes(b"board-\xff.db");
    let request = Request { db: Some(name.to_owned().into()), ..place.request(&place.root) };
    assert_eq!(find(&request).unwrap().target, Target::File(place.root.join(name)));
}

#[test]
fn an_empty_name_and_a_mistyped_url_are_refused_without_repeating_a_password() {
    let place = TestTree::new();
    for (name, message, hint) in [
        ("", "--db is empty", "redis://host:port"),
        (
            "postgres://ivy:s3cr3t@host/board",
            "--db is a postgres:// URL, which cannot hold a board",
            "a file",
        ),
        ("strange ://:s3cr3t@host", "--db looks like a URL, and has no scheme of a server", "a file"),
        ("\"redis://:s3cr3t@host\"", "--db is a URL after a space or a quotation mark", "quotation mark"),
        ("'redis://:s3cr3t@host'", "--db is a URL after a space or a quotation mark", "quotation mark"),
        (" redis://:s3cr3t@host", "--db is a URL after a space or a quotation mark", "the space"),
        ("\n\"REDIS:host", "--db is a URL after a space or a quotation mark", "the space"),
        ("redis:/:s3cr3t@host", "--db has no // after redis:", "redis://host:port"),
        ("redis::s3cr3t@host", "--db has no // after redis:", "redis://host:port"),
        ("rediss:host", "--db has no // after rediss:", "rediss://host:port"),
        ("redis+unix:/run/redis.sock", "--db has no // after redis+unix:", "redis+unix:///path"),
        ("redis+sentinel:a/main", "--db has no // after redis+sentinel:", "redis+sentinel://host1"),
        ("redis+tcp://:s3cr3t@host", "--db has an unknown scheme", "redis://host:port"),
        ("REDIS://:s3cr3t@host", "--db has its scheme in capital letters", "redis://host:port"),
        ("valkey://:s3cr3t@host", "--db has the scheme valkey", "redis://host:port"),
        ("redis//ivy:s3cr3t@host", "--db looks like a URL without :// after its scheme", "redis://host:port"),
        (
            "redis;//ivy:s3cr3t@host",
            "--db looks like a URL without :// after its scheme",
            "redis://host:port",
        ),
        ("Rediss//:s3cr3t@host", "--db looks like a URL without :// after its scheme", "redis://host:port"),
        (
            "redis+unix//ivy:s3cr3t@/run",
            "--db looks like a URL without :// after its scheme",
            "redis://host:port",
        ),
    ] {
        let error = find(&Request { db: Some(name.into()), ..place.request(&place.root) }).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (Code::InvalidValue, message), "{name}");
        let advice = error.hint().and_then(blackboard::Hint::advice).unwrap();
        assert!(advice.contains(hint) && !advice.contains("s3cr3t"), "{name}: {advice}");
    }
}

#[test]
fn without_a_home_directory_a_board_has_to_be_named() {
    let place = TestTree::new();
    let work = place.directory("work");
    repository(&work);
    let mut request = Request { current_dir: work.clone(), ..Request::default() };
    let error = find(&request).unwrap_err();
    assert_eq!(error.code(), Code::Usage);
    assert!(error.hint().unwrap().advice().unwrap().contains("--db"));

    request.db = Some("board.db".into());
    let location = find(&request).unwrap();
    assert_eq!(location.target, Target::File(work.join("board.db")));
    assert_eq!((location.home, location.home_config), (None, None));
}

#[test]
fn a_project_is_found_from_its_sub_directories_and_the_nearest_one_counts() {
    let place = TestTree::new();
    let project = place.directory("home/ivy/project");
    let inner = place.directory("home/ivy/project/inner");
    let deep = place.directory("home/ivy/project/inner/a/b");
    place.directory("home/ivy/project/.blackboard");
    let location = place.find(&deep);
    assert_eq!((location.target, location.source), board_of(&project));
    assert_eq!(location.project_config, Some(project.join(".blackboard/config.json")));

    place.directory("home/ivy/project/inner/.blackboard");
    let location = place.find(&deep);
    assert_eq!((location.target, location.source), board_of(&inner));
}

#[test]
fn the_walk_looks_into_the_home_directory_and_no_further() {
    let place = TestTree::new();
    let work = place.directory("home/ivy/work");
    place.directory("home/.blackboard");
    assert_eq!(place.find(&work).source, Source::Home);
    assert_eq!(place.find(&place.home()).source, Source::Home);
    place.directory("home/ivy/.blackboard");
    assert_eq!(place.find(&work).source, Source::Project(place.home().join(".blackboard")));
}

#[test]
fn the_walk_stops_at_a_home_directory_that_is_reached_through_a_link() {
    let place = TestTree::new();
    let work = place.directory("home/ivy/work");
    place.directory("home/.blackboard");
    symlink(place.home(), place.root.join("linked")).unwrap();
    let mut request = place.request(&work);
    request.environment.user_home = Some(place.root.join("linked").into());
    assert_eq!(find(&request).unwrap().source, Source::Home);
}

#[test]
fn outside_the_home_and_any_repository_the_walk_goes_all_the_way_up() {
    let place = TestTree::new();
    place.directory("outside/.blackboard");
    let location = place.find(&place.directory("outside/a/b/c"));
    assert_eq!((location.target, location.source), board_of(&place.root.join("outside")));
}

#[test]
fn the_walk_stops_at_the_root_of_the_repository() {
    let place = TestTree::new();
    let project = place.directory("home/ivy/outer/project");
    place.directory("home/ivy/outer/.blackboard");
    let deep = place.directory("home/ivy/outer/project/src");
    repository(&project);
    assert_eq!(place.find(&deep).source, Source::Home);
    place.directory("home/ivy/outer/project/.blackboard");
    assert_eq!(place.find(&deep).source, Source::Project(project.join(".blackboard")));
}

#[test]
fn all_worktrees_share_the_board_of_the_main_one() {
    let place = TestTree::new();
    let main = place.directory("home/ivy/main");
    repository(&main);
    git(&main, &["worktree", "add", "--quiet", "../feature"]);
    git(&main, &["worktree", "add", "--quiet", "../../../far away/fix"]);
    let feature = place.home().join("feature");
    place.directory("home/ivy/feature/.blackboard");
    assert_eq!(place.find(&feature).source, Source::Home, "a worktree has no board of its own");

    place.directory("home/ivy/main/.blackboard");
    for current_dir in ["home/ivy/main", "home/ivy/feature", "home/ivy/feature/src/deep", "far away/fix"] {
        let location = place.find(&place.directory(current_dir));
        assert_eq!((location.target, location.source), board_of(&main), "{current_dir}");
        assert_eq!(location.warnings, Vec::<String>::new());
    }
}

#[test]
fn a_board_of_a_part_of_the_repository_is_shared_as_well() {
    let place = TestTree::new();
    let main = place.directory("main");
    let part = place.directory("main/part");
    repository(&main);
    git(&main, &["worktree", "add", "--quiet", "../feature"]);
    place.directory("main/.blackboard");
    place.directory("main/part/.blackboard");
    let location = place.find(&place.directory("feature/part/src"));
    assert_eq!((location.target, location.source), board_of(&part));
}

#[test]
fn a_worktree_with_relative_links_is_followed_too() {
    let place = TestTree::new();
    let main = place.directory("main");
    repository(&main);
    git(&main, &["worktree", "add", "--quiet", "../feature"]);
    fs::write(place.root.join("feature/.git"), "gitdir: ../main/.git/worktrees/feature\n").unwrap();
    place.directory("main/.blackboard");
    let location = place.find(&place.root.join("feature"));
    assert_eq!((location.target, location.source), board_of(&main));
}

#[test]
fn worktrees_of_a_bare_repository_share_its_board() {
    let place = TestTree::new();
    let seed = place.directory("seed");
    repository(&seed);
    git(&place.root, &["clone", "--quiet", "--bare", "seed", "project.git"]);
    let bare = place.root.join("project.git");
    git(&bare, &["worktree", "add", "--quiet", "../one", "-b", "one"]);
    place.directory("project.git/.blackboard");
    place.directory(".blackboard");
    let location = place.find(&place.directory("one/src"));
    assert_eq!((location.target, location.source), board_of(&bare));
}

#[test]
fn a_submodule_is_a_repository_of_its_own() {
    let place = TestTree::new();
    let library = place.directory("library");
    repository(&library);
    let main = place.directory("main");
    repository(&main);
    git(&main, &["submodule", "--quiet", "add", "../library", "part"]);
    place.directory("main/.blackboard");
    assert!(main.join("part/.git").is_file());
    let request = place.request(&place.directory("main/part/src"));
    assert_eq!(find(&request).unwrap().source, Source::Home);
    assert_eq!(new_project_directory(&request).unwrap(), main.join("part/.blackboard"));

    place.directory("main/part/.blackboard");
    assert_eq!(find(&request).unwrap().source, Source::Project(main.join("part/.blackboard")));
}

#[test]
fn a_git_file_that_leads_nowhere_is_no_repository() {
    let place = TestTree::new();
    let project = place.directory("project");
    let inner = place.directory("project/inner");
    place.directory("project/.blackboard");
    let long = format!("gitdir: {}", "x/".repeat(100_000));
    for content in ["", "gitdir:", "gitdir: /nowhere/at/all", "something else", &long] {
        fs::write(inner.join(".git"), content).unwrap();
        let location = place.find(&inner);
        assert_eq!((location.target, location.source), board_of(&project), "{content:.40}");
    }
    fs::remove_file(inner.join(".git")).unwrap();
    assert!(Command::new("mkfifo").arg(inner.join(".git")).run_to_end().status.success());
    assert_eq!(place.find(&inner).source, board_of(&project).1, "a pipe is not waited on");
}

#[test]
fn a_project_directory_that_is_a_link_or_a_file_is_skipped_with_a_warning() {
    let place = TestTree::new();
    let outer = place.directory("outer");
    let middle = place.directory("outer/middle");
    let inner = place.directory("outer/middle/inner");
    place.directory("outer/.blackboard");
    symlink(outer.join(".blackboard"), middle.join(".blackboard")).unwrap();
    fs::write(inner.join(".blackboard"), "").unwrap();
    let location = place.find(&inner);
    assert_eq!((location.target, location.source), board_of(&outer));
    assert_eq!(
        location.warnings,
        [
            format!("skipped {}/.blackboard: it is not a directory", inner.display()),
            format!("skipped {}/.blackboard: it is a symbolic link", middle.display()),
        ]
    );
}

#[test]
fn a_project_directory_of_another_user_is_skipped_with_a_warning() {
    if !testkit::machine::can_give_files_away() {
        return;
    }
    let place = TestTree::new();
    let outer = place.directory("outer");
    let inner = place.directory("outer/inner");
    place.directory("outer/.blackboard");
    let foreign = place.directory("outer/inner/.blackboard");
    std::os::unix::fs::chown(&foreign, Some(12_345), None).unwrap();
    let location = place.find(&inner);
    assert_eq!((location.target, location.source), board_of(&outer));
    let warning = format!("skipped {}: it belongs to another user (uid 12345)", foreign.display());
    assert_eq!(location.warnings, [warning]);
}

#[test]
fn a_board_in_a_project_has_the_configuration_of_the_project_however_it_was_named() {
    let place = TestTree::new();
    let project = place.directory("project");
    let directory = place.directory("project/.blackboard");
    let configuration = Some(directory.join("config.json"));
    let mut request = place.request(&project);
    for (name, expected) in [
        (".blackboard", configuration.clone()),
        (".blackboard/", configuration.clone()),
        (".blackboard/local.db", configuration),
        ("local.db", None),
        ("redis://host/.blackboard/x", None),
    ] {
        request.db = Some(name.into());
        assert_eq!(find(&request).unwrap().project_config, expected, "{name}");
    }

    request.db = None;
    request.environment.home = Some(directory.clone().into());
    let location = find(&request).unwrap();
    assert_eq!(location.project_config, None, "the same file is the home configuration already");
    assert_eq!(location.home_config, Some(directory.join("config.json")));
}

#[test]
fn the_name_of_the_project_directory_can_be_set_in_the_home_configuration() {
    let place = TestTree::new();
    place.home_configuration(r#"{"database": {"projectDir": ".board"}}"#);
    let project = place.directory("project");
    place.directory("project/.blackboard");
    let board = place.directory("project/.board");
    let location = place.find(&project);
    assert_eq!(location.source, Source::Project(board.clone()));
    assert_eq!(location.project_config, Some(board.join("config.json")));
    assert_eq!(new_project_directory(&place.request(&project)).unwrap(), board);
}

#[test]
fn a_new_board_belongs_to_the_root_of_the_main_worktree_or_to_the_working_directory() {
    let place = TestTree::new();
    let main = place.directory("main");
    repository(&main);
    git(&main, &["worktree", "add", "--quiet", "../feature"]);
    for (current_dir, expected) in [
        ("main/src", "main/.blackboard"),
        ("feature/src", "main/.blackboard"),
        ("elsewhere/src", "elsewhere/src/.blackboard"),
    ] {
        let request = place.request(&place.directory(current_dir));
        assert_eq!(new_project_directory(&request).unwrap(), place.root.join(expected), "{current_dir}");
    }
}

#[test]
fn password_of_a_url_is_removed_for_output() {
    for (name, expected) in [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("rediss://ivy:secret@host/1?board=b", "rediss://ivy@host/1?board=b"),
        ("redis://ivy@host", "redis://ivy@host"),
        ("redis://:se/cr@et?#@host/1", "redis://host/1"),
        ("redis+unix://:secret@/run/socket", "redis+unix:///run/socket"),
        ("a@b.db", "a@b.db"),
        ("dir/x://a@b", "dir/x://a@b"),
    ] {
        assert_eq!(without_password(name), expected, "{name}");
    }
}
