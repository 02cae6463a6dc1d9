-- Version 13: charges of decision listeners. `asker`: the dialect of the listener that claimed, null for the proxy; `ask_sha256`: the
-- request that was allowed last; `repeats`: how often it was allowed again.
ALTER TABLE charges ADD COLUMN asker TEXT;
ALTER TABLE charges ADD COLUMN ask_sha256 TEXT;
ALTER TABLE charges ADD COLUMN repeats INTEGER;
