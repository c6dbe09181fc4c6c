CREATE TABLE state (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE parts (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    scope TEXT NOT NULL,
    documents INTEGER NOT NULL,
    words INTEGER NOT NULL,
    UNIQUE (kind, scope)
);

CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    part INTEGER NOT NULL,
    hash INTEGER NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    terms BLOB NOT NULL
);

CREATE INDEX documents_by_hash ON documents (hash);

CREATE TABLE sizes (
    block INTEGER PRIMARY KEY,
    data BLOB NOT NULL
);

CREATE TABLE terms (
    id INTEGER PRIMARY KEY,
    term TEXT NOT NULL UNIQUE
);

CREATE TABLE postings (
    term INTEGER NOT NULL,
    part INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (term, part, first)
) WITHOUT ROWID;
