//! A primary, two replicas, and sentinels that replace the primary when it is gone.

use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::process::wait_for;
use crate::redis::{RedisServer, ask, free_port, redis_program};
use crate::wait_until;

/// The name of the service at its sentinels.
const SERVICE: &str = "main";

/// Without this, a replica that has to copy everything waits 5 s for others.
const SETTINGS: [(&str, &str); 1] = [("repl-diskless-sync-delay", "0")];

/// How long a server does not answer before sentinels replace it. A busy machine makes it pause longer than that at
/// times, which is one more failover.
const DOWN_AFTER: Duration = Duration::from_secs(1);

/// Far more than any test takes: such a sentinel replaces nothing.
const NEVER: Duration = Duration::from_hours(24);

/// Starts a server that may have replicas, and may be one.
#[track_caller]
pub fn start_server() -> Option<RedisServer> {
    RedisServer::start_with_port(&SETTINGS)
}

/// Starts a replica of a server.
#[track_caller]
pub fn start_replica(primary: &RedisServer) -> Option<RedisServer> {
    let replica = start_server()?;
    follow(&replica, primary);
    Some(replica)
}

/// Makes a server a replica of another one.
pub fn follow(replica: &RedisServer, primary: &RedisServer) {
    replica.command(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
}

/// Makes a replica a primary.
pub fn promote(replica: &RedisServer) {
    replica.command(&["REPLICAOF", "NO", "ONE"]);
}

/// Waits until a replica has everything of its primary.
#[track_caller]
pub fn wait_for_sync(primary: &RedisServer, replica: &RedisServer) {
    let offset = |server: &RedisServer| {
        let info = server.command(&["INFO", "replication"]);
        let is_up = !info.contains("role:slave") || info.contains("master_link_status:up");
        let line = info.lines().find_map(|line| line.strip_prefix("master_repl_offset:").map(str::to_owned));
        line.filter(|_| is_up)
    };
    wait_until("a replica in step", || {
        let of_primary = offset(primary)?;
        (offset(replica)? == of_primary).then_some(())
    });
}

/// A process that knows which server is the primary.
pub struct Sentinel {
    _directory: TempDir,
    child: Child,
    port: u16,
}

impl Sentinel {
    /// One that names this server until it is told otherwise, and replaces nothing itself.
    pub fn naming(primary: &RedisServer) -> Sentinel {
        Sentinel::with_settings(primary, "")
    }

    /// The same, with further settings.
    pub fn with_settings(primary: &RedisServer, settings: &str) -> Sentinel {
        Sentinel::start(primary.port(), 1, NEVER, settings)
    }

    /// One that names the server at this port, for example one with TLS, which it does not reach itself.
    pub fn naming_port(primary: u16, settings: &str) -> Sentinel {
        Sentinel::start(primary, 1, NEVER, settings)
    }

    fn start(primary: u16, quorum: usize, down_after: Duration, settings: &str) -> Sentinel {
        let (directory, port) = (tempfile::tempdir().unwrap(), free_port());
        let file = directory.path().join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nlogfile {}\nsentinel monitor {SERVICE} 127.0.0.1 {} {quorum}\n\
             sentinel down-after-milliseconds {SERVICE} {}\nsentinel failover-timeout {SERVICE} 5000\n{settings}",
            directory.path().display(),
            directory.path().join("log").display(),
            primary,
            down_after.as_millis(),
        );
        fs::write(&file, text).unwrap();
        let program = redis_program().unwrap();
        let child = Command::new(program).arg(&file).arg("--sentinel").stdout(Stdio::null()).spawn().unwrap();
        let sentinel = Sentinel { _directory: directory, child, port };
        wait_until("a sentinel that answers", || {
            sentinel.ask(&["PING"]).filter(|reply| reply == "+PONG\r\n" || reply.starts_with("-NOAUTH"))
        });
        sentinel
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Names another server from now on.
    pub fn name(&self, primary: &RedisServer) {
        for command in [
            &["SENTINEL", "REMOVE", SERVICE][..],
            &["SENTINEL", "MONITOR", SERVICE, "127.0.0.1", &primary.port().to_string(), "1"],
            &["SENTINEL", "SET", SERVICE, "down-after-milliseconds", &NEVER.as_millis().to_string()],
        ] {
            assert_eq!(self.ask(command).as_deref(), Some("+OK\r\n"), "{command:?}");
        }
    }

    /// The address of a board on the server that it names.
    pub fn url(&self, board: &str) -> String {
        url_of(&[self.port], board)
    }

    /// The reply to a command; `None` while it does not answer.
    fn ask(&self, arguments: &[&str]) -> Option<String> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        ask(stream, arguments).ok()
    }

    /// The port of the primary.
    fn primary(&self) -> Option<u16> {
        let reply = self.ask(&["SENTINEL", "get-master-addr-by-name", SERVICE])?;
        reply.lines().nth(4)?.parse().ok()
    }

    /// Whether it knows the two others, and two replicas that answer.
    fn knows_all(&self) -> bool {
        let field = |reply: &str, name: &str| -> Option<String> {
            let mut lines = reply.lines().skip_while(|line| *line != name);
            lines.nth(2).map(str::to_owned)
        };
        let (Some(primary), Some(replicas)) =
            (self.ask(&["SENTINEL", "master", SERVICE]), self.ask(&["SENTINEL", "replicas", SERVICE]))
        else {
            return false;
        };
        field(&primary, "num-other-sentinels").as_deref() == Some("2")
            && field(&primary, "flags").as_deref() == Some("master")
            // One that does not answer has more flags.
            && replicas.lines().filter(|line| *line == "slave").count() == 4
            && replicas.lines().filter(|line| *line == "master-link-status").count() == 2
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        wait_for(&mut self.child);
    }
}

/// One primary, two replicas and three sentinels.
pub struct SentinelGroup {
    servers: Vec<RedisServer>,
    sentinels: Vec<Sentinel>,
}

impl SentinelGroup {
    /// Starts all of them; `None` if this machine has no server.
    #[track_caller]
    pub fn start() -> Option<SentinelGroup> {
        let primary = start_server()?;
        let replicas = [start_replica(&primary)?, start_replica(&primary)?];
        for replica in &replicas {
            wait_for_sync(&primary, replica);
        }
        let sentinels = (0..3).map(|_| Sentinel::start(primary.port(), 2, DOWN_AFTER, "")).collect();
        let servers = [primary].into_iter().chain(replicas).collect();
        let group = SentinelGroup { servers, sentinels };
        group.wait_until_complete();
        Some(group)
    }

    /// The address of a board on the primary, whichever server that is.
    pub fn url(&self, board: &str) -> String {
        let ports: Vec<_> = self.sentinels.iter().map(Sentinel::port).collect();
        url_of(&ports, board)
    }

    /// The number of the server that all sentinels name.
    fn primary(&self) -> Option<usize> {
        let mut named = self.sentinels.iter().map(Sentinel::primary);
        let port = named.next()??;
        named.all(|other| other == Some(port)).then_some(())?;
        self.servers.iter().position(|server| server.port() == port)
    }

    /// Kills the primary, and waits until the sentinels have promoted a replica and the old primary follows it.
    #[track_caller]
    pub fn fail_over(&mut self) {
        let old = self.wait_until_complete();
        self.kill_and_replace(old);
    }

    /// The same after both replicas have lost the primary, so that they do not have what it acknowledged since then.
    /// `in_between` waits for that. A stopped replica would still read it from its socket.
    #[track_caller]
    pub fn fail_over_behind(&mut self, in_between: impl FnOnce()) {
        let old = self.wait_until_complete();
        for (number, replica) in self.servers.iter().enumerate() {
            if number != old {
                replica.command(&["REPLICAOF", "127.0.0.1", "1"]);
            }
        }
        in_between();
        self.kill_and_replace(old);
    }

    #[track_caller]
    fn kill_and_replace(&mut self, old: usize) {
        self.servers[old].kill();
        let new = wait_until("three sentinels that name a new primary", || {
            self.primary().filter(|primary| *primary != old)
        });
        self.servers[old].start_again();
        follow(&self.servers[old], &self.servers[new]);
        self.wait_until_complete();
    }

    /// Waits until the primary has two replicas in step and every sentinel knows them. Returns the number of the primary.
    #[track_caller]
    pub fn wait_until_complete(&self) -> usize {
        wait_until("a primary with two replicas that all sentinels know", || {
            let primary = self.primary()?;
            let info = self.servers[primary].command(&["INFO", "replication"]);
            let is_complete = info.contains("role:master") && info.matches("state=online").count() == 2;
            (is_complete && self.sentinels.iter().all(Sentinel::knows_all)).then_some(primary)
        })
    }
}

fn url_of(ports: &[u16], board: &str) -> String {
    let sentinels: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("redis+sentinel://{}/{SERVICE}?board={board}", sentinels.join(","))
}
