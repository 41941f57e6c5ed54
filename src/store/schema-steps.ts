import { readdirSync, readFileSync } from 'node:fs';

const SCHEMA_FILE = /^[0-9]{3}-.+\.sql$/;

/** A change of a schema, made once in each store and never edited after its release. */
export interface SchemaStep {
  /** 1 for the first; the number that the file's name begins with. */
  step: number;
  sql: string;
}

/** The steps of a schema in their order, from a folder of files named as `001-what-it-does.sql`. */
export function readSchemaSteps(folder: URL): SchemaStep[] {
  return readdirSync(folder)
    .filter(file => SCHEMA_FILE.test(file))
    .sort()
    .map(file => ({ step: Number(file.slice(0, 3)), sql: readFileSync(new URL(file, folder), 'utf8') }));
}
