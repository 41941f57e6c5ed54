import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { errorAnchor, helpLink } from '../../../src/client/help-link.ts';
import { ERROR_NAMES, ERRORS } from '../../../src/core/contract/errors.ts';
import { ERROR_HELP } from '../../../src/pages/docs/error-help.ts';
import { startServe } from '../../harness/program.ts';
import { ask, type RequestParts } from '../../harness/raw-connection.ts';
import { authorization } from '../../harness/request-cases.ts';
import { startTestService } from '../../harness/running-service.ts';
import { testFolder } from '../../harness/test-folder.ts';

const folder = testFolder();

const service = await startTestService();
after(() => service[Symbol.asyncDispose]());

test('/docs is the page, needs no credential, and has security headers', async () => {
  const response = await fetch(`${service.url}/docs`);
  const fields = ['content-type', 'cache-control', 'referrer-policy', 'link'];
  assert.deepEqual(
    [response.status, ...fields.map(name => response.headers.get(name))],
    [200, 'text/html; charset=utf-8', 'no-store', 'no-referrer', null],
  );
  const page = await response.text();
  const policy = response.headers.get('content-security-policy')!;
  for (const directive of [
    /^default-src 'none';/,
    /; connect-src 'self';/,
    /; frame-ancestors 'none';/,
    /; form-action 'none';/,
    /; style-src 'sha256-[A-Za-z0-9+/]{43}=';/,
    /; script-src 'sha256-[A-Za-z0-9+/]{43}=' 'sha256-[A-Za-z0-9+/]{43}=';/,
  ])
    assert.match(policy, directive);
  assert.doesNotMatch(policy, /unsafe|\*|http/);

  const { headers } = await fetch(`${service.url}/docs`, { method: 'HEAD' });
  assert.equal(headers.get('content-length'), String(Buffer.byteLength(page)));
});

test('/ and /docs/ redirect to the page', async () => {
  for (const path of ['/', '/docs/']) {
    const response = await fetch(service.url + path, { redirect: 'manual' });
    assert.equal(`${response.status} ${response.statusText}`, '303 See Other');
    assert.equal(new URL(response.headers.get('location')!, response.url).href, `${service.url}/docs`);
  }
});

test('every error has its anchor, its link leads there, and every internal link has a target', async () => {
  const page = await (await fetch(`${service.url}/docs`)).text();
  const ids = Array.from(page.matchAll(/\bid="([^"]+)"/g), ([, id]) => id!);
  assert.deepEqual(
    ids.filter(id => id.startsWith('error-')),
    ERROR_NAMES.map(errorAnchor),
  );
  for (const [, target = ''] of page.matchAll(/\bhref="#([^"]+)"/g)) assert.ok(ids.includes(target), target);
  for (const name of ERROR_NAMES) {
    const [, reference = ''] = /^<([^>]*)>; rel="help"$/.exec(helpLink(name)) ?? [];
    const { href } = new URL(reference, 'https://plants.example/garden/plants');
    // On a path that does not exist, a relative reference could lead anywhere.
    const path = name === 'noSuchPath' ? '' : '/garden';
    assert.equal(href, `https://plants.example${path}/docs#${errorAnchor(name)}`);
    // A gateway may have sent the plant before.
    if (ERRORS[name].status >= 500)
      assert.doesNotMatch(ERROR_HELP[name], /\b(?:not|nothing|never)\b.*\b(?:kept|stored)\b/i, name);
  }
});

test('with --docs off there is no page, and nothing links to it', async () => {
  const env = { PLANT_STORE_DOCS: 'off' };
  await using serve = await startServe(`sqlite:${join(folder, 'plants.db')}`, [], { env });
  for (const path of ['/docs', '/openapi.json'])
    for (const method of ['GET', 'POST'])
      assert.equal((await fetch(serve.url + path, { method })).status, 404);
  const rejected: [parts: RequestParts, error: number][] = [
    [{ body: '{}' }, 40002],
    // A handler rejects the second one, and the parser the third.
    [authorization(null), 40101],
    [{ version: 'HTTP/4.2' }, 40000],
  ];
  for (const [parts, error] of rejected) {
    const { headers, body } = await ask(Number(new URL(serve.url).port), serve.token, parts);
    assert.equal(JSON.parse(body).error, error);
    assert.equal(headers.get('link'), undefined);
  }
  const { stderr } = await serve.stop('SIGTERM');
  assert.ok(!stderr.includes('/docs'));
});
