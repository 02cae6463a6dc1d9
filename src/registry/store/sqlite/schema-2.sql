-- Version 2: a charge keeps when the upstream may be asked for it again, and the status that its client got when it failed.
ALTER TABLE charges ADD COLUMN ask_at INTEGER;
ALTER TABLE charges ADD COLUMN failed_status INTEGER;
