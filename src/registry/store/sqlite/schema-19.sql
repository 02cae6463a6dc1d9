-- Version 19: passes that were sold, with their books, and draws on them. Amounts are decimal digits in a pass's own unit; `terms` is
-- a JSON object of texts. What is left and what has lapsed follows from the rest and the time.
CREATE TABLE passes (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  plan TEXT NOT NULL,
  terms_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  scope TEXT NOT NULL,
  route_id TEXT NOT NULL,
  payer TEXT NOT NULL,
  network TEXT NOT NULL,
  amount TEXT NOT NULL,
  currency TEXT NOT NULL,
  terms TEXT NOT NULL,
  sold TEXT NOT NULL,
  drawn TEXT NOT NULL,
  reserved TEXT NOT NULL,
  uses INTEGER NOT NULL,
  lost INTEGER NOT NULL,
  gone INTEGER NOT NULL,
  sold_at INTEGER NOT NULL,
  ends_at INTEGER NOT NULL,
  revoked_at INTEGER,
  is_used_up INTEGER NOT NULL
) STRICT;
CREATE INDEX passes_payer ON passes (payer, plan);
CREATE INDEX passes_plan ON passes (plan, terms_id);
CREATE INDEX passes_ends ON passes (ends_at);
CREATE INDEX passes_revoked ON passes (revoked_at) WHERE revoked_at IS NOT NULL;

CREATE TABLE pass_draws (
  id TEXT PRIMARY KEY,
  pass_id TEXT NOT NULL,
  amount TEXT NOT NULL,
  state TEXT NOT NULL,
  owner TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  key_sha256 TEXT,
  method TEXT,
  target_sha256 TEXT,
  asks INTEGER NOT NULL,
  at INTEGER NOT NULL,
  kept_until INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX pass_draws_reserved ON pass_draws (pass_id, lease_until) WHERE state = 'reserved';
CREATE INDEX pass_draws_lease ON pass_draws (lease_until) WHERE state = 'reserved';
CREATE INDEX pass_draws_kept ON pass_draws (kept_until) WHERE kept_until IS NOT NULL;
CREATE UNIQUE INDEX pass_draws_key ON pass_draws (pass_id, key_sha256) WHERE key_sha256 IS NOT NULL;
