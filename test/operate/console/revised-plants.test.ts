import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startBrowser } from '../../harness/browser.ts';
import { type Json, json, sendText, signIn } from '../../harness/console-session.ts';
import { addToken, startTestService } from '../../harness/running-service.ts';
import { until } from '../../harness/until.ts';

const CONSOLE = { database: 'sqlite:plants.db', settings: [] };
const browser = await startBrowser();
after(() => browser[Symbol.asyncDispose]());

test('the console lists what was revised, by which token, and how many plants the store has', async () => {
  await using service = await startTestService({ console: CONSOLE });
  const other = await addToken(service.database, 'field & app');
  for (const [body, token] of [
    ['{"id":1,"name":"Acer","tag":"tree"}', service.token],
    ['{"id":2,"name":"oak"}', service.token],
    ['{"id":1,"name":"Acer"}', service.token],
    ['{"id":1,"name":"Alnus"}', other],
  ] as const)
    await until('the plant is stored', async () => (await sendText(service, body, token)) === 200);
  const operator = await signIn(service);
  const revised = async (token: string): Promise<Json[]> =>
    (await json(operator, `revised?${new URLSearchParams({ token })}`)).plants.map(
      ({ id, label, before, after: now }: Json) => [id, label, before, now],
    );
  const byOther = ['1', 'field & app', { name: 'Acer' }, { name: 'Alnus' }];
  const byFirst = ['1', 'first', { name: 'Acer', tag: 'tree' }, { name: 'Acer' }];
  assert.deepEqual(await revised(''), [byOther, byFirst]);
  assert.deepEqual(await revised('field & app'), [byOther]);
  assert.deepEqual(await revised('nobody'), []);
  await until('the plants are counted', async () => {
    const { total } = await json(operator, 'plants/total');
    return total?.plants === 2 && total.isComplete;
  });

  const { page, complaints } = await browser.openPage({ viewport: { width: 390, height: 800 } });
  await page.goto(`${service.opsUrl}/console/#${await service.makeConsoleCode!()}`);
  await page.locator('.statistics').getByText('in the store').waitFor();
  const links = await page.locator('nav a').all();
  const tops = await Promise.all(links.map(async link => (await link.boundingBox())!.y));
  assert.equal(new Set(tops).size, 1, 'the screens of a phone are in one line');
  await page.getByRole('link', { name: 'Plants', exact: true }).click();
  await page.getByText('Plants in the store: 2').waitFor();
  await page.getByRole('link', { name: 'What was changed' }).click();
  const rows = page.locator('tbody tr');
  await until('both are listed', async () => (await rows.count()) === 2);
  assert.match((await rows.first().textContent())!, /^AcerAlnusnone13.*field & app$/);
  await rows.first().getByRole('link', { name: 'field & app' }).click();
  await until('one is of this token', async () => (await rows.count()) === 1);
  await rows.getByRole('link', { name: '1', exact: true }).click();
  await page.getByRole('heading', { level: 2, name: 'Alnus' }).waitFor();
  await page.getByRole('link', { name: 'Use this content again' }).first().click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('heading', { level: 2, name: 'Alnus' }).waitFor();
  assert.deepEqual(complaints, []);
});
