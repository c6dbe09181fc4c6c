-- Heartbeats are rows like others: each one has a key, its session and its time.

-- Two heartbeats that a session sent in one millisecond become one, the later.
DELETE FROM heartbeats WHERE id NOT IN (SELECT max(id) FROM heartbeats GROUP BY session_id, timestamp);

DROP INDEX heartbeats_session;

CREATE UNIQUE INDEX heartbeats_key ON heartbeats(session_id, timestamp);
