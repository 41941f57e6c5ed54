import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { SampleFile } from '../../../src/operate/console/sample-file.ts';
import type { Samples } from '../../../src/operate/console/samples.ts';
import { startBrowser } from '../../harness/browser.ts';
import { sendText } from '../../harness/console-session.ts';
import { startTestService } from '../../harness/running-service.ts';
import { openTokens } from '../../harness/store-under-test.ts';
import { testFolder } from '../../harness/test-folder.ts';
import { until } from '../../harness/until.ts';

// This locale is no language tag, which uPlot would need.
const browser = await startBrowser({ LC_ALL: 'C.UTF-8' });
after(() => browser[Symbol.asyncDispose]());

test('plots have values for the keyboard, hide lines, zoom, and keep what they have', async () => {
  await using service = await startTestService({ console: { database: 'sqlite:plants.db', settings: [] } });
  const { page, requests, complaints } = await browser.openPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(`${service.opsUrl}/console/#${await service.makeConsoleCode!()}`);
  const plants = page.getByRole('slider', { name: 'Time of Plants per second' });
  const errors = page.getByRole('slider', { name: 'Time of Rejected requests' });
  const textOf = async (plot: typeof plants) => (await plot.getAttribute('aria-valuetext')) ?? '';
  let id = 1;
  await until('creates are shown', async () => {
    assert.equal(await sendText(service, `{"id":${id++},"name":"oak"}`), 200);
    return /: created [1-9]/.test(await textOf(plants));
  });
  await until('errors are shown', async () => {
    assert.equal(await sendText(service, '[]'), 400);
    return /40002 wrong id, name or tag [1-9]/.test(await textOf(errors));
  });
  const statistics = page.locator('.statistics');
  await statistics.getByRole('link', { name: 'wrong id, name or tag' }).click();
  assert.equal(await page.getByLabel('Filter').inputValue(), '40002');
  await page.locator('summary').getByText('No plant: it needs an id and a name').click();
  await page.getByText('40002 notNewPlant, from 127.0.0.1').waitFor();
  await page.goBack();
  await until('two plots are shown', async () => (await page.locator('canvas').count()) === 2);
  await page.getByText('Technical: speed').click();
  await until('all plots are shown', async () => (await page.locator('canvas').count()) === 4);
  assert.match(
    (await statistics.last().textContent())!,
    /Plants a second\s*[0-9.]+ *mean of 10 s; at most [0-9.]*[1-9]/,
  );

  // A range shows only the time of which there are samples.
  const lastOf = async () => Number(await plants.getAttribute('aria-valuemax'));
  assert.ok((await lastOf()) >= 30 && (await lastOf()) < 300, `samples: ${await lastOf()}`);
  // The values at the cursor stay while the time passes.
  await plants.focus();
  await page.keyboard.press('ArrowLeft');
  const indexOf = async () => Number(await plants.getAttribute('aria-valuenow'));
  await until('the key moves the cursor', async () => (await indexOf()) < (await lastOf()));
  const [held, last] = [await textOf(plants), await lastOf()];
  await until('the time passes', async () => (await lastOf()) > last + 1);
  assert.equal(await textOf(plants), held);
  await page.keyboard.press('Home');
  await until('the key moves the cursor to the begin', async () => (await indexOf()) === 0);

  const legend = page.getByRole('button', { name: 'created' });
  await legend.click();
  assert.equal(await legend.getAttribute('aria-pressed'), 'false');
  assert.match(await textOf(plants), /: revised .*, unchanged [^,]*$/);

  const range = page.getByRole('button', { name: '15 min' });
  const isWhole = async () => (await range.getAttribute('aria-pressed')) === 'true';
  const box = (await plants.boundingBox())!;
  const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  const whole = await lastOf();
  await page.mouse.move(middle.x - box.width / 4, middle.y);
  await page.mouse.down();
  await page.mouse.move(middle.x + box.width / 4, middle.y, { steps: 4 });
  await page.mouse.up();
  await until('a part is shown', async () => !(await isWhole()));
  const shown = await lastOf();
  assert.ok(shown >= 10 && shown < whole, `samples of the part: ${shown}`);
  // A part that does not move has the colors of the other scheme, too.
  const pixels = () =>
    plants.locator('canvas').evaluate<string, { toDataURL(): string }>(canvas => canvas.toDataURL());
  await page.mouse.move(0, 0);
  const light = await pixels();
  await page.emulateMedia({ colorScheme: 'dark' });
  await until('the part has dark colors', async () => (await pixels()) !== light);
  await page.emulateMedia({ colorScheme: 'light' });
  await until('the part has light colors', async () => (await pixels()) === light);
  await page.mouse.dblclick(middle.x, middle.y);
  await until('all is shown again', isWhole);
  const day = page.getByRole('button', { name: '24 h' });
  await day.click();
  await until('24 hours are chosen', async () => (await day.getAttribute('aria-pressed')) === 'true');
  assert.ok((await lastOf()) >= whole, 'it shows all samples');
  await using command = await openTokens(service.database);
  await command.operatorTables.recordRun({
    command: 'backup',
    endedAt: Date.now(),
    hasSucceeded: true,
    result: 'complete',
  });
  await page.getByText(/Mark: start at .*Mark: backup at/).waitFor();
  const loaded = requests.length;
  await page.context().setOffline(true);
  await page.getByText('The service does not respond').waitFor();
  await page.locator('[data-lost]').getByText('New today').waitFor();
  // Without new samples, only the scale changes a plot.
  const plotted = () => plants.locator('canvas').screenshot();
  const linear = await plotted();
  const scale = page.getByRole('button', { name: 'log' });
  await scale.click();
  await until('the scale has changed', async () => !linear.equals(await plotted()));
  await page.getByRole('button', { name: 'linear' }).click();
  await until('the scale is as before', async () => linear.equals(await plotted()));
  await page.context().setOffline(false);
  await page.getByRole('link', { name: 'Tokens' }).click();
  await page.getByRole('link', { name: 'Now' }).click();
  await page.getByText('The service does not respond').waitFor({ state: 'detached' });
  assert.match(await textOf(errors), /40002 wrong id, name or tag/);
  assert.equal(await legend.getAttribute('aria-pressed'), 'false');
  const again = requests.slice(loaded).filter(each => each.endsWith('now?after=0'));
  assert.deepEqual(again, [], 'it loads nothing twice');
  assert.deepEqual(
    complaints.filter(each => !each.includes('ERR_INTERNET_DISCONNECTED')),
    [],
  );
});

test('plots begin with the samples of an earlier start, merged so that a day is readable', async () => {
  const path = join(testFolder(), 'plants.db');
  const length = 24 * 60 * 6;
  const newest = Math.floor(Date.now() / 10_000);
  const peaks = Float64Array.from({ length }, (_, index) => (index % 24 === 0 ? 9 : 1));
  const columns = new Map([
    ['created', new Float64Array(length).fill(5)],
    ['p99', peaks],
    ...[
      '40001 notJson',
      '40002 notNewPlant',
      '40102 tokenRejected',
      '41301 bodyTooLarge',
      '42901 tooManyRequests',
    ].map((name, index): [string, Float64Array] => [name, new Float64Array(length).fill(20 - index)]),
    ['40401 noSuchPath', new Float64Array(length).fill(2)],
    ['50302 storeUnavailable', new Float64Array(length).fill(1)],
  ]);
  const stored = { interval: 10, length, newest, count: length, columns };
  const earlier = { stored: () => stored, restore: () => {} } as Partial<Samples> as Samples;
  await new SampleFile(`${path}-history`, earlier, cause => assert.fail(String(cause)))[
    Symbol.asyncDispose
  ]();
  await using service = await startTestService({
    database: `sqlite:${path}`,
    console: { database: 'sqlite:plants.db', settings: [] },
  });
  const { page } = await browser.openPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(`${service.opsUrl}/console/#${await service.makeConsoleCode!()}`);
  const statistics = page.locator('.statistics');
  // In 15 minutes, five plants a second are 4,500, and 93 errors a second are 83,700.
  await statistics.getByText(/^4,[45][0-9]{2} in 15 min; show$/).waitFor();
  await statistics
    .getByText(/^[89][0-9]{2} by a fault of the service; mostly: body is not valid JSON$/)
    .waitFor();
  assert.match(
    (await statistics.locator('[data-state]').filter({ hasText: 'Rejected' }).textContent())!,
    /^Rejected8[0-9],[0-9]{3} in 15 min/,
  );
  const midnight = new Date(newest * 10_000).setHours(0, 0, 0, 0) / 1000;
  const today = await statistics
    .locator('div')
    .filter({ hasText: 'New today' })
    .locator('.statistic')
    .textContent();
  assert.ok(Math.abs(Number(today!.replaceAll(',', '')) - (newest * 10 - midnight) * 5) <= 100, today!);
  await page.getByText('what this service stored since midnight').waitFor();
  await page.getByText('Technical: speed').click();
  await statistics.getByText(/at most 5 in 15 min/).waitFor();
  const rare = page.getByRole('button', { name: 'others' });
  assert.equal(await rare.count(), 1);
  assert.equal(await page.getByRole('button', { name: /^40401|^50302/ }).count(), 0);
  const bars = page.getByRole('slider', { name: 'Time of Rejected requests' });
  await bars.focus();
  await page.keyboard.press('PageUp');
  // In a minute, 20 errors a second are 1,200.
  await until('a bar has all requests of its minute', async () =>
    /: 40001 body is not valid JSON 1,200, .*, others 180 in 1 min$/.test(
      (await bars.getAttribute('aria-valuetext')) ?? '',
    ),
  );
  const plants = page.getByRole('slider', { name: 'Time of Plants per second' });
  const lastOf = async () => Number(await plants.getAttribute('aria-valuemax'));
  // The samples of one second do not reach back, so those of ten seconds are shown.
  await until('a quarter of an hour is shown', async () => (await lastOf()) >= 89);
  assert.ok((await lastOf()) <= 90);
  await page.getByRole('button', { name: '24 h' }).click();
  await until('a day is shown', async () => (await lastOf()) > 350 && (await lastOf()) <= 360);
  const times = page.getByRole('slider', { name: 'Time of Response and commit time' });
  await times.focus();
  await page.keyboard.press('PageUp');
  await until('the values of an earlier start are shown', async () =>
    /: p50 \S+, p99 9, /.test((await times.getAttribute('aria-valuetext')) ?? ''),
  );
  assert.match((await plants.getAttribute('aria-valuetext'))!, /: created 5, /);
});
