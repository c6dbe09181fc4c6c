CREATE TABLE notices (
    provider TEXT NOT NULL,
    length INTEGER NOT NULL,
    budget INTEGER NOT NULL,
    threshold INTEGER NOT NULL,
    board TEXT NOT NULL,
    session TEXT NOT NULL,
    minute INTEGER NOT NULL,
    PRIMARY KEY (provider, length, budget, threshold, board, session)
) WITHOUT ROWID;
