use crate::scratch::Scratch;
use crate::shapes::{EVENT, is_list};
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("observe");
}

#[test]
fn programs_get_events_and_how_far_they_have_read() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    let seen = scratch.json(["observe", "--session", "ivy"]);
    is_list(&seen, EVENT);
    assert_eq!((seen["revision"].as_u64(), seen["compacted"].as_bool()), (Some(3), Some(false)));
    assert_eq!(
        seen["items"][0]["commit_id"], seen["items"][1]["commit_id"],
        "created and claimed in one step"
    );
    assert_eq!(scratch.json(["observe", "--session", "ivy"])["count"], 0);
}

/// Appends events as other commands would, only faster.
fn append_events(scratch: &Scratch, count: u32) {
    let database = rusqlite::Connection::open(scratch.database()).unwrap();
    let many = "WITH RECURSIVE counting(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM counting WHERE n < ?1)
                INSERT INTO events (id, timestamp, event_type, summary, commit_id)
                SELECT last.id + n, last.timestamp, 'work_created', 'Work item \"Number ' || n || '\" created', last.id + n
                FROM counting, (SELECT max(id) AS id, timestamp FROM events) AS last";
    database.execute(many, [count]).unwrap();
}

#[test]
fn a_reader_that_leaves_early_sees_the_same_again() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    // More than a pipe holds, so that the reader is gone before everything is written.
    append_events(&scratch, 5000);
    for flag in ["", "--json"] {
        let line = format!("blackboard observe --session ivy {flag} | head -c 100 >/dev/null");
        let output = crate::scratch::Output::of(scratch.shell(&line).output().unwrap()).success();
        assert_eq!(output.stderr, "");
    }
    assert_eq!(scratch.json(["observe", "--session", "ivy"])["count"], 5000);
    assert_eq!(scratch.json(["observe", "--session", "ivy"])["count"], 0);
}

#[test]
fn looking_closer_does_not_move_the_cursor() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    append_events(&scratch, 10);
    for more in
        [&["--peek"][..], &["--filter", "work_created"], &["--since", "1h"], &["--filter", "agent_stale"]]
    {
        scratch.json(["observe", "--session", "ivy"].iter().chain(more));
    }
    assert_eq!(scratch.json(["observe", "--session", "ivy", "--limit", "3"])["count"], 3);
    assert_eq!(scratch.json(["observe", "--session", "ivy"])["count"], 7);
}
