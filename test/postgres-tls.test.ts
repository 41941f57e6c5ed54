import assert from 'node:assert/strict';
import { chmodSync, chownSync, copyFileSync, statSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openServedStore } from '../src/store/open-store.ts';
import { Connection } from '../src/store/postgres/connection.ts';
import { openFailure } from '../src/store/postgres/failure.ts';
import { postgresAddressOf, TLS_MODES, type TlsMode } from '../src/store/postgres/postgres-url.ts';
import { PostgresServer } from './harness/postgres-server.ts';
import { runProgram } from './harness/program.ts';
import { until } from './harness/until.ts';

const PEM = fileURLToPath(new URL('./postgres-tls/', import.meta.url));
const CA = join(PEM, 'ca.pem');
const OTHER_CA = join(PEM, 'other-ca.pem');
const CLIENT = { sslcert: join(PEM, 'client.pem'), sslkey: join(PEM, 'client-key.pem') };
const PASSWORD = 'tls secret';

const [withTls, withoutTls] = await Promise.all([PostgresServer.start(), PostgresServer.start()]);
after(() => Promise.all([withTls[Symbol.asyncDispose](), withoutTls[Symbol.asyncDispose]()]));

for (const server of [withTls, withoutTls]) {
  await server.query(
    ['only_with_tls', 'only_without_tls', 'certified']
      .map(role => `CREATE ROLE ${role} LOGIN PASSWORD '${PASSWORD}';`)
      .join('\n'),
  );
}
await offerTls(withTls);

async function offerTls(server: PostgresServer): Promise<void> {
  // The server may run as a user who may not look into this repository, and wants its key for itself.
  const { uid, gid } = statSync(join(server.folder, 'data'));
  for (const name of ['ca.pem', 'server.pem', 'server-key.pem']) {
    const copy = join(server.folder, name);
    copyFileSync(join(PEM, name), copy);
    chmodSync(copy, 0o600);
    chownSync(copy, uid, gid);
  }
  // The first line that fits is the one that counts.
  await writeFile(
    join(server.folder, 'data', 'pg_hba.conf'),
    `hostssl   all only_without_tls all reject
     hostnossl all only_with_tls    all reject
     hostssl   all certified        all scram-sha-256 clientcert=verify-full
     hostnossl all certified        all reject
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

interface Way {
  server?: PostgresServer;
  user?: string;
  host?: string;
  parameters?: Record<string, string>;
}

function addressText({
  server = withTls,
  user = 'postgres',
  host = 'localhost',
  parameters = {},
}: Way): string {
  const url = server.url('postgres', `?${new URLSearchParams(parameters)}`, user, PASSWORD);
  return (user === 'postgres' ? server.url('postgres', `?${new URLSearchParams(parameters)}`) : url).replace(
    '127.0.0.1',
    host,
  );
}

/** Connects as the service does. @returns `TLS`, `plain`, or the line that a person reads */
async function connect(way: Way): Promise<string> {
  const address = postgresAddressOf(addressText(way));
  try {
    const connection = await Connection.open(address, address.hosts[0]!);
    const [row] = await connection.run({ text: 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()' });
    await connection.close();
    return row![0] === 't' ? 'TLS' : 'plain';
  } catch (error) {
    return openFailure(error, address).message;
  }
}

const NO_TLS = /cannot be opened: the server does not offer TLS; check sslmode, /;
const UNKNOWN_CA =
  /cannot be opened: the TLS connection failed: self-signed certificate in certificate chain; check sslmode, sslrootcert, sslcert and sslkey$/;
const WRONG_NAME =
  /cannot be opened: the TLS connection failed: Hostname\/IP does not match certificate's altnames: .*127\.0\.0\.1.*; check sslmode, /;

suite('every sslmode', () => {
  const EXPECTED: Record<TlsMode, { withTls: string | RegExp; withoutTls: string | RegExp }> = {
    disable: { withTls: 'plain', withoutTls: 'plain' },
    allow: { withTls: 'plain', withoutTls: 'plain' },
    prefer: { withTls: 'TLS', withoutTls: 'plain' },
    require: { withTls: 'TLS', withoutTls: NO_TLS },
    'verify-ca': { withTls: 'TLS', withoutTls: NO_TLS },
    'verify-full': { withTls: 'TLS', withoutTls: NO_TLS },
  };
  for (const sslmode of TLS_MODES) {
    const verifies = sslmode.startsWith('verify');
    const parameters = verifies ? { sslmode, sslrootcert: CA } : { sslmode };
    test(`${sslmode}, with a server that offers TLS`, async () => {
      assertAnswer(await connect({ parameters }), EXPECTED[sslmode].withTls);
    });
    test(`${sslmode}, with a server that does not`, async () => {
      assertAnswer(await connect({ server: withoutTls, parameters }), EXPECTED[sslmode].withoutTls);
    });
  }
  test('is prefer when none is given', async () => {
    assert.equal(await connect({}), 'TLS');
    assert.equal(await connect({ server: withoutTls }), 'plain');
  });
  test('takes no part in a connection through a Unix socket, as with libpq', async () => {
    const host = encodeURIComponent(withTls.folder);
    const text = addressText({ host, parameters: { sslmode: 'require' } });
    const address = postgresAddressOf(text.replace(/:\d+\/postgres/, `/postgres`));
    const connection = await Connection.open(address, { host: withTls.folder, port: withTls.port });
    const [row] = await connection.run({ text: 'SELECT inet_client_addr() IS NULL' });
    assert.deepEqual(row, ['t']);
    await connection.close();
  });
});

test('allow and prefer do the other thing where the server wants it, and the rest do not', async () => {
  const answers = async (user: string): Promise<string[]> =>
    await Promise.all(
      TLS_MODES.map(sslmode => connect({ user, parameters: { sslmode, ...rootFor(sslmode) } })),
    );
  const withTls = await answers('only_with_tls');
  assertAnswer(
    withTls[0]!,
    /does not let this user in \(pg_hba\.conf rejects .* no encryption\); check the user and sslmode, and pg_hba\.conf/,
  );
  assert.deepEqual(withTls.slice(1), ['TLS', 'TLS', 'TLS', 'TLS', 'TLS']);
  const withoutTls = await answers('only_without_tls');
  assert.deepEqual(withoutTls.slice(0, 3), ['plain', 'plain', 'plain']);
  for (const answer of withoutTls.slice(3))
    assertAnswer(answer, /does not let this user in \(.* SSL encryption\)/);
});

test('a wrong password is said once TLS stands, and no other way is tried', async () => {
  const address = postgresAddressOf(withTls.url('postgres', '?sslmode=prefer', 'postgres', 'wrong'));
  await assert.rejects(Connection.open(address, address.hosts[0]!), { code: '28P01' });
});

suite('the certificate of the server', () => {
  const WAYS: [name: string, way: Way, answer: string | RegExp][] = [
    ['unknown to verify-full', { parameters: { sslmode: 'verify-full', sslrootcert: OTHER_CA } }, UNKNOWN_CA],
    ['unknown to verify-ca', { parameters: { sslmode: 'verify-ca', sslrootcert: OTHER_CA } }, UNKNOWN_CA],
    [
      'unknown to require with a root',
      { parameters: { sslmode: 'require', sslrootcert: OTHER_CA } },
      UNKNOWN_CA,
    ],
    ['unknown to prefer with a root', { parameters: { sslmode: 'prefer', sslrootcert: OTHER_CA } }, 'plain'],
    ['known to require with a root', { parameters: { sslmode: 'require', sslrootcert: CA } }, 'TLS'],
    [
      'of another name, verify-full',
      { host: '127.0.0.1', parameters: { sslmode: 'verify-full', sslrootcert: CA } },
      WRONG_NAME,
    ],
    [
      'of another name, verify-ca',
      { host: '127.0.0.1', parameters: { sslmode: 'verify-ca', sslrootcert: CA } },
      'TLS',
    ],
    [
      'of another name, require',
      { host: '127.0.0.1', parameters: { sslmode: 'require', sslrootcert: CA } },
      'TLS',
    ],
    ['unknown to this machine', { parameters: { sslrootcert: 'system' } }, UNKNOWN_CA],
    [
      'and no file of roots',
      { parameters: { sslmode: 'verify-full', sslrootcert: join(PEM, 'none.pem') } },
      /cannot be opened: the file that sslrootcert names cannot be read \(ENOENT: .*none\.pem'\); check the address of the store$/,
    ],
    [
      'and a file of roots without one',
      { parameters: { sslmode: 'verify-full', sslrootcert: join(PEM, 'README.md') } },
      UNKNOWN_CA,
    ],
  ];
  for (const [name, way, answer] of WAYS) {
    test(name, async () => assertAnswer(await connect(way), answer));
  }

  test('is known when this machine trusts its authority, and then the name counts', async () => {
    // Where the roots of the system are files, OpenSSL's own variable names them; it is read once in a process.
    const roots = process.platform === 'linux' ? 'SSL_CERT_FILE' : 'NODE_EXTRA_CA_CERTS';
    const list = (host: string) =>
      runProgram(
        ['token', 'list', '--database', addressText({ host, parameters: { sslrootcert: 'system' } })],
        { env: { [roots]: CA } },
      );
    assert.match((await list('localhost')).stderr, /there is no plant store in this database/);
    assert.match((await list('127.0.0.1')).stderr, WRONG_NAME);
  });
});

suite('the certificate of the client', () => {
  const user = 'certified';
  const sslmode = 'verify-full';
  const parameters = { sslmode, sslrootcert: CA };

  test('lets the role in that it names, beside the password', async () => {
    assert.equal(await connect({ user, parameters: { ...parameters, ...CLIENT } }), 'TLS');
  });
  test('is asked for', async () => {
    assertAnswer(
      await connect({ user, parameters }),
      /does not let this user in \(connection requires a valid client certificate\)/,
    );
  });
  test('must be signed by the authority of the server', async () => {
    const own = { sslcert: OTHER_CA, sslkey: CLIENT.sslkey };
    assertAnswer(
      await connect({ user, parameters: { ...parameters, ...own } }),
      /cannot be opened: the files that sslrootcert, sslcert and sslkey name do not hold what they should \(.*key values mismatch.*\); they must be PEM, and the key /,
    );
  });
  test('cannot be read', async () => {
    const missing = { ...CLIENT, sslkey: join(PEM, 'none.pem') };
    assertAnswer(
      await connect({ user, parameters: { ...parameters, ...missing } }),
      /the file that sslkey names cannot be read \(ENOENT/,
    );
  });
  test('is no certificate', async () => {
    const file = join(withTls.folder, 'text.pem');
    writeFileSync(file, 'text');
    assertAnswer(
      await connect({ user, parameters: { sslmode: 'prefer', sslcert: file, sslkey: CLIENT.sslkey } }),
      /sslcert and sslkey name do not hold what they should \(.*no start line\)/,
    );
  });
});

test('a service uses TLS for all of its connections', async () => {
  const parameters = { sslmode: 'verify-full', sslrootcert: CA, application_name: 'over_tls' };
  const database = addressText({ parameters });
  const store = await openServedStore({ database, repeatedIdRule: 'revise', connections: 2 });
  const write = (id: bigint) => store.engine.commit([{ plant: { id, name: 'Ficus' }, recordedBy: 1 }]);
  await Promise.all([write(1n), write(2n), store.engine.check()]);
  const rows = await withTls.query(
    `SELECT ssl, version FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'over_tls'`,
  );
  await store.close();
  assert.ok(rows.length >= 2, 'there are several connections');
  for (const row of rows) assert.deepEqual(row, { ssl: true, version: 'TLSv1.3' });
});

function rootFor(sslmode: TlsMode): Record<string, string> {
  return sslmode.startsWith('verify') ? { sslrootcert: CA } : {};
}

function assertAnswer(answer: string, expected: string | RegExp): void {
  if (typeof expected === 'string') assert.equal(answer, expected);
  else assert.match(answer, expected);
  assert.ok(!answer.includes(PASSWORD) && !answer.includes('\n'), answer);
}
