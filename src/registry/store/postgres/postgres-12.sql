-- Version 12: what needs somebody, as each process finds it. Times are in milliseconds since the epoch.
CREATE TABLE attention (
  source text COLLATE "C" NOT NULL,
  code text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  severity text NOT NULL,
  detail text NOT NULL,
  found bigint NOT NULL,
  link text NOT NULL,
  since bigint NOT NULL,
  seen_at bigint NOT NULL,
  PRIMARY KEY (source, code, subject)
);
