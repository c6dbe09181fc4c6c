-- The policies of a scope are one JSON object: every process parses this schema when it opens the board.

ALTER TABLE scopes RENAME TO scopes_with_columns;

-- A scope without a row has no policies. `entries` is the number of its entries, and has a value only with a limit: every commit that
-- adds or removes an entry of the scope changes it.
CREATE TABLE scopes (
    scope TEXT PRIMARY KEY,
    policies TEXT NOT NULL,
    entries INTEGER,
    created_at TEXT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    updated_by TEXT NOT NULL,
    revision INTEGER NOT NULL,
    evicting_since INTEGER NOT NULL
) WITHOUT ROWID;

-- SQLite is built without its JSON functions.
INSERT INTO scopes
SELECT
    scope,
    '{"visibility":"' || visibility || '","ttl":' || coalesce(ttl_ms / 1000.0, 'null') || ',"max_entries":' ||
        coalesce(max_entries, 'null') || ',"eviction":"' || eviction || '","validation":' || coalesce(validation, '[]') || '}',
    entries, created_at, created_by, updated_at, updated_by, revision, evicting_since
FROM scopes_with_columns;

DROP TABLE scopes_with_columns;
