import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { suite, test } from 'node:test';
import { createServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { PlantStore, PlantStoreError } from '../src/client/plant-store.ts';
import { startFlakyGateway } from './flaky-gateway.ts';
import { runProgram } from './program.ts';
import { startTestService } from './running-service.ts';

const PROGRAM = fileURLToPath(new URL('./client-runtime-program.ts', import.meta.url));
const CERTIFICATES = new URL('./postgres-tls/', import.meta.url);
const AUTHORITY = fileURLToPath(new URL('ca.pem', CERTIFICATES));

/** Puts TLS before a server, as a gateway does. Its certificate is that of `localhost`. */
async function startTls(url: string): Promise<{ port: number } & AsyncDisposable> {
  const key = readFileSync(new URL('server-key.pem', CERTIFICATES));
  const cert = readFileSync(new URL('server.pem', CERTIFICATES));
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

  const REFUSED: [string, string, Record<string, string>, RegExp][] = [
    ['an authority that nobody trusts', 'localhost', {}, /CERT|SIGNATURE/],
    ['another name', '127.0.0.1', { NODE_EXTRA_CA_CERTS: AUTHORITY }, /ERR_TLS_CERT_ALTNAME_INVALID/],
  ];
  for (const [what, host, trust, code] of REFUSED) {
    test(`a certificate of ${what} is refused at once, and nothing is sent`, async () => {
      await using service = await startTestService();
      await using secure = await startTls(service.url);
      const env = {
        ...trust,
        PLANT_STORE_URL: `https://${host}:${secure.port}`,
        PLANT_STORE_TOKEN: service.token,
      };
      const { exitCode, stderr } = await runProgram(['add', '1', 'Ficus'], { env });
      assert.match(
        stderr,
        /^plant-store: the certificate of https:.* is not trusted \(.*\); .*NODE_EXTRA_CA_CERTS\n$/,
      );
      assert.match(stderr, code);
      assert.equal(exitCode, 1);
      const exported = await runProgram(['export', '--database', service.database]);
      assert.equal(exported.stdout, 'id,name,tag\n');
    });
  }

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
