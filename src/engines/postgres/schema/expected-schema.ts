/**
 * What each of our tables has after the last schema step: its columns and its unique keys. A step
 * that changes a table also changes this list. Otherwise the engine rejects every store, also a new
 * one, so no test on PostgreSQL passes.
 */
const TABLES = {
  token: {
    'column id': 'bigint NOT NULL',
    'column hash': 'text NOT NULL',
    'column label': 'text NOT NULL',
    'column created_at': 'bigint NOT NULL',
    'column expires_at': 'bigint',
    'column revoked_at': 'bigint',
    'column last_used_day': 'text',
    'column change_number': 'bigint NOT NULL',
    'index token_pkey': 'PRIMARY KEY (id)',
    'index token_hash_key': 'UNIQUE (hash)',
    'index token_label_key': 'UNIQUE (label)',
    'index token_change_number_key': 'UNIQUE (change_number)',
  },
  plant_revision: {
    'column id': 'bigint NOT NULL',
    'column revision': 'integer NOT NULL',
    'column name': 'text NOT NULL',
    'column tag': 'text',
    'column recorded_at': 'bigint NOT NULL',
    'column recorded_by': 'bigint NOT NULL',
    'column checksum': 'bigint NOT NULL',
    'index plant_revision_pkey': 'PRIMARY KEY (id, revision)',
  },
  console_code: {
    'column hash': 'text NOT NULL',
    'column expires_at': 'bigint NOT NULL',
    'index console_code_pkey': 'PRIMARY KEY (hash)',
  },
  console_session: {
    'column hash': 'text NOT NULL',
    'column expires_at': 'bigint NOT NULL',
    'index console_session_pkey': 'PRIMARY KEY (hash)',
  },
  last_run: {
    'column command': 'text NOT NULL',
    'column ended_at': 'bigint NOT NULL',
    'column has_succeeded': 'boolean NOT NULL',
    'column result': 'text NOT NULL',
    'index last_run_pkey': 'PRIMARY KEY (command)',
  },
  known_damage: {
    'column id': 'integer NOT NULL',
    'column found_at': 'bigint NOT NULL',
    'column found_by': 'text NOT NULL',
    'index known_damage_pkey': 'PRIMARY KEY (id)',
  },
};

export const TABLE_NAMES = Object.keys(TABLES);

/** The definition of each item of our tables, by its name. */
export const EXPECTED_SCHEMA: Map<string, string> = new Map(
  Object.entries(TABLES).flatMap(([table, items]) =>
    Object.entries(items).map(([item, definition]): [string, string] => [`${item} of ${table}`, definition]),
  ),
);
