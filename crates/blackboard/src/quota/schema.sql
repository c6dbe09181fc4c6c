CREATE TABLE marks (
    name TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE seen (
    id INTEGER PRIMARY KEY,
    minute INTEGER NOT NULL
);

CREATE TABLE sources (
    id INTEGER PRIMARY KEY,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    board TEXT NOT NULL,
    session TEXT NOT NULL,
    agent TEXT NOT NULL,
    item TEXT NOT NULL,
    UNIQUE (provider, model, board, session, agent, item)
);

CREATE TABLE buckets (
    width INTEGER NOT NULL,
    start INTEGER NOT NULL,
    source INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    input INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    PRIMARY KEY (width, start, source)
) WITHOUT ROWID;

CREATE TABLE items (
    board TEXT NOT NULL,
    item TEXT NOT NULL,
    minute INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    input INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    PRIMARY KEY (board, item)
) WITHOUT ROWID;

CREATE TABLE limits (
    provider TEXT NOT NULL,
    length INTEGER NOT NULL,
    used REAL NOT NULL,
    resets_at INTEGER NOT NULL,
    reported_at INTEGER NOT NULL,
    PRIMARY KEY (provider, length)
) WITHOUT ROWID;

CREATE TABLE reservations (
    id TEXT NOT NULL PRIMARY KEY,
    provider TEXT NOT NULL,
    board TEXT NOT NULL,
    session TEXT NOT NULL,
    agent TEXT NOT NULL,
    item TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
