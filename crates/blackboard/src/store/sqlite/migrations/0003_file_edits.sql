-- Edited files: who touched which file a moment ago, as the hooks of agents see it.
--
-- Like heartbeats and cursors this is no shared state: no event tells of it, and it goes after a day or with its session.

-- `denied` means that the session wanted to edit the file and was kept from it, because another one has it.
CREATE TABLE file_edits (
    worktree TEXT NOT NULL,
    path TEXT NOT NULL,
    session_id TEXT NOT NULL,
    tool TEXT,
    edited_at TEXT NOT NULL,
    denied INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (worktree, path, session_id)
) WITHOUT ROWID;

-- What goes with a session.
CREATE INDEX file_edits_session ON file_edits(session_id);
