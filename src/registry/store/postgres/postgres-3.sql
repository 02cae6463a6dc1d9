-- Version 3: charges are found by the request that claimed them, by the transaction that paid them, and by the way that they
-- were paid in.
CREATE INDEX charges_by_request ON charges (request_id, seq) WHERE request_id IS NOT NULL;
CREATE INDEX charges_by_transaction ON charges (settled_transaction, seq) WHERE settled_transaction IS NOT NULL;
CREATE INDEX charges_by_way ON charges (network, price_currency, receiver_id, seq);
