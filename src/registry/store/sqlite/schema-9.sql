-- Version 9: the outbox of webhooks. Events are written in the transaction of what they tell, with a delivery for each endpoint
-- that wants their type. `event_sequence`: how many events of a charge were written.
ALTER TABLE charges ADD COLUMN event_sequence INTEGER NOT NULL DEFAULT 0;

CREATE TABLE webhook_endpoints (
  id TEXT PRIMARY KEY,
  -- When a process named it last.
  seen_at INTEGER NOT NULL,
  -- No process names it any more: what is left of it goes away.
  forgotten_at INTEGER,
  disabled_at INTEGER,
  enabled_at INTEGER NOT NULL,
  failing_since INTEGER,
  rest_until INTEGER NOT NULL DEFAULT 0,
  -- It took an event again then: what was tried before is due.
  hurried_at INTEGER,
  last_success_at INTEGER,
  last_error TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE webhook_wants (
  type TEXT NOT NULL,
  endpoint_id TEXT NOT NULL,
  PRIMARY KEY (type, endpoint_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE webhook_events (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  type TEXT NOT NULL,
  at INTEGER NOT NULL,
  subject TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  content TEXT NOT NULL
) STRICT;

CREATE TABLE webhook_deliveries (
  endpoint_id TEXT NOT NULL,
  n INTEGER NOT NULL,
  subject TEXT NOT NULL,
  at INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'taken', 'given_up')),
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER NOT NULL,
  -- When its schedule wants it, if it was made due before.
  resume_at INTEGER,
  tried_at INTEGER,
  closed_at INTEGER,
  tries TEXT NOT NULL DEFAULT '[]',
  PRIMARY KEY (endpoint_id, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_due ON webhook_deliveries (endpoint_id, due_at) WHERE state = 'waiting';
CREATE INDEX webhook_oldest ON webhook_deliveries (endpoint_id, n) WHERE state = 'waiting';
CREATE INDEX webhook_order ON webhook_deliveries (endpoint_id, subject, n) WHERE state = 'waiting';
CREATE INDEX webhook_closed ON webhook_deliveries (state, closed_at) WHERE closed_at IS NOT NULL;
