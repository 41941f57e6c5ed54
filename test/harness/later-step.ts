/**
 * Makes the program that of a later release, which has one more schema step. Imported before the
 * program or with `node --import`, which loads it on each thread of the program.
 */
import { SCHEMA_STEPS as POSTGRES_STEPS } from '../../src/engines/postgres/schema/schema.ts';
import { SCHEMA_STEPS as SQLITE_STEPS } from '../../src/engines/sqlite/schema.ts';

for (const steps of [SQLITE_STEPS, POSTGRES_STEPS])
  steps.push('CREATE TABLE later_step AS SELECT id FROM token');
