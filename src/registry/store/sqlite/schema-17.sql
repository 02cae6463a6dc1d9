-- Version 17: what plans did, by hour and day. `subject` is a plan or an entry of customers, `detail` the outcome, currency, result
-- or customer ('': those who have no row of their own). `amount` is what a dry run would have asked for, in units of 10^-scale.
CREATE TABLE sale_totals (
  step TEXT NOT NULL CHECK (step IN ('hour', 'day')),
  start INTEGER NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL,
  scale INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  amount TEXT NOT NULL CHECK (amount NOT GLOB '*[^0-9]*'),
  PRIMARY KEY (step, start, kind, subject, detail, scale)
) STRICT, WITHOUT ROWID;
