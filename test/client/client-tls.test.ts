import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type LoopbackServer, listen } from '../harness/loopback-server.ts';
import { type Finished, runProgram } from '../harness/program.ts';

const AUTHORITY = pathOf('ca.pem');
const STORED = { 'Plant-Id': '1', 'Plant-Revision': '1', 'Plant-Outcome': 'created' };

function pathOf(certificate: string): string {
  return fileURLToPath(new URL(`../harness/postgres-tls/${certificate}`, import.meta.url));
}

/** All certificates except `client.pem` are for `localhost`. */
function identity(certificate: string): { key: Buffer; cert: Buffer } {
  const key = certificate === 'client.pem' ? 'client-key.pem' : 'server-key.pem';
  return { key: readFileSync(pathOf(key)), cert: readFileSync(pathOf(certificate)) };
}

/** Starts a plant store that has another certificate from its second connection on. */
async function startTls(certificate: string, next = certificate): Promise<LoopbackServer> {
  const server = createServer(identity(certificate), (request, response) => {
    server.setSecureContext(identity(next));
    request.resume().on('end', () => {
      response.writeHead(200, { ...STORED, Connection: 'close' }).end('{"name":"a"}');
    });
  });
  return await listen(server);
}

function run(command: string, host: string, trusts: string): Promise<Finished> {
  const env = {
    NODE_EXTRA_CA_CERTS: trusts,
    PLANT_STORE_URL: `https://${host}`,
    PLANT_STORE_TOKEN: 'plant_test',
  };
  return runProgram(command.split(' '), { env, stdin: 'id,name\n1,a\n2,b\n' });
}

test('the client rejects a certificate that is not trusted at once, and sends nothing more', {
  timeout: 60_000,
}, async () => {
  const importing = 'import --in-flight 1 -';
  const expired = pathOf('expired.pem');
  const CASES: [command: string, host: string, certificates: string[], trusts: string, advice: RegExp][] = [
    ['add 1 a', 'localhost', ['server.pem'], '', /set NODE_EXTRA_CA_CERTS to the file with its .*\n$/],
    ['add 1 a', '127.0.0.1', ['server.pem'], AUTHORITY, /\(ERR_TLS_CERT_ALTNAME_INVALID\); .*\n$/],
    [importing, 'localhost', ['expired.pem'], expired, /\(CERT_HAS_EXPIRED\); .*\n$/],
    // The next connection gets a certificate that is valid for clients only.
    [importing, 'localhost', ['server.pem', 'client.pem'], AUTHORITY, /\(INVALID_PURPOSE\); .*\n$/],
  ];
  for (const [command, host, [first, next], trusts, advice] of CASES) {
    await using server = await startTls(first!, next);
    const { exitCode, stdout, stderr } = await run(command, `${host}:${server.port}`, trusts);
    assert.match(stderr, /^plant-store: the certificate of https:.*\/plants is not trusted \(.*\n$/m);
    assert.match(stderr, advice);
    assert.match(stdout, next === undefined ? /^(?:0 rows: 0 created.*\n)?$/ : /^1 row: 1 created/);
    assert.equal(exitCode, 1);
  }
});
