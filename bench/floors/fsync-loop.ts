import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { median } from '../../test/harness/statistics.ts';

/**
 * The floor under every durable answer: writes a page of a file and flushes it, one after the other. The file has its
 * length before, and `fsync` flushes it, as it is with the write-ahead log of SQLite inside Node.
 *
 *   node bench/floors/fsync-loop.ts FOLDER SECONDS
 *
 * Prints flushes a second and the median time of one as JSON.
 */
const [folder, seconds] = process.argv.slice(2);
const PAGE = Buffer.alloc(4096, 'x');
const FILE_PAGES = 1_000;

const file = openSync(join(folder!, 'fsync-loop'), 'w');
writeSync(file, Buffer.alloc(FILE_PAGES * PAGE.length));
fsyncSync(file);
const timesUs: number[] = [];
const startMs = performance.now();
const endMs = startMs + Number(seconds) * 1000;
let nowMs = startMs;
while (nowMs < endMs) {
  writeSync(file, PAGE, 0, PAGE.length, (timesUs.length % FILE_PAGES) * PAGE.length);
  fsyncSync(file);
  const sinceMs = nowMs;
  nowMs = performance.now();
  timesUs.push((nowMs - sinceMs) * 1000);
}
closeSync(file);
console.log(
  JSON.stringify({ perSecond: (timesUs.length * 1000) / (nowMs - startMs), medianUs: median(timesUs) }),
);
