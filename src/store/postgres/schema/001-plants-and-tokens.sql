-- Never edited once released: a later change is a later file.
-- Only what PostgreSQL and the distributed engines that speak it share; the key of a plant begins with its id.

CREATE TABLE token (
  id bigint NOT NULL,
  hash text NOT NULL,              -- SHA-256 of the token in hexadecimal; the token itself is kept nowhere
  label text NOT NULL,
  created_at bigint NOT NULL,      -- milliseconds since 1970 UTC, like every time here
  expires_at bigint,
  revoked_at bigint,
  last_used_day text,              -- YYYY-MM-DD, UTC
  change_number bigint NOT NULL,   -- grows with each token made or revoked
  CONSTRAINT token_pkey PRIMARY KEY (id),
  CONSTRAINT token_hash_key UNIQUE (hash),
  CONSTRAINT token_label_key UNIQUE (label),
  CONSTRAINT token_change_number_key UNIQUE (change_number)
);

-- The service never changes a revision, and needs no right to: docs/postgresql-grants.sql.
CREATE TABLE plant_revision (
  id bigint NOT NULL,
  revision integer NOT NULL CHECK (revision >= 1),
  name text NOT NULL,
  tag text,                        -- NULL: sent without a tag; '' is a tag that was sent empty
  recorded_at bigint NOT NULL,
  recorded_by bigint NOT NULL,     -- token.id
  CONSTRAINT plant_revision_pkey PRIMARY KEY (id, revision)
);

-- The latest revision of each plant, for people with an SQL client.
CREATE VIEW plant AS
SELECT id, revision, name, tag, recorded_at, recorded_by
FROM plant_revision AS latest
WHERE revision = (SELECT max(revision) FROM plant_revision WHERE id = latest.id);
