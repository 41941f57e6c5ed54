-- Never edited after its release. A later change is a later file.

CREATE TABLE token (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,             -- SHA-256 of the token in hexadecimal; the token itself is not stored
  label TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,           -- milliseconds since 1970 UTC, like all times here
  expires_at INTEGER,
  revoked_at INTEGER,
  last_used_day TEXT,                    -- YYYY-MM-DD, UTC
  change_number INTEGER NOT NULL UNIQUE  -- grows with each token created or revoked
) STRICT;

-- A second copy of these columns: `verify` compares it with the rows, and so notices a flipped bit.
CREATE INDEX token_copy ON token (id, created_at, expires_at, revoked_at, last_used_day);

-- WITHOUT ROWID stores a row in the tree of its primary key. So a plant changes one page, not two.
CREATE TABLE plant_revision (
  id INTEGER NOT NULL,
  revision INTEGER NOT NULL CHECK (revision >= 1),
  name TEXT NOT NULL,
  tag TEXT,                              -- NULL: sent without a tag; '' is a tag that was sent empty
  recorded_at INTEGER NOT NULL,
  recorded_by INTEGER NOT NULL,          -- token.id
  checksum INTEGER NOT NULL,             -- of all other columns
  PRIMARY KEY (id, revision)
) STRICT, WITHOUT ROWID;

-- The service never changes a revision. The triggers prevent mistakes in an SQL client.
CREATE TRIGGER plant_revision_is_not_updated BEFORE UPDATE ON plant_revision
BEGIN
  SELECT RAISE(ABORT, 'plant_revision is append-only: send the plant again to correct it');
END;

CREATE TRIGGER plant_revision_is_not_deleted BEFORE DELETE ON plant_revision
BEGIN
  SELECT RAISE(ABORT, 'plant_revision is append-only');
END;

-- The latest revision of each plant, for people with an SQL client.
CREATE VIEW plant AS
SELECT id, revision, name, tag, recorded_at, recorded_by
FROM plant_revision AS latest
WHERE revision = (SELECT max(revision) FROM plant_revision WHERE id = latest.id);

-- Codes that sign in to the console once.
CREATE TABLE console_code (
  hash TEXT NOT NULL PRIMARY KEY,        -- SHA-256 of the code in hexadecimal; the code itself is not stored
  expires_at INTEGER NOT NULL            -- milliseconds since 1970 UTC
) STRICT, WITHOUT ROWID;

-- Sessions of the console. No code is a session, and no session is a code.
CREATE TABLE console_session (
  hash TEXT NOT NULL PRIMARY KEY,        -- SHA-256 of the secret in hexadecimal; the secret itself is not stored
  expires_at INTEGER NOT NULL            -- milliseconds since 1970 UTC
) STRICT, WITHOUT ROWID;

-- The last run of each command that the operator should know of, such as backup.
CREATE TABLE last_run (
  command TEXT NOT NULL PRIMARY KEY,
  ended_at INTEGER NOT NULL,             -- milliseconds since 1970 UTC
  has_succeeded INTEGER NOT NULL CHECK (has_succeeded IN (0, 1)),
  result TEXT NOT NULL                   -- in words, for the operator
) STRICT, WITHOUT ROWID;

-- The damage that was found last since a verify passed: one row, or none.
CREATE TABLE known_damage (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  found_at INTEGER NOT NULL,               -- milliseconds since 1970 UTC
  found_by TEXT NOT NULL                   -- in words, for the operator
) STRICT;
