/**
 * Imports a CSV file into an empty store through the service, exports it again, and compares the two byte for byte.
 * Prints how long each took and the most memory each held (proc_pid_status(5), VmHWM).
 *
 *   node bench/round-trip.ts FILE...
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { startProgram, startServe } from '../test/harness/program.ts';

const SAMPLE_INTERVAL_MS = 20;

for (const file of process.argv.slice(2)) {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-round-trip-'));
  const database = `sqlite:${join(folder, 'plants.db')}`;
  const serve = await startServe(database);
  try {
    const imported = await run(['import', '--url', serve.url, '--token', serve.token, file]);
    const exported = await run(['export', '--database', database]);
    const packed = readFileSync(file);
    const original = file.endsWith('.gz') ? gunzipSync(packed) : packed;
    console.log(file);
    console.log(`  import: ${imported.took}; ${imported.output.toString().trim()}`);
    console.log(
      `  export: ${exported.took}; ${original.equals(exported.output) ? 'the same' : 'NOT the same'} bytes`,
    );
  } finally {
    await serve.stop('SIGTERM');
    rmSync(folder, { recursive: true });
  }
}

async function run(args: string[]): Promise<{ took: string; output: Buffer }> {
  const startMs = performance.now();
  const child = startProgram(args);
  const chunks: Buffer[] = [];
  child.stdout!.on('data', chunk => chunks.push(chunk));
  let peakKib = 0;
  const sampler = setInterval(() => {
    peakKib = Math.max(peakKib, residentPeakKib(child));
  }, SAMPLE_INTERVAL_MS);
  await once(child, 'close');
  clearInterval(sampler);
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  return { took: `${seconds} s, at most ${Math.round(peakKib / 1024)} MiB`, output: Buffer.concat(chunks) };
}

/** 0 when the process has just ended. */
function residentPeakKib(child: ChildProcess): number {
  try {
    return Number(/VmHWM:\s+([0-9]+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
