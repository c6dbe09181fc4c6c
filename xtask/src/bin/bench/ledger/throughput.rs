//! Claims in one process: through the library, and with plain SQL on our schema and on the proposal's.

use std::time::Instant;

use blackboard::Board;
use blackboard::work::Claim;
use rusqlite::{Connection, params};

use crate::boards::{self, Scratch};
use crate::report::Line;
use crate::{Result, Scale};

/// The tables and indexes of the proposal whose columns the product keeps, as the proposal states them.
const PROPOSAL: &str = include_str!("proposal.sql");

const EVENT: &str = "INSERT INTO events (timestamp, event_type, actor_id, target_id, target_type, summary) \
                     VALUES (?1, 'work_claimed', ?2, ?3, 'work_item', ?4)";

/// Claims per second.
pub fn measure(scale: &Scale) -> Result<Vec<Line>> {
    let claims = scale.of(10_000, 500);
    let (mut library, mut ours, mut proposal) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        library.push(through_the_library(claims)?);
        ours.push(by_hand_on_our_schema(claims)?);
        proposal.push(by_hand_on_the_proposal(claims)?);
    }
    let what = "claims per second in process against a raw loop on our schema";
    let same = "the same against a raw loop on the proposal's schema and indexes";
    Ok(vec![
        Line::rate(what, 0.8, "claims", &library, ("raw", &ours)),
        Line::rate(same, 1.4, "claims", &library, ("raw", &proposal)),
    ])
}

fn through_the_library(claims: usize) -> Result<f64> {
    let scratch = Scratch::new()?;
    let session = scratch.register(50)?.swap_remove(0);
    scratch.add_items("item", claims)?;
    let board: Board = scratch.open()?;
    let start = Instant::now();
    for number in 0..claims {
        board.work().claim(&Claim::of(&format!("item-{number}"), &session))?;
    }
    Ok(claims as f64 / start.elapsed().as_secs_f64())
}

fn by_hand_on_our_schema(claims: usize) -> Result<f64> {
    const AGENT: &str = "SELECT * FROM agents WHERE session_id = ?1";
    const ITEM: &str = "SELECT * FROM work_items WHERE item_id = ?1";
    const LAST: &str = "SELECT id, timestamp FROM events ORDER BY id DESC LIMIT 1";
    const TAKE: &str = "UPDATE work_items SET status = 'claimed', claimed_by = ?1, claimed_at = ?2, \
                        claimed_by_name = ?3, fence = ?4, revision = ?4 WHERE item_id = ?5";
    const WORK: &str = "UPDATE agents SET current_work = ?1 WHERE session_id = ?2";
    const TELL: &str = "INSERT INTO events (id, timestamp, event_type, actor_id, target_id, target_type, \
                        summary, metadata, commit_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?1)";
    let scratch = Scratch::new()?;
    let session = scratch.register(50)?.swap_remove(0);
    scratch.add_items("item", claims)?;
    let connection = scratch.connect()?;
    let start = Instant::now();
    for number in 0..claims {
        let (item, now) = (format!("item-{number}"), now());
        begin(&connection)?;
        connection.prepare_cached("PRAGMA user_version")?.query_row([], |_| Ok(()))?;
        let name: String = connection.prepare_cached(AGENT)?.query_row([&session], |row| row.get(1))?;
        let title: String = connection.prepare_cached(ITEM)?.query_row([&item], |row| row.get(2))?;
        let last: i64 = connection.prepare_cached(LAST)?.query_row([], |row| row.get(0))?;
        connection.prepare_cached(TAKE)?.execute(params![session, now, name, last + 1, item])?;
        connection.prepare_cached(WORK)?.execute([&title, &session])?;
        let summary = format!("Agent \"{name}\" claimed \"{title}\"");
        let none: Option<&str> = None;
        let event = params![last + 1, now, "work_claimed", session, item, "work_item", summary, none];
        connection.prepare_cached(TELL)?.execute(event)?;
        commit(&connection)?;
    }
    Ok(claims as f64 / start.elapsed().as_secs_f64())
}

fn by_hand_on_the_proposal(claims: usize) -> Result<f64> {
    const TAKE: &str = "UPDATE work_items SET status = 'claimed', claimed_by = ?1, claimed_at = ?2 \
                        WHERE item_id = ?3 AND status = 'available'";
    let directory = tempfile::tempdir()?;
    let connection = boards::connect(&directory.path().join("proposal.db"))?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.execute_batch(PROPOSAL)?;
    let session = "00000000-0000-4000-8000-000000000000";
    connection.execute_batch("BEGIN")?;
    let agent = params![session, now()];
    connection.execute("INSERT INTO agents (session_id, agent_name, started_at, last_seen_at) VALUES (?1, 'Agent 0', ?2, ?2)", agent)?;
    for number in 0..claims {
        let item = params![format!("item-{number}"), now()];
        connection.execute("INSERT INTO work_items (item_id, title, source, created_at) VALUES (?1, 'Design SQL schema', 'local', ?2)", item)?;
    }
    connection.execute_batch("COMMIT")?;
    let start = Instant::now();
    for number in 0..claims {
        let (item, now) = (format!("item-{number}"), now());
        begin(&connection)?;
        let agent = "SELECT agent_name FROM agents WHERE session_id = ?1";
        let name: String = connection.prepare_cached(agent)?.query_row([session], |row| row.get(0))?;
        let title = "SELECT title FROM work_items WHERE item_id = ?1";
        let title: String = connection.prepare_cached(title)?.query_row([&item], |row| row.get(0))?;
        connection.prepare_cached(TAKE)?.execute(params![session, now, item])?;
        let summary = format!("Agent \"{name}\" claimed \"{title}\"");
        connection.prepare_cached(EVENT)?.execute(params![now, session, item, summary])?;
        commit(&connection)?;
    }
    Ok(claims as f64 / start.elapsed().as_secs_f64())
}

fn begin(connection: &Connection) -> Result {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    Ok(())
}

fn commit(connection: &Connection) -> Result {
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

fn now() -> String {
    use blackboard::clock::{Clock, SystemClock};
    SystemClock.now().to_string()
}
