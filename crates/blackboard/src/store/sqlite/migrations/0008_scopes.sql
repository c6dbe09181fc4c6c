-- Scopes have policies.

-- A scope without a row has none. `entries` is the number of its entries, and has a value only with `max_entries`: every commit that
-- adds or removes an entry of the scope changes it. `validation` is a JSON list of `{"keys", "type"}`.
CREATE TABLE scopes (
    scope TEXT PRIMARY KEY,
    visibility TEXT NOT NULL,
    ttl_ms INTEGER,
    max_entries INTEGER,
    eviction TEXT NOT NULL,
    validation TEXT,
    entries INTEGER,
    created_at TEXT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    updated_by TEXT NOT NULL,
    revision INTEGER NOT NULL,
    evicting_since INTEGER NOT NULL
) WITHOUT ROWID;

-- `access_count` of the metadata, without a lease. It has no value in rows that older programs wrote: a scope that evicts by it evicts those
-- first.
ALTER TABLE entries ADD COLUMN access_count INTEGER;

CREATE INDEX entries_least_used ON entries(scope, access_count, revision) WHERE access_count IS NOT NULL;
