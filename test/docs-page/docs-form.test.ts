import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { createServer, request as httpRequest, type RequestListener } from 'node:http';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import axe from 'axe-core';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { ERROR_NAMES } from '../../src/contract/errors.ts';
import { VERSION } from '../../src/version.ts';
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
      const spaced = body
        .replace(/^(\{"id":)(.+?,)("name":)/, '$1 $2 $3 ')
        .replace(/,("tag":)("[^"]*"\})$/, ', $1 $2');
      assert.deepEqual((await textOf(page, '#http')).split('\n'), [
        'POST /plants',
        `Host: ${new URL(service.url).host}`,
        'Authorization: Bearer <ACCESS_TOKEN>',
        'Content-Type: application/json',
        '',
        spaced,
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
    assert.ok(!(await page.locator('#error-40102').isVisible()));
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

  test('shows no result of an earlier plant beside the error of a field', async () => {
    const { page } = await openDocs();
    const button = page.getByRole('button', { name: 'Send' });
    const id = page.getByLabel('id', { exact: true });
    const { promise: isEdited, resolve: edited } = Promise.withResolvers<void>();
    await page.route('**/plants', route => isEdited.then(() => route.continue()));
    await fill(page, { id: '82' });
    await button.click();
    await id.fill('99');
    await id.fill('');
    assert.equal(await textOf(page, '#verdict'), 'Sending …');
    edited();
    await page.getByText('Created: plant 82 ').waitFor();
    assert.match(await textOf(page, '#http'), /\n\{"id": 82, .*\}$/);
    await button.click();
    assert.ok(await id.evaluate(element => element.matches(':user-invalid')));
    assert.equal(await textOf(page, '#verdict'), 'Not sent yet.');
    assert.equal(await page.locator('#verdict[data-result], #received:visible').count(), 0);
  });

  test('shows the message of an error whose Link a gateway removed, and knows an error of a gateway', async () => {
    let sent = JSON.stringify({ error: 40001, message: 'use a JSON library' });
    await using gateway = await listen(
      createServer((request, response) => {
        if (request.method === 'POST') response.writeHead(400).end(sent);
        else forwardToService(request, response);
      }),
    );
    const { page } = await openDocs(WIDE, gateway.url);
    assert.equal(await send(page), 'Rejected with 400: use a JSON library (what error 40001 means)');
    for (sent of ['<html>', 'null', '{}', '{"error":"no"}'])
      assert.match(await send(page), /^Rejected with 400, but not by a plant store\./, sent);
  });

  test('sends the body that the user edits as JSON, even an invalid one, and shows the message', async () => {
    const { page, complaints } = await openDocs();
    const asJson = page.getByLabel('Edit the body as JSON');
    await fill(page, { id: 'one', name: "O'Hara" });
    await asJson.check();
    const body = page.getByLabel('JSON body');
    assert.equal(await body.inputValue(), `{"id": one, "name": "O'Hara", "tag": "houseplant"}`);
    for (const [text, verdict] of [
      [
        `{"id": one,\n 'name': "\\`,
        /^Rejected with 400: the body is empty or not valid JSON.* 40001 means\)$/,
      ],
      ['{"id": "1"}', /^Rejected with 400: id must be .*name.* \(what error 40002 means\)$/],
      ['', /^Rejected with 400: the body is empty.* 40001 means\)$/],
    ] as const) {
      await body.fill(text);
      await page.getByRole('button', { name: 'Send' }).click();
      await page.locator('#verdict[data-result="rejected"]').waitFor();
      assert.match(await textOf(page, '#verdict'), verdict);
      assert.ok((await textOf(page, '#http')).endsWith(`\n\n${text}`));
      assert.equal(bodyOfCurl(await textOf(page, '#curl')), text);
    }
    await asJson.uncheck();
    assert.match(await send(page, { id: '83' }), /^Created: plant 83 /);
    // The browser itself logs a 400 in its console.
    assert.ok(complaints.every(complaint => complaint.includes('400')));
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
  assert.match(await textOf(page, '#http'), /\n\{"id": 80, "name": "Monstera deliciosa"\}$/);
});

/** Runs a command line with a curl that prints its last argument. */
function bodyOfCurl(command: string): string {
  const program = `curl() { while [ $# -gt 1 ]; do shift; done; printf %s "$1"; }\n${command}`;
  const { stdout, stderr } = spawnSync('sh', ['-c', program], { encoding: 'utf8' });
  assert.equal(stderr, '');
  return stdout;
}

const hasPython = spawnSync('python3', ['--version']).status === 0;
if (!hasPython) console.log('SKIPPED the Python sample: python3 is not installed');

suite('the samples', () => {
  const run = async (command: string, ...args: string[]): Promise<string> => {
    // In a terminal, the test runner makes Node print in colors.
    const env = { ...process.env, FORCE_COLOR: '0', PLANT_STORE_TOKEN: service.token };
    return (await promisify(execFile)(command, args, { env })).stdout;
  };

  test('send the plant of the form, with all digits and any text', async () => {
    const { page } = await openDocs();
    const client = new URL('../../src/client/plant-store.ts', import.meta.url).href;
    for (const [id, name, tag] of [
      ['9223372036854775806', `O'Hara's "x" \\ \\' $HOME \`id\` $(id) %s ! {} """ '''`, 'a\\'],
      ['-9223372036854775807', 'Ölweide 🌿 ščurek </script>\u2028', ''],
      ['-9007199254740993', 'Ficus', null],
    ] as const) {
      await fill(page, { id, name, tag });
      for (const outcome of ['created', 'unchanged']) {
        const program = (await textOf(page, '#typescript')).replace('plant-store-client', client);
        const printed = await run(process.execPath, '--input-type=module-typescript', '--eval', program);
        assert.equal(printed, `${outcome} 1\n`);
        await page.getByLabel('Edit the body as JSON').setChecked(outcome === 'created');
      }
      if (hasPython)
        assert.equal(await run('python3', '-c', await textOf(page, '#python')), `${id} unchanged\n`);
      const body = bodyOfCurl(await textOf(page, '#curl'));
      assert.ok((await textOf(page, '#http')).endsWith(`\n\n${body}`));
      // The form sends the same plant, or there would be a new revision.
      assert.match(await send(page, { id, name, tag }), /^Unchanged: plant -?[0-9]+ already/);
      assert.ok((await textOf(page, '#http')).endsWith(`\n\n${body}`));
    }
    // While the id is invalid, the samples remain programs.
    const before = await textOf(page, '#curl');
    await fill(page, { id: '' });
    assert.equal(await textOf(page, '#curl'), before);
  });

  test('show why a plant was rejected: Python', async () => {
    if (!hasPython) return;
    const { page } = await openDocs();
    await fill(page, { id: '9223372036854775808' });
    await assert.rejects(run('python3', '-c', await textOf(page, '#python')), {
      code: 1,
      stderr: /^400: \{"error":40002,"message":"id must be /,
    });
  });

  test('are copied as shown, and so is the response', async () => {
    const { page } = await openDocs({ ...WIDE, permissions: ['clipboard-read', 'clipboard-write'] });
    await send(page, { id: '84' });
    const { host } = new URL(service.url);
    for (const [title, id, part] of [
      ['HTTP', 'http', host],
      ['curl', 'curl', service.url],
      ['TypeScript', 'typescript', service.url],
      ['Python', 'python', service.url],
      ['Response', 'received', 'plant-id: 84'],
    ] as const) {
      if (title !== 'HTTP') await page.locator('.exchange').getByText(title, { exact: true }).click();
      const text = await textOf(page, `#${id}`);
      assert.ok(text.includes(part) && !text.includes('plants.example'), text);
      const panel = page.locator(`:has(> #${id})`).last();
      await panel.getByRole('button', { name: 'Copy' }).click();
      await panel.getByRole('button', { name: 'Copied' }).waitFor();
      assert.equal(await page.evaluate('navigator.clipboard.readText()'), text);
      // Only one sample is open.
      assert.equal(await page.locator('.exchange pre:visible').count(), 2);
    }
    await page.getByLabel('name', { exact: true }).focus();
    assert.equal(await page.getByRole('button', { name: 'Copied' }).count(), 0);
  });
});

suite('the layout', () => {
  test('fills the window: the request is beside the form, and the errors take one window', async () => {
    const { page } = await openDocs();
    const [form, request] = await Promise.all(
      ['#plant-form', '#http'].map(async each => (await page.locator(each).boundingBox())!),
    );
    assert.ok(request!.x > form!.x + form!.width && request!.x + request!.width > 1200);
    assert.ok(request!.y < form!.y + 200);
    // Also on a screen of 900 pixels, of which a browser takes about 130.
    for (const width of [WIDE.viewport.width, 1280]) {
      await page.setViewportSize({ width, height: 770 });
      const { y, height } = (await page.locator('#send-button').boundingBox())!;
      assert.ok(y + height < 770, `Send ends at ${y + height} of a window of ${width} pixels`);
    }
    const heights = await page
      .locator('#errors details')
      .evaluateAll(rows => rows.map(row => row.clientHeight));
    assert.equal(heights.length, ERROR_NAMES.length);
    assert.ok(heights.reduce((sum, height) => sum + height) < WIDE.viewport.height, String(heights));
  });

  test('shows the version', async () => {
    const { page } = await openDocs();
    assert.ok((await textOf(page, 'header')).includes(`Plant store ${VERSION}`));
  });

  test('has a monospace font on every system', async () => {
    const { page } = await openDocs();
    const fonts = (await page.evaluate(
      "getComputedStyle(document.querySelector('pre')).fontFamily",
    )) as string;
    for (const font of [/\bMenlo\b/, /\bConsolas\b/, /"DejaVu Sans Mono"/, /, monospace$/])
      assert.match(fonts, font);
  });

  test('opens the error that the address names', async () => {
    const { page } = await openDocs();
    await page.goto(`${service.url}/docs#error-50302`);
    assert.ok(await page.locator('#error-50302').isVisible());
    const { y } = (await page.getByText('50302', { exact: true }).boundingBox())!;
    assert.ok(y >= 0, `the summary is at ${y}`);
  });
});

test('without JavaScript the page is readable, and the form cannot be sent', async () => {
  const { page } = await openDocs({ ...WIDE, javaScriptEnabled: false });
  const { page: withScript } = await openDocs();
  assert.ok(await page.getByRole('button', { name: 'Send' }).isDisabled());
  for (const title of ['HTTP', 'curl', 'TypeScript', 'Python']) {
    if (title !== 'HTTP') await page.getByText(title, { exact: true }).click();
    const sample = page.locator(`#${title.toLowerCase()}`);
    assert.ok(await sample.isVisible());
    // The script changes only the address.
    const address = new URL(service.url).host;
    const text = (await textOf(withScript, `#${title.toLowerCase()}`)).replace(
      `http://${address}`,
      'https://plants.example',
    );
    assert.equal(await sample.textContent(), text.replace(address, 'plants.example'));
  }
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
    await page.getByText('Python', { exact: true }).click();
    await page.getByLabel('Edit the body as JSON').check();
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
