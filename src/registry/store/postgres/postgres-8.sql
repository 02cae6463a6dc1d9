-- Version 8: who made an API key, and the hour in which each key was used last. `holder` is `store:ID` or `configuration:NAME`.
ALTER TABLE api_keys ADD COLUMN created_by text;

CREATE TABLE api_key_uses (
  holder text COLLATE "C" PRIMARY KEY,
  used_at bigint NOT NULL
);
