CREATE TABLE newest (
    id INTEGER PRIMARY KEY,
    minute INTEGER NOT NULL,
    source INTEGER NOT NULL,
    input INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reasoning INTEGER NOT NULL
);
