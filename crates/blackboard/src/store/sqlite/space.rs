//! The space usage of a database file.

use rusqlite::Connection;

use crate::status::SpaceUsage;

/// Tables with their indexes by the pages they use, the largest first.
const TABLES: &str = "SELECT coalesce(object.tbl_name, page.name), sum(page.pgsize) \
                      FROM dbstat AS page LEFT JOIN sqlite_schema AS object ON object.name = page.name \
                      WHERE page.aggregate = TRUE GROUP BY 1";

/// Unused pages: SQLite fills them again before the file grows.
const UNUSED: &str =
    "SELECT 'unused', freelist_count * page_size FROM pragma_freelist_count, pragma_page_size";

/// Reads every page of the file.
pub(super) fn of(connection: &Connection) -> rusqlite::Result<Vec<SpaceUsage>> {
    let mut room = Vec::new();
    for query in [TABLES, UNUSED] {
        let mut statement = connection.prepare(query)?;
        let found = statement.query_map([], |row| {
            let bytes: i64 = row.get(1)?;
            Ok(SpaceUsage { what: row.get(0)?, bytes: u64::try_from(bytes).unwrap_or(0) })
        })?;
        room.extend(found.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    room.retain(|part| part.bytes > 0);
    room.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.what.cmp(&b.what)));
    Ok(room)
}
