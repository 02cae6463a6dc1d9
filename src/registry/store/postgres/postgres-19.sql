-- Version 19: passes that were sold, with their books, and draws on them. Amounts are decimal digits in a pass's own unit; `terms` is
-- a JSON object of texts. What is left and what has lapsed follows from the rest and the time.
CREATE TABLE passes (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  plan text COLLATE "C" NOT NULL,
  terms_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  scope text COLLATE "C" NOT NULL,
  route_id text NOT NULL,
  payer text COLLATE "C" NOT NULL,
  network text NOT NULL,
  amount text NOT NULL,
  currency text NOT NULL,
  terms text NOT NULL,
  sold text NOT NULL,
  drawn text NOT NULL,
  reserved text NOT NULL,
  uses bigint NOT NULL,
  lost bigint NOT NULL,
  gone bigint NOT NULL,
  sold_at bigint NOT NULL,
  ends_at bigint NOT NULL,
  revoked_at bigint,
  is_used_up bigint NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX passes_payer ON passes (payer, plan);
CREATE INDEX passes_plan ON passes (plan, terms_id);
CREATE INDEX passes_ends ON passes (ends_at);
CREATE INDEX passes_revoked ON passes (revoked_at) WHERE revoked_at IS NOT NULL;

CREATE TABLE pass_draws (
  id text COLLATE "C" PRIMARY KEY,
  pass_id text COLLATE "C" NOT NULL,
  amount text NOT NULL,
  state text COLLATE "C" NOT NULL,
  owner text NOT NULL,
  lease_until bigint NOT NULL,
  key_sha256 text COLLATE "C",
  method text,
  target_sha256 text,
  asks bigint NOT NULL,
  at bigint NOT NULL,
  kept_until bigint
) WITH (fillfactor = 80);
CREATE INDEX pass_draws_reserved ON pass_draws (pass_id) WHERE state = 'reserved';
CREATE INDEX pass_draws_lease ON pass_draws (lease_until) WHERE state = 'reserved';
CREATE INDEX pass_draws_kept ON pass_draws (kept_until) WHERE kept_until IS NOT NULL;
CREATE UNIQUE INDEX pass_draws_key ON pass_draws (pass_id, key_sha256) WHERE key_sha256 IS NOT NULL;
