import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { connect } from 'node:net';
import { suite, test } from 'node:test';
import { createServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { type LoopbackServer, listen } from '../harness/loopback-server.ts';
import { runProgram } from '../harness/program.ts';
import { startTestService } from '../harness/running-service.ts';

const AUTHORITY = pathOf('ca.pem');
const STORED = { 'Plant-Id': '1', 'Plant-Revision': '1', 'Plant-Outcome': 'created' };

function pathOf(certificate: string): string {
  return fileURLToPath(new URL(`../harness/postgres-tls/${certificate}`, import.meta.url));
}

/** All certificates except `client.pem` are for `localhost`. */
function identity(certificate = 'server.pem'): { key: Buffer; cert: Buffer } {
  const key = certificate === 'client.pem' ? 'client-key.pem' : 'server-key.pem';
  return { key: readFileSync(pathOf(key)), cert: readFileSync(pathOf(certificate)) };
}

/** Starts a TLS gateway in front of a server. */
function startTls(url: string, certificate?: string): Promise<LoopbackServer> {
  const { hostname, port } = new URL(url);
  const server = createServer({ ...identity(certificate), ALPNProtocols: ['http/1.1'] }, socket => {
    const behind = connect(Number(port), hostname);
    socket.pipe(behind).pipe(socket);
    socket.on('error', () => behind.destroy());
    behind.on('error', () => socket.destroy());
    behind.on('close', () => socket.destroy());
  });
  return listen(server);
}

function environment(host: string, token = 'plant_test'): Record<string, string> {
  return {
    NODE_EXTRA_CA_CERTS: AUTHORITY,
    PLANT_STORE_URL: `https://${host}`,
    PLANT_STORE_TOKEN: token,
  };
}

suite('the client over TLS', () => {
  const CASES: [command: string, host: string, certificate: string, trusts: string, advice: RegExp][] = [
    ['add 1 Ficus', 'localhost', 'server.pem', '', /set NODE_EXTRA_CA_CERTS to the file with the .*\n$/],
    [
      ...(['add 1 Ficus', '127.0.0.1', 'server.pem', AUTHORITY] as const),
      /\(ERR_TLS_CERT_ALTNAME_INVALID\); it is for another host name; use the host name that it is for .*\n$/,
    ],
    [
      ...(['import -', 'localhost', 'expired.pem', pathOf('expired.pem')] as const),
      /\(CERT_HAS_EXPIRED\); it is expired or not valid yet; ask the operator to renew it, or set the clock .*\n$/,
    ],
  ];
  test('rejects a certificate that is not trusted at once, and sends nothing', async () => {
    await using service = await startTestService();
    for (const [command, host, certificate, trusts, advice] of CASES) {
      await using secure = await startTls(service.url, certificate);
      const env = { ...environment(`${host}:${secure.port}`, service.token), NODE_EXTRA_CA_CERTS: trusts };
      const { exitCode, stderr } = await runProgram(command.split(' '), { env, stdin: 'id,name\n1,Ficus\n' });
      assert.match(stderr, /^plant-store: the certificate of https:.*\/plants is not trusted \(.*\n$/m);
      assert.match(stderr, advice);
      assert.equal(exitCode, 1);
    }
    const exported = await runProgram(['export', '--database', service.database]);
    assert.equal(exported.stdout, 'id,name,tag\n');
  });

  test('an import sends plants, and stops at once when the certificate is no longer trusted', {
    timeout: 30_000,
  }, async () => {
    const server = createHttpsServer(identity(), (request, response) => {
      // From the next connection on: a certificate that is valid for clients only.
      server.setSecureContext(identity('client.pem'));
      request.resume().on('end', () => {
        response.writeHead(200, { ...STORED, Connection: 'close' }).end('{"name":"a"}');
      });
    });
    await using changing = await listen(server);
    const { exitCode, stdout, stderr } = await runProgram(['import', '--in-flight', '1', '-'], {
      ...{ env: environment(`localhost:${changing.port}`), stdin: 'id,name\n1,a\n2,b\n' },
    });
    assert.match(
      stderr,
      /^plant-store: the certificate of .* \(INVALID_PURPOSE\); ask the operator of the service to replace it\n$/,
    );
    assert.match(stdout, /^1 row: 1 created/);
    assert.equal(exitCode, 1);
  });
});
