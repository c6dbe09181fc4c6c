//! The cost of each operation alone, and the memory of what it creates.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use blackboard::Board;
use blackboard::agent::{Heartbeat, Register};
use blackboard::entry::{Value, Write};
use blackboard::follow::{Follow, Start};
use blackboard::work::{Claim, Create};

use super::BOARD;
use super::progress::Progress;
use super::schedule::{Kind, Pace};
use crate::Result;
use crate::redis_server::{Client, Server};
use crate::remote_board::open;
use crate::server_counters::{Counters, KeyMemory, memory_of_waiting, reported};
use crate::statistics::median;

/// How many operations of a kind are measured at most.
const SAMPLE: usize = 1000;

/// How many idle connections are measured.
const CONNECTIONS: usize = 50;

/// How long an idle connection takes to be small.
const SETTLED: Duration = Duration::from_secs(6);

/// The length of a value of an entry.
const VALUE: usize = 400;

/// The cost of one operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Requests that the server read.
    pub round_trips: f64,
    /// Its time on a processor.
    pub server_microseconds: f64,
}

/// The costs of all operations, and the memory of the server for each part of a board.
#[derive(Clone, Debug, Default)]
pub struct UnitCosts {
    pub costs: Vec<(&'static str, Cost)>,
    /// Bytes.
    pub bytes: Vec<(&'static str, f64)>,
}

/// A board, and what its server counts.
struct Measured<'a> {
    board: &'a Board,
    client: Client,
    found: UnitCosts,
}

impl Measured<'_> {
    /// Runs an operation `count` times, and keeps its cost. Returns how much the memory of rows and of the log grew for
    /// each.
    fn cost(
        &mut self,
        name: &'static str,
        count: usize,
        mut f: impl FnMut(usize) -> Result,
    ) -> Result<(f64, f64)> {
        let memory = KeyMemory::of(&mut self.client, BOARD)?;
        let before = Counters::of(&mut self.client)?;
        (0..count).try_for_each(&mut f)?;
        let counted = Counters::of(&mut self.client)?.since(before);
        let grown = KeyMemory::of(&mut self.client, BOARD)?;
        let each = 1.0 / count as f64;
        let cost = Cost {
            round_trips: counted.requests as f64 * each,
            server_microseconds: counted.processor.as_secs_f64() * 1e6 * each,
        };
        self.found.costs.push((name, cost));
        Ok((grown.rows_since(memory, count), grown.log_since(memory) * each))
    }

    fn bytes(&mut self, name: &'static str, bytes: f64) {
        self.found.bytes.push((name, bytes));
    }
}

impl UnitCosts {
    /// Registers the agents of a fleet, creates its items, and measures each operation on the way. Returns the
    /// sessions, too.
    pub fn measure(
        server: &Server,
        board: &Board,
        pace: &Pace,
        progress: &Progress,
    ) -> Result<(UnitCosts, Vec<String>)> {
        let mut measured = Measured { board, client: server.connect()?, found: UnitCosts::default() };
        let sample = pace.agents.min(SAMPLE);
        let sessions = measured.register(pace.agents, progress)?;
        measured.create_items(pace.count(Kind::Claim) + sample, progress)?;
        progress.begin("measuring each operation alone");
        measured.use_board(&sessions, sample)?;
        measured.follow(server, sample)?;
        measured.connect(server)?;
        Ok((measured.found, sessions))
    }
}

impl Measured<'_> {
    fn register(&mut self, agents: usize, progress: &Progress) -> Result<Vec<String>> {
        progress.begin(&format!("registering {agents} agents"));
        let (board, mut sessions) = (self.board, Vec::with_capacity(agents));
        let (rows, _) = self.cost("register", agents, |number| {
            let register = Register::named(&format!("Agent {number}"));
            sessions.push(board.agents().register(&register)?.agent.session_id);
            progress.note(|| format!("{number} of {agents} agents are registered"));
            Ok(())
        })?;
        self.bytes("agent", rows);
        Ok(sessions)
    }

    fn create_items(&mut self, items: usize, progress: &Progress) -> Result {
        progress.begin(&format!("creating {items} items"));
        let board = self.board;
        let (rows, log) = self.cost("create", items, |number| {
            let title = format!("Design SQL schema {number}");
            board.work().create(&Create::new(&format!("item-{number}"), &title))?;
            progress.note(|| format!("{number} of {items} items are created"));
            Ok(())
        })?;
        self.bytes("item", rows);
        self.bytes("event", log);
        Ok(())
    }

    /// One agent after the other, each with the probe of an automatic sweep.
    fn use_board(&mut self, sessions: &[String], sample: usize) -> Result {
        let board = self.board;
        let call = |number: usize| board.for_call(Some(&sessions[number]));
        let (rows, _) = self.cost("heartbeat", sample, |number| {
            call(number).agents().heartbeat(&Heartbeat::of(&sessions[number]))?;
            Ok(())
        })?;
        self.bytes("heartbeat", rows);
        self.cost("claim", sample, |number| {
            call(number).work().claim(&Claim::of(&format!("item-{number}"), &sessions[number]))?;
            Ok(())
        })?;
        let write = |number: usize| {
            let board = call(number);
            board.scope("default").write(&new_entry(&format!("new:{number}"))?)?;
            Ok(())
        };
        let (rows, _) = self.cost("write", sample, write)?;
        self.bytes("entry", rows);
        let (rows, _) = self.cost("write of a key that exists", sample, write)?;
        self.bytes("version", rows);
        Ok(())
    }

    /// What one follower adds to each write.
    fn follow(&mut self, server: &Server, sample: usize) -> Result {
        let follower = open(&server.url(BOARD))?;
        let begins = follower.revision()?;
        let mut follower = follower.follow(&Follow {
            start: Start::Revision(begins),
            without_sweep: true,
            ..Follow::default()
        })?;
        let stop = follower.stop_handle();
        let (sender, seen) = mpsc::channel();
        let following = thread::spawn(move || -> blackboard::Result<()> {
            while !follower.stop_handle().is_stopped() {
                let batch = follower.next_batch(100, Duration::from_secs(1))?;
                for event in batch.into_iter().flat_map(|batch| batch.events) {
                    if sender.send(event.id).is_err() {
                        return Ok(());
                    }
                }
            }
            Ok(())
        });
        let board = self.board;
        let wait = testkit::patience();
        // Each write waits until the follower has it: otherwise the follower would read several events together.
        let one_by_one = |_: usize| -> Result {
            let written = board.scope("default").write(&new_entry("followed")?)?;
            while seen.recv_timeout(wait).map_err(|_| "the follower saw no event")? < written.revision {}
            Ok(())
        };
        one_by_one(0)?;
        self.cost("follow", sample, one_by_one)?;
        stop.stop();
        following.join().map_err(|_| "the follower failed")??;
        self.cost("unfollowed", sample, |_| {
            board.scope("default").write(&new_entry("followed")?)?;
            Ok(())
        })?;
        self.keep_difference();
        Ok(())
    }

    /// Replaces the last two costs by their difference.
    fn keep_difference(&mut self) {
        let (Some((_, without)), Some((name, with))) = (self.found.costs.pop(), self.found.costs.pop())
        else {
            return;
        };
        let difference = Cost {
            round_trips: with.round_trips - without.round_trips,
            server_microseconds: with.server_microseconds - without.server_microseconds,
        };
        self.found.costs.push((name, difference));
    }

    /// The memory of a connection that waits for events.
    fn connect(&mut self, server: &Server) -> Result {
        let mut connections = (0..CONNECTIONS).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
        for connection in &mut connections {
            connection.send(&["XREAD", "BLOCK", "0", "STREAMS", "nothing", "$"])?;
        }
        testkit::wait_until("connections that wait", || {
            let blocked = reported(&mut self.client, "clients", "blocked_clients").ok()?;
            (blocked >= CONNECTIONS as f64).then_some(())
        });
        // The server reduces the buffers of a connection that is not used for some seconds.
        thread::sleep(SETTLED);
        let bytes = median(&memory_of_waiting(&mut self.client)?);
        self.bytes("connection", bytes);
        Ok(())
    }
}

fn new_entry(key: &str) -> Result<Write> {
    Ok(Write::new(key, Value::of(&"x".repeat(VALUE))?))
}
