//! The server never writes: not a revision, not a row, not a byte of a file or of the keys on a server.

use std::fs;
use std::time::Duration;

use rusqlite::Connection as Sql;

use crate::client::{Events, own, raw};
use crate::scratch::{Scratch, with_dying_process};
use crate::served::Served;

testkit::on_each_engine![no_request_changes_the_database,];

fn no_request_changes_the_database() {
    let scratch = Scratch::new();
    // Everything that another command would clean up: a stale agent with work, an expired entry.
    with_dying_process(|pid| {
        let register = ["agent", "register", "--name", "Dead", "--session-hint", "dead", "--pid", pid];
        scratch.run(register).success();
    });
    for call in [
        &["work", "claim", "held", "--title", "Held", "--session", "dead"][..],
        &["write", "brief", "1", "--ttl", "1h"],
    ] {
        scratch.run(call).success();
    }
    scratch.let_time_pass();
    scratch.change_agents(|agent, now| agent.last_seen_at = now.minus(Duration::from_hours(1)));
    let sql = (!scratch.is_served()).then(|| Sql::open(scratch.database()).unwrap());
    if let Some(sql) = &sql {
        sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    }
    let served = Served::of(scratch, 0);
    // Every byte of a file, or of the keys on a server.
    let contents = || match &sql {
        Some(sql) => {
            let wal = fs::read(format!("{}-wal", served.database().display())).unwrap_or_default();
            let version = sql.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
            (fs::read(served.database()).unwrap(), wal, version)
        }
        None => (served.scratch.keys_of_the_server().into_bytes(), Vec::new(), 0),
    };
    let before = contents();
    let agents = served.json("/api/agents");
    assert_eq!((&agents[0]["status"], &agents[0]["overdue"]), (&"active".into(), &true.into()));
    let _events = Events::follow(served.port, Some(0), None).unwrap();
    for path in [
        "/",
        "/api/status",
        "/api/board",
        "/api/agents/dead",
        "/api/work",
        "/api/work/held",
        "/api/lanes",
        "/api/events",
        "/api/projects",
        "/api/entries",
        "/api/entries/history?key=brief",
        "/api/scopes",
        "/api/locks",
    ] {
        assert_eq!(served.get(path).status, 200, "{path}");
        for method in ["POST", "PUT", "DELETE", "PATCH"] {
            let own = own(served.port);
            let request = format!("{method} {path} HTTP/1.1\r\n{own}Content-Length: 0\r\n\r\n");
            assert_eq!(raw(served.port, &request).unwrap().status, 405);
        }
    }
    assert!(before == contents(), "something was written");
    assert_eq!(served.json("/api/entries")["count"], 0, "what has expired is not shown");
}
