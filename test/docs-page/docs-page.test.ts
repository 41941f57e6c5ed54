import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, suite, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { ERROR_NAMES, ERRORS } from '../../src/contract/errors.ts';
import { errorAnchor, helpLink } from '../../src/contract/help-link.ts';
import { docsPage } from '../../src/docs-page/docs-page.ts';
import { ERROR_HELP } from '../../src/docs-page/error-help.ts';
import { VERSION } from '../../src/version.ts';
import { runInTime, startServe } from '../harness/program.ts';
import { ask as askAsWritten, type RequestParts } from '../harness/raw-connection.ts';
import { authorization } from '../harness/request-cases.ts';
import { type RunningService, startTestService } from '../harness/running-service.ts';

const PAGE = docsPage(VERSION);
const FIRST_LOAD_BYTES_MAX = 60 * 1024;

let service: RunningService;
let serviceWithoutDocs: RunningService;
before(async () => {
  service = await startTestService();
  serviceWithoutDocs = await startTestService({ docs: false });
});
after(async () => {
  await service[Symbol.asyncDispose]();
  await serviceWithoutDocs[Symbol.asyncDispose]();
});

/** Sends a request without the headers that other clients add. */
async function ask(
  url: string,
  { method = 'GET', acceptEncoding = [] as string[] } = {},
): Promise<IncomingMessage & { body: Buffer }> {
  const sent = request(url, { method, headers: { 'Accept-Encoding': acceptEncoding }, agent: false });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return Object.assign(response, { body: await buffer(response) });
}

suite('/docs', () => {
  test('is the page, needs no credential, and has security headers', async () => {
    const { statusCode, headers, body } = await ask(`${service.url}/docs`);
    assert.equal(statusCode, 200);
    assert.equal(headers['content-type'], 'text/html; charset=utf-8');
    assert.equal(headers['cache-control'], 'no-store');
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.equal(headers['referrer-policy'], 'no-referrer');
    assert.equal(headers.link, undefined);
    assert.equal(body.toString(), PAGE.html);

    const policy = String(headers['content-security-policy']);
    for (const directive of [
      /^default-src 'none';/,
      /; connect-src 'self';/,
      /; frame-ancestors 'none';/,
      /; form-action 'none';/,
      /; style-src 'sha256-[A-Za-z0-9+/]{43}=';/,
      /; script-src 'sha256-[A-Za-z0-9+/]{43}=';/,
    ])
      assert.match(policy, directive);
    assert.doesNotMatch(policy, /unsafe|\*|http/);
  });

  test('HEAD has the headers of GET and no body', async () => {
    const { statusCode, headers, body } = await ask(`${service.url}/docs`, { method: 'HEAD' });
    assert.equal(statusCode, 200);
    assert.equal(headers['content-length'], String(Buffer.byteLength(PAGE.html)));
    assert.equal(body.length, 0);
  });

  test('is compressed only for a client that accepts gzip', async () => {
    const codings: [acceptEncoding: string[], coding: 'gzip' | undefined][] = [
      [[], undefined],
      [['identity'], undefined],
      [['br, gzip;q=0.5'], 'gzip'],
      [['br', 'GZIP'], 'gzip'],
      [['x-gzip'], 'gzip'],
      [['gzip;q=0'], undefined],
      [['gzip ; Q=0.000'], undefined],
      [['gzipped, br'], undefined],
      [[''], undefined],
    ];
    for (const [acceptEncoding, coding] of codings) {
      const { headers, body } = await ask(`${service.url}/docs`, { acceptEncoding });
      assert.equal(headers['content-encoding'], coding, acceptEncoding.join());
      assert.equal(body.length, Number(headers['content-length']));
      assert.equal((coding === 'gzip' ? gunzipSync(body) : body).toString(), PAGE.html);
      assert.ok(coding === undefined || body.length < FIRST_LOAD_BYTES_MAX, `${body.length} bytes`);
    }
  });
});

test('/ redirects a browser to the page and mentions it to others, and /docs/ redirects to it', async () => {
  const { url } = service;
  for (const [path, accept, status] of [
    ['/', 'text/html,application/xhtml+xml,*/*;q=0.8', 303],
    ['/docs/', '*/*', 303],
    ['/', '*/*', 404],
    ['/', 'application/json, text/html;q=0', 404],
  ] as const) {
    const response = await fetch(url + path, { headers: { accept }, redirect: 'manual' });
    assert.equal(response.status, status, `${path} for ${accept}`);
    const text = await response.text();
    if (status === 404) assert.match(JSON.parse(text).message, /\/docs\b/);
    else assert.equal(new URL(response.headers.get('location')!, response.url).href, `${url}/docs`);
  }
});

suite('the content of the page', () => {
  test('every error of the catalogue has its anchor, and every internal link has a target', () => {
    const ids = Array.from(PAGE.html.matchAll(/\bid="([^"]+)"/g), ([, id]) => id!);
    assert.deepEqual(
      ids.filter(id => id.startsWith('error-')),
      ERROR_NAMES.map(errorAnchor),
    );
    for (const [, target = ''] of PAGE.html.matchAll(/\bhref="#([^"]+)"/g))
      assert.ok(ids.includes(target), target);
  });

  test('no help for 500 or 503 claims that the plant is not stored: a gateway may have sent it before', () => {
    for (const name of ERROR_NAMES.filter(each => ERRORS[each].status >= 500))
      assert.doesNotMatch(ERROR_HELP[name], /\b(?:not|nothing|never)\b.*\b(?:kept|stored)\b/i, name);
  });
});

test('an error links to its anchor relative to /plants, also behind a proxy that adds a path', () => {
  for (const name of ERROR_NAMES) {
    const [, reference = ''] = /^<([^>]*)>; rel="help"$/.exec(helpLink(name)) ?? [];
    const { href } = new URL(reference, 'https://plants.example/garden/plants');
    // On a path that does not exist, a relative reference could lead anywhere.
    const folder = name === 'noSuchPath' ? '' : '/garden';
    assert.equal(href, `https://plants.example${folder}/docs#${errorAnchor(name)}`);
  }
});

suite('without documentation', () => {
  test('/docs and /openapi.json do not exist', async () => {
    for (const path of ['/docs', '/openapi.json'])
      for (const method of ['GET', 'HEAD', 'POST'])
        assert.equal((await ask(serviceWithoutDocs.url + path, { method })).statusCode, 404);
  });

  test('no response to a rejected request links to /docs', async () => {
    const rejected: [parts: RequestParts, error: number][] = [
      [{ body: '{}' }, 40002],
      // These reach Node's HTTP server and its parser.
      [authorization(null), 40101],
      [{ version: 'HTTP/4.2' }, 40000],
    ];
    for (const [parts, error] of rejected) {
      const { address, token } = serviceWithoutDocs;
      const { headers, body } = await askAsWritten(address.port, token, parts);
      assert.equal(JSON.parse(body).error, error);
      assert.equal(headers.get('link'), undefined);
    }
  });
});

test('serve prints the address of the page unless the environment disables it', async () => {
  for (const [docs, status] of [
    ['on', 200],
    ['off', 404],
  ] as const) {
    const folder = await mkdtemp(join(tmpdir(), 'plant-store-docs-'));
    const env = { PLANT_STORE_DOCS: docs };
    const serve = await startServe(`sqlite:${join(folder, 'plants.db')}`, [], { env });
    assert.equal((await fetch(`${serve.url}/docs`)).status, status);
    const { stderr } = await serve.stop('SIGTERM');
    assert.equal(stderr.includes(`${serve.url}/docs`), docs === 'on');
    await rm(folder, { recursive: true });
  }
  const { exitCode, stderr } = await runInTime(['serve', '--docs', 'maybe']);
  assert.equal(exitCode, 2);
  assert.match(stderr, /on, off/);
});
