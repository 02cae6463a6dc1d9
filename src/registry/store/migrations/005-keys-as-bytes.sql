-- Keys as bytes and not as text, in indexes half as large: every payment lands somewhere in the middle of them, and what
-- it lands on is written with its commit. The payments of a payer stand together in the index that keeps them unique, so
-- that an index of payers beside it is not needed.

CREATE TABLE charges_005 (
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
  state TEXT NOT NULL CHECK (
    state = 'claimed' OR state = 'settling' OR state = 'settled' OR state = 'delivered' OR state = 'released'
    OR state = 'failed'
  ),
  owner TEXT,
  lease_until INTEGER NOT NULL,
  claims INTEGER NOT NULL CHECK (claims BETWEEN 1 AND 3),
  attempts INTEGER NOT NULL,
  next_try_at INTEGER,
  settled_transaction TEXT,
  settled_log_index INTEGER,
  reason TEXT,
  failed_by TEXT CHECK (failed_by = 'operator' OR failed_by = 'chain' OR failed_by = 'refusal'),
  asks INTEGER NOT NULL,
  repeats INTEGER NOT NULL,
  undelivered TEXT CHECK (undelivered IN ('upstream_failed', 'answer_lost')),
  undelivered_at INTEGER,
  change_id TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  settled_at INTEGER,
  delivered_at INTEGER,
  CHECK ((state IN ('settled', 'delivered')) = (settled_transaction IS NOT NULL))
) STRICT;
INSERT INTO charges_005 (
  seq, id, network, asset, payer, nonce, credential_sha256, x402_version, scheme, terms_asset, pay_to, amount,
  max_timeout_seconds, asset_name, asset_version, asset_decimals, valid_after, valid_before, route_id,
  route_method, route_pattern, request_method, request_target, price_amount, price_currency, receiver_id,
  customer_id, settle, from_block, state, owner, lease_until, claims, attempts, next_try_at, settled_transaction,
  settled_log_index, reason, failed_by, asks, repeats, undelivered, undelivered_at, change_id, created_at,
  updated_at, settled_at, delivered_at
) SELECT
  seq, id, network, asset, payer, nonce, credential_sha256, x402_version, scheme, terms_asset, pay_to, amount,
  max_timeout_seconds, asset_name, asset_version, asset_decimals, valid_after, valid_before, route_id,
  route_method, route_pattern, request_method, request_target, price_amount, price_currency, receiver_id,
  customer_id, settle, from_block, state, owner, lease_until, claims, attempts, next_try_at, settled_transaction,
  settled_log_index, reason, failed_by, asks, repeats, undelivered, undelivered_at, change_id, created_at,
  updated_at, settled_at, delivered_at
FROM charges ORDER BY seq;

-- Before the table that it refers to: what a charge leaves behind is taken away along with it.
CREATE TABLE charge_answers_005 (seq INTEGER PRIMARY KEY, status INTEGER, headers TEXT, body BLOB) STRICT;
INSERT INTO charge_answers_005 SELECT seq, status, headers, body FROM charge_answers;
DROP TABLE charge_answers;
-- A number is never handed out twice, not even that of a charge which is gone.
DELETE FROM sqlite_sequence WHERE name = 'charges_005';
INSERT INTO sqlite_sequence (name, seq) SELECT 'charges_005', seq FROM sqlite_sequence WHERE name = 'charges';
DROP TABLE charges;
ALTER TABLE charges_005 RENAME TO charges;
CREATE TABLE charge_answers (
  seq INTEGER PRIMARY KEY REFERENCES charges (seq) ON DELETE CASCADE,
  status INTEGER NOT NULL,
  headers TEXT NOT NULL,
  body BLOB NOT NULL
) STRICT;
INSERT INTO charge_answers SELECT seq, status, headers, body FROM charge_answers_005;
DROP TABLE charge_answers_005;

-- Hexadecimal as its bytes, everything else as it stands: no two texts have one key, as long as they are in lower case.
CREATE UNIQUE INDEX charges_payment ON charges (
  CASE WHEN payer GLOB '0x*' THEN coalesce(unhex(substr(payer, 3)), payer) ELSE payer END,
  CASE WHEN nonce GLOB '0x*' THEN coalesce(unhex(substr(nonce, 3)), nonce) ELSE nonce END,
  network,
  CASE WHEN asset GLOB '0x*' THEN coalesce(unhex(substr(asset, 3)), asset) ELSE asset END
);

-- One transfer proves one charge. Where a facilitator alone says so there is no log index, and a transaction counts once.
CREATE UNIQUE INDEX charges_proof ON charges (
  CASE WHEN settled_transaction GLOB '0x*' THEN coalesce(unhex(substr(settled_transaction, 3)), settled_transaction) ELSE settled_transaction END,
  coalesce(settled_log_index, -1),
  network
) WHERE settled_transaction IS NOT NULL;

-- What the reconciler takes on, earliest first.
CREATE INDEX charges_due ON charges (max(lease_until, coalesce(next_try_at, 0))) WHERE state IN ('claimed', 'settling');
CREATE INDEX charges_unsettled ON charges (payer) WHERE state IN ('claimed', 'settling');
CREATE INDEX charges_released ON charges (updated_at) WHERE state = 'released';

-- Lists. An index ends with the row's `seq` by itself.
CREATE INDEX charges_ended ON charges (state)
  WHERE state = 'settled' OR state = 'released' OR state = 'failed';
CREATE INDEX charges_by_route ON charges (route_id);
CREATE INDEX charges_by_customer ON charges (customer_id) WHERE customer_id IS NOT NULL;
