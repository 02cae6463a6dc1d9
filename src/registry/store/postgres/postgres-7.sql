-- Version 7: changes of state, numbered as they are written, while somebody watches them: for streams of charges.
CREATE TABLE charge_changes (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  charge_id text COLLATE "C" NOT NULL,
  state text NOT NULL,
  at bigint NOT NULL
);

-- One row: until when changes are written down, and the number after which none is missing.
CREATE TABLE charge_watch (
  one smallint PRIMARY KEY CHECK (one = 1),
  watched_until bigint NOT NULL,
  told_after bigint NOT NULL
);
INSERT INTO charge_watch (one, watched_until, told_after) VALUES (1, 0, 0);
