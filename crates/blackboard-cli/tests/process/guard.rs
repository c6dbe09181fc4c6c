//! Commits of real git with the commit guard: files that another session has reserved stay out, and no other
//! commit is stopped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use blackboard::agent::Register;
use testkit::process::RunToEnd as _;

use crate::crowd::{Ended, end_of};
use crate::machine::can;
use crate::scratch::with_dying_process;
use crate::test_board::TestBoard;

testkit::on_each_engine![
    concurrent_installations_never_replace_the_hook_of_another_tool,
    only_a_commit_of_files_that_another_session_reserved_is_refused,
    guard_with_warnings_reports_a_commit_and_allows_it,
    existing_hook_runs_first_and_can_refuse,
    every_worktree_is_checked_for_its_own_files,
    reservations_of_stale_agents_stop_no_commit,
];

/// A repository with one commit, in which the check is installed.
struct Repository<'a> {
    board: &'a TestBoard,
    root: PathBuf,
}

impl Repository<'_> {
    /// Creates one, or returns `None` without git.
    #[track_caller]
    fn new(board: &TestBoard) -> Option<Repository<'_>> {
        if !can("a commit", "git", &["--version"]) {
            return None;
        }
        let root = board.path().join("project");
        fs::create_dir(&root).unwrap();
        let repository = Repository { board, root };
        repository
            .git("init -q -b main && git config user.name Ivy && git config user.email ivy@example.org");
        repository.write("src/lib.rs", "1\n");
        repository.write("README.md", "1\n");
        repository.git("add . && git commit -qm first");
        repository.blackboard(&["guard", "install"]);
        Some(repository)
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn shell(&self, directory: &Path, line: &str) -> Command {
        let mut command = self.board.shell(line);
        command.current_dir(directory);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs git, which has to succeed.
    #[track_caller]
    fn git(&self, line: &str) -> String {
        let ended = end_of(self.shell(&self.root, &format!("git {line}")).spawn().unwrap());
        assert!(ended.status.success(), "{line}: {ended:?}");
        ended.stdout
    }

    /// Runs the program in the repository, which has to succeed.
    #[track_caller]
    fn blackboard(&self, arguments: &[&str]) {
        self.blackboard_in(&self.root, arguments);
    }

    #[track_caller]
    fn blackboard_in(&self, directory: &Path, arguments: &[&str]) {
        let ended = self.board.command(arguments).current_dir(directory).run_to_end();
        assert!(ended.status.success(), "{arguments:?}: {ended:?}");
    }

    /// Tries to commit in the name of a session.
    fn commit_as(&self, session: &str, arguments: &str) -> Ended {
        self.commit_in(&self.root, session, arguments)
    }

    fn commit_in(&self, directory: &Path, session: &str, arguments: &str) -> Ended {
        let mut command = self.shell(directory, &format!("git commit -qm next {arguments}"));
        end_of(command.env("BLACKBOARD_SESSION_ID", session).spawn().unwrap())
    }

    /// The number of commits on all branches.
    fn commits(&self) -> usize {
        self.git("log --all --format=%h").lines().count()
    }
}

#[track_caller]
fn stopped(ended: &Ended, words: &str) {
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains(words), "{words}: {ended:?}");
}

#[track_caller]
fn went_through(ended: &Ended, words: &str) {
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.stderr.contains(words) && (!words.is_empty() || ended.stderr.is_empty()), "{ended:?}");
}

fn concurrent_installations_never_replace_the_hook_of_another_tool() {
    const AT_ONCE: usize = 8;
    let theirs = "#!/bin/sh\necho theirs >&2\n";
    let board = TestBoard::new();
    let Some(repository) = Repository::new(&board) else { return };
    let hook = repository.root.join(".git/hooks/pre-commit");
    let ours = fs::read_to_string(&hook).unwrap();
    for _ in 0..10 {
        repository.blackboard(&["guard", "remove"]);
        testkit::write_program(&hook, theirs);
        let install = |_| {
            let mut command = board.command(["guard", "install"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.current_dir(&repository.root).spawn().unwrap()
        };
        let installing: Vec<_> = (0..AT_ONCE).map(install).collect();
        for ended in installing.into_iter().map(end_of) {
            assert!(ended.status.success(), "{ended:?}");
        }
        let kept = hook.with_file_name("pre-commit.before-blackboard");
        assert_eq!(fs::read_to_string(&kept).unwrap(), theirs);
        assert_eq!(fs::read_to_string(&hook).unwrap(), ours);
    }
    let ended = repository.commit_as(&board.session("Ivy"), "--allow-empty");
    went_through(&ended, "theirs");
}

fn only_a_commit_of_files_that_another_session_reserved_is_refused() {
    let board = TestBoard::new();
    let (ivy, oak) = (board.session("Ivy"), board.session("Oak"));
    let Some(repository) = Repository::new(&board) else { return };
    repository.blackboard(&["file", "reserve", "src/", "--session", &ivy]);
    repository.write("src/lib.rs", "2\n");
    repository.write("README.md", "2\n");
    repository.git("add README.md");
    went_through(&repository.commit_as(&oak, ""), "");
    // `commit -a` and `commit PATH` check what they would commit.
    stopped(&repository.commit_as(&oak, "-a"), "src/lib.rs is reserved by Ivy");
    stopped(&repository.commit_as(&oak, "src/lib.rs"), "src/lib.rs is reserved by Ivy");
    repository.write("README.md", "3\n");
    repository.git("add src");
    went_through(&repository.commit_as(&oak, "README.md"), "");
    stopped(&repository.commit_as(&oak, ""), "src/lib.rs is reserved by Ivy");
    assert_eq!(repository.commits(), 3);
    assert_eq!(repository.git("diff --cached --name-only"), "src/lib.rs\n", "what was staged still is");
    went_through(&repository.commit_as(&ivy, ""), "");
    assert_eq!(repository.commits(), 4);
    // Available to every session again.
    repository.blackboard(&["file", "release", "--all", "--session", &ivy]);
    repository.write("src/lib.rs", "3\n");
    went_through(&repository.commit_as(&oak, "-a"), "");
}

fn guard_with_warnings_reports_a_commit_and_allows_it() {
    let board = TestBoard::new();
    let (ivy, oak) = (board.session("Ivy"), board.session("Oak"));
    let Some(repository) = Repository::new(&board) else { return };
    repository.blackboard(&["guard", "install", "--warn"]);
    repository.blackboard(&["file", "reserve", "src/", "--session", &ivy]);
    repository.write("src/lib.rs", "2\n");
    went_through(&repository.commit_as(&oak, "-a"), "warning: src/lib.rs is reserved by Ivy");
}

fn existing_hook_runs_first_and_can_refuse() {
    let board = TestBoard::new();
    let (ivy, oak) = (board.session("Ivy"), board.session("Oak"));
    let Some(repository) = Repository::new(&board) else { return };
    repository.blackboard(&["guard", "remove"]);
    let hook = repository.root.join(".git/hooks/pre-commit");
    // The previous hook can refuse the commit, and stage files.
    let theirs = "#!/bin/sh\necho theirs >&2\ntest ! -e fail || exit 3\n\
                  test ! -e made || git add made\nexit 0\n";
    testkit::write_program(&hook, theirs);
    repository.blackboard(&["guard", "install"]);
    repository.blackboard(&["file", "reserve", "src/", "made", "--session", &ivy]);
    repository.write("README.md", "2\n");
    went_through(&repository.commit_as(&oak, "-a"), "theirs");
    repository.write("src/lib.rs", "2\n");
    stopped(&repository.commit_as(&oak, "-a"), "theirs\nerror: src/lib.rs is reserved by Ivy");
    repository.git("checkout -q -- src");
    repository.write("README.md", "3\n");
    repository.write("made", "by the hook\n");
    stopped(&repository.commit_as(&oak, "-a"), "made is reserved by Ivy");
    fs::remove_file(repository.root.join("made")).unwrap();
    repository.git("reset -q");
    repository.write("fail", "");
    let ended = repository.commit_as(&oak, "-a");
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(1), "theirs\n"), "{ended:?}");
    fs::remove_file(repository.root.join("fail")).unwrap();
    repository.blackboard(&["guard", "remove"]);
    assert_eq!(fs::read_to_string(&hook).unwrap(), theirs);
    repository.write("src/lib.rs", "3\n");
    went_through(&repository.commit_as(&oak, "-a"), "theirs");
}

fn every_worktree_is_checked_for_its_own_files() {
    let board = TestBoard::new();
    let (ivy, oak) = (board.session("Ivy"), board.session("Oak"));
    let Some(repository) = Repository::new(&board) else { return };
    repository.git("worktree add -q ../other -b other");
    let other = board.path().join("other");
    // Reserved in the main worktree, and changed in the other: two files.
    repository.blackboard(&["file", "reserve", "src/", "--session", &ivy]);
    fs::write(other.join("src/lib.rs"), "2\n").unwrap();
    went_through(&repository.commit_in(&other, &oak, "-a"), "");
    repository.blackboard_in(&other, &["file", "reserve", "README.md", "--session", &ivy]);
    fs::write(other.join("README.md"), "2\n").unwrap();
    stopped(&repository.commit_in(&other, &oak, "-a"), "README.md is reserved by Ivy");
    // In a subdirectory, git changes to the root first.
    stopped(&repository.commit_in(&other.join("src"), &oak, "-a"), "README.md is reserved by Ivy");
    repository.write("README.md", "3\n");
    went_through(&repository.commit_as(&oak, "-a"), "");
}

fn reservations_of_stale_agents_stop_no_commit() {
    let board = TestBoard::new();
    let oak = board.session("Oak");
    let Some(repository) = Repository::new(&board) else { return };
    let ash = with_dying_process(|pid| {
        let ash = Register { pid: Some(pid.parse().unwrap()), ..Register::named("Ash") };
        board.library().agents().register(&ash).unwrap().agent.session_id
    });
    repository.blackboard(&["file", "reserve", "src/", "--session", &ash]);
    repository.write("src/lib.rs", "2\n");
    stopped(&repository.commit_as(&oak, "-a"), "src/lib.rs is reserved by Ash");
    board.make_all_heartbeats_old();
    went_through(&repository.commit_as(&oak, "-a"), "note: marked Ash (");
}

/// What damages the file.
mod of_a_file {
    use super::*;

    #[test]
    fn errors_of_git_or_the_board_stop_no_commit() {
        let board = TestBoard::new();
        let (ivy, oak) = (board.session("Ivy"), board.session("Oak"));
        let Some(repository) = Repository::new(&board) else { return };
        repository.blackboard(&["file", "reserve", "src/", "--session", &ivy]);
        let mut content = 2;
        let mut commit = |change: &dyn Fn(&mut Command)| {
            content += 1;
            repository.write("src/lib.rs", &format!("{content}\n"));
            let mut command = repository.shell(&repository.root, "git commit -qam next");
            command.env("BLACKBOARD_SESSION_ID", &oak);
            change(&mut command);
            end_of(command.spawn().unwrap())
        };
        stopped(&commit(&|_| {}), "src/lib.rs is reserved by Ivy");
        // The check waits for no lock, and still sees what is reserved.
        let sql = board.sql();
        sql.execute_batch("BEGIN IMMEDIATE").unwrap();
        stopped(&commit(&|_| {}), "src/lib.rs is reserved by Ivy");
        sql.execute_batch("ROLLBACK").unwrap();
        drop(sql);
        let one_line = |ended: &Ended, words: &str| {
            went_through(ended, words);
            assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        };
        let with = |name: &'static str, value: PathBuf| {
            move |command: &mut Command| {
                command.env(name, &value);
            }
        };
        let missing = board.path().join("missing.db");
        one_line(&commit(&with("BLACKBOARD_DB", missing)), "note: no board at ");
        let foreign = repository.root.join("README.md");
        let on_foreign = commit(&with("BLACKBOARD_DB", foreign));
        one_line(&on_foreign, "warning: staged files were not checked: ");
        // A PATH with everything that a commit needs, except this program.
        let programs = board.path().join("programs");
        let link = format!(
            "mkdir {0} && for p in git sh dirname; do ln -s $(command -v $p) {0}; done",
            programs.display()
        );
        assert!(board.shell(&link).run_to_end().status.success());
        one_line(&commit(&with("PATH", programs)), "not found");
        // Only the first page is intact.
        board.run(["agent", "list"]).success();
        let mut bytes = fs::read(board.database()).unwrap();
        for ending in ["-wal", "-shm"] {
            let _ = fs::remove_file(board.beside(ending));
        }
        bytes.truncate(4096);
        bytes.resize(9 * 4096, 0xa5);
        fs::write(board.database(), bytes).unwrap();
        one_line(&commit(&|_| {}), "warning: staged files were not checked: ");
    }
}
