-- Version 14: counters of requests by identity and window, for free requests and quotas. An identity is a keyed digest. A change
-- is known by its id for some minutes, so that one that is sent again counts once.
CREATE TABLE counters (
  scope text COLLATE "C" NOT NULL,
  window_start bigint NOT NULL,
  identity text COLLATE "C" NOT NULL,
  used bigint NOT NULL,
  PRIMARY KEY (scope, window_start, identity)
);

CREATE TABLE counter_windows (
  scope text COLLATE "C" NOT NULL,
  window_start bigint NOT NULL,
  window_end bigint NOT NULL,
  identities bigint NOT NULL,
  PRIMARY KEY (scope, window_start)
);

CREATE TABLE counter_groups (
  scope text COLLATE "C" NOT NULL,
  window_start bigint NOT NULL,
  grp text COLLATE "C" NOT NULL,
  identities bigint NOT NULL,
  PRIMARY KEY (scope, window_start, grp)
);

CREATE TABLE counter_changes (
  change_id text COLLATE "C" PRIMARY KEY,
  at bigint NOT NULL,
  result text COLLATE "C" NOT NULL
);
CREATE INDEX counter_changes_at ON counter_changes (at);
