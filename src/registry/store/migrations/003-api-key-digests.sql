-- API keys are looked up by the SHA-256 of the whole key. What the order of digests tells says nothing about a key.
CREATE UNIQUE INDEX api_keys_digest ON api_keys (digest);
