import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { createServer, request as httpRequest, type RequestListener } from 'node:http';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { VERSION } from '../../../src/version.ts';
import { assertAccessible, type RecordedPage, startBrowser } from '../../harness/browser.ts';
import { listen } from '../../harness/loopback-server.ts';
import { runProgram } from '../../harness/program.ts';
import { startTestService } from '../../harness/running-service.ts';

const WIDE = { viewport: { width: 1440, height: 900 } };
/** WCAG 2.2, 1.4.10: nothing may be wider than 320 pixels. */
const DARK_PHONE = {
  viewport: { width: 320, height: 640 },
  hasTouch: true,
  isMobile: true,
  colorScheme: 'dark',
} as const;

const [service, browser] = await Promise.all([startTestService(), startBrowser()]);
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
  await page.getByLabel('Token', { exact: true }).fill(token);
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

test('the form sends and shows plants with all digits, contacts no other host, and keeps the token for the tab', async () => {
  const { page, requests, complaints } = await openDocs();
  assert.ok((await textOf(page, 'header')).includes(`Plant store ${VERSION}`));
  const sent = [
    '{"id":9223372036854775807,"name":"Ölweide 🌿 ščurek","tag":""}',
    String.raw`{"id":-9223372036854775808,"name":"Ficus \"lyrata\" \\ </script>"}`,
  ];
  for (const body of sent) {
    const { name, tag } = JSON.parse(body) as { name: string; tag?: string };
    const [id = ''] = /-?[0-9]+/.exec(body) ?? [];
    const verdict = await send(page, { id, name, tag: tag ?? null });
    assert.equal(verdict, `Created: plant ${id} is on disk (revision 1).`);
    const spaced = body.replace(/(:|,)(?=")|:(?=-?[0-9])/g, '$& ');
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

  await send(page, { id: '77', name: 'A', tag: null });
  assert.match(await send(page, { tag: null }), /^Unchanged: plant 77 .*\(revision 1\)\./);
  assert.match(await send(page, { name: 'B' }), /^Revised: plant 77 .*\(revision 2\)\.$/);

  const places = (await page.evaluate(`JSON.stringify([
    document.documentElement.outerHTML, location.href, history.state
  ])`)) as string;
  assert.ok(!places.includes(service.token.slice(6, 20)), 'the token is only in its field');
  const session = async () =>
    JSON.parse((await page.evaluate('JSON.stringify({ ...sessionStorage })')) as string);
  assert.deepEqual(await session(), { 'plant_store_token /plants': service.token });
  const { cookies, origins } = await page.context().storageState({ indexedDB: true });
  assert.deepEqual([cookies, origins], [[], []]);
  const token = page.getByLabel('Token', { exact: true });
  await page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))");
  assert.equal(await token.inputValue(), '');
  await page.reload();
  assert.equal(await token.inputValue(), service.token);
  await page.getByRole('button', { name: 'Forget the token' }).click();
  assert.deepEqual([await token.inputValue(), await session()], ['', {}]);
  await send(page, { token: 'plant_nobody_made_this' });
  assert.deepEqual(await session(), {}, 'a rejected token is not kept');
  assert.ok(!(await page.getByRole('button', { name: 'Forget the token' }).isVisible()));
});

test('a rejection shows its message and links to the help for its error', async () => {
  const { page } = await openDocs();
  const range = 'id must be an integer from -9223372036854775808 to 9223372036854775807';
  for (const [id, name, message] of [
    ['9223372036854775808', '', range],
    // UTF-8 encoding would replace an unpaired surrogate, so the form must escape it.
    ['1', 'A\ud83e', 'name must not contain an unpaired surrogate'],
  ] as const) {
    // The browser would silently change these values if they were typed.
    await page.evaluate(`document.getElementById('plant-name').value = ${JSON.stringify(name)}`);
    assert.equal(await send(page, { id }), `Rejected with 400: ${message} (what error 40002 means)`);
  }
  assert.match(
    await send(page, { token: 'plant_nobody_made_this' }),
    /^Rejected with 401: .* 40102 means\)$/,
  );
  assert.match(await textOf(page, '#received'), /^link: <docs#error-40102>; rel="help"$/m);
  assert.ok(!(await page.locator('#error-40102').isVisible()));
  await page.getByRole('link', { name: 'what error 40102 means' }).click();
  assert.equal(page.url(), `${service.url}/docs#error-40102`);
  assert.ok(await page.locator('#error-40102').isVisible());
  await assertAccessible(page);
});

test('a value that cannot be sent as typed is not sent, and its field shows why', async () => {
  const { page, requests } = await openDocs();
  const rejectedFields: [label: string, values: string[]][] = [
    ['Token', ['', 'two words']],
    ['id', ['1e3', '007']],
  ];
  for (const [label, values] of rejectedFields) {
    const field = page.getByLabel(label, { exact: true });
    for (const value of values) {
      await fill(page, {});
      await field.fill(value);
      await page.getByRole('button', { name: 'Send' }).click();
      assert.ok(await field.evaluate(element => element.matches(':focus:user-invalid')), `${label} ${value}`);
    }
    await assertAccessible(page);
    await field.fill('1');
  }
  assert.ok(!requests.some(request => request.startsWith('POST')));
});

test('while it sends or a field is wrong, the form shows no earlier result; without a response it says so', async () => {
  await using slow = await startTestService({ publicUrl: 'https://plants.example/garden' });
  const { page } = await openDocs(DARK_PHONE, slow.url);
  assert.ok((await textOf(page, '#curl')).startsWith('curl -i https://plants.example/garden/plants '));
  assert.ok((await textOf(page, '#http')).startsWith('POST /garden/plants\nHost: plants.example\n'));
  const button = page.getByRole('button', { name: 'Send' });
  const id = page.getByLabel('id', { exact: true });
  await send(page, { token: slow.token });
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  await page.route('**/plants', async route => {
    await held;
    await route.continue();
  });
  await id.fill('82');
  await button.evaluate(element => element.scrollIntoView({ block: 'end' }));
  await button.click();
  await page.getByText('Sending …').waitFor();
  assert.ok(!(await page.locator('#wire').isVisible()));
  await id.fill('');
  assert.equal(await textOf(page, '#verdict'), 'Sending …');
  release();
  await page.getByText('Created: plant 82 ').waitFor();
  assert.match(await textOf(page, '#http'), /\n\{"id": 82, .*\}$/);
  const { y, height } = (await page.locator('#verdict').boundingBox())!;
  assert.ok(y >= 0 && y + height <= DARK_PHONE.viewport.height, `it is at ${y}, ${height} high`);
  await button.click();
  assert.ok(await id.evaluate(element => element.matches(':user-invalid')));
  assert.equal(await textOf(page, '#verdict'), 'Not sent yet.');
  assert.ok(!(await page.locator('#wire').isVisible()));
  await assertAccessible(page);
  assert.match(await send(page, { id: '81', token: 'none' }), /^Rejected with 401/);
  await page.getByRole('status').getByRole('link').click();
  await page.getByText('Python', { exact: true }).click();
  await assertAccessible(page);
  await slow.close();
  assert.match(await send(page, { id: '83' }), /^No response\. /);
  assert.equal(await textOf(page, '#received'), 'none');
});

test('behind a proxy with a path of its own the form works, and knows errors of the proxy', async () => {
  let reject: ((authorization: string) => string) | undefined;
  await using proxy = await listen(
    createServer((request, response) => {
      const { authorization = '' } = request.headers;
      if (request.method !== 'POST' || reject === undefined) forwardToService(request, response);
      else response.writeHead(400, { 'X-Sent': authorization }).end(reject(authorization));
    }),
  );
  const url = `${proxy.url}/garden`;
  const { page, complaints } = await openDocs(WIDE, url);
  assert.equal(await textOf(page, '.address'), `POST ${url}/plants`);
  assert.match(await send(page, { id: '78' }), /^Created: plant 78 /);
  assert.deepEqual(complaints, []);
  // A gateway that removes the Link.
  reject = () => JSON.stringify({ error: 40001, message: 'use a JSON library' });
  assert.equal(await send(page), 'Rejected with 400: use a JSON library (what error 40001 means)');
  for (const body of ['<html>', 'null', '{}', '{"error":"no"}']) {
    reject = () => body;
    assert.match(await send(page), /^Rejected with 400, but not by a plant store\./, body);
  }
  reject = authorization => authorization;
  await send(page);
  const received = await textOf(page, '#received');
  assert.match(received, /^x-sent: Bearer <ACCESS_TOKEN>\n\nBearer <ACCESS_TOKEN>$/m);
  assert.ok(!received.includes(service.token));
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

/** Runs a command line with a curl that prints its last argument. */
function bodyOfCurl(command: string): string {
  const program = `curl() { while [ $# -gt 1 ]; do shift; done; printf %s "$1"; }\n${command}`;
  const { stdout, stderr } = spawnSync('sh', ['-c', program], { encoding: 'utf8' });
  assert.equal(stderr, '');
  return stdout;
}

const hasPython = spawnSync('python3', ['--version']).status === 0;
if (!hasPython) console.log('SKIPPED the Python sample: python3 is not installed');

const run = async (command: string, ...args: string[]): Promise<string> => {
  // In a terminal, the test runner makes Node print in colors.
  const env = { ...process.env, FORCE_COLOR: '0', PLANT_STORE_TOKEN: service.token };
  return (await promisify(execFile)(command, args, { env })).stdout;
};

test('the samples send the plant of the form, with all digits and any text, and are copied as shown', async () => {
  const { page } = await openDocs({ ...WIDE, permissions: ['clipboard-read', 'clipboard-write'] });
  const client = new URL('../../../src/client/plant-store.ts', import.meta.url).href;
  for (const [id, name, tag] of [
    ['9223372036854775806', `O'Hara's "x" \\ \\' $HOME \`id\` $(id) %s ! {} """ '''`, 'a\\'],
    ['-9223372036854775807', 'Ölweide 🌿 ščurek </script>\u2028', null],
  ] as const) {
    await fill(page, { id, name, tag });
    const program = (await textOf(page, '#typescript')).replace('plant-store-client', client);
    const printed = await run(process.execPath, '--input-type=module-typescript', '--eval', program);
    assert.equal(printed, 'created 1\n');
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
  await page.locator('.exchange').getByText('curl', { exact: true }).click();
  const panel = page.locator(':has(> #curl)').last();
  await panel.getByRole('button', { name: 'Copy' }).click();
  await panel.getByRole('button', { name: 'Copied' }).waitFor();
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), before);
  if (!hasPython) return;
  await fill(page, { id: '9223372036854775808' });
  await assert.rejects(run('python3', '-c', await textOf(page, '#python')), {
    code: 1,
    stderr: /^400: \{"error":40002,"message":"id must be /,
  });
});

test('the samples are readable without JavaScript, and the form cannot be sent', async () => {
  const { page } = await openDocs({ ...WIDE, javaScriptEnabled: false });
  assert.ok(await page.getByRole('button', { name: 'Send' }).isDisabled());
  await page.getByText('Python', { exact: true }).click();
  assert.ok((await page.locator('#python').textContent())!.includes('https://plants.example/plants'));
  assert.equal(await page.locator('.exchange pre:visible').count(), 1);
});
