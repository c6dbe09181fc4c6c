CREATE TABLE reservation_usage (
    reservation TEXT NOT NULL PRIMARY KEY,
    tokens INTEGER NOT NULL
) WITHOUT ROWID;
