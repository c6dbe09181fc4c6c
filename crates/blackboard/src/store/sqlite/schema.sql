CREATE TABLE agents (
    session_id TEXT PRIMARY KEY,
    agent_name TEXT NOT NULL,
    pid INTEGER,
    parent_id TEXT REFERENCES agents(session_id),
    project TEXT,
    current_work TEXT,
    status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'idle', 'completed', 'stale')),
    started_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,
    metadata TEXT,
    last_beat_at TEXT NOT NULL,
    ended_at TEXT,
    progress TEXT,
    process TEXT,
    shares_process INTEGER NOT NULL DEFAULT 0,
    joined_revision INTEGER NOT NULL,
    revision INTEGER NOT NULL
, own_work TEXT);

CREATE INDEX agents_live ON agents(last_seen_at) WHERE status IN ('active', 'idle');

CREATE INDEX agents_parent ON agents(parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE projects (
    project_id TEXT PRIMARY KEY,
    display_name TEXT NOT NULL,
    local_path TEXT,
    remote_repo TEXT,
    registered_at TEXT NOT NULL,
    metadata TEXT,
    revision INTEGER NOT NULL
);

CREATE TABLE work_items (
    item_id TEXT PRIMARY KEY,
    project_id TEXT REFERENCES projects(project_id),
    title TEXT NOT NULL,
    description TEXT,
    source TEXT NOT NULL,
    source_ref TEXT,
    status TEXT NOT NULL DEFAULT 'available' CHECK (status IN ('available', 'claimed', 'completed', 'blocked')),
    priority TEXT NOT NULL DEFAULT 'P2' CHECK (priority IN ('P1', 'P2', 'P3')),
    claimed_by TEXT REFERENCES agents(session_id),
    claimed_at TEXT,
    completed_at TEXT,
    blocked_by TEXT,
    created_at TEXT NOT NULL,
    metadata TEXT,
    claimed_by_name TEXT,
    fence INTEGER,
    revision INTEGER NOT NULL
, summary TEXT);

CREATE INDEX work_items_queue ON work_items(status, priority, created_at);

CREATE INDEX work_items_claimed ON work_items(claimed_by) WHERE claimed_by IS NOT NULL;

CREATE INDEX work_items_completed ON work_items(completed_at) WHERE completed_at IS NOT NULL;

CREATE TABLE work_dependencies (
    item_id TEXT NOT NULL REFERENCES work_items(item_id),
    blocked_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (item_id, blocked_by)
) WITHOUT ROWID;

CREATE INDEX work_dependencies_blocked_by ON work_dependencies(blocked_by);

CREATE TABLE heartbeats (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES agents(session_id),
    timestamp TEXT NOT NULL,
    progress TEXT,
    work_item_id TEXT REFERENCES work_items(item_id)
);

CREATE INDEX heartbeats_work_item ON heartbeats(work_item_id) WHERE work_item_id IS NOT NULL;

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    timestamp TEXT NOT NULL,
    event_type TEXT NOT NULL,
    actor_id TEXT,
    target_id TEXT,
    target_type TEXT,
    summary TEXT NOT NULL,
    metadata TEXT,
    commit_id INTEGER NOT NULL
);

CREATE TABLE cursors (
    owner TEXT NOT NULL,
    reader TEXT NOT NULL,
    revision INTEGER NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (owner, reader)
) WITHOUT ROWID;

CREATE TABLE operations (
    operation_id TEXT PRIMARY KEY,
    verb TEXT NOT NULL,
    answer TEXT NOT NULL,
    revision INTEGER NOT NULL,
    created_at TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE marks (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE schema_version (
    version INTEGER PRIMARY KEY,
    applied_at TEXT NOT NULL,
    description TEXT
);

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

CREATE TABLE entries (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    expires_at TEXT,
    session_id TEXT, access_count INTEGER,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;

CREATE INDEX entries_newest ON entries(scope, revision);

CREATE INDEX entries_expiring ON entries(expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX entries_leased ON entries(session_id) WHERE session_id IS NOT NULL;

CREATE TABLE entry_tags (
    scope TEXT NOT NULL,
    tag TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (scope, tag, key)
) WITHOUT ROWID;

CREATE TABLE entry_tombstones (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;

CREATE TABLE file_edits (
    worktree TEXT NOT NULL,
    path TEXT NOT NULL,
    session_id TEXT NOT NULL,
    tool TEXT,
    noted_at TEXT NOT NULL,
    edited_at TEXT,
    denied_at TEXT,
    PRIMARY KEY (worktree, path, session_id)
) WITHOUT ROWID;

CREATE INDEX file_edits_session ON file_edits(session_id);

CREATE UNIQUE INDEX heartbeats_key ON heartbeats(session_id, timestamp);

CREATE TABLE event_gaps (
    first_id INTEGER PRIMARY KEY,
    ordinal INTEGER NOT NULL UNIQUE
);

CREATE TABLE protocols (
    name TEXT PRIMARY KEY,
    template TEXT NOT NULL,
    level TEXT NOT NULL,
    summary TEXT NOT NULL,
    value_schema TEXT,
    defined_at TEXT NOT NULL,
    revision INTEGER NOT NULL
);

CREATE INDEX entries_least_used ON entries(scope, access_count, revision) WHERE access_count IS NOT NULL;

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

CREATE TABLE pages (
    scope TEXT NOT NULL,
    locality TEXT NOT NULL,
    hash TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (scope, locality, hash)
) WITHOUT ROWID;

-- Written by BLACKBOARD_WRITE_SNAPSHOTS=1 cargo test -p blackboard --lib schema_file
