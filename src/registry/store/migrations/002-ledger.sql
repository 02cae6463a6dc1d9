-- The ledger: one row for each payment that was claimed. Times are milliseconds since the epoch; integers of money and
-- of the chain's time are decimal text, because they may be larger than 64 bits.

-- `seq` never hands out a number twice: the order of first claims, and what a list's cursor holds.
CREATE TABLE charges (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  network TEXT NOT NULL,
  asset TEXT NOT NULL CHECK (asset = lower(asset)),
  payer TEXT NOT NULL CHECK (payer = lower(payer)),
  nonce TEXT NOT NULL CHECK (nonce = lower(nonce)),
  credential_sha256 TEXT NOT NULL CHECK (length(credential_sha256) = 64),
  x402_version INTEGER NOT NULL CHECK (x402_version IN (1, 2)),
  scheme TEXT NOT NULL,
  terms_asset TEXT NOT NULL,
  pay_to TEXT NOT NULL,
  amount TEXT NOT NULL CHECK (amount GLOB '[1-9]*' AND amount NOT GLOB '*[^0-9]*' AND length(amount) <= 78),
  max_timeout_seconds INTEGER NOT NULL,
  asset_name TEXT NOT NULL,
  asset_version TEXT NOT NULL,
  asset_decimals INTEGER NOT NULL CHECK (asset_decimals BETWEEN 0 AND 255),
  valid_after TEXT NOT NULL CHECK (valid_after NOT GLOB '*[^0-9]*'),
  valid_before TEXT NOT NULL CHECK (valid_before NOT GLOB '*[^0-9]*'),
  route_id TEXT NOT NULL,
  route_method TEXT NOT NULL,
  route_pattern TEXT NOT NULL,
  request_method TEXT NOT NULL,
  request_target TEXT NOT NULL,
  price_amount TEXT NOT NULL,
  price_currency TEXT NOT NULL,
  receiver_id TEXT NOT NULL,
  customer_id TEXT,
  settle TEXT NOT NULL CHECK (settle IN ('before_response', 'before_forward')),
  from_block INTEGER,
  credential TEXT,
  state TEXT NOT NULL CHECK (state IN ('claimed', 'settling', 'settled', 'delivered', 'released', 'failed')),
  owner TEXT,
  lease_until INTEGER NOT NULL,
  claims INTEGER NOT NULL CHECK (claims BETWEEN 1 AND 3),
  attempts INTEGER NOT NULL,
  next_try_at INTEGER,
  settled_transaction TEXT,
  settled_log_index INTEGER,
  reason TEXT,
  failed_by TEXT CHECK (failed_by IN ('operator', 'chain', 'refusal')),
  asks INTEGER NOT NULL,
  repeats INTEGER NOT NULL,
  undelivered TEXT CHECK (undelivered IN ('upstream_failed', 'answer_lost')),
  undelivered_at INTEGER,
  change_id TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  settled_at INTEGER,
  delivered_at INTEGER,
  UNIQUE (network, asset, payer, nonce),
  CHECK ((state IN ('settled', 'delivered')) = (settled_transaction IS NOT NULL)),
  CHECK (state IN ('claimed', 'settling') OR credential IS NULL),
  CHECK (state NOT IN ('claimed', 'settling') OR credential IS NOT NULL)
) STRICT;

-- One transfer proves one charge. Where a facilitator alone says so there is no log index, and a transaction counts once.
CREATE UNIQUE INDEX charges_proof ON charges (network, settled_transaction, coalesce(settled_log_index, -1))
  WHERE settled_transaction IS NOT NULL;

-- What the reconciler takes on, earliest first.
CREATE INDEX charges_due ON charges (max(lease_until, coalesce(next_try_at, 0))) WHERE state IN ('claimed', 'settling');
CREATE INDEX charges_unsettled ON charges (payer) WHERE state IN ('claimed', 'settling');
CREATE INDEX charges_released ON charges (updated_at) WHERE state = 'released';

-- Lists. An index ends with the row's `seq` by itself.
CREATE INDEX charges_ended ON charges (state) WHERE state IN ('settled', 'released', 'failed');
CREATE INDEX charges_by_route ON charges (route_id);
CREATE INDEX charges_by_payer ON charges (payer);
CREATE INDEX charges_by_customer ON charges (customer_id) WHERE customer_id IS NOT NULL;

-- Answers that their payers did not get whole, for the few minutes in which they may fetch them. `headers`: JSON.
CREATE TABLE charge_answers (
  seq INTEGER PRIMARY KEY REFERENCES charges (seq) ON DELETE CASCADE,
  status INTEGER NOT NULL,
  headers TEXT NOT NULL,
  body BLOB NOT NULL
) STRICT;

-- How many charges are in each state, so that a scrape does not count rows. Every transaction that moves
-- charges writes what it changed.
CREATE TABLE charge_counts (
  state TEXT PRIMARY KEY,
  charges INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO charge_counts (state, charges)
  VALUES ('claimed', 0), ('settling', 0), ('settled', 0), ('delivered', 0), ('released', 0), ('failed', 0);

-- Money that moved, by the hour in which it became certain (hours since the epoch). Written with the charge's settlement.
CREATE TABLE charge_sums (
  hour INTEGER NOT NULL,
  route_id TEXT NOT NULL,
  currency TEXT NOT NULL,
  network TEXT NOT NULL,
  asset TEXT NOT NULL,
  asset_decimals INTEGER NOT NULL,
  charges INTEGER NOT NULL,
  amount TEXT NOT NULL CHECK (amount NOT GLOB '*[^0-9]*'),
  PRIMARY KEY (hour, route_id, currency, network, asset, asset_decimals)
) STRICT, WITHOUT ROWID;
