-- Entries: facts, results, signals, locks and file reservations that agents share.
--
-- A value stands in one place, `entry_versions`, as the text that came. An entry only points at its current version;
-- an event of an entry has its version under the same number. Versions of a key form a chain through `previous`, so
-- that its history needs no index that every write would have to pay for.

-- `previous` is the version before, of the same key. A removal (deleted, expired) is a version too, without a value:
-- what `value IS NULL` means, while a JSON null is the text `null`. `session_id` is the lease: the session with which
-- the entry dies; `fence` the revision at which that session took it.
CREATE TABLE entry_versions (
    revision INTEGER PRIMARY KEY,
    previous INTEGER,
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    value TEXT,
    created_at TEXT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    updated_by TEXT NOT NULL,
    expires_at TEXT,
    tags TEXT,
    metadata TEXT,
    session_id TEXT,
    fence INTEGER
);

-- Which version is current. The last two columns repeat what the version says, for their indexes.
CREATE TABLE entries (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    expires_at TEXT,
    session_id TEXT,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;

-- Queries answer with the newest first.
CREATE INDEX entries_newest ON entries(scope, revision);

-- The sweep looks for what has expired.
CREATE INDEX entries_expiring ON entries(expires_at) WHERE expires_at IS NOT NULL;

-- What goes with a session.
CREATE INDEX entries_leased ON entries(session_id) WHERE session_id IS NOT NULL;

CREATE TABLE entry_tags (
    scope TEXT NOT NULL,
    tag TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (scope, tag, key)
) WITHOUT ROWID;

-- Keys that were removed, as long as the log tells of it: their versions go on if they are written again.
CREATE TABLE entry_tombstones (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
