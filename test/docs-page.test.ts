import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { ERROR_NAMES, ERRORS } from '../src/contract/errors.ts';
import { errorAnchor, helpLink } from '../src/contract/help-link.ts';
import { CODE_SAMPLES, SAMPLE_ADDRESS } from '../src/docs-page/code-samples.ts';
import { docsPage } from '../src/docs-page/docs-page.ts';
import { ERROR_ADVICE } from '../src/docs-page/error-advice.ts';
import { runInTime, runProgram, startServe } from './harness/program.ts';
import { type RawAnswer, RawConnection, type RequestParts, requestBytes } from './harness/raw-connection.ts';
import { authorization } from './refused-requests.ts';
import { type RunningService, startTestService } from './running-service.ts';

const GET: RequestParts = { method: 'GET', body: '', headers: { ...authorization(null).headers } };
const PAGE = docsPage();
const FIRST_LOAD_BYTES_MAX = 500 * 1024;

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

async function ask({ address, token }: RunningService, parts: RequestParts): Promise<RawAnswer> {
  using connection = await RawConnection.open(address.port);
  connection.write(requestBytes(token, parts));
  return await connection.answer(parts.method !== 'HEAD');
}

/** Asks for the page with these Accept-Encoding fields. */
async function askForPage(...acceptEncoding: string[]): Promise<Response> {
  const bytes = requestBytes('', {
    ...GET,
    target: '/docs',
    headers: { Authorization: null, 'Accept-Encoding': acceptEncoding },
  });
  using connection = await RawConnection.open(service.address.port);
  connection.write(bytes);
  connection.finish();
  const pieces: Buffer[] = [];
  for await (const piece of connection.socket) pieces.push(piece as Buffer);
  const received = Buffer.concat(pieces);
  const headEnd = received.indexOf('\r\n\r\n');
  const [, ...lines] = received.toString('latin1', 0, headEnd).split('\r\n');
  const headers = lines.map(line => line.split(': ', 2) as [string, string]);
  return new Response(received.subarray(headEnd + 4), { headers });
}

suite('/docs', () => {
  test('is the page, without a credential, with what keeps it harmless', async () => {
    const { status, headers, body } = await ask(service, { ...GET, target: '/docs' });
    assert.equal(status, 200);
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.equal(headers.get('referrer-policy'), 'no-referrer');
    assert.equal(headers.get('content-encoding'), undefined);
    assert.equal(headers.get('link'), undefined);
    assert.equal(body, PAGE.html);
  });

  test('HEAD has the headers of GET and no body', async () => {
    const { status, headers } = await ask(service, { ...GET, method: 'HEAD', target: '/docs' });
    assert.equal(status, 200);
    assert.equal(headers.get('content-length'), String(Buffer.byteLength(PAGE.html)));
  });

  test('allows by its policy no style or script but its own, no other host, and no frame', async () => {
    const policy = (await askForPage()).headers.get('Content-Security-Policy') ?? '';
    const directives = new Map(policy.split('; ').map(each => [each.split(' ')[0], each] as const));
    assert.equal(directives.get('default-src'), "default-src 'none'");
    assert.equal(directives.get('connect-src'), "connect-src 'self'");
    assert.equal(directives.get('frame-ancestors'), "frame-ancestors 'none'");
    assert.equal(directives.get('form-action'), "form-action 'none'");
    for (const name of ['style-src', 'script-src'])
      assert.match(directives.get(name) ?? '', /^[a-z-]+ 'sha256-[A-Za-z0-9+/]{43}='$/);
    assert.doesNotMatch(policy, /unsafe|\*|http/);
  });

  const codings: [acceptEncoding: string[], coding: string | null][] = [
    [[], null],
    [['identity'], null],
    [['br, gzip;q=0.5'], 'gzip'],
    [['br', 'GZIP'], 'gzip'],
    [['x-gzip'], 'gzip'],
    [['gzip;q=0'], null],
    [['gzip ; Q=0.000'], null],
    [['gzipped, br'], null],
    [[''], null],
  ];
  for (const [acceptEncoding, coding] of codings) {
    test(`with Accept-Encoding ${JSON.stringify(acceptEncoding)} comes as ${coding ?? 'it is'}`, async () => {
      const answer = await askForPage(...acceptEncoding);
      assert.equal(answer.headers.get('Content-Encoding'), coding);
      const body = Buffer.from(await answer.arrayBuffer());
      assert.equal(body.length, Number(answer.headers.get('Content-Length')));
      assert.equal((coding === null ? body : gunzipSync(body)).toString(), PAGE.html);
    });
  }

  test('is one file of less than 500 KiB that loads nothing further', async () => {
    const body = await (await askForPage('gzip')).arrayBuffer();
    assert.ok(body.byteLength < FIRST_LOAD_BYTES_MAX, `${body.byteLength} bytes`);
    const loads = [...PAGE.html.matchAll(/<(?:link|img|script|iframe|object|embed)\b[^>]*>/g)].map(
      ([tag]) => tag,
    );
    assert.deepEqual(
      loads.filter(tag => !tag.startsWith('<link rel="icon" href="data:')),
      ['<script type="module">'],
    );
  });
});

suite('what the page says', () => {
  test('every error of the catalogue has its anchor, and there is no other', () => {
    const anchors = [...PAGE.html.matchAll(/\bid="(error-[^"]+)"/g)].map(([, anchor]) => anchor!);
    const numbered = anchors.filter(anchor => !anchor.endsWith('-number'));
    assert.deepEqual(numbered, ERROR_NAMES.map(errorAnchor));
  });

  test('every link within it leads to something', () => {
    const ids = new Set([...PAGE.html.matchAll(/\bid="([^"]+)"/g)].map(([, id]) => id));
    for (const [, target = ''] of PAGE.html.matchAll(/\bhref="#([^"]+)"/g))
      assert.ok(ids.has(target), target);
  });

  test('each sample names the address where the page puts its own, and the largest id in all its digits', () => {
    for (const { language, code } of CODE_SAMPLES) {
      assert.ok(code.includes(SAMPLE_ADDRESS), language);
      assert.match(code, /\b9223372036854775807[nL]?\b/, language);
    }
  });
});

test('the TypeScript sample sends its plant', async () => {
  const { code } = CODE_SAMPLES.find(({ language }) => language === 'TypeScript')!;
  const client = new URL('../src/client/plant-store.ts', import.meta.url).href;
  const program = code.replace('plant-store/client', client).replace(SAMPLE_ADDRESS, service.url);
  const env = { PLANT_STORE_TOKEN: service.token };
  const args = ['--input-type=module-typescript', '--eval', program];
  await promisify(execFile)(process.execPath, args, { env });
  const { stdout } = await runProgram(['show', '9223372036854775807', '--database', service.database]);
  assert.match(stdout, /Ficus lyrata/);
});

test('no error of 500 or 503 promises that the plant is not kept: a gateway may have sent it before', () => {
  for (const name of ERROR_NAMES.filter(each => ERRORS[each].status >= 500)) {
    const { meaning, advice } = ERROR_ADVICE[name];
    assert.doesNotMatch(`${meaning} ${advice}`, /\b(?:not|nothing|never)\b.*\b(?:kept|stored)\b/i, name);
  }
});

suite('an error answer', () => {
  test('points to its place on the page, relative to /plants, wherever a proxy puts both', () => {
    for (const name of ERROR_NAMES.filter(each => each !== 'noSuchPath')) {
      const [, reference = ''] = /^<([^>]*)>; rel="help"$/.exec(helpLink(name)) ?? [];
      const { href } = new URL(reference, 'https://plants.example/garden/plants');
      assert.equal(href, `https://plants.example/garden/docs#${errorAnchor(name)}`);
    }
  });

  test('that is no error points nowhere', async () => {
    const answer = await ask(service, { body: '{"id":1,"name":"A"}' });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('link'), undefined);
  });
});

suite('without documentation', () => {
  for (const target of ['/docs', '/openapi.json']) {
    for (const method of ['GET', 'HEAD', 'POST']) {
      test(`${method} ${target} is answered 404`, async () => {
        const answer = await ask(serviceWithoutDocs, { ...GET, method, target });
        assert.equal(answer.status, 404);
      });
    }
  }

  const refused: [what: string, parts: RequestParts, error: number][] = [
    ['an ordinary request', { body: '{}' }, 40002],
    ['one that Node’s HTTP server has', authorization(null), 40101],
    ['what is no request', { version: 'HTTP/4.2' }, 40000],
  ];
  for (const [what, parts, error] of refused) {
    test(`the answer to ${what} points nowhere`, async () => {
      const answer = await ask(serviceWithoutDocs, parts);
      assert.equal(JSON.parse(answer.body).error, error);
      assert.equal(answer.headers.get('link'), undefined);
    });
  }
});

test('serve says where the page is, and nothing of it where the environment takes it off', async () => {
  for (const [docs, status] of [
    ['on', 200],
    ['off', 404],
  ] as const) {
    const folder = await mkdtemp(join(tmpdir(), 'plant-store-docs-'));
    const serve = await startServe(`sqlite:${join(folder, 'plants.db')}`, [], {
      env: { PLANT_STORE_DOCS: docs },
    });
    assert.equal((await fetch(`${serve.url}/docs`)).status, status);
    const { stderr } = await serve.stop('SIGTERM');
    assert.equal(stderr.includes(`${serve.url}/docs`), docs === 'on');
    await rm(folder, { recursive: true });
  }
});

test('serve --docs takes on or off', async () => {
  const { exitCode, stderr } = await runInTime(['serve', '--docs', 'maybe']);
  assert.equal(exitCode, 2);
  assert.match(stderr, /on, off/);
});
