-- Version 18: what a registry goes by for its webhooks, beside the digests of its receivers and API keys.
ALTER TABLE meta ADD COLUMN webhooks_sha256 text;
