-- The ledger: who is here, where work happens, what there is to do, and the log of what happened.
--
-- Tables and columns that the proposal for a local agent blackboard names keep their names and meaning, because
-- people query this file with their own SQL. Further columns come behind them. Comments stand outside the
-- statements: SQLite stores a statement with its comments and reads it again at every start.
--
-- Indexes are few: each one is paid for by every claim.

-- `ended_at` is when the session completed or was found stale; `joined_revision` the event of its registration;
-- `process` what makes the PID mean one process; `shares_process` whether that process hosts other sessions.
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
);

-- The sweep looks for the agents that were seen longest ago, and among live ones only.
CREATE INDEX agents_live ON agents(last_seen_at) WHERE status IN ('active', 'idle');

-- Ending a session ends its delegates; removing one checks that nothing refers to it.
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

-- `source` is checked in code, because it grows. `claimed_by_name` outlives the session; `fence` is the revision
-- of the claim.
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
);

-- What to do next, and the lists by status.
CREATE INDEX work_items_queue ON work_items(status, priority, created_at);

-- What a session holds, or did.
CREATE INDEX work_items_claimed ON work_items(claimed_by) WHERE claimed_by IS NOT NULL;

-- What was completed today.
CREATE INDEX work_items_completed ON work_items(completed_at) WHERE completed_at IS NOT NULL;

-- An item waits for others. What it waits for may not exist yet, so that column refers to nothing.
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

CREATE INDEX heartbeats_session ON heartbeats(session_id);

CREATE INDEX heartbeats_work_item ON heartbeats(work_item_id) WHERE work_item_id IS NOT NULL;

-- The one log. Ids are given by the program, without gaps; ids and times rise together, so that a question about
-- time is answered by halving the ids. The newest event is never removed, so ids never start again.
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

-- How far each reader has read the log.
CREATE TABLE cursors (
    owner TEXT NOT NULL,
    reader TEXT NOT NULL,
    revision INTEGER NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (owner, reader)
) WITHOUT ROWID;

-- The answers of operations that their callers named, so that a retry changes nothing.
CREATE TABLE operations (
    operation_id TEXT PRIMARY KEY,
    verb TEXT NOT NULL,
    answer TEXT NOT NULL,
    revision INTEGER NOT NULL,
    created_at TEXT NOT NULL
) WITHOUT ROWID;

-- Facts about the board itself: the last known offset of the clock, when pruning is due.
CREATE TABLE marks (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE schema_version (
    version INTEGER PRIMARY KEY,
    applied_at TEXT NOT NULL,
    description TEXT
);
