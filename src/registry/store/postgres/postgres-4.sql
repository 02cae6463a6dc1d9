-- Version 4: sessions of the desk and its tickets: one-time links, downloads, and sign-ins on their way through an OpenID
-- provider. Of every id, key and code only the SHA-256 is kept. Times are milliseconds since the epoch.
CREATE TABLE desk_sessions (
  id text PRIMARY KEY,
  digest bytea NOT NULL UNIQUE CHECK (length(digest) = 32),
  key_digest bytea NOT NULL CHECK (length(key_digest) = 32),
  subject text NOT NULL,
  role text NOT NULL,
  via text NOT NULL,
  members text NOT NULL,
  created_at bigint NOT NULL,
  seen_at bigint NOT NULL,
  not_after bigint
);

CREATE TABLE desk_tickets (
  digest bytea PRIMARY KEY CHECK (length(digest) = 32),
  kind text NOT NULL,
  holder text NOT NULL,
  content text NOT NULL,
  ends_at bigint NOT NULL
);
