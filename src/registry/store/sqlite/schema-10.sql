-- Version 10: the audit log. `at` is in milliseconds since the epoch; `was` and `became` are JSON objects of the members that changed.
CREATE TABLE audit (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  via TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  was TEXT NOT NULL,
  became TEXT NOT NULL,
  request_id TEXT
) STRICT;
CREATE INDEX audit_at ON audit (at, n);
CREATE INDEX audit_subject ON audit (subject, at, n);
CREATE INDEX audit_actor ON audit (actor, at, n);
CREATE INDEX audit_kind ON audit (kind, at, n);
