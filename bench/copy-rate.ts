/**
 * Copies the plants of a CSV file from a SQLite store to PostgreSQL and from there to another SQLite store, and prints
 * how many plants a second that is, from the start of the command to its end, the comparison of every row included, and
 * the most memory the command held (proc_pid_status(5), VmHWM).
 *
 *   node bench/copy-rate.ts FILE [TIMES]
 *
 * With TIMES the plants are taken so many times over, under other ids: memory must stay the same.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { parse } from 'csv-parse';
import { hashToken, makeToken } from '../src/auth/token.ts';
import { openServedStore } from '../src/store/open-store.ts';
import type { PlantWrite } from '../src/store/plant-store.ts';
import { PostgresServer } from '../test/harness/postgres-server.ts';
import { startProgram } from '../test/harness/program.ts';

const SAMPLE_INTERVAL_MS = 20;
const BATCH_PLANTS = 2_000;

const [file, times = '1'] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'plant-store-copy-rate-'));
await using server = await PostgresServer.start();
try {
  const first = `sqlite:${join(folder, 'first.db')}`;
  const middle = await server.createDatabase();
  const last = `sqlite:${join(folder, 'last.db')}`;
  const plants = await fill(first, file!, Number(times));
  console.log(`${plants.toLocaleString('en')} plants`);
  const digests = [
    await measuredCopy('SQLite to PostgreSQL', first, middle, plants),
    await measuredCopy('PostgreSQL to SQLite', middle, last, plants),
  ];
  console.log(new Set(digests).size === 1 ? 'all digests are equal' : 'the digests are NOT equal');
} finally {
  rmSync(folder, { recursive: true });
}

async function fill(database: string, path: string, timesOver: number): Promise<number> {
  const { engine, close } = await openServedStore({ database, repeatedIdRule: 'revise', connections: 1 });
  const token = { hash: hashToken(makeToken()), label: 'first', createdAt: Date.now(), expiresAt: null };
  const { id: recordedBy } = (await engine.createToken(token))!;
  let count = 0;
  let batch: PlantWrite[] = [];
  for (let time = 0; time < timesOver; time++) {
    const bytes = createReadStream(path);
    const text = path.endsWith('.gz') ? bytes.pipe(createGunzip()) : bytes;
    for await (const { id, name, tag } of text.pipe(parse({ columns: true }))) {
      const plant = { id: BigInt(id) + BigInt(time) * 10n ** 15n, name, ...(tag === '' ? {} : { tag }) };
      batch.push({ plant, recordedBy });
      if (batch.length < BATCH_PLANTS) continue;
      count += (await engine.commit(batch)).length;
      batch = [];
    }
  }
  if (batch.length > 0) count += (await engine.commit(batch)).length;
  await close();
  return count;
}

/** @returns the digest that the copy printed of both sides */
async function measuredCopy(what: string, from: string, to: string, plants: number): Promise<string> {
  const startMs = performance.now();
  const child = startProgram(['copy', '--from', from, '--to', to]);
  let output = '';
  child.stdout!.setEncoding('utf8').on('data', text => (output += text));
  child.stderr!.setEncoding('utf8').on('data', text => process.stderr.write(text));
  let peakKib = 0;
  const sampler = setInterval(() => {
    peakKib = Math.max(peakKib, residentPeakKib(child));
  }, SAMPLE_INTERVAL_MS);
  const [exitCode] = await once(child, 'close');
  clearInterval(sampler);
  const seconds = (performance.now() - startMs) / 1000;
  const rate = Math.round(plants / seconds).toLocaleString('en');
  const [first = ''] = output.split('\n');
  console.log(
    `${what}: ${seconds.toFixed(1)} s, ${rate} plants/s, at most ${Math.round(peakKib / 1024)} MiB`,
  );
  console.log(`  exit code ${exitCode}; ${first}; ${output.trim().split('\n').at(-1)}`);
  return [...new Set(output.match(/[0-9a-f]{64}/g))].join(' and ');
}

/** 0 when the process has just ended. */
function residentPeakKib(child: ChildProcess): number {
  try {
    return Number(/VmHWM:\s+([0-9]+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
