-- Never edited after its release. A later change is a later file.

-- Codes that sign in to the console once.
CREATE TABLE console_code (
  hash TEXT NOT NULL PRIMARY KEY,        -- SHA-256 of the code in hexadecimal; the code itself is not stored
  expires_at INTEGER NOT NULL            -- milliseconds since 1970 UTC
) STRICT, WITHOUT ROWID;
