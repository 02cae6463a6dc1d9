-- Version 1 of the store: routes, the numbered log of their changes, API keys, and the ledger of charges. It is made in a schema
-- of its own, in one transaction. A later version only adds: programs of the version before go on beside it.

-- One row: which registry this is, and the state of its route set and of its API keys. `stamp` is random and new with every
-- write of routes. Who writes routes holds this row to the end, so that revisions come in the order of their commits.
CREATE TABLE meta (
  one smallint PRIMARY KEY CHECK (one = 1),
  schema_version integer NOT NULL,
  -- Programs that know no newer schema than this must not use it.
  least_reader integer NOT NULL,
  registry_id text NOT NULL,
  revision bigint NOT NULL,
  stamp text NOT NULL,
  keys_revision bigint NOT NULL,
  -- Digests of settings that all registries on this store should have alike: those of the one that started last.
  receivers_sha256 text,
  api_keys_sha256 text
);

-- `seq` is the revision that made the route. `written_by`: `config`, `dashboard:SUBJECT` or `api_key:NAME`. `declared`: what
-- the configuration said about it when it was last applied, as JSON.
CREATE TABLE routes (
  seq bigint PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  pattern_key text COLLATE "C" NOT NULL,
  route_pattern text NOT NULL,
  method text COLLATE "C" NOT NULL,
  amount text NOT NULL,
  currency text NOT NULL,
  name text,
  description text,
  status text NOT NULL CHECK (status IN ('active', 'paused')),
  allow_anonymous smallint NOT NULL CHECK (allow_anonymous IN (0, 1)),
  source text,
  receiver_config_id text,
  created_at text NOT NULL,
  updated_at text NOT NULL,
  written_by text NOT NULL,
  declared text,
  UNIQUE (pattern_key, method)
);

-- The last changes, one for each revision: what a feed resumes from, and who changed what from what.
CREATE TABLE changes (
  revision bigint PRIMARY KEY,
  stamp text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('created', 'updated', 'deleted')),
  route_id text COLLATE "C" NOT NULL,
  seq bigint NOT NULL,
  at text NOT NULL,
  written_by text NOT NULL,
  before text,
  after text,
  declared text
);
CREATE INDEX changes_of_route ON changes (route_id, revision);

-- `digest` is the SHA-256 of the whole key; the key itself is never stored.
CREATE TABLE api_keys (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  digest bytea NOT NULL UNIQUE CHECK (length(digest) = 32),
  scopes text NOT NULL,
  created_at text NOT NULL,
  revoked_at text
);

-- The ledger: one row for each payment that was claimed. Times are milliseconds since the epoch by the clock of this database, a
-- deadline is in seconds. A step of a charge is written in place, without a new entry in any index, if no column that an
-- index names has changed: so no index names `state` or `lease_until`, but `is_open` and `unpaid_at`, which change once.
CREATE TABLE charges (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  version integer NOT NULL DEFAULT 1,
  id text COLLATE "C" NOT NULL UNIQUE,
  network text COLLATE "C" NOT NULL,
  asset text COLLATE "C" NOT NULL,
  payer text COLLATE "C" NOT NULL,
  unique_key text COLLATE "C" NOT NULL,
  credential_sha256 bytea NOT NULL CHECK (length(credential_sha256) = 32),
  x402_version smallint NOT NULL CHECK (x402_version IN (1, 2)),
  receiver_id text NOT NULL,
  scheme text NOT NULL,
  way_asset text NOT NULL,
  asset_decimals smallint NOT NULL CHECK (asset_decimals BETWEEN 0 AND 255),
  pay_to_address text NOT NULL,
  max_timeout_seconds integer NOT NULL,
  terms text NOT NULL,
  amount numeric(78, 0) NOT NULL CHECK (amount > 0),
  deadline bigint,
  route_id text COLLATE "C" NOT NULL,
  route_method text NOT NULL,
  route_pattern text NOT NULL,
  request_method text NOT NULL,
  request_path text NOT NULL,
  target_sha256 bytea NOT NULL CHECK (length(target_sha256) = 32),
  request_id text,
  price_amount text NOT NULL,
  price_currency text NOT NULL,
  customer_id text COLLATE "C",
  settle text NOT NULL CHECK (settle IN ('before_response', 'before_forward')),
  state text NOT NULL CHECK (state IN ('claimed', 'settling', 'settled', 'delivered', 'released', 'failed')),
  owner text,
  lease_until bigint NOT NULL,
  claims integer NOT NULL CHECK (claims BETWEEN 1 AND 10),
  claimed_at bigint NOT NULL,
  attempts integer NOT NULL,
  via text,
  looks integer NOT NULL,
  look_at bigint,
  search text,
  settled_transaction text COLLATE "C",
  settled_log_index integer,
  reason text,
  failed_by text CHECK (failed_by IN ('operator', 'chain', 'refusal')),
  asks integer NOT NULL,
  asks_after_lost_answer integer NOT NULL,
  asks_after_failure integer NOT NULL,
  asks_after_upload integer NOT NULL,
  asks_after_death integer NOT NULL,
  undelivered text CHECK (
    undelivered IN ('answer_lost', 'answer_dropped', 'upstream_failed', 'upload_broken_off', 'process_died')
  ),
  head_sent smallint NOT NULL CHECK (head_sent IN (0, 1)),
  partial smallint NOT NULL CHECK (partial IN (0, 1)),
  change_id text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  settled_at bigint,
  delivered_at bigint,
  refunded_at bigint,
  refund_note text,
  -- While it is claimed or settling, and no longer.
  credential text,
  -- An answer that its payer did not get whole, for the day in which it may be fetched. `answer_headers`: JSON.
  answer_status smallint,
  answer_headers text,
  answer_body bytea,
  is_open boolean GENERATED ALWAYS AS (state IN ('claimed', 'settling')) STORED,
  unpaid_at bigint GENERATED ALWAYS AS (CASE WHEN state IN ('released', 'failed') THEN updated_at END) STORED,
  CHECK ((state IN ('settled', 'delivered')) = (settled_transaction IS NOT NULL)),
  CHECK ((credential IS NOT NULL) = (state IN ('claimed', 'settling')))
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX charges_payment ON charges (payer, unique_key, network, asset);
-- One transfer proves one charge. A transaction may hold several: only who knows which one is meant is compared.
CREATE UNIQUE INDEX charges_proof ON charges (settled_transaction, settled_log_index, network)
  WHERE settled_log_index IS NOT NULL;
CREATE INDEX charges_open ON charges (payer, network) WHERE is_open;
CREATE INDEX charges_unpaid ON charges (unpaid_at) WHERE unpaid_at IS NOT NULL;
CREATE INDEX charges_by_route ON charges (route_id, seq);
CREATE INDEX charges_by_customer ON charges (customer_id, seq) WHERE customer_id IS NOT NULL;

-- Charges that are settled and not delivered: few, and those that may be owed are among them.
CREATE TABLE charges_undelivered (
  seq bigint PRIMARY KEY
);

-- How many charges are in each state, and money that moved by the hour in which that became certain (hours since the epoch).
-- Both in shards that are added up when they are read: writers that have nothing to do with each other meet on no row.
CREATE TABLE charge_counts (
  state text NOT NULL,
  shard smallint NOT NULL,
  charges bigint NOT NULL,
  PRIMARY KEY (state, shard)
);
CREATE TABLE charge_sums (
  hour integer NOT NULL,
  route_id text COLLATE "C" NOT NULL,
  currency text NOT NULL,
  network text NOT NULL,
  asset text NOT NULL,
  asset_decimals smallint NOT NULL,
  shard smallint NOT NULL,
  charges bigint NOT NULL,
  amount numeric NOT NULL,
  PRIMARY KEY (hour, route_id, currency, network, asset, asset_decimals, shard)
);

-- What one process does for all: which run does it, until when it need not come back.
CREATE TABLE charge_work (
  name text PRIMARY KEY,
  run text NOT NULL,
  lease_until bigint NOT NULL
);
