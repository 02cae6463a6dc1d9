-- Version 14: counters of requests by identity and window, for free requests and quotas. An identity is a keyed digest. A change
-- is known by its id for some minutes, so that one that is sent again counts once.
CREATE TABLE counters (
  scope TEXT NOT NULL,
  window_start INTEGER NOT NULL,
  identity TEXT NOT NULL,
  used INTEGER NOT NULL,
  PRIMARY KEY (scope, window_start, identity)
) STRICT, WITHOUT ROWID;

CREATE TABLE counter_windows (
  scope TEXT NOT NULL,
  window_start INTEGER NOT NULL,
  window_end INTEGER NOT NULL,
  identities INTEGER NOT NULL,
  PRIMARY KEY (scope, window_start)
) STRICT, WITHOUT ROWID;

CREATE TABLE counter_groups (
  scope TEXT NOT NULL,
  window_start INTEGER NOT NULL,
  grp TEXT NOT NULL,
  identities INTEGER NOT NULL,
  PRIMARY KEY (scope, window_start, grp)
) STRICT, WITHOUT ROWID;

CREATE TABLE counter_changes (
  change_id TEXT PRIMARY KEY,
  at INTEGER NOT NULL,
  result TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX counter_changes_at ON counter_changes (at);
