-- Version 1 of the store: routes, the numbered log of their changes, API keys, and the ledger of charges. A later version is a
-- file of its own that brings this one up to date (database.ts).
PRAGMA application_id = 0x54474154;

-- One row: which registry this is, and the state of its route set. `stamp` is random and new with every write, so that
-- a revision number that a restored backup hands out again is not mistaken for the set that had it before.
CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  registry_id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  stamp TEXT NOT NULL
) STRICT;

-- `seq` is the revision that made the route: the order of creation, and what a list's cursor holds. `written_by` is who wrote
-- the route last: `config`, `dashboard:SUBJECT` or `api_key:NAME`. `declared`: what the configuration said about it when it
-- was last applied, as JSON.
CREATE TABLE routes (
  seq INTEGER PRIMARY KEY,
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
  written_by TEXT NOT NULL,
  declared TEXT,
  UNIQUE (pattern_key, method)
) STRICT;

-- The last changes, one for each revision: what a feed resumes from, and who changed what from what. `before` and `after`
-- are the route as JSON, null if there was none; `seq` and `declared` are those of the route.
CREATE TABLE changes (
  revision INTEGER PRIMARY KEY,
  stamp TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('created', 'updated', 'deleted')),
  route_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at TEXT NOT NULL,
  written_by TEXT NOT NULL,
  before TEXT,
  after TEXT,
  declared TEXT
) STRICT;

CREATE INDEX changes_of_route ON changes (route_id, revision);

-- `digest` is the SHA-256 of the whole key; the key itself is never stored. `scopes`: names with a space between.
CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  scopes TEXT NOT NULL,
  created_at TEXT NOT NULL,
  revoked_at TEXT
) STRICT;
-- API keys are looked up by the SHA-256 of the whole key. What the order of digests tells says nothing about a key.
CREATE UNIQUE INDEX api_keys_digest ON api_keys (digest);

-- The ledger: one row for each payment that was claimed. Times are milliseconds since the epoch, a deadline is in seconds;
-- integers of money are decimal text, because they may be larger than 64 bits.

-- `seq` never hands out a number twice: the order of first claims, and what a list's cursor holds. `version` is raised by
-- every change but the renewal of a lease. `network` to `unique_key` are the payment's key, `asset` in its one spelling;
-- `receiver_id` to `terms` are the way that it was paid in, `way_asset` as it was configured, and `terms`, as JSON, what only
-- the network's rail reads.
CREATE TABLE charges (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL DEFAULT 1,
  id TEXT NOT NULL UNIQUE,
  network TEXT NOT NULL,
  asset TEXT NOT NULL CHECK (asset NOT GLOB '0x*' OR asset = lower(asset)),
  payer TEXT NOT NULL CHECK (payer NOT GLOB '0x*' OR payer = lower(payer)),
  unique_key TEXT NOT NULL CHECK (unique_key NOT GLOB '0x*' OR unique_key = lower(unique_key)),
  credential_sha256 BLOB NOT NULL CHECK (length(credential_sha256) = 32),
  x402_version INTEGER NOT NULL CHECK (x402_version IN (1, 2)),
  receiver_id TEXT NOT NULL,
  scheme TEXT NOT NULL,
  way_asset TEXT NOT NULL,
  asset_decimals INTEGER NOT NULL CHECK (asset_decimals BETWEEN 0 AND 255),
  pay_to_address TEXT NOT NULL,
  max_timeout_seconds INTEGER NOT NULL,
  terms TEXT NOT NULL,
  amount TEXT NOT NULL CHECK (amount GLOB '[1-9]*' AND amount NOT GLOB '*[^0-9]*' AND length(amount) <= 78),
  deadline INTEGER,
  route_id TEXT NOT NULL,
  route_method TEXT NOT NULL,
  route_pattern TEXT NOT NULL,
  request_method TEXT NOT NULL,
  request_path TEXT NOT NULL,
  target_sha256 BLOB NOT NULL CHECK (length(target_sha256) = 32),
  request_id TEXT,
  price_amount TEXT NOT NULL,
  price_currency TEXT NOT NULL,
  customer_id TEXT,
  settle TEXT NOT NULL CHECK (settle IN ('before_response', 'before_forward')),
  state TEXT NOT NULL CHECK (
    state = 'claimed' OR state = 'settling' OR state = 'settled' OR state = 'delivered' OR state = 'released'
    OR state = 'failed'
  ),
  owner TEXT,
  lease_until INTEGER NOT NULL,
  claims INTEGER NOT NULL CHECK (claims BETWEEN 1 AND 10),
  claimed_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  via TEXT,
  looks INTEGER NOT NULL,
  look_at INTEGER,
  search TEXT,
  settled_transaction TEXT,
  settled_log_index INTEGER,
  reason TEXT,
  failed_by TEXT CHECK (failed_by = 'operator' OR failed_by = 'chain' OR failed_by = 'refusal'),
  asks INTEGER NOT NULL,
  asks_after_lost_answer INTEGER NOT NULL,
  asks_after_failure INTEGER NOT NULL,
  asks_after_upload INTEGER NOT NULL,
  asks_after_death INTEGER NOT NULL,
  undelivered TEXT CHECK (
    undelivered IN ('answer_lost', 'answer_dropped', 'upstream_failed', 'upload_broken_off', 'process_died')
  ),
  head_sent INTEGER NOT NULL CHECK (head_sent IN (0, 1)),
  partial INTEGER NOT NULL CHECK (partial IN (0, 1)),
  change_id TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  settled_at INTEGER,
  delivered_at INTEGER,
  refunded_at INTEGER,
  refund_note TEXT,
  CHECK ((state IN ('settled', 'delivered')) = (settled_transaction IS NOT NULL))
) STRICT;

-- Keys as bytes and not as text, in indexes half as large: every payment lands somewhere in the middle of them, and what it
-- lands on is written with its commit. Hexadecimal as its bytes, everything else as it stands: no two texts have one key, as
-- long as they are in lower case. The payments of a payer stand together, so that an index of payers is not needed.
CREATE UNIQUE INDEX charges_payment ON charges (
  CASE WHEN payer GLOB '0x*' THEN coalesce(unhex(substr(payer, 3)), payer) ELSE payer END,
  CASE WHEN unique_key GLOB '0x*' THEN coalesce(unhex(substr(unique_key, 3)), unique_key) ELSE unique_key END,
  network,
  CASE WHEN asset GLOB '0x*' THEN coalesce(unhex(substr(asset, 3)), asset) ELSE asset END
);

-- One transfer proves one charge. A transaction may hold several: only who knows which one is meant is compared.
CREATE UNIQUE INDEX charges_proof ON charges (
  CASE WHEN settled_transaction GLOB '0x*' THEN coalesce(unhex(substr(settled_transaction, 3)), settled_transaction) ELSE settled_transaction END,
  settled_log_index,
  network
) WHERE settled_log_index IS NOT NULL;

-- Charges without an owner, earliest first.
CREATE INDEX charges_due ON charges (max(lease_until, coalesce(look_at, 0))) WHERE state IN ('claimed', 'settling');
CREATE INDEX charges_unsettled ON charges (payer) WHERE state IN ('claimed', 'settling');
CREATE INDEX charges_released ON charges (updated_at) WHERE state = 'released';

-- Lists. An index ends with the row's `seq` by itself.
CREATE INDEX charges_ended ON charges (state)
  WHERE state = 'settled' OR state = 'released' OR state = 'failed';
CREATE INDEX charges_by_route ON charges (route_id);
CREATE INDEX charges_by_customer ON charges (customer_id) WHERE customer_id IS NOT NULL;

-- While a charge is claimed or settling, and no longer.
CREATE TABLE charge_credentials (
  seq INTEGER PRIMARY KEY,
  credential TEXT NOT NULL
) STRICT;

-- Answers that their payers did not get whole, for the day in which they may fetch them. `headers`: JSON.
CREATE TABLE charge_answers (
  seq INTEGER PRIMARY KEY REFERENCES charges (seq) ON DELETE CASCADE,
  status INTEGER NOT NULL,
  headers TEXT NOT NULL,
  body BLOB NOT NULL
) STRICT;

-- How many charges are in each state, so that a scrape does not count rows. Every transaction that moves charges writes what
-- it changed.
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
