-- Version 6: sums by minute, hour and day, so that no question about a time reads charges. `start` is the number of the step since
-- the epoch; `route_id` is '' for all routes together and 'other' for those that have no row of their own.

-- How requests ended. Minutes are of all routes alone. Few write them, one after the other, so they need no shards.
CREATE TABLE request_totals (
  step text COLLATE "C" NOT NULL CHECK (step IN ('minute', 'hour', 'day')),
  start integer NOT NULL,
  route_id text COLLATE "C" NOT NULL,
  free bigint NOT NULL,
  paid bigint NOT NULL,
  payment_required bigint NOT NULL,
  refused bigint NOT NULL,
  error bigint NOT NULL,
  released bigint NOT NULL,
  discovery bigint NOT NULL,
  PRIMARY KEY (step, start, route_id)
);

-- The time that Tollgate took, as requests in each bucket, over all routes.
CREATE TABLE overhead_totals (
  step text COLLATE "C" NOT NULL CHECK (step IN ('minute', 'hour', 'day')),
  start integer NOT NULL,
  bucket smallint NOT NULL,
  requests bigint NOT NULL,
  PRIMARY KEY (step, start, bucket)
);

-- Money that moved, written with the charge's settlement: by minute, hour and day over all routes; by day of each route, over all
-- networks and assets (''). That of each route by the hour is in `charge_sums`. In shards, as that is.
CREATE TABLE charge_totals (
  step text COLLATE "C" NOT NULL CHECK (step IN ('minute', 'hour', 'day')),
  start integer NOT NULL,
  route_id text COLLATE "C" NOT NULL,
  currency text NOT NULL,
  network text NOT NULL,
  asset text NOT NULL,
  asset_decimals smallint NOT NULL,
  shard smallint NOT NULL,
  charges bigint NOT NULL,
  amount numeric NOT NULL,
  PRIMARY KEY (step, start, route_id, currency, network, asset, asset_decimals, shard)
);

-- Processes that hand counts over: the number of the last batch that was added, and how many never came.
CREATE TABLE totals_sources (
  source text COLLATE "C" PRIMARY KEY,
  seq bigint NOT NULL,
  first_at bigint NOT NULL,
  last_at bigint NOT NULL,
  lost bigint NOT NULL,
  status text
);

-- What was settled before this version.
INSERT INTO charge_totals
SELECT k.step, k.start, k.route_id, s.currency, k.network, k.asset, s.asset_decimals, s.shard, sum(s.charges), sum(s.amount)
FROM charge_sums AS s
CROSS JOIN LATERAL (VALUES ('hour', s.hour, '', s.network, s.asset), ('day', s.hour / 24, '', s.network, s.asset),
  ('day', s.hour / 24, s.route_id, '', '')) AS k (step, start, route_id, network, asset)
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8;
