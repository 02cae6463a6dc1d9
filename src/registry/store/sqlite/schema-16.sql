-- Version 16: the terms of the pass that a charge buys, as JSON; null if it buys none.
ALTER TABLE charges ADD COLUMN pass TEXT;
