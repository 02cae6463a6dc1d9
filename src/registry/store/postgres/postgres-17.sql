-- Version 17: what plans did, by hour and day. `subject` is a plan or an entry of customers, `detail` the outcome, currency, result
-- or customer ('': those who have no row of their own). `amount` is what a dry run would have asked for, in units of 10^-scale.
CREATE TABLE sale_totals (
  step text COLLATE "C" NOT NULL CHECK (step IN ('hour', 'day')),
  start integer NOT NULL,
  kind text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  detail text COLLATE "C" NOT NULL,
  scale smallint NOT NULL,
  requests bigint NOT NULL,
  amount numeric NOT NULL,
  PRIMARY KEY (step, start, kind, subject, detail, scale)
);
