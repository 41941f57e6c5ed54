-- Never edited after its release. A later change is a later file.

-- Codes that sign in to the console once. On Citus the table is local to the coordinator.
CREATE TABLE console_code (
  hash text NOT NULL,              -- SHA-256 of the code in hexadecimal; the code itself is not stored
  expires_at bigint NOT NULL,      -- milliseconds since 1970 UTC
  CONSTRAINT console_code_pkey PRIMARY KEY (hash)
);
