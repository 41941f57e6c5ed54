import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { suite, test } from 'node:test';
import { commandProcess } from '../harness/command-lines.ts';
import { openCopyTarget } from '../harness/open-store.ts';
import { plantWrite } from '../harness/plant-write.ts';
import { assertFailed } from '../harness/program.ts';
import {
  enginesUnderTest,
  openNewStore,
  openStore,
  openTokens,
  pathOf,
} from '../harness/store-under-test.ts';

/** A change by an SQL client: how it is named, its statements, and those that end it. */
type Change = [named: string, sql: string, end?: string];

const replace =
  'ALTER TABLE plant_revision RENAME TO other; CREATE VIEW plant_revision AS SELECT * FROM other';
const uniqueName = 'CREATE UNIQUE INDEX one ON plant_revision (name)';

const CHANGES: Record<'SQLite' | 'PostgreSQL', Change[]> = {
  SQLite: [
    [
      'trigger change is not part of the schema',
      `CREATE TRIGGER change AFTER INSERT ON PLANT_REVISION BEGIN INSERT OR REPLACE INTO plant_revision
        VALUES (NEW.id, 1, 'other', NULL, 1, 1, 1); END`,
      'DROP TRIGGER change',
    ],
    ['trigger plant_revision_is_not_updated is missing', 'DROP TRIGGER plant_revision_is_not_updated'],
    ['view plant_revision is not part of the schema', replace],
    ['table last_run was changed', 'DROP TABLE last_run; CREATE TABLE last_run (command, ended_at, result)'],
    ['table console_session is missing', 'DROP TABLE console_session'],
    ['table known_damage was changed', 'ALTER TABLE known_damage ADD COLUMN other TEXT'],
    ['index one is not part of the schema', uniqueName],
  ],
  PostgreSQL: [
    [
      'trigger swallow of plant_revision is not part of the schema',
      `CREATE OR REPLACE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
      CREATE TRIGGER swallow BEFORE INSERT ON plant_revision FOR EACH ROW EXECUTE FUNCTION act()`,
      'DROP TRIGGER swallow ON plant_revision',
    ],
    [
      'property UNLOGGED of plant_revision is not part of the schema',
      'ALTER TABLE plant_revision SET UNLOGGED',
      'ALTER TABLE plant_revision SET LOGGED',
    ],
    [
      'kind v of plant_revision is not part of the schema',
      replace,
      'DROP VIEW plant_revision; ALTER TABLE other RENAME TO plant_revision',
    ],
    ['rule act of token', 'CREATE RULE act AS ON DELETE TO token DO INSTEAD NOTHING'],
    ['row-level security of token', 'ALTER TABLE token ENABLE ROW LEVEL SECURITY'],
    ['column label of token was changed', 'ALTER TABLE token ALTER label TYPE name'],
    ['column revoked_at of token was changed', 'ALTER TABLE token ALTER revoked_at SET DEFAULT 1'],
    ['column hash of console_session is missing', 'ALTER TABLE console_session DROP hash'],
    ['column found_by of known_damage was changed', 'ALTER TABLE known_damage ALTER found_by DROP NOT NULL'],
    ['index token_pkey of token is missing', 'ALTER TABLE token DROP CONSTRAINT token_pkey'],
    ['index one of plant_revision', uniqueName],
    [
      'inheritance by plant_revision of plant_revision',
      `CREATE TABLE whole (LIKE plant_revision) PARTITION BY RANGE (id);
      ALTER TABLE whole ATTACH PARTITION plant_revision DEFAULT`,
    ],
    ['inheritance by more of plant_revision', 'CREATE TABLE more () INHERITS (plant_revision)'],
  ],
};

const HARMLESS = {
  SQLite: `CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER); ANALYZE;
    CREATE INDEX by_name ON plant_revision (name); CREATE VIEW names AS SELECT name FROM plant_revision`,
  PostgreSQL: `CREATE TABLE other (token bigint REFERENCES token); CREATE PUBLICATION plants FOR TABLE plant_revision;
    CREATE INDEX by_name ON plant_revision (name); COMMENT ON TABLE plant_revision IS 'plants';
    GRANT SELECT ON plant_revision TO PUBLIC; ALTER TABLE token OWNER TO pg_database_owner;
    CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
    CREATE TRIGGER noted AFTER TRUNCATE ON plant_revision EXECUTE FUNCTION act()`,
};

const engines = await enginesUnderTest();
const commands = commandProcess();

for (const under of engines)
  suite(`a schema that is not ours in ${under.name}:`, { concurrency: 3 }, () => {
    const run = async (database: string, sql: string): Promise<void> => {
      if (under.name === 'PostgreSQL') return void (await under.sql(database, sql));
      using client = new DatabaseSync(pathOf(database));
      client.exec(sql);
    };
    const verify = (database: string) => commands.run({ args: ['verify', '--database', database] });

    for (const [index, [named, sql, end]] of CHANGES[under.name].entries())
      test(`the ${named}, as the start and verify say; a running service confirms no plant until it ends`, async () => {
        await using store = await openNewStore(under);
        const { database } = store;
        if (end !== undefined) {
          const commit = (id: bigint, name: string, ifRevision?: number) =>
            store.commit([plantWrite({ id, name }, 1, ifRevision)]);
          await commit(1n, 'oak');
          await run(database, sql);
          for (const [id, name, ifRevision] of [
            [1n, 'oak'],
            [1n, 'elm'],
            [2n, 'ash'],
            // It would be rejected as a plant that is not there, after a lookup alone.
            [2n, 'ash', 1],
          ] as const)
            await assert.rejects(commit(id, name, ifRevision), { name: /^Store(?:Unavailable|Rejected)$/ });
          const warnings = await store.warnings().then(JSON.stringify, (error: Error) => error.message);
          assert.match(warnings, RegExp(named));
          await run(database, end);
          assert.deepEqual(await commit(3n, 'fir'), [{ kind: 'confirmed', outcome: 'created', revision: 1 }]);
        }
        await store[Symbol.asyncDispose]();
        await run(database, sql);
        // All of them check the schema in the same way.
        for (const open of index === 0 ? [openStore, openTokens, openCopyTarget] : [openStore])
          await assert.rejects(open(database), { name: 'StoreRejected', message: RegExp(named) });
        assertFailed(await verify(database), RegExp(`structure: the ${named}`));
      });

    test('what others add beside it does no harm', async () => {
      await using store = await openNewStore(under);
      await run(store.database, HARMLESS[under.name]);
      await store.commit([plantWrite({ id: 1n, name: 'oak' }, 1)]);
      assert.deepEqual(await store.warnings(), []);
      await store[Symbol.asyncDispose]();
      await (await openStore(store.database))[Symbol.asyncDispose]();
      assert.equal((await verify(store.database)).exitCode, 0);
    });
  });
