-- The schema of the proposal, with its indexes: what the product's own is measured against.

CREATE TABLE agents (
    session_id    TEXT PRIMARY KEY,
    agent_name    TEXT NOT NULL,
    pid           INTEGER,
    parent_id     TEXT,
    project       TEXT,
    current_work  TEXT,
    status        TEXT NOT NULL DEFAULT 'active'
                  CHECK (status IN ('active', 'idle', 'completed', 'stale')),
    started_at    TEXT NOT NULL,
    last_seen_at  TEXT NOT NULL,
    metadata      TEXT,

    FOREIGN KEY (parent_id) REFERENCES agents(session_id)
);

CREATE INDEX idx_agents_status ON agents(status);
CREATE INDEX idx_agents_project ON agents(project);
CREATE INDEX idx_agents_parent ON agents(parent_id);
CREATE INDEX idx_agents_last_seen ON agents(last_seen_at);

CREATE TABLE projects (
    project_id    TEXT PRIMARY KEY,
    display_name  TEXT NOT NULL,
    local_path    TEXT,
    remote_repo   TEXT,
    registered_at TEXT NOT NULL,
    metadata      TEXT
);

CREATE TABLE work_items (
    item_id       TEXT PRIMARY KEY,
    project_id    TEXT,
    title         TEXT NOT NULL,
    description   TEXT,
    source        TEXT NOT NULL
                  CHECK (source IN ('github', 'local', 'operator')),
    source_ref    TEXT,
    status        TEXT NOT NULL DEFAULT 'available'
                  CHECK (status IN ('available', 'claimed', 'completed', 'blocked')),
    priority      TEXT DEFAULT 'P2'
                  CHECK (priority IN ('P1', 'P2', 'P3')),
    claimed_by    TEXT,
    claimed_at    TEXT,
    completed_at  TEXT,
    blocked_by    TEXT,
    created_at    TEXT NOT NULL,
    metadata      TEXT,

    FOREIGN KEY (project_id) REFERENCES projects(project_id),
    FOREIGN KEY (claimed_by) REFERENCES agents(session_id)
);

CREATE INDEX idx_work_items_status ON work_items(status);
CREATE INDEX idx_work_items_project ON work_items(project_id);
CREATE INDEX idx_work_items_claimed_by ON work_items(claimed_by);
CREATE INDEX idx_work_items_priority ON work_items(priority, status);

CREATE TABLE heartbeats (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id    TEXT NOT NULL,
    timestamp     TEXT NOT NULL,
    progress      TEXT,
    work_item_id  TEXT,

    FOREIGN KEY (session_id) REFERENCES agents(session_id),
    FOREIGN KEY (work_item_id) REFERENCES work_items(item_id)
);

CREATE INDEX idx_heartbeats_session ON heartbeats(session_id, timestamp);
CREATE INDEX idx_heartbeats_timestamp ON heartbeats(timestamp);

CREATE TABLE events (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    timestamp     TEXT NOT NULL,
    event_type    TEXT NOT NULL
                  CHECK (event_type IN (
                      'agent_registered', 'agent_deregistered', 'agent_stale',
                      'agent_recovered',
                      'work_claimed', 'work_released', 'work_completed',
                      'work_blocked', 'work_created',
                      'project_registered', 'project_updated',
                      'heartbeat_received',
                      'stale_locks_released'
                  )),
    actor_id      TEXT,
    target_id     TEXT,
    target_type   TEXT
                  CHECK (target_type IN ('agent', 'work_item', 'project')),
    summary       TEXT NOT NULL,
    metadata      TEXT
);

CREATE INDEX idx_events_timestamp ON events(timestamp);
CREATE INDEX idx_events_type ON events(event_type);
CREATE INDEX idx_events_actor ON events(actor_id);
