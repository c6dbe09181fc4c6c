//! Two machines that share a board: each has a network of its own, its processes, its name, and the ids of its machine and
//! its boot. A server on the first one has the board.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use blackboard::Code;
use serde_json::{Value, json};
use testkit::process::{RunToEnd as _, wait_for};
use testkit::redis::{ask, redis_program, skip_without_redis};
use testkit::wait_until;

use crate::machine::can;
use crate::scratch::{Output, program};

const WHAT_FOR: &str = "two machines";

/// The address of the server, in the network between the two.
const SERVER: &str = "10.213.7.1";
const URL: &str = "redis://10.213.7.1:6379?board=team";

/// Namespaces that a process keeps. They end with this value, and with them all their processes.
struct Machine {
    init: Child,
    /// Its first process, as this system sees it.
    pid: u32,
    home: PathBuf,
}

impl Machine {
    fn start(directory: &Path, name: &str) -> Machine {
        let home = directory.join(name);
        fs::create_dir(&home).unwrap();
        let id = |digit: char| digit.to_string().repeat(32);
        let digit = name.chars().next().unwrap();
        fs::write(home.join("machine-id"), format!("{}\n", id(digit))).unwrap();
        fs::write(home.join("boot-id"), format!("{digit}0000000-0000-4000-8000-000000000000\n")).unwrap();
        // Without an id of the machine, its name is the id.
        let script = "echo \"machine-$1\" > /proc/sys/kernel/hostname && \
                      { [ ! -e /etc/machine-id ] || mount --bind \"$0/machine-id\" /etc/machine-id; } && \
                      mount --bind \"$0/boot-id\" /proc/sys/kernel/random/boot_id && \
                      ip link set lo up && echo ready > \"$0/ready\" && exec sleep 100000";
        let mut unshare = Command::new("unshare");
        unshare.args(["--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        let init =
            unshare.args(["sh", "-c", script]).arg(&home).arg(name).stdin(Stdio::null()).spawn().unwrap();
        wait_until("a machine that has started", || home.join("ready").exists().then_some(()));
        let children = format!("/proc/{0}/task/{0}/children", init.id());
        let pid = fs::read_to_string(children).unwrap().trim().parse().unwrap();
        Machine { init, pid, home }
    }

    /// A program on this machine.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid.to_string(), "--net", "--mount", "--uts", "--pid", "--"]);
        command.arg(program).args(arguments).stdin(Stdio::null());
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.home)
            .env("BLACKBOARD_DB", URL)
            .current_dir("/");
        command
    }

    #[track_caller]
    fn run(&self, call: &[&str]) -> Output {
        Output::of(self.command(program(), &[call, &["--json"]].concat()).run_to_end())
    }

    #[track_caller]
    fn json(&self, call: &[&str]) -> Value {
        self.run(call).success().json()
    }

    #[track_caller]
    fn shell(&self, line: &str) -> String {
        let output = Output::of(self.command("sh", &["-c", line]).run_to_end()).success();
        output.stdout.trim().to_owned()
    }

    /// Starts a process on this machine, and returns its PID there.
    fn start_process(&self) -> String {
        self.shell("sleep 100000 >/dev/null 2>&1 & echo $!")
    }

    /// A session of that process, and the session's id.
    fn register(&self, name: &str, pid: &str) -> String {
        let registered = self.json(&["agent", "register", "--name", name, "--pid", pid]);
        registered["session_id"].as_str().unwrap().to_owned()
    }

    fn process_of(&self, session: &str) -> Value {
        self.json(&["agent", "show", session])["process"].clone()
    }

    /// The machine fails: all its processes end, and its network with them.
    fn fail(&mut self) {
        let _ = self.init.kill();
        wait_for(&mut self.init);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.fail();
    }
}

/// Two machines, and the server on the first one.
struct Network {
    // Dropped in this order.
    server: Child,
    b: Machine,
    a: Machine,
    directory: tempfile::TempDir,
}

impl Network {
    #[track_caller]
    fn start() -> Option<Network> {
        let namespaces = ["--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc"];
        let needs_veth = "ip link add name a type veth peer name b";
        if skip_without_redis()
            || !can(WHAT_FOR, "nsenter", &["--version"])
            || !can(WHAT_FOR, "unshare", &[&namespaces[..], &["sh", "-c", needs_veth]].concat())
        {
            return None;
        }
        let directory = testkit::tempdir().unwrap();
        let (a, b) = (Machine::start(directory.path(), "a"), Machine::start(directory.path(), "b"));
        // Made inside of the first one, so that the network of this system has nothing to do with it.
        let (of_a, of_b) = (a.pid.to_string(), b.pid.to_string());
        let link = ["ip", "link", "add", "to-b", "type", "veth", "peer", "name", "to-a", "netns", &of_b];
        let linked = Command::new("nsenter").args(["--target", &of_a, "--net", "--"]).args(link).run_to_end();
        assert!(linked.status.success(), "{linked:?}");
        // The address of the server stays when the other machine fails, and the link with it.
        a.shell(&format!("ip addr add {SERVER}/32 dev lo"));
        a.shell("ip addr add 10.213.7.3/24 dev to-b && ip link set to-b up");
        b.shell("ip addr add 10.213.7.2/24 dev to-a && ip link set to-a up");
        let (socket, path) = (directory.path().join("socket"), directory.path().to_str().unwrap());
        let redis = redis_program().unwrap();
        let socket_text = socket.to_str().unwrap();
        let mut server = a.command(redis, &["--bind", SERVER, "--dir", path, "--save", ""]);
        server.args(["--protected-mode", "no", "--unixsocket", socket_text]).stdout(Stdio::null());
        let server = server.spawn().unwrap();
        wait_until("a server", || {
            ask(UnixStream::connect(&socket).ok()?, &["PING"]).ok()?.starts_with("+PONG").then_some(())
        });
        Some(Network { server, b, a, directory })
    }

    /// The seconds of the server's clock.
    fn time(&self) -> u64 {
        let socket = UnixStream::connect(self.directory.path().join("socket")).unwrap();
        ask(socket, &["TIME"]).unwrap().lines().nth(2).unwrap().parse().unwrap()
    }

    /// Waits until some seconds have passed on the server.
    fn pass(&self, seconds: u64) {
        let begin = self.time();
        wait_until("time that passes on the server", || (self.time() > begin + seconds).then_some(()));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.server.kill();
        wait_for(&mut self.server);
    }
}

#[test]
fn process_of_one_machine_is_never_judged_by_another() {
    let Some(network) = Network::start() else { return };
    let (a, b) = (&network.a, &network.b);
    // The first machine of a board has no grace: its clock needs no comparison with an earlier one.
    let process = b.start_process();
    let (ivy, elm) = (b.register("Ivy", &process), b.register("Elm", &b.start_process()));
    let oak = a.register("Oak", &a.start_process());
    b.json(&["work", "claim", "x", "--title", "Item", "--session", &ivy]);
    assert_eq!((a.process_of(&ivy), b.process_of(&ivy)), (json!("unknown"), json!("alive")));
    assert_eq!((a.process_of(&oak), b.process_of(&oak)), (json!("alive"), json!("unknown")));
    b.shell(&format!("kill -9 {process}"));
    wait_until("the end of a process", || (b.process_of(&ivy) == json!("dead")).then_some(()));
    // A session whose process is gone loses its claim after 10 s of silence, on its own machine.
    network.pass(10);
    assert_eq!(a.process_of(&ivy), json!("unknown"));
    let refusal = a.run(&["work", "claim", "x", "--session", &oak]).refused(Code::AlreadyClaimed);
    assert_eq!((&refusal["held_by_name"], refusal.get("holder_process")), (&json!("Ivy"), None), "{refusal}");
    assert_eq!(a.json(&["sweep"])["staleAgents"], json!([]));
    let claimed = b.json(&["work", "claim", "x", "--session", &elm]);
    assert_eq!(claimed["claimed"], true, "{claimed}");
}

#[test]
fn timer_releases_the_work_of_a_machine_that_failed() {
    let Some(mut network) = Network::start() else { return };
    let oak = network.a.register("Oak", &network.a.start_process());
    let ivy = network.b.register("Ivy", &network.b.start_process());
    network.b.json(&["work", "claim", "x", "--title", "Item", "--session", &ivy]);
    network.b.json(&["lock", "acquire", "deploy", "--session", &ivy]);
    network.b.fail();
    let a = &network.a;
    assert_eq!(a.json(&["sweep"])["staleAgents"], json!([]), "the default threshold has not passed");
    a.run(&["work", "claim", "x", "--session", &oak]).refused(Code::AlreadyClaimed);
    wait_until("a machine that has been silent for long", || {
        let planned = a.json(&["sweep", "--threshold", "2s", "--dry-run"]);
        (planned["staleAgents"] != json!([])).then_some(())
    });
    let plan = &["sweep", "--threshold", "2s", "--dry-run"];
    let planned = Output::of(a.command(program(), plan).run_to_end()).success().stdout;
    assert!(planned.contains("cannot be verified here") && !planned.contains("not found"), "{planned}");
    let swept = a.json(&["sweep", "--threshold", "2s"]);
    let [stale] = &swept["staleAgents"].as_array().unwrap()[..] else { panic!("{swept}") };
    assert_eq!((&stale["sessionId"], &stale["releasedItems"]), (&json!(ivy), &json!(["x"])), "{swept}");
    assert_eq!(a.json(&["agent", "show", &oak])["status"], "active", "its process runs on this machine");
    a.json(&["work", "claim", "x", "--session", &oak]);
    a.json(&["lock", "acquire", "deploy", "--session", &oak]);
}
