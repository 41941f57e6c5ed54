/**
 * Measures durable creates a second on SQLite and on PostgreSQL against a bare `node:http` echo that stores nothing, in
 * one run: a round drives one after the other with the same load, and the next round swaps their order.
 *
 *   node bench/create-rate.ts [CONNECTIONS] [ROUNDS] [SECONDS]
 *
 * Needs wrk (`apt-get install wrk`). Servers, PostgreSQL and load share the machine.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PostgresServer } from '../test/postgres-server.ts';
import { startServe } from '../test/program.ts';

const [connections = '64', rounds = '5', seconds = '4'] = process.argv.slice(2);
const SCRIPT = fileURLToPath(new URL('./create-rate.lua', import.meta.url));
const ECHO = fileURLToPath(new URL('./echo-server.ts', import.meta.url));
const ECHO_PORT = 18_090;
/** A tick of the kernel is 10 ms, see proc_pid_stat(5). */
const TICK_US = 10_000;

const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'));
const echo = spawn(process.execPath, [ECHO, String(ECHO_PORT)], { stdio: 'inherit' });
const postgres = await PostgresServer.start();
const onSqlite = await startServe(`sqlite:${join(folder, 'plants.db')}`);
const onPostgres = await startServe(await postgres.createDatabase());
const subjects = [
  subject('echo', echo, { url: `http://127.0.0.1:${ECHO_PORT}`, token: onSqlite.token }),
  subject('SQLite', onSqlite.child, onSqlite),
  subject('PostgreSQL', onPostgres.child, onPostgres),
];

console.log(
  `${connections} connections, ${rounds} rounds of ${seconds} s, ${cpus().length} × ${cpus()[0]?.model}`,
);
let firstId = 0;
const postgresCpuUs: number[] = [];
const logBytes: number[] = [];
try {
  // The first drive warms up and is not counted.
  for (let round = 0; round <= Number(rounds); round++) {
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
      const before = await postgresUse();
      const { count, rate, cpuUs } = drive(subject);
      if (round === 0) continue;
      subject.rates.push(rate);
      subject.cpuUs.push(cpuUs);
      if (subject.name !== 'PostgreSQL') continue;
      const after = await postgresUse();
      postgresCpuUs.push(((after.ticks - before.ticks) * TICK_US) / count);
      logBytes.push((after.logBytes - before.logBytes) / count);
    }
  }
  for (const { name, rates, cpuUs } of subjects) {
    const spread = `${Math.round(Math.min(...rates))} to ${Math.round(Math.max(...rates))}`;
    console.log(
      `${name}: ${Math.round(median(rates))}/s (${spread}), ${median(cpuUs).toFixed(1)} µs of CPU each`,
    );
  }
  console.log(
    `PostgreSQL itself: ${median(postgresCpuUs).toFixed(1)} µs of CPU and ${median(logBytes).toFixed(0)} bytes of write-ahead log each`,
  );
  const [echoRate, sqliteRate, postgresRate] = subjects.map(({ rates }) => median(rates)) as [
    number,
    number,
    number,
  ];
  console.log(`SQLite / echo: ${(sqliteRate / echoRate).toFixed(2)}`);
  console.log(`PostgreSQL / SQLite: ${(postgresRate / sqliteRate).toFixed(2)}`);
} finally {
  echo.kill();
  await Promise.all([once(echo, 'close'), onSqlite.stop('SIGTERM'), onPostgres.stop('SIGTERM')]);
  await postgres[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
}

interface Subject {
  name: string;
  url: string;
  token: string;
  server: ChildProcess;
  rates: number[];
  cpuUs: number[];
}

function subject(
  name: string,
  server: ChildProcess,
  { url, token }: { url: string; token: string },
): Subject {
  return { name, url, token, server, rates: [], cpuUs: [] };
}

/** @returns requests, requests a second, and µs of the server's CPU for each, all threads; not that of PostgreSQL */
function drive({ url, token, server }: Subject): { count: number; rate: number; cpuUs: number } {
  const before = cpuTicks(server.pid!);
  const environment = { ...process.env, TOKEN: token, FIRST_ID: String(firstId) };
  const args = ['-t1', `-c${connections}`, `-d${seconds}`, '-s', SCRIPT, url];
  const output = execFileSync('wrk', args, { env: environment, encoding: 'utf8' });
  firstId += 10_000_000;
  if (/Non-2xx|Socket errors/.test(output)) throw new Error(`not every request was answered 200:\n${output}`);
  const count = Number(/([0-9]+) requests in/.exec(output)?.[1]);
  const rate = Number(/Requests\/sec: +([0-9.]+)/.exec(output)?.[1]);
  return { count, rate, cpuUs: ((cpuTicks(server.pid!) - before) * TICK_US) / count };
}

async function postgresUse(): Promise<{ ticks: number; logBytes: number }> {
  const [row] = await postgres.query(`SELECT pg_current_wal_lsn() - '0/0' AS bytes`);
  const ticks = (await postgres.processIds()).map(cpuTicks).reduce((sum, each) => sum + each);
  return { ticks, logBytes: Number(row!.bytes) };
}

/** Of a process, all its threads, and of its children that have ended; none for one that has ended itself. */
function cpuTicks(pid: number): number {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return 0;
  const stat = readFileSync(file, 'utf8');
  const ticks = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 16);
  return ticks.reduce((sum, each) => sum + Number(each), 0);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
