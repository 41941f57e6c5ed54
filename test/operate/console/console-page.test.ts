import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { after, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { Page } from 'playwright-core';
import { assertAccessible, type RecordedPage, startBrowser } from '../../harness/browser.ts';
import { sendText } from '../../harness/console-session.ts';
import { listen } from '../../harness/loopback-server.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';
import { sqliteUnderTest } from '../../harness/store-under-test.ts';
import { until } from '../../harness/until.ts';

const DESKTOP = { viewport: { width: 1280, height: 900 } };
const VIEWS = {
  light: DESKTOP,
  dark: { ...DESKTOP, colorScheme: 'dark' },
  phone: { ...DESKTOP, viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true },
} as const;
/** The rules of axe whose result a view changes. The first view has all rules. */
const RULES = { light: undefined, dark: ['color-contrast'], phone: ['target-size'] };
/** What a screen shows when it has loaded. */
const CONTENT = 'canvas, tbody tr, details.entry, .rows';
const SCREENS = ['now', 'plants', 'tags', 'rejected', 'tokens', 'store'];
const CONSOLE = {
  database: 'sqlite:plants.db',
  settings: [
    ['listen', '127.0.0.1:8080', 'default'],
    ['ops', '127.0.0.1:8081', 'default'],
    ['database', 'sqlite:plants.db', 'environment'],
    ['repeated-id', 'revise', 'flag'],
    ['body-limit', '1048576 bytes', 'default'],
    ['rate-limit', 'not set', 'default'],
  ],
} as const;

/** Adds the layout shifts of the page so far that no user caused. */
const LAYOUT_SHIFT = `(() => {
  const observer = new PerformanceObserver(() => {});
  observer.observe({ type: 'layout-shift', buffered: true });
  return observer.takeRecords().reduce((sum, { value, hadRecentInput }) => sum + (hadRecentInput ? 0 : value), 0);
})()`;

const browser = await startBrowser();
after(() => browser[Symbol.asyncDispose]());

async function signIn(service: RunningService, view: keyof typeof VIEWS = 'light'): Promise<RecordedPage> {
  const opened = await browser.openPage(VIEWS[view]);
  await opened.page.goto(`${service.opsUrl}/console/#${await service.makeConsoleCode!()}`);
  await opened.page.getByRole('heading', { level: 1, name: 'Now' }).waitFor();
  return opened;
}

async function show(page: Page, screen: string): Promise<void> {
  await page.locator('nav').getByRole('link', { name: screen }).click();
  await page.getByRole('heading', { level: 1, name: screen }).waitFor();
}

async function assertScreens(service: RunningService, view: keyof typeof VIEWS): Promise<void> {
  const opened = await signIn(service, view);
  const { page } = opened;
  let shifted = 0;
  for (const screen of SCREENS) {
    await page.goto(`${service.opsUrl}/console/#${screen}`);
    await page.getByRole('heading', { level: 1, name: new RegExp(screen, 'i') }).waitFor();
    await page.locator(CONTENT).first().waitFor();
    if (screen === 'rejected') await page.locator('summary').first().click();
    await assertAccessible(page, RULES[view]);
    const before = shifted;
    shifted = await page.evaluate<number>(LAYOUT_SHIFT);
    assert.ok(shifted - before < 0.05, `${screen} of ${view} moved by ${shifted - before}`);
  }
  assertSound(opened, service);
}

/** Checks that the page had no error and sent no request to another host. */
function assertSound({ requests, complaints }: RecordedPage, service: RunningService): void {
  assert.deepEqual(
    // The browser itself logs the 422 of an invalid id.
    complaints.filter(each => !each.includes('422')),
    [],
  );
  assert.deepEqual(
    requests.filter(
      each => ![service.opsUrl, `${service.url}/docs`, ' data:'].some(own => each.includes(own)),
    ),
    [],
  );
}

test('the console shows plants with exact ids, hostile bodies as text, and tokens, accessibly', async () => {
  await using service = await startTestService({ console: CONSOLE });
  const opened = await signIn(service);
  const { page } = opened;
  for (const body of [
    '{"id":-9223372036854775808,"name":"Acer"}',
    '{"id":9223372036854775807,"name":"</script><img src=x onerror=alert(1)>","tag":"tree"}',
    '{"id":9223372036854775807,"name":"Ölweide","tag":"tree"}',
    '{"id":9223372036854775807,"name":"Ölweide"}',
    '{"id":7,"name":"Silver birch","tag":"Betula, old"}',
  ])
    assert.equal(await sendText(service, body), 200);
  // So many that a search takes several requests.
  const ids = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)';
  const row = `SELECT 10000000 + i, 1, 'oak', NULL, 1, 1, 0 FROM n`;
  await sqliteUnderTest().sql(service.database, `INSERT INTO plant_revision ${ids} ${row}`);
  await show(page, 'Plants');
  await page.getByRole('link', { name: '-9223372036854775808' }).waitFor();
  const SEARCHES: [label: string, text: string, found: string][] = [
    ['Exact id', ' 9223372036854775807 ', '9223372036854775807'],
    ['Name contains', 'lweide', '9223372036854775807'],
    ['Name contains', 'OLW', '9223372036854775807'],
    ['Exact tag', 'Betula, old', '7'],
  ];
  for (const [label, text, found] of SEARCHES) {
    await page.goto(`${service.opsUrl}/console/#plants`);
    // Otherwise the text may be in the form of the last search, which the page then replaces.
    await page.reload();
    await page.getByLabel(label).fill(text);
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByText('The search is complete.').waitFor();
    await until(
      `it finds one plant: ${label}, ${text}`,
      async () => (await page.locator('tbody tr').count()) === 1,
    );
    assert.equal(await page.locator('tbody a.id').textContent(), found);
  }
  await show(page, 'Tags');
  const untagged = page.getByRole('row', { name: 'without a tag 10,002' }).getByRole('link');
  assert.equal(await untagged.getAttribute('href'), '#plants?untagged=1');
  const tagsShown = async (filter: string): Promise<string[]> => {
    await page.getByLabel('Tags that contain').fill(filter);
    return (await page.locator('.tags tbody tr').allTextContents()).map(text => text.trim());
  };
  for (const [filter, found] of [
    ['betülá', ['Betula, old1']],
    ['OLD', ['Betula, old1']],
    ['x', []],
    ['', ['without a tag10,002', 'Betula, old1']],
  ] as const)
    await until(`tags with ${filter}`, async () => isDeepStrictEqual(await tagsShown(filter), found));
  await page.getByRole('link', { name: 'Betula, old' }).click();
  await page.getByText('1 plant found. The search is complete.').waitFor();
  assert.equal(await page.locator('tbody a.id').textContent(), '7');
  await page.getByLabel('Exact id').fill('9223372036854775808');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByRole('alert').getByText('Not loaded: id must be an integer from').waitFor();
  await page.goto(`${service.opsUrl}/console/#plants/9223372036854775807`);
  await page.getByRole('heading', { name: 'Revision 3 (latest)' }).waitFor();
  const revisions = await page.locator('section.entry').allTextContents();
  const timeline = revisions.join(' ').replaceAll(/\s+/g, ' ');
  assert.match(timeline, /Name changed from <\/script><img src=x onerror=alert\(1\)> to Ölweide/);
  assert.match(timeline, /^Revision 3 \(latest\).*by token first ?Tag changed from tree to none/);

  for (const [link, name, tag] of [
    ['Correct this plant', 'Ölweide', undefined],
    ['Use this content again', 'Ölweide', 'tree'],
  ] as const) {
    await page.getByRole('link', { name: link }).first().click();
    await page.locator('#correction-id').getByText('9223372036854775807').waitFor();
    assert.equal(await page.locator('#plant-name').inputValue(), name);
    assert.equal(await page.locator('#has-tag').isChecked(), tag !== undefined);
    assert.equal(await page.locator('#plant-tag').inputValue(), tag ?? '');
    await page.goBack();
  }

  await show(page, 'Rejected');
  await page.getByRole('button', { name: 'Record contents for an hour' }).click();
  await page.getByText('Contents are recorded until').waitFor();
  const entries = page.locator('details.entry');
  // The title shows that no script ran.
  const hostile = '{"name":"<script>document.title=1</script><img src=x onerror=document.title=1>",}';
  for (const [body, error] of [
    [hostile, 400],
    ['{"id":1,"name":"\u0001\u202e"}', 400],
  ] as const)
    assert.equal(await sendText(service, body), error);
  await entries.getByText(/: 2 /).waitFor();
  await entries.first().locator('summary').click();
  await entries.locator('mark').first().waitFor();
  assert.deepEqual(await entries.locator('mark').allTextContents(), ['\\u0001', '}']);
  assert.equal(await entries.locator('pre').last().textContent(), hostile);
  assert.equal(await page.title(), 'Rejected - Plant store console');
  // What is new waits for a click, so that nothing moves.
  await page.getByText('Nothing new').waitFor();
  assert.equal(await page.getByRole('button', { name: 'new' }).count(), 0);
  assert.equal(await sendText(service, '{}', 'plant_0'), 401);
  const showNew = page.getByRole('button', { name: 'Show 1 new' });
  await showNew.waitFor();
  assert.equal(await entries.count(), 1);
  // The heading of an opened group has the time of its examples, although the list is older.
  assert.equal(await sendText(service, '{"id":2,"name":"x",}'), 400);
  await page.getByRole('button', { name: 'Show 2 new' }).waitFor();
  const summary = entries.last().locator('summary');
  await summary.click();
  // The browser reports only the last of two changes that follow at once.
  await entries.last().locator('.examples').waitFor({ state: 'detached' });
  await summary.click();
  await summary.getByText('plants 2, 1, token first: 3 requests').waitFor();
  await until('all have an example', async () => (await entries.last().locator('mark').count()) === 3);
  await page.getByRole('button', { name: 'Show 2 new' }).click();
  await page.getByLabel('Filter').fill('TOKENREJ');
  await page.locator('summary').getByText('Wrong token').waitFor();
  await page.locator('summary').getByText('unknown token: 1 request').waitFor();
  assert.equal(await entries.count(), 1);
  const withoutBody = { method: 'GET', headers: { Authorization: `Bearer ${service.token}` } };
  assert.equal((await fetch(`${service.url}/plants`, withoutBody)).status, 405);
  await page.getByLabel('Filter').fill('');
  await showNew.click();
  await entries.first().locator('summary').click();
  await entries.first().getByText('the content was not read').waitFor();

  await show(page, 'Tokens');
  await page.getByLabel('Label, such as').fill('field app');
  await page.getByRole('button', { name: 'Create' }).click();
  const token = (await page.locator('section pre').textContent())!;
  assert.equal(await sendText(service, '{"id":1,"name":"x"}', token), 200);
  await page.getByRole('button', { name: 'Revoke field app' }).click();
  await page.getByRole('dialog').getByText('It was last used').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke it' }).click();
  await page.getByText('1 revoked or expired').click();
  await page.getByRole('row', { name: /field app revoked/ }).waitFor();
  const isRejected = async () => (await sendText(service, '{"id":1,"name":"x"}', token)) === 401;
  await until('the token is rejected', isRejected);
  assert.equal(await page.getByText(token).count(), 0);
  await page.getByLabel('Label, such as').fill('garden app');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('button', { name: 'Hide it' }).press('Enter');
  await page.locator('#all-tokens:focus').waitFor();

  await show(page, 'Store');
  await until('the store is shown', async () => {
    const text = (await page.locator('main').textContent()) ?? '';
    return /Size\s*[0-9.]+ MB/.test(text) && /listen\s*127\.0\.0\.1:8080\s*default/.test(text);
  });
  const settings = await page.locator('.settings').first().locator('tbody tr').allTextContents();
  assert.deepEqual(
    settings.map(text => text.trim()),
    [
      'databasesqlite:plants.dbenvironment',
      'repeated-idreviseflag',
      'listen127.0.0.1:8080default',
      'ops127.0.0.1:8081default',
      'body-limit1 MBdefault',
    ],
  );
  await page.getByText('1 settings are not set').waitFor();
  assertSound(opened, service);
  for (const view of Object.keys(VIEWS) as (keyof typeof VIEWS)[]) await assertScreens(service, view);
});

test('the console says what to do after a used link, signs out in all tabs, and its cookie is worth nothing elsewhere', async () => {
  await using service = await startTestService({ console: CONSOLE });
  assert.equal(await sendText(service, '{"id":9007199254740993,"name":"Acer"}'), 200);
  const used = await service.makeConsoleCode!();
  const { page, requests } = await browser.openPage(DESKTOP);
  await page.goto(`${service.opsUrl}/console/#${used}`);
  await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor();
  assert.ok(!page.url().includes(used), 'the code is not in the history');
  await page.getByRole('button', { name: 'Sign out' }).click();
  // The page is open already, so it follows the new fragment itself.
  await page.goto(`${service.opsUrl}/console/#${used}`);
  const problem = 'this link was used, has expired or is of another store';
  await page.getByRole('alert').getByText(problem).waitFor();
  const requested = requests.length;
  await page.getByLabel('Link or code').fill(`${service.opsUrl}/console/#${used.slice(1)}`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').getByText('this is no link of the console').waitFor();
  assert.deepEqual(
    requests.slice(requested).filter(each => each.startsWith('POST')),
    [],
  );
  await page
    .getByLabel('Link or code')
    .fill(`${service.opsUrl}/console/#${await service.makeConsoleCode!()}`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('h1:focus').getByText('Now').waitFor();

  // A browser sends the cookies of one port to the others, too.
  const echo = createServer((request, response) => response.end(request.headers.cookie));
  await using thief = await listen(echo);
  const tab = await page.context().newPage();
  const stolen = await tab.goto(`${thief.url}/console/api/tokens`);
  const headers = { Cookie: await stolen!.text(), Origin: service.opsUrl };
  assert.match(headers.Cookie, /^plant_store_console/);
  const theft = await fetch(`${service.opsUrl}/console/api/tokens`, { headers });
  assert.equal(theft.status, 401);
  await using other = await startTestService({ console: CONSOLE });
  await tab.goto(`${other.opsUrl}/console/#${await other.makeConsoleCode!()}`);
  await tab.getByRole('heading', { level: 1, name: 'Now' }).waitFor();
  await tab.getByRole('button', { name: 'Sign out' }).click();
  await tab.getByRole('heading', { name: 'Sign in to the console' }).waitFor();

  await tab.goto(`${service.opsUrl}/console/#plants?name=ACER`);
  const downloading = tab.waitForEvent('download');
  await tab.getByText('Download all that match as CSV').click();
  const csv = readFileSync(await (await downloading).path(), 'utf8');
  assert.match(csv, /\n9007199254740993,1,Acer,,.*,first\n$/);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('You are signed out.').waitFor();
  const { cookies, origins } = await page.context().storageState();
  assert.deepEqual([cookies, origins], [[], []]);
  // The other tab asks for the total every two seconds, so it notices the end of the session.
  await tab.getByText('You are not signed in, or your session ended.').waitFor();
});

test('long, stacked and right-to-left names leave the tables in shape, and pages go back and forth', async () => {
  await using service = await startTestService({
    console: { ...CONSOLE, ops: '127.0.0.1:9999' },
  });
  const NAMES = ['x'.repeat(6_000), `a${'\u0301'.repeat(6_000)}`, 'שקד '.repeat(1_500), 'Acer'];
  for (const [index, name] of NAMES.entries())
    assert.equal(await sendText(service, JSON.stringify({ id: index, name })), 200);
  for (let id = 4; id < 60; id++)
    assert.equal(await sendText(service, JSON.stringify({ id, name: 'oak' })), 200);
  for (const view of ['light', 'phone'] as const) {
    const { page } = await signIn(service, view);
    await show(page, 'Plants');
    const newest = page.locator('tbody tr');
    await newest.first().waitFor();
    assert.match((await newest.first().textContent())!, /^oak\s*none\s*59\s*new/);
    assert.equal(await newest.count(), 20);
    await page.getByRole('button', { name: 'Show 20 more' }).click();
    await until('20 more are shown', async () => (await newest.count()) === 40);
    await page.goto(`${service.opsUrl}/console/#plants?from=`);
    // On a busy machine the time of a search may be over before it has found a whole page.
    const next = page.getByRole('link', { name: /^(?:Next page|Go on)$/ });
    for (await next.waitFor(); (await next.textContent()) === 'Go on'; await next.waitFor())
      await page.reload();
    const all = await page.locator('tbody tr').all();
    const rows = (await Promise.all(all.map(row => row.boundingBox()))).map(box => box!);
    const root = 'document.documentElement';
    const isWide = await page.evaluate(`${root}.scrollWidth > ${root}.clientWidth`);
    assert.equal(isWide, false, view);
    assert.equal(rows.length, 50);
    for (const [index, { y, height }] of rows.entries()) {
      assert.ok(height < 400, `row ${index} of ${view} is ${height} px high`);
      const above = rows[index - 1];
      assert.ok(above === undefined || y >= above.y + above.height - 1);
    }
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByText('60 plants found (page 2 of 2). The search is complete.').waitFor();
    await page.getByRole('link', { name: 'Previous page' }).click();
    await page.getByText('60 plants found (page 1 of 2). The search is complete.').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    const command = "npx plant-store console --database 'sqlite:plants.db' --ops 127.0.0.1:9999";
    await page.getByText(command).waitFor();
  }
});

test('tags keep their place, and a screen says that the service does not respond', async () => {
  await using service = await startTestService({ console: CONSOLE });
  const { page } = await signIn(service);
  const ids = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)';
  const row = `SELECT i, 1, 'oak', 'tag ' || i, 1, 1, 0 FROM n`;
  await sqliteUnderTest().sql(service.database, `INSERT INTO plant_revision ${ids} ${row}`);
  await show(page, 'Tags');
  const rows = page.locator('.tags tbody tr');
  await page.getByRole('button', { name: 'by name' }).click();
  assert.match((await rows.nth(1).textContent())!, /^tag 10\s*1$/);
  for (const shown of [400, 600]) {
    await page.getByRole('button', { name: 'Show 200 more' }).click();
    await until(`${shown} tags are shown`, async () => (await rows.count()) === shown);
  }
  const link = page.getByRole('link', { name: 'tag 50', exact: true });
  await link.scrollIntoViewIfNeeded();
  const before = (await link.boundingBox())!;
  assert.ok((await page.evaluate<number>('scrollY')) > 0);
  await link.click();
  await page.getByText('1 plant found.').waitFor();
  await page.goBack();
  // A line above the table comes and goes while the tags are counted.
  await until('the place is about as before', async () => {
    const now = await link.boundingBox();
    return now !== null && Math.abs(now.y - before.y) < 100;
  });
  assert.equal(await rows.count(), 600);

  await page.route('**/api/store', route => route.abort());
  await show(page, 'Store');
  await page.getByText('This appears as soon as the service responds.').waitFor();
  await page.unroute('**/api/store');
  await page.getByText('Free on the disk').waitFor();
});
