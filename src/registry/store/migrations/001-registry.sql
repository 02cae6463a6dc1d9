-- Routes, the numbered log of their changes, and API keys. The ledger of charges comes with a migration of its own.
PRAGMA application_id = 0x54474154;

-- One row: which registry this is, and the state of its route set. `stamp` is random and new with every write, so that
-- a revision number that a restored backup hands out again is not mistaken for the set that had it before.
CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  registry_id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  stamp TEXT NOT NULL
) STRICT;

-- `seq` never hands out a number twice: the order of creation, and what a list's cursor holds.
CREATE TABLE routes (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  pattern_key TEXT NOT NULL,
  route_pattern TEXT NOT NULL,
  method TEXT NOT NULL,
  amount TEXT NOT NULL,
  currency TEXT NOT NULL,
  name TEXT,
  description TEXT,
  status TEXT NOT NULL CHECK (status IN ('active', 'paused')),
  allow_anonymous INTEGER NOT NULL CHECK (allow_anonymous IN (0, 1)),
  source TEXT,
  receiver_config_id TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  UNIQUE (pattern_key, method)
) STRICT;

-- The last changes, one for each revision: what a feed resumes from. `data` is the event as it was sent.
CREATE TABLE changes (
  revision INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('created', 'updated', 'deleted')),
  data TEXT NOT NULL
) STRICT;

-- `digest` is the SHA-256 of the whole key; the key itself is never stored. `scopes`: names with a space between.
CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  scopes TEXT NOT NULL,
  created_at TEXT NOT NULL,
  revoked_at TEXT
) STRICT;
