-- Version 21: passes of a plan, and of terms, in the order in which they were sold, for lists of a page; and those that are good by
-- their end, to be counted without reading them.
CREATE INDEX passes_by_plan ON passes (plan);
CREATE INDEX passes_by_terms ON passes (terms_id);
CREATE INDEX passes_good ON passes (ends_at) WHERE revoked_at IS NULL AND is_used_up = 0;
