/** Statements that make `plant_revision` a table of Citus. `applySchemaSteps` runs them. */

/** Citus splits a batch into one statement for each shard, so a worker gets only two by default. */
export const DISTRIBUTE = `SELECT create_distributed_table('plant_revision', 'id', shard_count := (
    SELECT CASE source WHEN 'default' THEN greatest(4, 2 * (SELECT count(*) FROM citus_get_active_worker_nodes()))
      ELSE setting::bigint END FROM pg_settings WHERE name = 'citus.shard_count')::integer)`;

/**
 * Makes shard moves by logical replication, the default of Citus, end with an error, because they
 * lost plants. Such moves need the replica identity that this statement removes. Moves with
 * `block_writes` still work. Only the owner may change the replica identity.
 */
export const FORBID_LOGICAL_MOVES = `DO $$ BEGIN
  IF EXISTS (SELECT 1 FROM pg_class WHERE oid = 'plant_revision'::regclass AND relreplident <> 'n'
    AND pg_has_role(relowner, 'USAGE')) THEN
    ALTER TABLE plant_revision REPLICA IDENTITY NOTHING;
  END IF;
END $$`;
