import assert from 'node:assert/strict';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, suite, test } from 'node:test';
import axe from 'axe-core';
import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import { checkNewPlant, type NewPlant } from '../src/contract/plant.ts';
import { startBrowser, type TestBrowser, type WatchedPage } from './browser.ts';
import { runProgram } from './harness/program.ts';
import { type RunningService, startTestService } from './running-service.ts';
import { holdStore } from './store-hold.ts';

const WIDE = { viewport: { width: 1440, height: 900 } };
/** WCAG 2.2, 1.4.10: nothing is wider than this. */
const PHONE = { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true };

let service: RunningService;
let browser: TestBrowser;
before(async () => {
  [service, browser] = await Promise.all([startTestService(), startBrowser()]);
});
after(async () => {
  await browser[Symbol.asyncDispose]();
  await service[Symbol.asyncDispose]();
});

/** Opens the page of documentation. */
async function openDocs(options: BrowserContextOptions = WIDE, url = service.url): Promise<WatchedPage> {
  const watched = await browser.openPage(options);
  await watched.page.goto(`${url}/docs`);
  return watched;
}

/** What a person types into the form; what is left out stays as it is. A tag of null is ticked off. */
interface Typed {
  token?: string;
  id?: string;
  name?: string;
  tag?: string | null;
}

async function fill(page: Page, { token = service.token, id, name, tag }: Typed): Promise<void> {
  await page.getByLabel('Token').fill(token);
  if (id !== undefined) await page.getByLabel('id', { exact: true }).fill(id);
  if (name !== undefined) await page.getByLabel('name', { exact: true }).fill(name);
  await page.getByLabel('with a tag').setChecked(tag !== null);
  if (typeof tag === 'string') await page.getByLabel('tag', { exact: true }).fill(tag);
}

/** Sends what is in the form, and waits for what the page says of the answer. */
async function submit(page: Page): Promise<string> {
  await page.getByRole('button', { name: 'Send' }).click();
  await page.locator('#verdict[data-result]').waitFor();
  return await shown(page.getByRole('status'));
}

async function shown(place: Locator): Promise<string> {
  return (await place.textContent()) ?? '';
}

/** Asserts that a page asked nobody but this service, and that the browser had nothing to complain of. */
function assertQuiet({ requests, complaints }: WatchedPage, url = service.url): void {
  assert.deepEqual(
    requests.filter(request => !['GET', 'POST'].some(method => request.startsWith(`${method} ${url}/`))),
    [],
  );
  assert.deepEqual(complaints, []);
}

suite('the form', () => {
  const plants: NewPlant[] = [
    { id: 9007199254740993n, name: 'Monstera deliciosa', tag: 'houseplant' },
    { id: 9223372036854775807n, name: 'Ölweide 🌿 ščurek', tag: '' },
    { id: -9223372036854775808n, name: 'Ficus "lyrata" \\ </script>' },
    { id: 0n, name: '', tag: '🪴' },
  ];
  for (const { id, name, tag } of plants) {
    test(`sends and shows plant ${id} in all its digits, and export has it`, async () => {
      const watched = await openDocs();
      const { page } = watched;
      await fill(page, { id: String(id), name, tag: tag ?? null });
      assert.equal(await submit(page), `Created: plant ${id} is on disk, as its revision 1.`);

      const members = JSON.stringify(tag === undefined ? { name } : { name, tag }).slice(1);
      const sent = `{"id":${id},${members}`;
      const shownRequest = (await shown(page.locator('#sent'))).split('\n');
      assert.deepEqual(shownRequest, [
        'POST /plants HTTP/1.1',
        `Host: ${new URL(service.url).host}`,
        'Authorization: Bearer <ACCESS_TOKEN>',
        'Content-Type: application/json',
        `Content-Length: ${Buffer.byteLength(sent)}`,
        '',
        sent,
      ]);
      const shownAnswer = (await shown(page.locator('#received'))).split('\n');
      assert.equal(shownAnswer[0], 'HTTP/1.1 200 OK');
      for (const field of [`plant-id: ${id}`, 'plant-revision: 1', 'plant-outcome: created'])
        assert.ok(shownAnswer.includes(field), `${field} is not in ${shownAnswer}`);
      assert.equal(shownAnswer.at(-1), `{${members}`);
      assertQuiet(watched);

      const { stdout } = await runProgram(['export', '--format', 'jsonl', '--database', service.database]);
      assert.ok(stdout.split('\n').includes(sent), stdout);
    });
  }

  test('says what became of a plant that is sent again, and of another one with its id', async () => {
    const { page } = await openDocs();
    await fill(page, { id: '77', name: 'A', tag: null });
    await submit(page);
    assert.match(await submit(page), /^Unchanged: plant 77 .* revision 1\./);
    await fill(page, { name: 'B', tag: null });
    assert.match(await submit(page), /^Revised: plant 77 .* revision 2\.$/);
  });

  test('leads from a refusal to what the page says of that error', async () => {
    const watched = await openDocs();
    const { page } = watched;
    await fill(page, { token: 'plant_nobody_made_this' });
    assert.equal(await submit(page), 'Refused with 401: what error 40102 means.');
    assert.match(await shown(page.locator('#received')), /^link: <docs#error-40102>; rel="help"$/m);
    await page.getByRole('link', { name: 'what error 40102 means' }).click();
    assert.equal(page.url(), `${service.url}/docs#error-40102`);
    assert.ok(await page.locator('#error-40102').isVisible());
    // The browser itself notes in its console that an answer was 401.
    assert.deepEqual(
      watched.complaints.filter(complaint => !complaint.includes('401')),
      [],
    );
  });

  test('says that no answer came where the service is gone', async () => {
    await using gone = await startTestService();
    const { page } = await openDocs(WIDE, gone.url);
    await fill(page, { token: gone.token });
    await gone.close();
    assert.match(await submit(page), /^No answer came\./);
  });

  test('shows nothing of the plant before while the next one is sent, and brings its answer into sight', async () => {
    await using slow = await startTestService();
    const { page } = await openDocs(PHONE, slow.url);
    const [send, answer] = [page.getByRole('button', { name: 'Send' }), page.locator('#verdict')];
    await fill(page, { token: slow.token });
    await submit(page);
    const held = holdStore(slow.database);
    await send.evaluate(button => button.scrollIntoView({ block: 'end' }));
    await send.click();
    await page.getByText('Sending …').waitFor();
    assert.ok(!(await page.locator('#wire').isVisible()));
    held[Symbol.dispose]();
    await page.locator('#verdict[data-result]').waitFor();
    assert.ok(await page.locator('#wire').isVisible());
    const { y, height } = (await answer.boundingBox())!;
    assert.ok(y >= 0 && y + height <= PHONE.viewport.height, `it is at ${y}, ${height} high`);
  });

  test('works behind a proxy that puts a path in front', async t => {
    const proxy = createServer((request, response) => {
      const path = request.url!.replace(/^\/garden\//, '/');
      const { method, headers } = request;
      const onward = httpRequest(service.url + path, { method, headers }, answer => {
        response.writeHead(answer.statusCode!, answer.rawHeaders);
        answer.pipe(response);
      });
      request.pipe(onward);
    });
    await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve));
    t.after(() => {
      proxy.close();
      proxy.closeAllConnections();
    });
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/garden`;
    const watched = await openDocs(WIDE, url);
    assert.equal(await shown(watched.page.locator('.address')), `POST ${url}/plants`);
    await fill(watched.page, { id: '78' });
    assert.match(await submit(watched.page), /^Created: plant 78 /);
    assertQuiet(watched, url);
  });
});

suite('what is wrong with a field is said before anything is sent', () => {
  for (const id of [' 1', '1e3', '1.0', '0x10', '007', '+1']) {
    test(`an integer that is written ${JSON.stringify(id)}`, async () => {
      const { page, requests } = await openDocs();
      await fill(page, { id });
      await page.getByRole('button', { name: 'Send' }).click();
      assert.match(await shown(page.locator('#plant-id-fault')), /^write the id in decimal digits alone/);
      assert.ok(!requests.some(request => request.startsWith('POST')));
    });
  }

  const ids = ['', '1.5', '--1', '१', 'one', ' ', '9'.repeat(30)];
  const beyond = ['9223372036854775808', '-9223372036854775809'];
  for (const id of [...ids, ...beyond]) {
    test(`an id of ${JSON.stringify(id)}, in the contract’s words`, async () => {
      const watched = await openDocs();
      const { page } = watched;
      await fill(page, { id });
      await page.getByRole('button', { name: 'Send' }).click();
      const { message } = checkNewPlant({
        idText: id === '' ? undefined : 'no integer',
        name: '',
        tag: undefined,
      });
      assert.equal(await shown(page.locator('#plant-id-fault')), message);
      assert.equal(await page.evaluate('document.activeElement.id'), 'plant-id');
      await page.getByLabel('id', { exact: true }).fill('1');
      assert.equal(await shown(page.locator('#plant-id-fault')), '');
      assert.deepEqual(
        watched.requests.filter(request => request.startsWith('POST')),
        [],
      );
    });
  }

  test('half a character, which a browser would change without a word', async () => {
    const watched = await openDocs();
    const { page } = watched;
    await fill(page, {});
    await page.evaluate(String.raw`document.getElementById('plant-name').value = 'A\ud83e'`);
    await page.evaluate(String.raw`document.getElementById('plant-tag').value = 'B\0'`);
    await page.getByRole('button', { name: 'Send' }).click();
    assert.equal(
      await shown(page.locator('#plant-name-fault')),
      'name must not contain an unpaired surrogate',
    );
    assert.equal(await shown(page.locator('#plant-tag-fault')), 'tag must not contain U+0000');
    assert.deepEqual(
      watched.requests.filter(request => request.startsWith('POST')),
      [],
    );
  });

  test('a token that is missing, or is none', async () => {
    const { page } = await openDocs();
    await page.getByRole('button', { name: 'Send' }).click();
    assert.match(await shown(page.locator('#token-fault')), /^a token is needed/);
    await page.getByLabel('Token').fill('"quoted"');
    assert.match(await shown(page.locator('#token-fault')), /holds other characters/);
  });
});

test('the token is afterwards in its field and nowhere else', async () => {
  const { page } = await openDocs();
  await fill(page, { id: '79' });
  await submit(page);
  const places = (await page.evaluate(`JSON.stringify({
    page: document.documentElement.outerHTML,
    address: location.href,
    title: document.title,
    history: history.state,
    window: window.name,
    cookies: document.cookie,
    local: { ...localStorage },
    session: { ...sessionStorage },
  })`)) as string;
  assert.ok(!places.includes(service.token));
  assert.ok(!places.includes(service.token.slice(6, 20)));
  const { cookies, origins } = await page.context().storageState({ indexedDB: true });
  assert.deepEqual([cookies, origins], [[], []]);
});

test('the token is not shown of an answer that repeats it', async t => {
  const proxy = createServer((request, response) => {
    if (request.method === 'POST') {
      const { authorization } = request.headers;
      response.writeHead(403, { 'Content-Type': 'text/plain', 'X-Sent': authorization }).end(authorization);
    } else {
      const onward = httpRequest(service.url + request.url, answer => {
        response.writeHead(answer.statusCode!, answer.rawHeaders);
        answer.pipe(response);
      });
      onward.end();
    }
  });
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  const { page } = await openDocs(WIDE, `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
  await fill(page, { id: '80' });
  await submit(page);
  const received = await shown(page.locator('#received'));
  assert.match(received, /^x-sent: Bearer <ACCESS_TOKEN>$/m);
  assert.match(received, /\n\nBearer <ACCESS_TOKEN>$/);
  assert.ok(!received.includes(service.token));
});

test('the token does not wait on a page that was left', async () => {
  const { page } = await openDocs();
  await fill(page, {});
  await page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))");
  assert.equal(await page.getByLabel('Token').inputValue(), '');
  await fill(page, {});
  await page.reload();
  assert.equal(await page.getByLabel('Token').inputValue(), '');
});

test('the keyboard alone is enough', async () => {
  const { page } = await openDocs();
  const focused = (): Promise<unknown> => page.evaluate('document.activeElement.id');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to the content');
  for (let presses = 0; (await focused()) !== 'token'; presses++) {
    assert.ok(presses < 20, 'the form is not reached');
    await page.keyboard.press('Tab');
  }
  await page.keyboard.insertText(service.token);
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'plant-id');
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.type('80');
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'plant-name');
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'has-tag');
  await page.keyboard.press('Space');
  await page.keyboard.press('Enter');
  await page.locator('#verdict[data-result]').waitFor();
  assert.match(await shown(page.getByRole('status')), /^Created: plant 80 /);
  assert.match(await shown(page.locator('#sent')), /\n\{"id":80,"name":"Monstera deliciosa"\}$/);

  await page.getByRole('radio', { name: 'curl' }).focus();
  await page.keyboard.press('ArrowRight');
  assert.ok(await page.getByLabel('TypeScript', { exact: true }).and(page.locator('pre')).isVisible());
  assert.ok(!(await page.getByLabel('curl', { exact: true }).and(page.locator('pre')).isVisible()));
});

test('the samples have the reader’s own address, also when they are copied', async () => {
  const { page } = await openDocs({ ...WIDE, permissions: ['clipboard-read', 'clipboard-write'] });
  const samples = await page.locator('.sample pre').allTextContents();
  assert.equal(samples.length, 5);
  for (const sample of samples) {
    assert.ok(sample.includes(service.url), sample);
    assert.ok(!sample.includes('plants.example'), sample);
  }
  await page.getByRole('radio', { name: 'Python' }).check();
  await page.getByRole('button', { name: 'Copy' }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), samples[2]);
});

test('without JavaScript all of it can be read, and the form cannot be sent', async () => {
  const { page } = await openDocs({ ...WIDE, javaScriptEnabled: false });
  assert.ok(await page.getByRole('button', { name: 'Send' }).isDisabled());
  for (const sample of await page.locator('.sample').all()) assert.ok(await sample.isVisible());
});

const LOOKS: [what: string, options: BrowserContextOptions][] = [
  ['light', { ...WIDE, colorScheme: 'light' }],
  ['dark', { ...WIDE, colorScheme: 'dark' }],
  ['light, on a phone', { ...PHONE, colorScheme: 'light' }],
  ['dark, on a phone', { ...PHONE, colorScheme: 'dark' }],
  ['at twice the size of text', { viewport: { width: 720, height: 450 } }],
];
for (const [what, options] of LOOKS) {
  test(`axe finds nothing, and nothing is cut off: ${what}`, async () => {
    const watched = await openDocs(options);
    const { page } = watched;
    await fill(page, { id: '' });
    await page.getByRole('button', { name: 'Send' }).click();
    await assertAccessible(page);
    await fill(page, { id: '81', token: 'none' });
    await submit(page);
    await page.getByRole('status').getByRole('link').click();
    await assertAccessible(page);
  });
}

async function assertAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults;
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
  assert.deepEqual(found, []);
  const width = (await page.evaluate('document.documentElement.scrollWidth')) as number;
  assert.ok(width <= page.viewportSize()!.width, `${width} pixels are wider than the window`);
}
