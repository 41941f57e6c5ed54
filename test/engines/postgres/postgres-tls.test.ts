import assert from 'node:assert/strict';
import { chmodSync, chownSync, copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSecureContext, TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { TLS_MODES, type TlsMode } from '../../../src/engines/postgres/postgres-url.ts';
import { listen } from '../../harness/loopback-server.ts';
import { openReader } from '../../harness/open-store.ts';
import { OWNER_PASSWORD } from '../../harness/postgres-server.ts';
import { runProgram } from '../../harness/program.ts';
import { databaseName, openStore, postgresUnderTest } from '../../harness/store-under-test.ts';
import { until } from '../../harness/until.ts';

const PEM = fileURLToPath(new URL('../../harness/postgres-tls/', import.meta.url));
const CA = join(PEM, 'ca.pem');
const OTHER_CA = join(PEM, 'other-ca.pem');
const CLIENT = { sslcert: join(PEM, 'client.pem'), sslkey: join(PEM, 'client-key.pem') };

const { server, newDatabase } = await postgresUnderTest();
for (const role of ['only_with_tls', 'only_without_tls', 'certified', 'trusted', 'in_clear'])
  await server.query(`CREATE ROLE ${role} LOGIN PASSWORD '${OWNER_PASSWORD}' IN ROLE pg_read_all_data`);
await offerTls();
const database = databaseName(await newDatabase());
await (await openStore(server.url(database)))[Symbol.asyncDispose]();

async function offerTls(): Promise<void> {
  // The user of the server may lack access to this repository, and must own its key.
  const { uid, gid } = statSync(join(server.folder, 'data'));
  for (const name of ['ca.pem', 'server.pem', 'server-key.pem']) {
    const copy = join(server.folder, name);
    copyFileSync(join(PEM, name), copy);
    chmodSync(copy, 0o600);
    chownSync(copy, uid, gid);
  }
  // The first matching line applies.
  writeFileSync(
    join(server.folder, 'data', 'pg_hba.conf'),
    `hostssl   all only_without_tls all reject
     hostnossl all only_with_tls    all reject
     hostssl   all certified        all scram-sha-256 clientcert=verify-full
     hostnossl all certified        all reject
     hostssl   all trusted          all trust
     hostssl   all in_clear         all password
     host      all all              all scram-sha-256
     local     all all                  scram-sha-256\n`,
  );
  await server.set({
    ssl: 'on',
    ssl_cert_file: `'${server.folder}/server.pem'`,
    ssl_key_file: `'${server.folder}/server-key.pem'`,
    ssl_ca_file: `'${server.folder}/ca.pem'`,
  });
  await until('TLS is offered', async () => (await server.query('SHOW ssl'))[0]!.ssl === 'on');
}

/** Parameters of the URL; `user` and `at` replace `postgres` and localhost. */
type UrlParts = Record<string, string>;
const LOCALHOST = `localhost:${server.port}`;
const NUMERIC = `127.0.0.1:${server.port}`;

function urlOf({ user = 'postgres', at = LOCALHOST, ...parameters }: UrlParts): string {
  return server.url(database, `?${new URLSearchParams(parameters)}`, user).replace(NUMERIC, at);
}

let connections = 0;

/** Connects like the command line. @returns `TLS`, `plain`, or the error message */
async function connect(parts: UrlParts): Promise<string> {
  const name = `tls_${++connections}`;
  try {
    await using _reader = await openReader(urlOf({ ...parts, application_name: name }));
    const [row] = await server.query(
      `SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = '${name}'`,
    );
    return row!.ssl === true ? 'TLS' : 'plain';
  } catch (error) {
    const { message } = error as Error;
    assert.doesNotMatch(message, /owner.secret|\n/);
    return message;
  }
}

function modeOf(sslmode: TlsMode): UrlParts {
  return sslmode.startsWith('verify') ? { sslmode, sslrootcert: CA } : { sslmode };
}

const USER_REJECTED = /cannot be opened: the server rejects this user \(.*\); check the user and sslmode, /;
const UNKNOWN_CA = /the TLS connection failed: self-signed certificate .*; check sslmode, sslrootcert, /;
const WRONG_NAME = /the TLS connection failed: Hostname\/IP does not match .*127\.0\.0\.1.*; check sslmode, /;
const NOT_BOUND = /the server does not prove with SCRAM-SHA-256-PLUS that it terminates TLS, /;
const UNUSABLE =
  /cannot be used \(.*(?:ENOENT.*none\.pem|key values mismatch).*\); they must be readable PEM /;

type Case = [name: string, parts: UrlParts, expected: string | RegExp];

const CASES: Case[] = [
  ['no sslmode', {}, 'TLS'],
  ...TLS_MODES.flatMap((mode): Case[] => {
    const isDisabled = mode === 'disable';
    const without = isDisabled || mode === 'prefer' ? 'plain' : USER_REJECTED;
    const parts = modeOf(mode);
    return [
      [mode, parts, isDisabled ? 'plain' : 'TLS'],
      [`${mode}, with TLS only`, { user: 'only_with_tls', ...parts }, isDisabled ? USER_REJECTED : 'TLS'],
      [`${mode}, without TLS only`, { user: 'only_without_tls', ...parts }, without],
    ];
  }),
  [
    'require through a Unix socket, where libpq uses no TLS, too',
    { at: '', host: server.folder, port: String(server.port), sslmode: 'require' },
    'plain',
  ],
  ['another authority, verify-full', { sslmode: 'verify-full', sslrootcert: OTHER_CA }, UNKNOWN_CA],
  ['another authority, require', { sslmode: 'require', sslrootcert: OTHER_CA }, UNKNOWN_CA],
  ['another authority, prefer', { sslmode: 'prefer', sslrootcert: OTHER_CA }, 'plain'],
  ['the authority, require', { sslmode: 'require', sslrootcert: CA }, 'TLS'],
  ['another name, verify-full', { at: NUMERIC, sslmode: 'verify-full', sslrootcert: CA }, WRONG_NAME],
  ['another name, verify-ca', { at: NUMERIC, sslmode: 'verify-ca', sslrootcert: CA }, 'TLS'],
  ['an authority that this machine does not trust', { sslrootcert: 'system' }, UNKNOWN_CA],
  ['a missing file of roots', { sslmode: 'verify-full', sslrootcert: join(PEM, 'none.pem') }, UNUSABLE],
  ['no root in the file', { sslmode: 'verify-full', sslrootcert: join(PEM, 'README.md') }, UNKNOWN_CA],
  ['a certificate of the client', { user: 'certified', ...modeOf('verify-full'), ...CLIENT }, 'TLS'],
  ['no certificate of the client', { user: 'certified', ...modeOf('verify-full') }, USER_REJECTED],
  ['a key of another certificate', { ...modeOf('require'), ...CLIENT, sslcert: OTHER_CA }, UNUSABLE],
  ['channel binding', { channel_binding: 'require' }, 'TLS'],
  [
    'channel binding, preferred, of a server that trusts',
    { user: 'trusted', channel_binding: 'prefer' },
    'TLS',
  ],
  ['channel binding, without TLS', { sslmode: 'disable', channel_binding: 'require' }, NOT_BOUND],
  ['channel binding, of a server that trusts', { user: 'trusted', channel_binding: 'require' }, NOT_BOUND],
  ['channel binding, and a password in clear', { user: 'in_clear', channel_binding: 'require' }, NOT_BOUND],
];

for (const [name, parts, expected] of CASES) {
  test(`a connection with TLS: ${name}`, async () => {
    const result = await connect(parts);
    if (typeof expected === 'string') assert.equal(result, expected);
    else assert.match(result, expected);
  });
}

/** https://www.postgresql.org/docs/current/protocol-message-formats.html, Authentication... */
function authentication(kind: number, text = ''): Buffer {
  const header = Buffer.alloc(9);
  header.write('R');
  header.writeInt32BE(8 + text.length, 1);
  header.writeInt32BE(kind, 5);
  return Buffer.concat([header, Buffer.from(text)]);
}

test('channel binding: a server that offers it, and then asks for the password in clear, gets none', async () => {
  const received: Buffer[] = [];
  const secureContext = createSecureContext({
    cert: readFileSync(join(PEM, 'server.pem')),
    key: readFileSync(join(PEM, 'server-key.pem')),
  });
  await using thief = await listen(
    createServer(socket => {
      socket.once('data', () => {
        socket.write('S');
        const secured = new TLSSocket(socket, { isServer: true, secureContext });
        const replies = [authentication(10, 'SCRAM-SHA-256-PLUS\0\0'), authentication(3)];
        secured
          .on('error', () => {})
          .on('data', (data: Buffer) => {
            received.push(data);
            const reply = replies.shift();
            if (reply === undefined) secured.destroy();
            else secured.write(reply);
          });
      });
    }),
  );
  const at = `127.0.0.1:${thief.port}`;
  const result = await connect({ at, sslmode: 'require', channel_binding: 'require' });
  const sent = Buffer.concat(received).toString('latin1');
  assert.deepEqual([sent.includes('SCRAM-SHA-256-PLUS'), sent.includes(OWNER_PASSWORD)], [true, false]);
  assert.match(result, NOT_BOUND);
});

test('sslrootcert=system: an authority that this machine trusts, and a check of the host name', async () => {
  // On Linux a variable of OpenSSL names the root certificates. A process reads it once.
  const roots = process.platform === 'linux' ? 'SSL_CERT_FILE' : 'NODE_EXTRA_CA_CERTS';
  const list = (at: string) =>
    runProgram(['token', 'list', '--database', urlOf({ at, sslrootcert: 'system' })], {
      env: { [roots]: CA },
    });
  assert.equal((await list(LOCALHOST)).exitCode, 0);
  assert.match((await list(NUMERIC)).stderr, WRONG_NAME);
});
