-- Version 15: the days of one route beside each other. By day alone, sums by route were sorted: three months of many routes took
-- three times as long.
CREATE INDEX request_totals_by_route ON request_totals (
  route_id, start, free, paid, payment_required, refused, error, released, discovery, observed, customer, pass, quota
) WHERE step = 'day' AND route_id <> '';
