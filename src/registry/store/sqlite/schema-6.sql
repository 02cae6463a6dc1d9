-- Version 6: sums by minute, hour and day, so that no question about a time reads charges. `start` is the number of the step since
-- the epoch; `route_id` is '' for all routes together and 'other' for those that have no row of their own.

-- How requests ended. Minutes are of all routes alone.
CREATE TABLE request_totals (
  step TEXT NOT NULL CHECK (step IN ('minute', 'hour', 'day')),
  start INTEGER NOT NULL,
  route_id TEXT NOT NULL,
  free INTEGER NOT NULL,
  paid INTEGER NOT NULL,
  payment_required INTEGER NOT NULL,
  refused INTEGER NOT NULL,
  error INTEGER NOT NULL,
  released INTEGER NOT NULL,
  discovery INTEGER NOT NULL,
  PRIMARY KEY (step, start, route_id)
) STRICT, WITHOUT ROWID;

-- The time that Tollgate took, as requests in each bucket, over all routes.
CREATE TABLE overhead_totals (
  step TEXT NOT NULL CHECK (step IN ('minute', 'hour', 'day')),
  start INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  PRIMARY KEY (step, start, bucket)
) STRICT, WITHOUT ROWID;

-- Money that moved, written with the charge's settlement: by minute, hour and day over all routes; by day of each route, over all
-- networks and assets (''). That of each route by the hour is in `charge_sums`.
CREATE TABLE charge_totals (
  step TEXT NOT NULL CHECK (step IN ('minute', 'hour', 'day')),
  start INTEGER NOT NULL,
  route_id TEXT NOT NULL,
  currency TEXT NOT NULL,
  network TEXT NOT NULL,
  asset TEXT NOT NULL,
  asset_decimals INTEGER NOT NULL,
  charges INTEGER NOT NULL,
  amount TEXT NOT NULL CHECK (amount NOT GLOB '*[^0-9]*'),
  PRIMARY KEY (step, start, route_id, currency, network, asset, asset_decimals)
) STRICT, WITHOUT ROWID;

-- Processes that hand counts over: the number of the last batch that was added, and how many never came.
CREATE TABLE totals_sources (
  source TEXT PRIMARY KEY,
  seq INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  lost INTEGER NOT NULL,
  status TEXT
) STRICT, WITHOUT ROWID;

-- What was settled before this version. An amount may have more digits than an integer of SQL: seven parts of twelve digits each
-- are added by themselves, and what is over twelve digits is carried to the next.
INSERT INTO charge_totals
WITH digits AS (
  SELECT *, substr(printf('%084d', 0) || amount, -84) AS padded FROM charge_sums
), kept (step, start, route_id, currency, network, asset, asset_decimals, charges, padded) AS (
  SELECT 'hour', hour, '', currency, network, asset, asset_decimals, charges, padded FROM digits
  UNION ALL SELECT 'day', hour / 24, '', currency, network, asset, asset_decimals, charges, padded FROM digits
  UNION ALL SELECT 'day', hour / 24, route_id, currency, '', '', asset_decimals, charges, padded FROM digits
), p1 AS (
  SELECT step, start, route_id, currency, network, asset, asset_decimals, sum(charges) AS charges,
    sum(CAST(substr(padded, 73, 12) AS INTEGER)) AS d1, sum(CAST(substr(padded, 61, 12) AS INTEGER)) AS d2,
    sum(CAST(substr(padded, 49, 12) AS INTEGER)) AS d3, sum(CAST(substr(padded, 37, 12) AS INTEGER)) AS d4,
    sum(CAST(substr(padded, 25, 12) AS INTEGER)) AS d5, sum(CAST(substr(padded, 13, 12) AS INTEGER)) AS d6,
    sum(CAST(substr(padded, 1, 12) AS INTEGER)) AS d7
  FROM kept GROUP BY 1, 2, 3, 4, 5, 6, 7
), p2 AS (SELECT *, d2 + d1 / 1000000000000 AS c2 FROM p1
), p3 AS (SELECT *, d3 + c2 / 1000000000000 AS c3 FROM p2
), p4 AS (SELECT *, d4 + c3 / 1000000000000 AS c4 FROM p3
), p5 AS (SELECT *, d5 + c4 / 1000000000000 AS c5 FROM p4
), p6 AS (SELECT *, d6 + c5 / 1000000000000 AS c6 FROM p5
), p7 AS (SELECT *, d7 + c6 / 1000000000000 AS c7 FROM p6
)
SELECT step, start, route_id, currency, network, asset, asset_decimals, charges,
  ltrim(printf('%d%012d%012d%012d%012d%012d%012d', c7, c6 % 1000000000000, c5 % 1000000000000, c4 % 1000000000000,
    c3 % 1000000000000, c2 % 1000000000000, d1 % 1000000000000), '0')
FROM p7;
