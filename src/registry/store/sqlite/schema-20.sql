-- Version 20: refunds. A charge keeps those of its own. A transfer proves one refund alone, for as long as this file lives. Sums are
-- by the hour in which a refund was recorded, beside those of the money that was taken, which never go down.
ALTER TABLE charges ADD COLUMN refunds TEXT;

CREATE TABLE refund_proofs (
  network TEXT NOT NULL,
  transaction_id TEXT NOT NULL,
  log_index INTEGER NOT NULL,
  charge_id TEXT NOT NULL,
  PRIMARY KEY (network, transaction_id, log_index)
) STRICT, WITHOUT ROWID;

CREATE TABLE refund_sums (
  hour INTEGER NOT NULL,
  route_id TEXT NOT NULL,
  currency TEXT NOT NULL,
  network TEXT NOT NULL,
  asset TEXT NOT NULL,
  asset_decimals INTEGER NOT NULL,
  refunds INTEGER NOT NULL,
  amount TEXT NOT NULL,
  PRIMARY KEY (hour, route_id, currency, network, asset, asset_decimals)
) STRICT, WITHOUT ROWID;
