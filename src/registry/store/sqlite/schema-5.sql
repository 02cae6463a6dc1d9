-- Version 5: a charge keeps what happened to it, one line each (domain/payment/charge-history.ts).
ALTER TABLE charges ADD COLUMN events TEXT;
