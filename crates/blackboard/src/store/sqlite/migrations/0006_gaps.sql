-- Ids of events may have gaps, and the floor is stored.

-- A row is a gap. `first_id` is the id of the event behind it, `ordinal` the number of that event among all that the board
-- ever had, so that the difference of two ordinals is a number of events. A commit of this program leaves no gap, and the
-- table is empty; gaps come with the events of a board that was copied from an engine that skips ids.
CREATE TABLE event_gaps (
    first_id INTEGER PRIMARY KEY,
    ordinal INTEGER NOT NULL UNIQUE
);

-- Behind a gap, the oldest event does not tell up to where the log was pruned.
INSERT INTO marks (name, value)
    SELECT 'floor', oldest - 1 FROM (SELECT min(id) AS oldest FROM events) WHERE oldest > 1;
