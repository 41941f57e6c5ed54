/**
 * How long `serve` takes from its start to its first answer 200, from the executable that `npm run build:executable` makes
 * and from the checkout: in turn, the order swapped in each round, each on a new store. The first round counts for nothing;
 * it fills the caches of both.
 *
 *   node bench/executable-start.ts [ROUNDS]
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startServer } from '../test/harness/server-process.ts';
import { type Spread, spread } from '../test/harness/statistics.ts';
import { createToken } from './subjects.ts';

const [rounds = '20'] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'plant-store-executable-start-'));
const build = fileURLToPath(new URL('../packaging/build-executable.ts', import.meta.url));
const checkout = fileURLToPath(new URL('../bin/plant-store.js', import.meta.url));
const forms: Record<'checkout' | 'executable', [string, ...string[]]> = {
  checkout: [process.execPath, checkout],
  executable: [join(folder, 'plant-store')],
};
const startsMs: Record<keyof typeof forms, number[]> = { checkout: [], executable: [] };
try {
  execFileSync(process.execPath, [build, folder], { stdio: 'ignore' });
  for (let round = 0; round <= Number(rounds); round++) {
    const order = ['checkout', 'executable'] as const;
    for (const form of round % 2 === 0 ? order : order.toReversed()) {
      const startMs = await start(form);
      if (round > 0) startsMs[form].push(startMs);
    }
  }
  const [ofCheckout, ofExecutable] = [spread(startsMs.checkout)!, spread(startsMs.executable)!];
  console.log(`${rounds} starts each, from the start to the first 200, in ms`);
  console.log(`checkout: ${shown(ofCheckout)}`);
  console.log(`executable: ${shown(ofExecutable)}`);
  console.log(`executable against checkout: ${(ofExecutable.median / ofCheckout.median).toFixed(2)}`);
} finally {
  rmSync(folder, { recursive: true });
}

async function start(form: keyof typeof forms): Promise<number> {
  const store = mkdtempSync(join(folder, 'store-'));
  const database = `sqlite:${join(store, 'plants.db')}`;
  const token = await createToken(database);
  const server = await startServer(
    port => [
      ...forms[form],
      ...['serve', '--database', database, '--listen', `127.0.0.1:${port}`, '--ops', '127.0.0.1:0'],
    ],
    token,
  );
  await server.stop();
  rmSync(store, { recursive: true });
  return server.startMs;
}

function shown({ median, min, max }: Spread): string {
  return `median ${median.toFixed(0)}, ${min.toFixed(0)} to ${max.toFixed(0)}`;
}
