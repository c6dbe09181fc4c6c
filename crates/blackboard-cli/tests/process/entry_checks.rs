//! What holds for the entries of every board at any time, whatever happened to the processes that wrote them.

use std::collections::BTreeMap;

use rusqlite::Connection;

/// A row of `entry_versions`.
struct Version {
    revision: i64,
    previous: Option<i64>,
    number: i64,
    removed: bool,
}

impl Version {
    fn is_purge(&self) -> bool {
        self.removed && self.previous.is_none()
    }
}

/// Every key points at its newest version, versions of a key have no gaps as far back as the log goes, and each of them
/// has exactly one event, which is of its kind.
#[track_caller]
pub fn assert_entries_sound(connection: &Connection) {
    for (what, sql) in [
        (
            "a version that no event tells of, or one of another key",
            "SELECT count(*) FROM entry_versions LEFT JOIN events ON id = revision \
             WHERE revision > (SELECT coalesce(min(id), 1) - 1 FROM events) AND (id IS NULL \
             OR target_id IS NOT key OR coalesce(target_type, '') <> 'entry' \
             OR (event_type = 'entry_written') <> (value IS NOT NULL))",
        ),
        (
            "an event without its version",
            "SELECT count(*) FROM events WHERE event_type IN ('entry_written', 'entry_deleted', 'entry_expired') \
             AND id NOT IN (SELECT revision FROM entry_versions) \
             AND coalesce(metadata, '') NOT LIKE '%\"purged\":true%' \
             AND id > (SELECT coalesce(min(id), 1) FROM events)",
        ),
        (
            "an entry that points at no value of its own",
            "SELECT count(*) FROM entries LEFT JOIN entry_versions AS version USING (revision) \
             WHERE version.value IS NULL OR version.scope <> entries.scope OR version.key <> entries.key \
             OR version.expires_at IS NOT entries.expires_at OR version.session_id IS NOT entries.session_id",
        ),
        (
            "a key that is there and was removed",
            "SELECT count(*) FROM entries JOIN entry_tombstones USING (scope, key)",
        ),
        (
            "a tag of an entry that is not there",
            "SELECT count(*) FROM entry_tags LEFT JOIN entries USING (scope, key) WHERE revision IS NULL",
        ),
    ] {
        let found: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(found, 0, "{what}");
    }
    let first: i64 =
        connection.query_row("SELECT coalesce(min(id), 1) FROM events", [], |row| row.get(0)).unwrap();
    let current = current(connection);
    for (key, versions) in chains(connection) {
        for pair in versions.windows(2) {
            let [before, after] = pair else { continue };
            // A purge begins the history of its key again.
            if after.revision <= first || after.is_purge() {
                continue;
            }
            assert_eq!(after.previous, Some(before.revision), "a version of {key:?} is missing");
            let expected = before.number + i64::from(!after.removed);
            assert_eq!(after.number, expected, "versions of {key:?} have a gap");
            assert!(!(before.removed && after.removed), "{key:?} was removed twice");
        }
        let newest = versions.last().unwrap();
        if first == 1 && !versions[0].is_purge() {
            assert_eq!((versions[0].number, versions[0].previous), (1, None), "{key:?}");
        }
        assert_eq!(
            current.get(&key).copied(),
            (!newest.removed).then_some(newest.revision),
            "{key:?} is what was written last"
        );
    }
}

/// The revision of each key that is there.
fn current(connection: &Connection) -> BTreeMap<(String, String), i64> {
    let mut statement = connection.prepare("SELECT scope, key, revision FROM entries").unwrap();
    let rows = statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

/// The versions of each key, in their order.
fn chains(connection: &Connection) -> BTreeMap<(String, String), Vec<Version>> {
    let sql =
        "SELECT scope, key, revision, previous, version, value IS NULL FROM entry_versions ORDER BY revision";
    let mut statement = connection.prepare(sql).unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut chains: BTreeMap<_, Vec<Version>> = BTreeMap::new();
    while let Some(row) = rows.next().unwrap() {
        chains.entry((row.get(0).unwrap(), row.get(1).unwrap())).or_default().push(Version {
            revision: row.get(2).unwrap(),
            previous: row.get(3).unwrap(),
            number: row.get(4).unwrap(),
            removed: row.get(5).unwrap(),
        });
    }
    chains
}
