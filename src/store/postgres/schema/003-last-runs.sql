-- Never edited after its release. A later change is a later file.

-- The last run of each command that the operator should know of. On Citus the table is local to
-- the coordinator.
CREATE TABLE last_run (
  command text NOT NULL,
  ended_at bigint NOT NULL,        -- milliseconds since 1970 UTC
  result text NOT NULL,            -- in words, for the operator
  CONSTRAINT last_run_pkey PRIMARY KEY (command)
);
