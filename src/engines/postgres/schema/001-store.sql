-- Never edited after its release. A later change is a later file.
-- Uses only features that distributed engines with the PostgreSQL protocol support, too.
-- For them the primary key of a revision begins with the id of the plant.

CREATE TABLE token (
  id bigint NOT NULL,
  hash text NOT NULL,              -- SHA-256 of the token in hexadecimal; the token itself is not stored
  label text NOT NULL,
  created_at bigint NOT NULL,      -- milliseconds since 1970 UTC, like all times here
  expires_at bigint,
  revoked_at bigint,
  last_used_day text,              -- YYYY-MM-DD, UTC
  change_number bigint NOT NULL,   -- grows with each token created or revoked
  CONSTRAINT token_pkey PRIMARY KEY (id),
  CONSTRAINT token_hash_key UNIQUE (hash),
  CONSTRAINT token_label_key UNIQUE (label),
  CONSTRAINT token_change_number_key UNIQUE (change_number)
);

-- A second copy of these columns: `verify` compares it with the rows, and so notices a flipped bit.
CREATE INDEX token_copy ON token (id, created_at, expires_at, revoked_at, last_used_day);

-- The service never changes a revision and needs no right to do it: docs/postgresql-grants.sql.
CREATE TABLE plant_revision (
  id bigint NOT NULL,
  revision integer NOT NULL CHECK (revision >= 1),
  name text NOT NULL,
  tag text,                        -- NULL: sent without a tag; '' is a tag that was sent empty
  recorded_at bigint NOT NULL,
  recorded_by bigint NOT NULL,     -- token.id
  checksum bigint NOT NULL,        -- of all other columns
  CONSTRAINT plant_revision_pkey PRIMARY KEY (id, revision)
);

-- The latest revision of each plant, for people with an SQL client.
CREATE VIEW plant AS
SELECT id, revision, name, tag, recorded_at, recorded_by
FROM plant_revision AS latest
WHERE revision = (SELECT max(revision) FROM plant_revision WHERE id = latest.id);

-- Codes that sign in to the console once. On Citus the table is local to the coordinator, as are
-- all tables below.
CREATE TABLE console_code (
  hash text NOT NULL,              -- SHA-256 of the code in hexadecimal; the code itself is not stored
  expires_at bigint NOT NULL,      -- milliseconds since 1970 UTC
  CONSTRAINT console_code_pkey PRIMARY KEY (hash)
);

-- Sessions of the console. No code is a session, and no session is a code.
CREATE TABLE console_session (
  hash text NOT NULL,              -- SHA-256 of the secret in hexadecimal; the secret itself is not stored
  expires_at bigint NOT NULL,      -- milliseconds since 1970 UTC
  CONSTRAINT console_session_pkey PRIMARY KEY (hash)
);

-- The last run of each command that the operator should know of.
CREATE TABLE last_run (
  command text NOT NULL,
  ended_at bigint NOT NULL,        -- milliseconds since 1970 UTC
  has_succeeded boolean NOT NULL,
  result text NOT NULL,            -- in words, for the operator
  CONSTRAINT last_run_pkey PRIMARY KEY (command)
);

-- The damage that was found last since a verify passed: one row, or none.
CREATE TABLE known_damage (
  id integer NOT NULL CHECK (id = 1),
  found_at bigint NOT NULL,          -- milliseconds since 1970 UTC
  found_by text NOT NULL,            -- in words, for the operator
  CONSTRAINT known_damage_pkey PRIMARY KEY (id)
);
