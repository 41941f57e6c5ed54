-- Never edited after its release. A later change is a later file.

-- The last run of each command that the operator should know of, such as backup.
CREATE TABLE last_run (
  command TEXT NOT NULL PRIMARY KEY,
  ended_at INTEGER NOT NULL,             -- milliseconds since 1970 UTC
  result TEXT NOT NULL                   -- in words, for the operator
) STRICT, WITHOUT ROWID;
