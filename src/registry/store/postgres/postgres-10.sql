-- Version 10: the audit log. `at` is in milliseconds since the epoch; `was` and `became` are JSON objects of the members that changed.
CREATE TABLE audit (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  actor text COLLATE "C" NOT NULL,
  via text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  was text NOT NULL,
  became text NOT NULL,
  request_id text
);
CREATE INDEX audit_at ON audit (at, n);
CREATE INDEX audit_subject ON audit (subject, at, n);
CREATE INDEX audit_actor ON audit (actor, at, n);
CREATE INDEX audit_kind ON audit (kind, at, n);
