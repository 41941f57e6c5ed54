import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { type RecordedPage, startBrowser, type TestBrowser } from '../harness/browser.ts';
import { type RunningService, startTestService } from '../harness/running-service.ts';
import { enginesUnderTest } from '../harness/store-under-test.ts';
import { until } from '../harness/until.ts';

/** uPlot needs a locale that is a language tag. */
const DESKTOP = { viewport: { width: 1280, height: 900 }, locale: 'en-GB' };
const VIEWS = {
  light: DESKTOP,
  dark: { ...DESKTOP, colorScheme: 'dark' },
  phone: { ...DESKTOP, viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true },
} as const;
const SCREENS = ['now', 'plants', 'rejected', 'tokens', 'store'];
const CONSOLE = {
  database: 'sqlite:plants.db',
  settings: [['listen', '127.0.0.1:8080', 'default']],
  curlOf: () => "curl -i http://127.0.0.1:8080/plants -H 'Authorization: Bearer <TOKEN>'",
} as const;

let browser: TestBrowser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser[Symbol.asyncDispose]());

async function signIn(service: RunningService, view: keyof typeof VIEWS = 'light'): Promise<RecordedPage> {
  const opened = await browser.openPage(VIEWS[view]);
  await opened.page.goto(`${service.opsUrl}/console/#${await service.makeConsoleCode!()}`);
  await opened.page.getByRole('heading', { level: 1, name: 'Now' }).waitFor();
  return opened;
}

async function show(page: Page, screen: string): Promise<void> {
  await page.getByRole('link', { name: screen, exact: true }).click();
  await page.getByRole('heading', { level: 1, name: screen }).waitFor();
}

async function send(service: RunningService, body: string, token = service.token): Promise<number> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const response = await fetch(`${service.url}/plants`, { method: 'POST', headers, body });
  await response.arrayBuffer();
  return response.status;
}

/** Sends plants until the end of the test. */
function load(service: RunningService): AsyncDisposable {
  let isRunning = true;
  const clients = Array.from({ length: 8 }, async (_, client) => {
    for (let id = client * 1_000_000 + 1_000; isRunning; id++)
      assert.equal(await send(service, `{"id":${id},"name":"load"}`), 200);
  });
  return {
    [Symbol.asyncDispose]: async () => {
      isRunning = false;
      await Promise.all(clients);
    },
  };
}

/** The page had no error and used nothing of other hosts. */
function assertSound({ requests, complaints }: RecordedPage, service: RunningService): void {
  assert.deepEqual(complaints, []);
  assert.deepEqual(
    requests.filter(each => !each.includes(service.opsUrl) && !each.includes(' data:')),
    [],
  );
}

for (const engine of await enginesUnderTest())
  suite(`the page of the console on ${engine.name}, under load`, () => {
    test('shows live plots, plants with exact ids, their changes, and tokens that take effect', async () => {
      await using service = await startTestService({
        database: await engine.newDatabase(),
        console: CONSOLE,
      });
      const opened = await signIn(service);
      const { page } = opened;
      await page.getByRole('heading', { name: 'This store is empty. Send the first plant' }).waitFor();
      for (const body of [
        '{"id":-9223372036854775808,"name":"Acer"}',
        '{"id":9223372036854775807,"name":"</script><img src=x onerror=alert(1)>","tag":"tree"}',
        '{"id":9223372036854775807,"name":"Ölweide","tag":"tree"}',
        '{"id":9223372036854775807,"name":"Ölweide"}',
      ])
        assert.equal(await send(service, body), 200);
      await using _sending = load(service);
      const created = page.locator('.panel', { hasText: 'Plants per second' }).locator('dd').first();
      await until(
        'the plot moves',
        async () => Number.parseInt(((await created.textContent()) ?? '').replaceAll(',', ''), 10) > 10,
      );
      assert.ok((await page.locator('canvas').count()) >= 2);

      await show(page, 'Plants');
      await page.getByRole('link', { name: '-9223372036854775808' }).waitFor();
      const SEARCHES: [label: string, text: string, found: string][] = [
        ['Exact id', '9223372036854775807', '9223372036854775807'],
        ['Name begins with', 'Ölw', '9223372036854775807'],
        ['Name begins with', 'Ace', '-9223372036854775808'],
      ];
      for (const [label, text, found] of SEARCHES) {
        await page.goto(`${service.opsUrl}/console/#plants`);
        await page.getByLabel(label).fill(text);
        await page.getByRole('button', { name: 'Search' }).click();
        await until('it finds one plant', async () => (await page.locator('tbody tr').count()) === 1);
        assert.equal(await page.locator('tbody a.id').textContent(), found);
      }
      await page.goto(`${service.opsUrl}/console/#plants/9223372036854775807`);
      await page.getByRole('heading', { name: 'Revision 3 (latest)' }).waitFor();
      const timeline = ((await page.locator('.timeline').textContent()) ?? '').replaceAll(/\s+/g, ' ');
      assert.match(timeline, /Name changed from <\/script><img src=x onerror=alert\(1\)> to Ölweide/);
      assert.match(timeline, /Revision 3 \(latest\).*by token first ?Tag removed: tree/);

      await show(page, 'Tokens');
      await page.getByLabel('Label, such as').fill('field app');
      await page.getByRole('button', { name: 'Create' }).click();
      const token = (await page.locator('section pre').textContent())!;
      assert.equal(await send(service, '{"id":1,"name":"x"}', token), 200);
      await page.getByRole('button', { name: 'Revoke field app' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke field app' }).click();
      await page.getByRole('row', { name: /field app revoked/ }).waitFor();
      const latest = performance.now() + 5_000;
      while ((await send(service, '{"id":1,"name":"x"}', token)) !== 401)
        assert.ok(performance.now() < latest);

      await show(page, 'Store');
      await until('the store is shown', async () => {
        const text = (await page.locator('main').textContent()) ?? '';
        return /Revisions\s*[1-9]/.test(text) && /listen\s*127\.0\.0\.1:8080\s*default/.test(text);
      });
      assertSound(opened, service);
    });
  });

suite('the page of the console', () => {
  test('shows hostile bodies as text, with the fault marked', async () => {
    await using service = await startTestService({ console: CONSOLE });
    const opened = await signIn(service);
    const { page } = opened;
    await show(page, 'Rejected');
    await page.getByRole('button', { name: 'Record for an hour' }).click();
    await page.getByText('On until').waitFor();
    const hostile = '{"name":"<script>document.title=1</script><img src=x onerror=document.title=1>",}';
    for (let count = 0; count < 199; count++) await send(service, hostile);
    await send(service, '{"id":1,"name":"\u0001\u202e"}');
    await until('200 are shown', async () => (await page.locator('details.entry').count()) === 200);
    const [newest, second] = [page.locator('details.entry').first(), page.locator('details.entry').nth(1)];
    await newest.locator('summary').click();
    assert.equal(await newest.locator('mark').textContent(), '\\x01');
    await second.locator('summary').click();
    assert.equal(await second.locator('pre').textContent(), hostile);
    assert.equal(await second.locator('mark').textContent(), '}');
    assert.equal(await page.title(), 'Rejected - Plant store console');
    assertSound(opened, service);
  });

  test('says what to do after a used link, and signs out', async () => {
    await using service = await startTestService({ console: CONSOLE });
    const code = await service.makeConsoleCode!();
    const { page } = await browser.openPage(DESKTOP);
    await page.goto(`${service.opsUrl}/console/#${code}`);
    await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor();
    assert.ok(!page.url().includes(code), 'the code is not in the history');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('npx plant-store console').waitFor();
    await page.getByLabel('Link or code').fill(code);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('This code is not valid.').waitFor();
    await page
      .getByLabel('Link or code')
      .fill(`${service.opsUrl}/console/#${await service.makeConsoleCode!()}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor();
  });

  for (const view of Object.keys(VIEWS) as (keyof typeof VIEWS)[])
    test(`has no accessibility fault and fits, ${view}`, async () => {
      await using service = await startTestService({ console: CONSOLE });
      await send(service, '{"id":9223372036854775807,"name":"Monstera deliciosa","tag":"houseplant"}');
      const opened = await signIn(service, view);
      const { page } = opened;
      for (const screen of SCREENS) {
        await page.goto(`${service.opsUrl}/console/#${screen}`);
        await page.waitForTimeout(1_200);
        await page.evaluate(axe.source);
        const { violations } = await page.evaluate<axe.AxeResults>('axe.run()');
        assert.deepEqual(
          violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]),
          [],
          screen,
        );
        const overflow = await page.evaluate(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        );
        assert.equal(overflow, 0, screen);
        if (process.env.SCREENSHOTS)
          await page.screenshot({ path: `${process.env.SCREENSHOTS}/${screen}-${view}.png` });
      }
      assertSound(opened, service);
    });
});
