//! Machines whose clocks differ. The time of a board is that of its server, so nothing is released early.

use std::sync::Arc;
use std::time::Duration;

use blackboard::Board;
use blackboard::agent::Register;
use blackboard::clock::{Clock, SystemClock, Timestamp};
use blackboard::entry::{Value, Write};
use blackboard::lock::Acquire;
use blackboard::process::FakeProcesses;
use blackboard::store::redis::Redis;
use blackboard::sweep::Sweep;
use blackboard::work::{Claim, Create};
use testkit::redis::RedisServer;
use testkit::wait_until;

use crate::patient;

/// The clock of a machine that is wrong by some seconds, and runs at the right speed.
struct Wrong(i64);

impl Clock for Wrong {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().millis() + 1000 * self.0)
    }

    fn monotonic_millis(&self) -> i64 {
        SystemClock.monotonic_millis()
    }
}

/// The board as a machine with such a clock uses it.
fn machine(server: &RedisServer, board: &str, name: &str, seconds: i64) -> Board {
    let store = Redis::open(server.url(board).parse().unwrap(), &patient()).unwrap();
    Board::on(Arc::new(store), Arc::new(Wrong(seconds)))
        .with_processes(Arc::new(FakeProcesses::of_machine(name)))
}

#[test]
fn clocks_that_differ_by_a_minute_release_nothing() {
    /// Less than the difference, and enough for a slow machine.
    const THRESHOLD: Duration = Duration::from_secs(50);
    let Some(server) = RedisServer::start(&[]) else { return };
    for (name, first, second) in [("a", 60, -60), ("b", -60, 60), ("c", 60, 0), ("d", -60, 0)] {
        let (first, second) =
            (machine(&server, name, "first", first), machine(&server, name, "second", second));
        // The first session of a board needs no grace, so that this machine sweeps by time at once.
        first.agents().register(&Register::named("Oak")).unwrap();
        let ivy = second.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
        second.work().create(&Create::new("x", "Item")).unwrap();
        second.work().claim(&Claim::of("x", &ivy)).unwrap();
        second.locks().acquire(&Acquire { ttl: Some(THRESHOLD), ..Acquire::of("deploy", &ivy) }).unwrap();
        let note = Write { ttl: Some(THRESHOLD), ..Write::new("note", Value::of(&1).unwrap()) };
        second.scope("team").write(&note).unwrap();
        let sweep =
            |threshold| first.sweep(&Sweep { threshold: Some(threshold), ..Sweep::default() }).unwrap();
        let swept = sweep(THRESHOLD);
        assert!(swept.stale_agents.is_empty() && swept.entries_expired == 0, "{name}: {swept:?}");
        assert_eq!(first.work().status("x").unwrap().item.claimed_by, Some(ivy.clone()));
        assert!(first.scope("team").read("note").unwrap().is_some());
        // The same machine notices a session that is silent by the clock of the server.
        wait_until("a silent session that is swept", || {
            let stale = sweep(Duration::from_secs(1)).stale_agents;
            stale.iter().any(|agent| agent.session_id == ivy).then_some(())
        });
        assert_eq!(second.work().status("x").unwrap().item.claimed_by, None);
    }
}
