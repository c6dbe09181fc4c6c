//! The server never writes: not a revision, not a row, not a byte of the database.

use std::fs;

use rusqlite::Connection as Sql;

use crate::client::{Events, own, raw};
use crate::scratch::{Scratch, with_dying_process};
use crate::served::Served;

#[test]
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
    let sql = Sql::open(scratch.database()).unwrap();
    let old = "UPDATE agents SET last_seen_at = '2020-01-01T00:00:00.000Z'";
    sql.execute(old, []).unwrap();
    sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let served = Served::of(scratch, 0);
    let wal = || fs::read(format!("{}-wal", served.database().display())).unwrap_or_default();
    let version = || sql.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = (fs::read(served.database()).unwrap(), wal(), version());
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
    assert!(before == (fs::read(served.database()).unwrap(), wal(), version()), "something was written");
    assert_eq!(served.json("/api/entries")["count"], 0, "what has expired is not shown");
}
