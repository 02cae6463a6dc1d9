-- Version 3: charges are found by the request that claimed them, by the transaction that paid them, and by the way that they
-- were paid in.
CREATE INDEX charges_by_request ON charges (request_id) WHERE request_id IS NOT NULL;
-- A facilitator's word names no log index: such charges stand in this index alone.
CREATE INDEX charges_by_transaction ON charges (
  CASE WHEN settled_transaction GLOB '0x*' THEN coalesce(unhex(substr(settled_transaction, 3)), settled_transaction) ELSE settled_transaction END
) WHERE settled_transaction IS NOT NULL;
-- There are few ways: each has its charges in the order in which they were made.
CREATE INDEX charges_by_way ON charges (network, price_currency, receiver_id);
