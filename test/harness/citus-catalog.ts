import type { PostgresServer } from './postgres-server.ts';
import { databaseName } from './store-under-test.ts';

/** `pg_extension` only has to name the extension. No other object has this number. */
const EXTENSION_OID = 99_999;

/**
 * Gives a database the catalog of Citus, which is not on npm, so that a service takes it for a
 * coordinator. The only shard is on one worker. It is the table `plant_revision` of another server,
 * in a database with the same name.
 *
 * The functions do what the service relies on, as far as one worker needs it. Tests with the real
 * Citus are in `faults/citus.ts`.
 *
 * @param worker its port; a closed port is a worker that cannot be reached
 * @returns the URL of the database, which has no table yet
 */
export async function citusCatalog(server: PostgresServer, worker: number): Promise<string> {
  const url = await server.createDatabase();
  await server.query(
    `INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
       VALUES (${EXTENSION_OID}, 'citus', 10, 'public'::regnamespace, false, '13.2');
     CREATE TABLE pg_dist_node (groupid integer, nodename text, nodeport integer, noderole text);
     INSERT INTO pg_dist_node VALUES (1, '127.0.0.1', ${worker}, 'primary');
     CREATE TABLE pg_dist_placement (shardid bigint, groupid integer);
     CREATE TABLE pg_dist_shard (logicalrelid regclass, shardid bigint, shardminvalue text);
     CREATE TABLE pg_dist_local_group (groupid integer);
     INSERT INTO pg_dist_local_group VALUES (0);
     CREATE FUNCTION citus_get_active_worker_nodes() RETURNS SETOF text RETURN 'worker'::text;
     CREATE FUNCTION create_distributed_table(name text, key text, shard_count integer) RETURNS void
       LANGUAGE sql AS $$ INSERT INTO pg_dist_shard VALUES (name::regclass, 1, '-2147483648');
         INSERT INTO pg_dist_placement VALUES (1, 1) $$;
     CREATE FUNCTION lock_relation_if_exists(name text, mode text) RETURNS boolean LANGUAGE plpgsql
       AS $$ BEGIN EXECUTE format('LOCK TABLE %I IN %s MODE', name, mode); RETURN true; END $$;
     CREATE FUNCTION run_command_on_workers(command text, OUT nodename text, OUT nodeport integer,
       OUT success boolean, OUT result text) RETURNS SETOF record LANGUAGE plpgsql
       AS $$ BEGIN EXECUTE command INTO result; SELECT node.nodename, node.nodeport, true
         INTO nodename, nodeport, success FROM pg_dist_node AS node; RETURN NEXT; END $$`,
    databaseName(url),
  );
  return url;
}
