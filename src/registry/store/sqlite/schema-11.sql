-- Version 11: the plan by which a route is sold (null: the plan `default`, or none), and how many requests passed by one.
ALTER TABLE routes ADD COLUMN plan_id TEXT;

ALTER TABLE request_totals ADD COLUMN observed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE request_totals ADD COLUMN customer INTEGER NOT NULL DEFAULT 0;
ALTER TABLE request_totals ADD COLUMN pass INTEGER NOT NULL DEFAULT 0;
ALTER TABLE request_totals ADD COLUMN quota INTEGER NOT NULL DEFAULT 0;
