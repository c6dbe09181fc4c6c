-- Pages of mapped scopes. They are derived from entries, and have keys and revisions of entries, not their values. Which scopes
-- are mapped is in `marks`: every process parses this schema when it opens the board.

-- `content` is JSON: the mapping that the page belongs to, and the keys, revisions and tokens of its entries.
CREATE TABLE pages (
    scope TEXT NOT NULL,
    locality TEXT NOT NULL,
    hash TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (scope, locality, hash)
) WITHOUT ROWID;
