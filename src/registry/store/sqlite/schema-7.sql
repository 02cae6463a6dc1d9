-- Version 7: changes of state, numbered in the order of their commits, while somebody watches them: for streams of charges.
CREATE TABLE charge_changes (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  charge_id TEXT NOT NULL,
  state TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;

-- One row: until when changes are written down, and the number after which none is missing.
CREATE TABLE charge_watch (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  watched_until INTEGER NOT NULL,
  told_after INTEGER NOT NULL
) STRICT;
INSERT INTO charge_watch (one, watched_until, told_after) VALUES (1, 0, 0);
