-- Version 20: refunds. A charge keeps those of its own. A transfer proves one refund alone, for as long as this schema lives. Sums
-- are by the hour in which a refund was recorded, beside those of the money that was taken, which never go down. They are few:
-- no shards.
ALTER TABLE charges ADD COLUMN refunds text;

CREATE TABLE refund_proofs (
  network text COLLATE "C" NOT NULL,
  transaction_id text COLLATE "C" NOT NULL,
  log_index integer NOT NULL,
  charge_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (network, transaction_id, log_index)
);

CREATE TABLE refund_sums (
  hour integer NOT NULL,
  route_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  network text COLLATE "C" NOT NULL,
  asset text COLLATE "C" NOT NULL,
  asset_decimals smallint NOT NULL,
  refunds bigint NOT NULL,
  amount numeric NOT NULL,
  PRIMARY KEY (hour, route_id, currency, network, asset, asset_decimals)
);
