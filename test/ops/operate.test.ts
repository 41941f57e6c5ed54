import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import { ask } from '../harness/raw-connection.ts';
import { startTestService } from '../harness/running-service.ts';
import { type Scrape, scrape } from '../harness/scrape.ts';

const README = read('README.md');
const ALERTS = read('alerts.yaml');
const BOARD = read('board.json');
/** Metrics that only PostgreSQL has, as `metrics.test.ts` checks. SQLite has all others. */
const POSTGRES_ONLY = ['plant_store_store_connections'];
/** Names of metrics in a query. */
const METRIC = /\b(?:plant_store|nodejs|process)_[a-z0-9_]*[a-z0-9]\b/g;

const onSqlite = await scrapeAfterRequest();

function read(name: string): string {
  return readFileSync(new URL(`../../docs/operate/${name}`, import.meta.url), 'utf8');
}

async function scrapeAfterRequest(): Promise<Scrape> {
  await using service = await startTestService();
  assert.equal((await ask(service.address.port, service.token)).status, 200);
  return await scrape(service.opsUrl);
}

function assertExported(names: Iterable<string>, exported: ReadonlySet<string>): void {
  const all = [...new Set(names)];
  assert.ok(all.length > 0);
  assert.deepEqual(
    all.filter(name => !exported.has(name)),
    [],
    'these metrics are not exported',
  );
}

interface Panel {
  title: string;
  targets: { expr: string }[];
}

suite('docs/operate', () => {
  /** The names that a query may use. A histogram exports only the names of its series. */
  const names = [...onSqlite.values.keys()].map(series => series.replace(/\{.*/s, ''));
  const exported = new Set([...names, ...POSTGRES_ONLY]);

  test('the alerts and the board use existing results', () => {
    const results = [...`${ALERTS}${BOARD}`.matchAll(/result!?=\\?"(\w+)\\?"/g)].map(([, result]) => result!);
    assert.ok(results.length > 0);
    for (const result of results) {
      const series = [...onSqlite.values.keys()].filter(key => key.includes(`result="${result}"`));
      assert.equal(series.length, 1, result);
    }
  });

  test('each alert has a section, and there are no other sections', () => {
    const alerts = [...ALERTS.matchAll(/^ +- alert: (\w+)$/gm)].map(([, alert]) => alert!);
    const sections = [...README.matchAll(/^### (\w+)\n\n\*\*Means\*\*: .+?\n\n\*\*Do\*\*: /gms)];
    assert.ok(alerts.length > 0);
    assert.equal(new Set(alerts).size, alerts.length);
    assert.deepEqual(
      sections.map(([, section]) => section),
      alerts,
      'in the same order',
    );
  });

  test('the alerts, the text and every panel of the board use exported metrics', () => {
    assertExported(ALERTS.match(METRIC) ?? [], exported);
    const declared = new Set([...exported, ...onSqlite.types.keys()]);
    assertExported(README.match(/(?<=`)(?:plant_store|nodejs|process)_\w+(?=`)/g) ?? [], declared);
    const { panels } = JSON.parse(BOARD) as { panels: Panel[] };
    assert.ok(panels.length > 0);
    for (const { title, targets } of panels) {
      assert.ok(targets.length > 0, title);
      for (const { expr } of targets) assertExported(expr.match(METRIC) ?? [], exported);
    }
  });
});
