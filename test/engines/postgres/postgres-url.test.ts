import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvalidDatabaseUrl } from '../../../src/engines/invalid-database-url.ts';
import { databaseAddressOf, shownDatabase } from '../../../src/engines/openers/database-url.ts';
import {
  type HostAddress,
  type PostgresAddress,
  postgresAddressOf,
  TLS_MODES,
} from '../../../src/engines/postgres/postgres-url.ts';

const DEFAULTS: PostgresAddress = {
  hosts: [{ host: 'h', port: 5432 }],
  database: 'd',
  user: 'u',
  password: undefined,
  tlsMode: 'prefer',
  rootCertificateFile: undefined,
  certificateFile: undefined,
  keyFile: undefined,
  channelBinding: 'disable',
  applicationName: 'plant-store',
  citus: 'workers',
  connectTimeoutMs: undefined,
  options: undefined,
};

function hosts(...each: [host: string, port: number][]): { hosts: HostAddress[] } {
  return { hosts: each.map(([host, port]) => ({ host, port })) };
}

const FORMS: [text: string, differs: Partial<PostgresAddress>][] = [
  ['postgres://u@h/d', {}],
  ['postgresql://u@h/d', {}],
  ['postgres://u:secret@h:6543/d', { password: 'secret', ...hosts(['h', 6543]) }],
  ['postgres://u:@h/d', {}],
  ['postgres://u:a:b@h/d', { password: 'a:b' }],
  ['postgres://u:a@b@h/d', { password: 'a@b' }],
  ['postgres://u:a#b@h/d', { password: 'a#b' }],
  ['postgres://u%40x:%2F%3f%23%25%C3%A9@h/d%20d', { user: 'u@x', password: '/?#%é', database: 'd d' }],
  ['postgres://u@h1,h2:6543/d', hosts(['h1', 5432], ['h2', 6543])],
  ['postgres://u@[::1]:65535,[fe80::1]/d', hosts(['::1', 65_535], ['fe80::1', 5432])],
  ['postgres://u@%2Frun%2Fpostgresql/d', hosts(['/run/postgresql', 5432])],
  ['postgres://u@%2Frun%2Fpostgresql:5433/d', hosts(['/run/postgresql', 5433])],
  ['postgres://u@h/d?host=%2Ftmp&port=5433', hosts(['/tmp', 5433])],
  ['postgres://u@h1,h2/d?port=1,2', hosts(['h1', 1], ['h2', 2])],
  [
    'postgres://u@h/d?sslmode=require&channel_binding=require',
    { tlsMode: 'require', channelBinding: 'require' },
  ],
  ['postgres://u@h/d?channel_binding=prefer', { channelBinding: 'prefer' }],
  ['postgres://u@/d?host=/tmp,h:7', hosts(['/tmp', 5432], ['h', 7])],
  ['postgres://u@/d', hosts(['localhost', 5432])],
  ['postgres://u@h1,h2:1/d?port=5433', hosts(['h1', 5433], ['h2', 5433])],
  ['postgres://u@h/d?password=a%26b', { password: 'a&b' }],
  ['postgres://u@h/d?password=&password=later', { password: 'later' }],
  ['postgres://u:first@h/d?password=second', { password: 'second' }],
  ['postgres://u@h/d?connect_timeout=3', { connectTimeoutMs: 3_000 }],
  ['postgres://u@h/d?application_name=my%20plants', { applicationName: 'my plants' }],
  ['postgres://u@h/d?citus=coordinator', { citus: 'coordinator' }],
  ['postgres://u@h/d?options=-c%20search_path%3Dplants', { options: '-c search_path=plants' }],
  ['postgres://u@h/d?target_session_attrs=read-write', {}],
  ['postgres://u@h/d?sslcert=/c.pem&sslkey=/k.pem', { certificateFile: '/c.pem', keyFile: '/k.pem' }],
  ...TLS_MODES.map((tlsMode): [string, Partial<PostgresAddress>] => [
    `postgres://u@h/d?sslmode=${tlsMode}&sslrootcert=%2Fca.pem`,
    { tlsMode, rootCertificateFile: '/ca.pem' },
  ]),
  ['postgres://u@h/d?sslrootcert=system', { tlsMode: 'verify-full', rootCertificateFile: 'system' }],
];
for (const [text, differs] of FORMS) {
  test(`a PostgreSQL URL: ${text}`, () =>
    assert.deepEqual(postgresAddressOf(text), { ...DEFAULTS, ...differs }));
}

/** The message, and the URLs that cause it, without `postgres://`. */
const INVALID: [says: RegExp, ...texts: string[]][] = [
  [/names no database; write postgres:\/\/USER@HOST:PORT\/DATABASE$/, 'u@h', 'u@h/', ''],
  [/names no user; write postgres:/, 'h/d', ':secret@h/d', 'h/d?password=secret'],
  [/has an invalid host; write HOST:PORT,HOST:PORT, /, 'u@h:0/d', 'u@h:65536/d', 'u@h:-1/d', 'u@h:x/d'],
  [/has an invalid host; /, 'u@h:1:2/d', 'u@h:/d', 'u@::1/d', 'u@[h]/d', 'u@h1,,h2/d'],
  [
    /is not postgres:\/\/USER@HOST:PORT\/DATABASE; write @, .* as %40, %2F, %3F and %25$/,
    ...['u@h/d/e', 'u:se/cret@h/d', 'u:12/cret@h', 'u:se?cret@h/d', 'u@h/d?application_name=a@b'],
  ],
  [/has an @ in the user; write it as %40$/, 'u@x:secret@h/d'],
  [/has a % in the password that is not followed by two .* as %25$/, 'u:50%@h/d', 'u:%ff@h/d'],
  [/has a % in the database/, 'u@h/%zz'],
  [/has the parameter sslmod, which is not supported; known are host, port, /, 'u@h/d?sslmod=x&port=1'],
  [/has the parameter pgbouncer, which is not supported/, 'u@h/d?port=1&&pgbouncer=true&password=a'],
  [
    /has an unknown parameter, number 2, which is not/,
    'u@h/d?password=a&secret',
    'u@h/d?password=a&b=secret',
  ],
  [/has an unknown parameter, number 1, which is not/, 'u@h/d?se%2Dcret=1', `u@h/d?${'secret'.repeat(7)}=1`],
  [/has the parameter SSLMODE/, 'u@h/d?SSLMODE=require'],
  [/has the parameter toString/, 'u@h/d?toString=1'],
  [/gives 2 ports, but names 3 hosts; give one port, or /, 'u@h1,h2,h3/d?port=1,2'],
  [/gives 2 ports, but names 1 host; give one port, or /, 'u@h/d?port=1,2'],
  [/an invalid port; it must be a number from 1 to 65535, or one for each host$/, 'u@h/d?port=1,'],
  [/an invalid channel_binding; it must be one of disable, prefer, require$/, 'u@h/d?channel_binding=yes'],
  [/has the parameter sslmode twice$/, 'u@h/d?sslmode=require&sslmode=disable'],
  [/an invalid sslmode; it must be one of disable, /, 'u@h/d?sslmode=', 'u@h/d?sslmode=no-verify'],
  [/has sslmode=verify-ca without sslrootcert; name a file with it, /, 'u@h/d?sslmode=verify-ca'],
  [/has sslmode=verify-full without sslrootcert/, 'u@h/d?sslmode=verify-full'],
  [
    /has sslrootcert=system with a weaker sslmode than verify-full; use that$/,
    ...TLS_MODES.slice(0, -1).map(mode => `u@h/d?sslrootcert=system&sslmode=${mode}`),
  ],
  [/has one of sslcert and sslkey without the other$/, 'u@h/d?sslcert=/c.pem', 'u@h/d?sslkey=/k.pem'],
  [
    /has an invalid target_session_attrs; it must be read-write, since a plant store needs .* writes$/,
    ...['any', 'primary', 'read-only', ''].map(value => `u@h/d?target_session_attrs=${value}`),
  ],
  [
    /has an invalid connect_timeout; it must be a whole number of seconds from 1 to 999$/,
    ...['', '0', '1000', '-1', '1.5', 'x'].map(value => `u@h/d?connect_timeout=${value}`),
  ],
];
for (const [says, ...texts] of INVALID) {
  test(`a PostgreSQL URL: invalid: ${texts.join(' ')}`, () => {
    for (const text of texts) {
      assert.throws(
        () => postgresAddressOf(`postgres://${text}`),
        error => {
          assert.ok(error instanceof InvalidDatabaseUrl);
          assert.match(error.message, /^the postgres:\/\/ URL of the database [^\n]+$/);
          assert.match(error.message, says, text);
          const shown = `${error.message} ${JSON.stringify([error, error.cause])}`;
          assert.doesNotMatch(shown, /cret/, text);
          return true;
        },
      );
    }
  });
}

test('a PostgreSQL URL: is shown without its password and parameters', () => {
  const text = 'postgresql://u:secret@h:1,[::1]/d?sslmode=require&application_name=x';
  assert.equal(shownDatabase(databaseAddressOf(text)), 'postgres://u@h:1,[::1]:5432/d');
});
