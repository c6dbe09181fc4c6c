//! Real processes: children that run, are stopped, end, belong to other users, and run in other namespaces.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, test_kill_process, waitid, waitpid,
};
use testkit::process::{RunToEnd as _, wait_for};

use super::*;
use crate::process::{Found, Liveness, ProcessIdentity, Processes, SystemProcesses, find_agent};

/// A child that runs until it is dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Sleeper {
        Sleeper::run(Command::new("sleep").arg("600"))
    }

    fn run(command: &mut Command) -> Sleeper {
        testkit::limit_test();
        Sleeper(command.spawn().unwrap())
    }

    /// Runs a command that prints a line and then reads one. Only after that line it is certain that the command runs,
    /// and not a copy of this process.
    fn ready(command: &mut Command) -> Sleeper {
        let mut child = Sleeper::run(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        child.0.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        child
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Ends it and waits until it is a zombie, which it stays until it is reaped.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        let pid = Pid::from_child(&self.0);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), options).unwrap();
    }

    fn reap(&mut self) {
        wait_for(&mut self.0);
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        wait_for(&mut self.0);
    }
}

fn system() -> SystemProcesses {
    SystemProcesses::default()
}

#[test]
fn child_is_alive_until_it_is_killed() {
    let mut child = Sleeper::start();
    let (pid, mark) = (child.pid(), system().mark(child.pid()).unwrap());
    assert_eq!(system().liveness(pid, Some(&mark)), Liveness::Alive);
    assert_eq!(system().liveness(pid, None), Liveness::Alive);

    child.kill();
    assert!(fs::exists(format!("/proc/{pid}")).unwrap(), "the zombie is there");
    assert_eq!(system().liveness(pid, Some(&mark)), Liveness::Dead);
    assert_eq!(system().liveness(pid, None), Liveness::Dead);
    assert_eq!(system().mark(pid), None);

    child.reap();
    assert_eq!(system().liveness(pid, Some(&mark)), Liveness::Dead);
    assert_eq!(system().liveness(pid, None), Liveness::Dead);
    assert_eq!(system().mark(pid), None);
}

#[test]
fn process_identity_depends_on_start_boot_host_and_namespace() {
    let child = Sleeper::start();
    let mark = system().mark(child.pid()).unwrap();
    let other = || "other".to_owned();
    for (mark, expected) in [
        (ProcessIdentity { started: mark.started + 1, ..mark.clone() }, Liveness::Dead),
        (ProcessIdentity { boot: other(), ..mark.clone() }, Liveness::Dead),
        (ProcessIdentity { host: other(), ..mark.clone() }, Liveness::Unknown),
        (ProcessIdentity { namespace: other(), ..mark.clone() }, Liveness::Unknown),
        (mark.to_string().parse().unwrap(), Liveness::Alive),
    ] {
        assert_eq!(system().liveness(child.pid(), Some(&mark)), expected, "{mark}");
    }
}

#[test]
fn a_stopped_process_is_alive() {
    let child = Sleeper::start();
    let pid = Pid::from_child(&child.0);
    kill_process(pid, Signal::STOP).unwrap();
    waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
    assert_eq!(system().liveness(child.pid(), None), Liveness::Alive);
}

#[test]
fn process_identity_has_every_part_and_hides_the_machine_id() {
    let mark = system().mark(process::id()).unwrap();
    assert_eq!(mark.boot, system().boot());
    assert_eq!(mark.boot.len(), 36);
    assert!(mark.namespace.parse::<u64>().is_ok());
    assert!(mark.started > 0);
    assert_eq!(mark.host.len(), 32);
    assert_ne!(mark.host, line("/etc/machine-id"));
}

#[test]
fn the_ancestors_begin_with_the_parent() {
    let chain = system().ancestors(&["claude"]);
    assert_eq!(chain[0].pid, parent_id());
    assert!(chain.len() <= ANCESTORS_MAX);
    assert!(chain.windows(2).all(|pair| pair[0].parent == pair[1].pid));
}

#[test]
fn a_process_shows_its_program_and_arguments() {
    let child = Sleeper::ready(Command::new("sh").args(["-c", "echo; read line", "", "x y", ""]));
    assert_eq!(arguments(child.pid()), ["sh", "-c", "echo; read line", "", "x y"]);
    assert!(executable(child.pid()).starts_with('/'));
    assert_eq!(arguments(0), [""; 0]);
    assert_eq!(executable(0), "");
}

#[test]
fn a_program_that_was_replaced_while_it_runs_keeps_its_path() {
    let directory = testkit::tempdir().unwrap();
    let path = shell_called_claude(directory.path());
    let child = Sleeper::ready(Command::new(&path).args(["-c", "echo; read line"]));
    fs::remove_file(&path).unwrap();
    assert_eq!(executable(child.pid()), path);
}

#[test]
fn an_agent_is_found_by_its_child() {
    if question().is_some() {
        let chain = system().ancestors(&["claude"]);
        assert_eq!(chain[0].name, "claude");
        // Without the ancestors of the test, which may be agents too.
        assert_eq!(find_agent(&chain[..1], &["claude"], &[]), Found::Agent(parent_id()));
        return;
    }
    let directory = testkit::tempdir().unwrap();
    let path = shell_called_claude(directory.path());
    ask("a shell", &[&path, "-c", "\"$@\"; exit $?", "claude"], "an_agent_is_found_by_its_child", "")
        .unwrap();
}

/// Another process makes the copy: a file that this process has open for writing cannot be executed while a thread
/// forks.
fn shell_called_claude(directory: &Path) -> String {
    let path = directory.canonicalize().unwrap().join("claude");
    assert!(Command::new("cp").arg("/bin/sh").arg(&path).run_to_end().status.success());
    path.to_str().unwrap().to_owned()
}

// Root may send signals to every process, so a child without these rights makes the check.
#[test]
fn a_process_of_another_user_is_alive() {
    if let Some(question) = question() {
        let pid: u32 = question.parse().unwrap();
        let refused = test_kill_process(Pid::from_raw(pid.cast_signed()).unwrap());
        assert_eq!(refused, Err(rustix::io::Errno::PERM));
        assert_eq!(signal::probe(pid), ProcessState::Running { started: None });
        assert_eq!(system().liveness(pid, system().mark(pid).as_ref()), Liveness::Alive);
        return;
    }
    let child = Sleeper::start();
    let name = "a_process_of_another_user_is_alive";
    let wrapper = ["setpriv", "--reuid", "65534", "--clear-groups"];
    ask("a process of another user", &wrapper, name, &child.pid().to_string());
}

#[test]
fn processes_of_two_namespaces_are_unknown_to_each_other() {
    if let Some(outer) = question() {
        let outer = outer.parse().unwrap();
        assert_eq!(process::id(), 1);
        assert_eq!(system().liveness(1, Some(&outer)), Liveness::Unknown);
        let own = system().mark(1).unwrap();
        assert_eq!(system().liveness(1, Some(&own)), Liveness::Alive);
        assert_eq!(system().ancestors(&["claude"]), []);
        println!("\nmark {own}");
        return;
    }
    let outer = system().mark(process::id()).unwrap();
    let name = "processes_of_two_namespaces_are_unknown_to_each_other";
    let Some(answer) =
        ask(NAMESPACE, &["unshare", "--pid", "--fork", "--mount-proc"], name, &outer.to_string())
    else {
        return;
    };
    let inner = answer.lines().find_map(|line| line.strip_prefix("mark ")).unwrap().parse().unwrap();
    assert_eq!(system().liveness(1, Some(&inner)), Liveness::Unknown);
}

#[test]
fn proc_of_another_namespace_is_not_trusted() {
    if let Some(outer) = question() {
        let outer = outer.parse().unwrap();
        assert_eq!(process::id(), 1);
        assert_eq!(system().mark(1), None);
        assert_eq!(system().ancestors(&["claude"]), []);
        assert_eq!(system().liveness(1, Some(&outer)), Liveness::Unknown);
        // Only by signal. In this namespace, this process is the only one and has PID 1.
        assert_eq!(system().liveness(1, None), Liveness::Alive);
        assert_eq!(system().liveness(parent_in_proc(), None), Liveness::Dead);
        return;
    }
    let outer = system().mark(process::id()).unwrap();
    let name = "proc_of_another_namespace_is_not_trusted";
    ask(NAMESPACE, &["unshare", "--pid", "--fork"], name, &outer.to_string());
}

/// The PID of the parent in the `/proc` of the outer namespace.
fn parent_in_proc() -> u32 {
    let own = fs::read_link("/proc/self").unwrap().to_str().unwrap().parse().unwrap();
    Stat::read(own).unwrap().parent
}

/// The requirement of a test that runs in its own PID namespace.
const NAMESPACE: &str = "another PID namespace";

const QUESTION: &str = "BLACKBOARD_TEST_QUESTION";

fn question() -> Option<String> {
    std::env::var(QUESTION).ok()
}

/// Runs the test of this name again in a child that `wrapper` moved, and returns its output; `None` if it cannot be
/// moved here.
fn ask(what_for: &str, wrapper: &[&str], name: &str, question: &str) -> Option<String> {
    testkit::limit_test();
    let (program, options) = wrapper.split_first().unwrap();
    if !testkit::machine::can(what_for, program, &[options, &["true"]].concat()) {
        return None;
    }
    // The test program may be in a directory that another user cannot open, so it is passed as an open file.
    let output = Command::new(program)
        .args(options)
        .args(["/proc/self/fd/0", "--exact", "--nocapture", "--test-threads=1"])
        .arg(format!("process::linux::tests::{name}"))
        .env(QUESTION, question)
        .stdin(File::open(std::env::current_exe().unwrap()).unwrap())
        .run_to_end();
    let printed = String::from_utf8(output.stdout).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}{complaint}");
    Some(printed)
}

#[test]
fn a_name_of_any_bytes_is_read_to_its_last_parenthesis() {
    let rest = "S 10 42 5306 34816 -1 4194304 98 0 0 0 0 0 0 0 20 0 1 0 59235 3133440";
    for name in ["cat", "", "a b", ") R 1 1 1 (", "two\nlines", "((", "))", "(sd-pam)"] {
        let stat = Stat::parse(format!("42 ({name}) {rest}").as_bytes()).unwrap();
        let expected = Stat {
            name: name.to_owned(),
            parent: 10,
            terminal: true,
            group_leader: true,
            started: 59235,
            ended: false,
        };
        assert_eq!(stat, expected, "{name:?}");
    }
    let invalid = [b"42 (\xff\xfe) ", rest.as_bytes()].concat();
    assert_eq!(Stat::parse(&invalid).unwrap().name, "\u{fffd}\u{fffd}");
}

#[test]
fn a_zombie_with_threads_still_runs() {
    for (state, threads, ended) in
        [("Z", 1, true), ("Z", 2, false), ("X", 0, true), ("x", 0, true), ("T", 1, false), ("D", 1, false)]
    {
        let text = format!("42 (name) {state} 10 -1 5306 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 59235 0");
        let stat = Stat::parse(text.as_bytes()).unwrap();
        assert_eq!(
            (stat.ended, stat.group_leader, stat.terminal),
            (ended, false, false),
            "{state} {threads}"
        );
    }
}

#[test]
fn truncated_or_foreign_stat_is_rejected() {
    let whole = "42 (cat) S 10 42 5306 0 -1 4194304 98 0 0 0 0 0 0 0 20 0 1 0 59235";
    assert!(Stat::parse(whole.as_bytes()).is_some());
    for end in 0..whole.len() - "59235".len() {
        assert_eq!(Stat::parse(&whole.as_bytes()[..end]), None, "{}", &whole[..end]);
    }
    for text in [")(", "42 cat S 10", "42 (cat) S ten 42 5306 0 -1 4194304 98 0 0 0 0 0 0 0 20 0 1 0 59235"] {
        assert_eq!(Stat::parse(text.as_bytes()), None, "{text}");
    }
}
