import assert from 'node:assert/strict';
import { createServer, request as httpRequest, type RequestListener } from 'node:http';
import { after, before, suite, test } from 'node:test';
import axe from 'axe-core';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { type RecordedPage, startBrowser, type TestBrowser } from '../harness/browser.ts';
import { listen } from '../harness/loopback-server.ts';
import { runProgram } from '../harness/program.ts';
import { type RunningService, startTestService } from '../harness/running-service.ts';
import { holdStore } from '../harness/store-hold.ts';

const WIDE = { viewport: { width: 1440, height: 900 } };
/** WCAG 2.2, 1.4.10: nothing may be wider than 320 pixels. */
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

async function openDocs(options: BrowserContextOptions = WIDE, url = service.url): Promise<RecordedPage> {
  const watched = await browser.openPage(options);
  await watched.page.goto(`${url}/docs`);
  return watched;
}

/** Form fields to change. Absent ones stay unchanged. A null tag clears the check box. */
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

/** Fills in the form, sends it, and waits until the page shows the result. */
async function send(page: Page, typed: Typed = {}): Promise<string> {
  await fill(page, typed);
  await page.getByRole('button', { name: 'Send' }).click();
  await page.locator('#verdict[data-result]').waitFor();
  return await textOf(page, '#verdict');
}

async function textOf(page: Page, selector: string): Promise<string> {
  return (await page.textContent(selector)) ?? '';
}

suite('the form', () => {
  test('sends and shows plants with all digits, contacts no other host, and export contains them', async () => {
    const { page, requests, complaints } = await openDocs();
    const sent = [
      '{"id":9007199254740993,"name":"Monstera deliciosa","tag":"houseplant"}',
      '{"id":9223372036854775807,"name":"Ölweide 🌿 ščurek","tag":""}',
      String.raw`{"id":-9223372036854775808,"name":"Ficus \"lyrata\" \\ </script>"}`,
      '{"id":0,"name":"","tag":"🪴"}',
    ];
    for (const body of sent) {
      const { name, tag } = JSON.parse(body) as { name: string; tag?: string };
      const [id = ''] = /-?[0-9]+/.exec(body) ?? [];
      const verdict = await send(page, { id, name, tag: tag ?? null });
      assert.equal(verdict, `Created: plant ${id} is on disk (revision 1).`);
      assert.deepEqual((await textOf(page, '#sent')).split('\n'), [
        'POST /plants',
        `Host: ${new URL(service.url).host}`,
        'Authorization: Bearer <ACCESS_TOKEN>',
        'Content-Type: application/json',
        `Content-Length: ${Buffer.byteLength(body)}`,
        '',
        body,
      ]);
      const received = (await textOf(page, '#received')).split('\n');
      for (const line of ['200 OK', `plant-id: ${id}`, 'plant-revision: 1', 'plant-outcome: created'])
        assert.ok(received.includes(line), `${line} is not in ${received}`);
      assert.equal(received.at(-1), body.replace(/"id":-?[0-9]+,/, ''));
    }
    assert.deepEqual([...new Set(requests)], [`GET ${service.url}/docs`, `POST ${service.url}/plants`]);
    assert.deepEqual(complaints, []);
    const { stdout } = await runProgram(['export', '--format', 'jsonl', '--database', service.database]);
    assert.deepEqual(stdout.trimEnd().split('\n').toSorted(), sent.toSorted());
  });

  test('shows the outcome of a plant sent again, and of different content under its id', async () => {
    const { page } = await openDocs();
    await send(page, { id: '77', name: 'A' });
    assert.match(await send(page), /^Unchanged: plant 77 .*\(revision 1\)\./);
    assert.match(await send(page, { name: 'B' }), /^Revised: plant 77 .*\(revision 2\)\.$/);
  });

  test('links from a rejection to the help for its error', async () => {
    const { page, complaints } = await openDocs();
    const verdict = await send(page, { token: 'plant_nobody_made_this' });
    assert.match(verdict, /^Rejected with 401: the token is .* \(what error 40102 means\)$/);
    assert.match(await textOf(page, '#received'), /^link: <docs#error-40102>; rel="help"$/m);
    await page.getByRole('link', { name: 'what error 40102 means' }).click();
    assert.equal(page.url(), `${service.url}/docs#error-40102`);
    assert.ok(await page.locator('#error-40102').isVisible());
    // The browser itself logs a 401 in its console.
    assert.ok(complaints.every(complaint => complaint.includes('401')));
  });

  test('hides the previous result while it sends, and shows that there was no response', async () => {
    await using slow = await startTestService();
    const { page } = await openDocs(PHONE, slow.url);
    const button = page.getByRole('button', { name: 'Send' });
    await send(page, { token: slow.token });
    const held = holdStore(slow.database);
    await button.evaluate(element => element.scrollIntoView({ block: 'end' }));
    await button.click();
    await page.getByText('Sending …').waitFor();
    assert.ok(!(await page.locator('#wire').isVisible()));
    held[Symbol.dispose]();
    await page.locator('#verdict[data-result]').waitFor();
    assert.ok(await page.locator('#wire').isVisible());
    const { y, height } = (await page.locator('#verdict').boundingBox())!;
    assert.ok(y >= 0 && y + height <= PHONE.viewport.height, `it is at ${y}, ${height} high`);
    await slow.close();
    assert.match(await send(page), /^No response\. /);
    assert.equal(await textOf(page, '#received'), 'none');
  });

  test('works behind a proxy that puts a path in front', async () => {
    await using proxy = await listen(createServer(forwardToService));
    const url = `${proxy.url}/garden`;
    const { page, complaints } = await openDocs(WIDE, url);
    assert.equal(await textOf(page, '.address'), `POST ${url}/plants`);
    assert.match(await send(page, { id: '78' }), /^Created: plant 78 /);
    assert.deepEqual(complaints, []);
  });
});

/** Forwards a request without the prefix `/garden`. */
const forwardToService: RequestListener = (request, response) => {
  const { method, headers, url = '' } = request;
  const onward = httpRequest(service.url + url.replace(/^\/garden\//, '/'), { method, headers }, received => {
    response.writeHead(received.statusCode!, received.rawHeaders);
    received.pipe(response);
  });
  request.pipe(onward);
};

test('a value that cannot be sent as typed is not sent, and its field shows why', async () => {
  const { page, requests } = await openDocs();
  const rejectedFields: [label: string, values: string[]][] = [
    ['Token', ['', '"quoted"', 'two words', 'é']],
    ['id', ['', ' ', ' 1', '1e3', '1.0', '1.5', '0x10', '007', '+1', '--1', '-', '१', 'one', '1,"tag":""']],
  ];
  for (const [label, values] of rejectedFields) {
    const field = page.getByLabel(label, { exact: true });
    for (const value of values) {
      await fill(page, {});
      await field.fill(value);
      await page.getByRole('button', { name: 'Send' }).click();
      assert.ok(await field.evaluate(element => element.matches(':focus:user-invalid')), `${label} ${value}`);
    }
    await field.fill('1');
    assert.ok(await field.evaluate(element => element.matches(':valid')));
  }
  assert.ok(!requests.some(request => request.startsWith('POST')));
});

test('an invalid value reaches the service as typed, and the page shows the message', async () => {
  const { page } = await openDocs();
  const range = 'id must be an integer from -9223372036854775808 to 9223372036854775807';
  for (const [id, name, tag, message] of [
    ['9223372036854775808', '', '', range],
    ['-9223372036854775809', '', '', range],
    // UTF-8 encoding would replace an unpaired surrogate, so the form must escape it.
    ['1', 'A\ud83e', '', 'name must not contain an unpaired surrogate'],
    ['1', '', 'B\0', 'tag must not contain U+0000'],
  ] as const) {
    // The browser would silently change these values if they were typed.
    await page.evaluate(`document.getElementById('plant-name').value = ${JSON.stringify(name)}`);
    await page.evaluate(`document.getElementById('plant-tag').value = ${JSON.stringify(tag)}`);
    assert.equal(await send(page, { id }), `Rejected with 400: ${message} (what error 40002 means)`);
  }
});

suite('the token', () => {
  test('is only in its field after sending, and is cleared when the user leaves the page', async () => {
    const { page } = await openDocs();
    await send(page, { id: '79' });
    const places = (await page.evaluate(`JSON.stringify({
      page: document.documentElement.outerHTML,
      address: location.href,
      history: history.state,
      window: window.name,
      session: { ...sessionStorage },
    })`)) as string;
    assert.ok(!places.includes(service.token.slice(6, 20)));
    const { cookies, origins } = await page.context().storageState({ indexedDB: true });
    assert.deepEqual([cookies, origins], [[], []]);

    await page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))");
    assert.equal(await page.getByLabel('Token').inputValue(), '');
    await fill(page, {});
    await page.reload();
    assert.equal(await page.getByLabel('Token').inputValue(), '');
  });

  test('is not shown if a response repeats it', async () => {
    await using gateway = await listen(
      createServer((request, response) => {
        const { authorization } = request.headers;
        if (request.method !== 'POST') forwardToService(request, response);
        else response.writeHead(403, { 'X-Sent': authorization }).end(authorization);
      }),
    );
    const { page } = await openDocs(WIDE, gateway.url);
    assert.match(await send(page), /^Rejected with 403, .* gateway/);
    const received = await textOf(page, '#received');
    assert.match(received, /^x-sent: Bearer <ACCESS_TOKEN>$/m);
    assert.match(received, /\n\nBearer <ACCESS_TOKEN>$/);
    assert.ok(!received.includes(service.token));
  });
});

test('the form works with the keyboard alone', async () => {
  const { page } = await openDocs();
  const focused = (): Promise<unknown> => page.evaluate('document.activeElement.id');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to the content');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'token');
  await page.keyboard.insertText(service.token);
  await page.keyboard.press('Tab');
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.type('80');
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'plant-name');
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'has-tag');
  await page.keyboard.press('Space');
  await page.keyboard.press('Enter');
  await page.locator('#verdict[data-result]').waitFor();
  assert.match(await textOf(page, '#verdict'), /^Created: plant 80 /);
  assert.match(await textOf(page, '#sent'), /\n\{"id":80,"name":"Monstera deliciosa"\}$/);
});

test('the samples contain the address of the service, also when they are copied', async () => {
  const { page } = await openDocs({ ...WIDE, permissions: ['clipboard-read', 'clipboard-write'] });
  const samples = page.locator('.sample');
  for (const sample of await samples.all()) {
    const code = (await sample.locator('pre').textContent())!;
    assert.ok(code.includes(service.url) && !code.includes('plants.example'), code);
    await sample.getByRole('button', { name: 'Copy' }).click();
    await sample.getByRole('button', { name: 'Copied' }).waitFor();
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), code);
  }
  assert.equal(await samples.count(), 3);
});

test('without JavaScript the page is readable, and the form cannot be sent', async () => {
  const { page } = await openDocs({ ...WIDE, javaScriptEnabled: false });
  assert.ok(await page.getByRole('button', { name: 'Send' }).isDisabled());
  for (const sample of await page.locator('.sample').all()) assert.ok(await sample.isVisible());
  assert.match(await textOf(page, '#request pre'), /^Authorization: Bearer <ACCESS_TOKEN>$/m);
});

const DISPLAYS: [what: string, options: BrowserContextOptions][] = [
  ['light', { ...WIDE, colorScheme: 'light' }],
  ['dark', { ...WIDE, colorScheme: 'dark' }],
  ['on a phone', PHONE],
  ['with text at twice its size', { viewport: { width: 720, height: 450 } }],
];
for (const [what, options] of DISPLAYS) {
  test(`axe finds nothing, and nothing is cut off: ${what}`, async () => {
    const { page } = await openDocs(options);
    await fill(page, { id: '' });
    await page.getByRole('button', { name: 'Send' }).click();
    await assertAccessible(page);
    await send(page, { id: '81', token: 'none' });
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
