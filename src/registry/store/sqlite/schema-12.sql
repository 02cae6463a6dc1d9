-- Version 12: what needs somebody, as each process finds it. Times are in milliseconds since the epoch.
CREATE TABLE attention (
  source TEXT NOT NULL,
  code TEXT NOT NULL,
  subject TEXT NOT NULL,
  severity TEXT NOT NULL,
  detail TEXT NOT NULL,
  found INTEGER NOT NULL,
  link TEXT NOT NULL,
  since INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (source, code, subject)
) STRICT, WITHOUT ROWID;
