-- Version 4: sessions of the desk and its tickets: one-time links, downloads, and sign-ins on their way through an OpenID
-- provider. Of every id, key and code only the SHA-256 is kept. Times are milliseconds since the epoch.
CREATE TABLE desk_sessions (
  id TEXT PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
  key_digest BLOB NOT NULL CHECK (length(key_digest) = 32),
  subject TEXT NOT NULL,
  role TEXT NOT NULL,
  via TEXT NOT NULL,
  members TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  not_after INTEGER
) STRICT;

CREATE TABLE desk_tickets (
  digest BLOB PRIMARY KEY CHECK (length(digest) = 32),
  kind TEXT NOT NULL,
  holder TEXT NOT NULL,
  content TEXT NOT NULL,
  ends_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
