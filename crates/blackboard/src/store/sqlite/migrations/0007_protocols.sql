-- Protocols that agents define on a board. The built-in ones are part of the program.

-- `template` is the form of the keys, `value_schema` a JSON Schema of the values. Neither is changed later: a protocol is
-- removed and defined again.
CREATE TABLE protocols (
    name TEXT PRIMARY KEY,
    template TEXT NOT NULL,
    level TEXT NOT NULL,
    summary TEXT NOT NULL,
    value_schema TEXT,
    defined_at TEXT NOT NULL,
    revision INTEGER NOT NULL
);
