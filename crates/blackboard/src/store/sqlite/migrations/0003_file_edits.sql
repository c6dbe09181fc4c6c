-- Edited files: who touched which file a moment ago, as the hooks of agents see it.
--
-- Like heartbeats and cursors this is no shared state: no event tells of it, and it goes after a day or with its session.

-- `denied_at` says that the session wanted to edit the file and was kept from it, because another one has it; it may have
-- edited it before. `noted_at` is the later of both.
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

-- What goes with a session.
CREATE INDEX file_edits_session ON file_edits(session_id);
