import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { suite, test } from 'node:test';
import { createSecureContext, createServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { PlantStore, PlantStoreError } from '../src/client/plant-store.ts';
import { startFlakyGateway } from './flaky-gateway.ts';
import { runProgram } from './harness/program.ts';
import { startTestService } from './running-service.ts';

const PROGRAM = fileURLToPath(new URL('./client-runtime-program.ts', import.meta.url));
const CERTIFICATES = new URL('./postgres-tls/', import.meta.url);
const AUTHORITY = pathOf('ca.pem');

function pathOf(certificate: string): string {
  return fileURLToPath(new URL(certificate, CERTIFICATES));
}

/** Puts TLS before a server, as a gateway does. Its certificate is one of `localhost`. */
async function startTls(
  url: string,
  certificate = 'server.pem',
): Promise<{ port: number } & AsyncDisposable> {
  const key = readFileSync(new URL('server-key.pem', CERTIFICATES));
  const cert = readFileSync(new URL(certificate, CERTIFICATES));
  const { hostname, port } = new URL(url);
  const server = createServer({ key, cert, ALPNProtocols: ['http/1.1'] }, socket => {
    const behind = connect(Number(port), hostname);
    socket.pipe(behind).pipe(socket);
    socket.on('error', () => behind.destroy());
    behind.on('error', () => socket.destroy());
    behind.on('close', () => socket.destroy());
  });
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}

suite('the client over TLS', () => {
  test('sends as it does without', async () => {
    await using service = await startTestService();
    await using gateway = await startFlakyGateway(service.url);
    await using secure = await startTls(service.url);
    await using secureGateway = await startTls(gateway.url);
    const env = {
      NODE_EXTRA_CA_CERTS: AUTHORITY,
      PLANT_STORE_URL: `https://localhost:${secure.port}`,
      PLANT_STORE_TOKEN: service.token,
    };
    const args = [PROGRAM, `https://localhost:${secureGateway.port}`];
    const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 60_000 });
    assert.partialDeepStrictEqual(JSON.parse(stdout), { sentAgain: 'created', inOrder: '550 of 550' });
    const imported = await runProgram(['import', '-'], {
      env,
      stdin: 'id,name\n9007199254740993,imported\n',
    });
    assert.match(imported.stdout, /^1 row: 0 created, 0 unchanged, 1 revised/);
  });

  test('names the host, by which a server with several certificates chooses', async () => {
    const key = readFileSync(new URL('server-key.pem', CERTIFICATES));
    const cert = readFileSync(new URL('server.pem', CERTIFICATES));
    const names: string[] = [];
    const server = createHttpsServer({
      SNICallback: (name, choose) => {
        names.push(name);
        choose(null, createSecureContext({ key, cert }));
      },
    });
    server.on('request', (request, response) => {
      const stored = { 'Plant-Id': '1', 'Plant-Revision': '1', 'Plant-Outcome': 'created' };
      request.resume().on('end', () => response.writeHead(200, stored).end('{"name":"Fern"}'));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      const env = { NODE_EXTRA_CA_CERTS: AUTHORITY, PLANT_STORE_TOKEN: 'plant_test' };
      const add = (host: string) =>
        runProgram(['add', '1', 'Fern', '--url', `https://${host}:${port}`], { env });
      const named = await add('localhost');
      assert.equal(named.stdout, 'created plant 1, revision 1: {"name":"Fern"}\n', named.stderr);
      const byAddress = await add('127.0.0.1');
      assert.equal(byAddress.exitCode, 1);
      assert.doesNotMatch(byAddress.stderr, /Warning|servername/i);
      assert.deepEqual(names, ['localhost']);
    } finally {
      server.close();
    }
  });

  const REFUSED: { what: string; host?: string; certificate?: string; authority?: string; says: RegExp }[] = [
    {
      what: 'an authority that nobody trusts',
      says: /\([A-Z_]+\); name the file with the certificate of its authority in NODE_EXTRA_CA_CERTS\n$/,
    },
    {
      what: 'another name',
      host: '127.0.0.1',
      authority: 'ca.pem',
      says: /\(ERR_TLS_CERT_ALTNAME_INVALID\); it is that of another name; give the address with the name that it is for\n$/,
    },
    {
      what: 'a year that is over',
      certificate: 'expired.pem',
      authority: 'expired.pem',
      says: /\(CERT_HAS_EXPIRED\); it is not valid today; ask who runs the service to renew it, unless the clock .*\n$/,
    },
  ];
  const COMMANDS = [
    { command: 'add', args: () => ['add', '1', 'Ficus'] },
    { command: 'import', args: () => ['import', '-'] },
    { command: 'check', args: (url: string) => ['check', url] },
  ];
  for (const { what, host = 'localhost', certificate, authority, says } of REFUSED) {
    for (const { command, args } of COMMANDS) {
      test(`${command} refuses a certificate of ${what} at once, and sends nothing`, async () => {
        await using service = await startTestService();
        await using secure = await startTls(service.url, certificate);
        const url = `https://${host}:${secure.port}`;
        const env = {
          ...(authority === undefined ? {} : { NODE_EXTRA_CA_CERTS: pathOf(authority) }),
          PLANT_STORE_URL: url,
          PLANT_STORE_TOKEN: service.token,
        };
        const { exitCode, stderr } = await runProgram(args(url), { env, stdin: 'id,name\n1,Ficus\n' });
        assert.match(stderr, /^plant-store: the certificate of https:.*\/plants is not trusted \(.*\n$/m);
        assert.match(stderr, says);
        assert.equal(exitCode, 1);
        const exported = await runProgram(['export', '--database', service.database]);
        assert.equal(exported.stdout, 'id,name,tag\n');
      });
    }
  }

  test('a service that asks for a certificate of the client is not taken for one with a bad certificate', async () => {
    const key = readFileSync(pathOf('server-key.pem'));
    const identity = { key, cert: readFileSync(pathOf('server.pem')) };
    const server = createServer({ ...identity, requestCert: true });
    server.on('tlsClientError', () => {});
    await once(server.listen(0, '127.0.0.1'), 'listening');
    using _closing = { [Symbol.dispose]: () => server.close() };
    const env = {
      NODE_EXTRA_CA_CERTS: AUTHORITY,
      PLANT_STORE_URL: `https://localhost:${(server.address() as AddressInfo).port}`,
      PLANT_STORE_TOKEN: 'plant_test',
    };
    const { exitCode, stderr } = await runProgram(['add', '1', 'Ficus'], { env });
    assert.match(stderr, /CERTIFICATE_REQUIRED/);
    assert.doesNotMatch(stderr, /not trusted/);
    assert.equal(exitCode, 1);
  });

  test('an import stops at once when the certificate is no longer trusted', { timeout: 30_000 }, async () => {
    const key = readFileSync(pathOf('server-key.pem'));
    const server = createHttpsServer(
      { key, cert: readFileSync(pathOf('server.pem')) },
      (request, response) => {
        // One that is good for clients alone, on every connection from the next one on.
        server.setSecureContext({
          key: readFileSync(pathOf('client-key.pem')),
          cert: readFileSync(pathOf('client.pem')),
        });
        const stored = { 'Plant-Id': '1', 'Plant-Revision': '1', 'Plant-Outcome': 'created' };
        request.resume().on('end', () => {
          response.writeHead(200, { ...stored, Connection: 'close' }).end('{"name":"a"}');
        });
      },
    ).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const env = {
        NODE_EXTRA_CA_CERTS: AUTHORITY,
        PLANT_STORE_URL: `https://localhost:${(server.address() as AddressInfo).port}`,
        PLANT_STORE_TOKEN: 'plant_test',
      };
      const stdin = 'id,name\n1,a\n2,b\n';
      const { exitCode, stdout, stderr } = await runProgram(['import', '--in-flight', '1', '-'], {
        env,
        stdin,
      });
      assert.match(
        stderr,
        /^plant-store: the certificate of .* \(INVALID_PURPOSE\); ask who runs the service to mend it\n$/,
      );
      assert.match(stdout, /^1 row: 1 created/);
      assert.equal(exitCode, 1);
    } finally {
      server.close();
    }
  });

  test('a server that speaks no TLS is no answer', async () => {
    await using service = await startTestService();
    const store = new PlantStore({
      ...{ url: service.url.replace('http:', 'https:'), token: service.token, retryForMs: 0 },
    });
    const error = await store.createPlant({ id: 1, name: 'a' }).catch((error: PlantStoreError) => error);
    assert.ok(error instanceof PlantStoreError);
    assert.deepEqual([error.status, error.canRetry], [undefined, true]);
  });
});
