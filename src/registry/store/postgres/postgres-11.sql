-- Version 11: the plan by which a route is sold (null: the plan `default`, or none), and how many requests passed by one.
ALTER TABLE routes ADD COLUMN plan_id text;

ALTER TABLE request_totals ADD COLUMN observed bigint NOT NULL DEFAULT 0;
ALTER TABLE request_totals ADD COLUMN customer bigint NOT NULL DEFAULT 0;
ALTER TABLE request_totals ADD COLUMN pass bigint NOT NULL DEFAULT 0;
ALTER TABLE request_totals ADD COLUMN quota bigint NOT NULL DEFAULT 0;
