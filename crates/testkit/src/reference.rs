//! Databases of ivy-blackboard, the reference implementation, of every schema version, with rows in every table.

/// The schema versions that exist.
pub const VERSIONS: std::ops::RangeInclusive<u32> = 1..=9;

macro_rules! step {
    ($version:literal) => {
        (
            include_str!(concat!("../../blackboard/tests/fixtures/reference/schema-", $version, ".sql")),
            include_str!(concat!("../../blackboard/tests/fixtures/reference/rows-", $version, ".sql")),
        )
    };
}
/// What each version adds: its tables, and its rows.
const STEPS: [(&str, &str); 9] = [
    step!("1"),
    step!("2"),
    step!("3"),
    step!("4"),
    step!("5"),
    step!("6"),
    step!("7"),
    step!("8"),
    step!("9"),
];

/// The statements that make an empty database of this version.
pub fn tables(version: u32) -> String {
    steps(version).map(|(tables, _)| tables).collect()
}

/// The statements that make a database of this version with rows in every table, as its program leaves it: in WAL mode.
pub fn database(version: u32) -> String {
    let rows: String = steps(version).map(|(_, rows)| rows).collect();
    format!("PRAGMA journal_mode = WAL; BEGIN;\n{}{rows}COMMIT;", tables(version))
}

/// The metadata of an event, before a number. The functions of SQLite for JSON are not in every build.
const MEMBER: &str = r#"'{"work_item_id":"gh:owner/pai#78","number":'"#;

/// The same with this many more events.
pub fn large_database(version: u32, events: u32) -> String {
    format!(
        "{}
        WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {events})
        INSERT INTO events (timestamp, event_type, actor_id, target_id, target_type, summary, metadata)
        SELECT strftime('%Y-%m-%dT%H:%M:%fZ', '2026-02-04', n || ' seconds'), 'heartbeat_received',
            '11111111-aaaa-4aaa-8aaa-000000000001', '11111111-aaaa-4aaa-8aaa-000000000001', 'agent',
            'Progress note number ' || n || ' of a long session that works on the schema',
            {MEMBER} || n || '}}'
        FROM numbers;",
        database(version)
    )
}

fn steps(version: u32) -> impl Iterator<Item = (&'static str, &'static str)> {
    STEPS.into_iter().take(version as usize)
}
