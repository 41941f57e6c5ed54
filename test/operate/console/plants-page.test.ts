import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { assertAccessible, type RecordedPage, startBrowser } from '../../harness/browser.ts';
import { sendText } from '../../harness/console-session.ts';
import { runProgram } from '../../harness/program.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';
import { sqliteUnderTest } from '../../harness/store-under-test.ts';
import { insertSql, type Row, storedRevisionsOf } from '../../harness/stored-revisions.ts';
import { until } from '../../harness/until.ts';

const WIDE = { viewport: { width: 1366, height: 768 } };
const CONSOLE = { database: 'sqlite:plants.db', settings: [] };
const browser = await startBrowser();
after(() => browser[Symbol.asyncDispose]());

async function openConsole(
  service: RunningService,
  options: BrowserContextOptions = WIDE,
): Promise<RecordedPage> {
  const opened = await browser.openPage(options);
  await opened.page.goto(`${service.opsUrl}/console/#${await service.makeConsoleCode!()}`);
  await opened.page.getByRole('heading', { level: 1, name: 'Now' }).waitFor();
  return opened;
}

const show = (page: Page, { opsUrl }: RunningService, hash: string): Promise<unknown> =>
  page.goto(`${opsUrl}/console/#${hash}`);

async function store(service: RunningService, ...bodies: string[]): Promise<void> {
  for (const body of bodies) assert.equal(await sendText(service, body), 200);
}

/** Waits until a table has these rows, without their blanks. */
async function waitForRows(page: Page, expected: RegExp[]): Promise<void> {
  await until(`the rows ${expected.join(', ')}`, async () => {
    const texts = await page.locator('tbody tr').allTextContents();
    return (
      texts.length === expected.length &&
      texts.every((text, row) => expected[row]!.test(text.replaceAll(/\s+/g, ' ')))
    );
  });
}

test('a plant is corrected and set back in a form with nothing else, and changes of others survive', async () => {
  await using service = await startTestService({ console: CONSOLE });
  const id = '9223372036854775807';
  await store(service, `{"id":${id},"name":"Acer <b>","tag":"tree"}`, '{"id":7,"name":"oak"}');
  const { page, complaints } = await openConsole(service, { ...WIDE, timezoneId: 'Asia/Tokyo' });
  const contents = async () =>
    (await storedRevisionsOf(service.database, BigInt(id))).map(({ plant: { name, tag } }) => [name, tag]);
  const status = page.getByRole('status');
  await show(page, service, 'plants?name=acer');
  await page.getByRole('link', { name: 'Acer <b>' }).click();
  await page.getByRole('link', { name: 'Correct this plant' }).click();
  await page.getByRole('heading', { level: 1, name: 'Correct Acer <b>' }).waitFor();
  for (const hidden of ['POST', 'curl', 'Errors', 'Response', 'Not sent yet'])
    assert.equal(await page.getByText(hidden).filter({ visible: true }).count(), 0, hidden);
  assert.deepEqual(
    await page.locator('input:visible').evaluateAll(fields => fields.map(({ id: each }) => each)),
    ['plant-name', 'has-tag', 'plant-tag', 'token'],
  );
  const tokens = page.getByRole('link', { name: 'the screen Tokens' });
  assert.equal(await tokens.getAttribute('href'), `${service.opsUrl}/console/#tokens`);
  await assertAccessible(page);
  await page.getByLabel('Name', { exact: true }).fill('Acer campestre');
  await page.getByLabel('Your token').fill('plant_of_nobody');
  await page.getByRole('button', { name: 'Save' }).click();
  await status.getByText('Not saved, because the service does not accept this token.').waitFor();
  await page.getByLabel('Your token').fill(service.token);
  await page.getByRole('button', { name: 'Save' }).click();
  await status.getByText('Saved as revision 2.').waitFor();
  assert.equal(await page.locator('h1:visible').textContent(), 'Acer campestre');
  await assertAccessible(page);
  await page.getByRole('button', { name: 'Back to the plant' }).click();
  await page.getByRole('heading', { level: 2, name: 'Acer campestre' }).waitFor();
  await page.getByRole('link', { name: 'Back to the search' }).click();
  await page.getByText('1 plant found.').waitFor();
  assert.equal(new URL(page.url()).hash, '#plants?name=acer');

  // The tab has the token now. Meanwhile, somebody else changes the plant.
  await page.getByRole('link', { name: 'Acer campestre' }).click();
  await page.getByRole('link', { name: 'Correct this plant' }).click();
  await page.getByLabel('with a tag').uncheck();
  await store(service, `{"id":${id},"name":"Acer rubrum"}`);
  assert.ok(!(await page.getByLabel('Your token').isVisible()));
  await page.getByText('You save with the token of this tab.').waitFor();
  await page.getByRole('button', { name: 'Use another token' }).click();
  await page.locator('#token:focus').waitFor();
  await page.getByLabel('Your token').fill(service.token);
  await page.getByRole('button', { name: 'Save' }).click();
  await status.getByText('the plant was changed meanwhile: it has revision 3 now').waitFor();
  await page.getByRole('button', { name: 'Back to the plant' }).click();
  await page.getByRole('heading', { level: 2, name: 'Acer rubrum' }).waitFor();
  await page.getByRole('link', { name: 'Use this content again' }).last().click();
  await page.getByRole('heading', { level: 1, name: 'Set Acer rubrum back to this content?' }).waitFor();
  assert.ok(await page.getByLabel('Name', { exact: true }).evaluate(field => field.matches(':read-only')));
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('link', { name: 'Use this content again' }).last().click();
  await page.getByRole('button', { name: 'Set back' }).click();
  await status.getByText('Saved as revision 4.').waitFor();
  const first = ['Acer <b>', 'tree'];
  assert.deepEqual(await contents(), [first, ['Acer campestre', 'tree'], ['Acer rubrum', undefined], first]);
  assert.deepEqual(
    complaints.filter(each => !/40[12]|412/.test(each)),
    [],
  );
});

test('a link that is not of the console shows the whole documentation', async () => {
  await using service = await startTestService({ console: CONSOLE });
  const seen = { revision: 1, name: 'x', isEarlier: false };
  const plant = { id: '1', name: 'x', seen, console: 'http://evil.example/' };
  for (const fragment of [
    '%',
    '{}',
    JSON.stringify({ ...plant, id: '1,"name":"y","id":2' }),
    JSON.stringify({ ...plant, seen: undefined }),
  ]) {
    const { page } = await browser.openPage(WIDE);
    await page.goto(`${service.url}/docs#plant=${fragment === '%' ? '%' : encodeURIComponent(fragment)}`);
    await page.getByRole('heading', { name: 'Send a plant to the store' }).waitFor();
    assert.ok(await page.getByLabel('id', { exact: true }).isVisible());
  }
  const { page } = await browser.openPage(WIDE);
  await page.goto(`${service.url}/docs#plant=${encodeURIComponent(JSON.stringify(plant))}`);
  await page.getByText('Create one on the screen Tokens of the console.').waitFor();
  assert.equal(await page.locator('a[href*=evil]').count(), 0);
});

test('the search finds what was stored since a day of the browser, or has no tag, and its file can be imported', async () => {
  await using service = await startTestService({ console: CONSOLE });
  // Midnight of May 1 in Auckland.
  const midnight = Date.UTC(2026, 3, 30, 12);
  const rows: Row[] = [
    [1, 1, 'Pseudoacer', null, midnight - 1, 1],
    [2, 1, 'Pseudoacer', null, midnight, 1],
    [3, 1, 'Acer', 'tree', midnight - 1, 1],
    [3, 2, 'Ácer', 'tree', midnight, 1],
  ];
  await sqliteUnderTest().sql(service.database, insertSql(...rows));
  const { page } = await openConsole(service, { ...WIDE, timezoneId: 'Pacific/Auckland' });
  await show(page, service, 'plants');
  await page.getByLabel('Stored since').fill('2026-05-01');
  await page.getByLabel('Name contains').fill('acer');
  await page.getByRole('button', { name: 'Search' }).click();
  // First the names that begin with the text.
  await waitForRows(page, [/^Ácer ?tree ?3 ?changed/, /^Pseudoacer ?none ?2 ?new/]);
  assert.equal(await page.getByLabel('Stored since').inputValue(), '2026-05-01');
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download' }).click();
  const download = await downloading;
  assert.match(download.suggestedFilename(), /^plants-acer-since-2026-05-01-\d{4}-\d\d-\d\d\.csv$/);
  const csv = readFileSync(await download.path(), 'utf8');
  assert.match(csv, /^\ufeffid,revision,name,tag,recorded_at,recorded_by\n2,1,Pseudoacer,,/);
  const corrected = join(service.folder, 'corrected.csv');
  writeFileSync(corrected, csv.replace('Pseudoacer', 'Acer negundo'));
  const args = ['import', '--replace', corrected, '--url', service.url, '--token', service.token];
  const { exitCode, stderr } = await runProgram(args);
  assert.equal(exitCode, 0, stderr);
  await page.getByLabel('without a tag').check();
  assert.ok(await page.getByLabel('Exact tag').isDisabled());
  await page.getByRole('button', { name: 'Search' }).click();
  await waitForRows(page, [/^Acer negundo ?none ?2 ?changed/]);
  assert.match(page.url(), /untagged=1/);
  await show(page, service, 'plants');
  await page.getByRole('link', { name: 'Today' }).click();
  await page.getByText('1 plant found.').waitFor();
  await waitForRows(page, [/^Acer negundo ?none ?2 ?changed/]);

  await page.getByLabel('Exact id').fill('900,026');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByRole('alert').getByText('Write the number without commas or blanks.').waitFor();
  await page.route('**/api/plants?*', route => route.abort());
  await show(page, service, 'plants?untagged=1');
  await page.getByRole('status').getByText('Not possible now').waitFor();
  await page.unroute('**/api/plants?*');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('2 plants found.').waitFor();
});

test('the lists of the newest plants show what is new, in equal lines on a phone', async () => {
  await using service = await startTestService({ console: CONSOLE });
  for (let id = 1; id <= 23; id++)
    await store(service, `{"id":${id},"name":"oak","tag":"a"}`, `{"id":${id},"name":"elm","tag":"a"}`);
  await store(service, '{"id":24,"name":"ash","tag":"long tag"}');
  // More than the service keeps of an outcome.
  for (let index = 0; index < 201; index++) await store(service, '{"id":24,"name":"ash","tag":"long tag"}');
  for (const width of [390, 430]) {
    const phone = { viewport: { width, height: 844 }, hasTouch: true, isMobile: true };
    const { page } = await openConsole(service, phone);
    await show(page, service, 'plants');
    const rows = page.locator('tbody tr');
    await rows.first().getByText('ash').waitFor();
    assert.equal(await rows.count(), 20);
    assert.ok((await rows.first().boundingBox())!.y < 500, 'the first plant is in the upper part');
    const [heading, note] = await Promise.all(
      ['.title h2', '.title .note'].map(async each => (await page.locator(each).boundingBox())!),
    );
    assert.ok(note!.y >= heading!.y + heading!.height && note!.x === heading!.x && note!.height < 25);
    const tops = await rows
      .first()
      .locator('td')
      .evaluateAll(cells => cells.map(cell => cell.getBoundingClientRect().top));
    const [name = 0, line = 0, last = 0, ...others] = [...new Set(tops)].toSorted((one, two) => one - two);
    assert.deepEqual([others, line - name], [[], last - line], 'three lines at the same distance');
    await page.getByLabel('new 24').uncheck();
    await page.getByLabel('changed 23').uncheck();
    assert.equal(await rows.count(), 0);
    await page.getByLabel('same 200').check();
    await rows.first().getByText('same').waitFor();
    await page.getByRole('link', { name: 'What was changed' }).click();
    await page.getByRole('button', { name: 'Show 3 more' }).click();
    await until('all are shown', async () => (await rows.count()) === 23);
    await assertAccessible(page);
  }
});
