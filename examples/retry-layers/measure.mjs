/**
 * Measures what retry layers do in a sandbox, and prints the table of docs/sandbox.md:
 *
 *   npx plant-store sandbox               (in another terminal)
 *   export PLANT_STORE_TOKEN=plant_...
 *   node examples/retry-layers/measure.mjs
 *
 * It needs npm, python3 with venv, a JDK and Go, and leaves out what is missing. It installs the
 * packages into a new folder for temporary files. It takes three minutes.
 */
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const CASES = [
  'code=400',
  'code=50304',
  'code=408, times=1',
  'code=429, times=1',
  'code=500, times=1',
  'code=503, times=1',
  'lose=request, times=1',
  'lose=response, times=1',
  'lose=half, times=1',
  'delay=2.5, times=1',
];
const FINAL = ['code=400', 'code=50304'];

/** The programs: commands that prepare them and print versions, their start, and their layers. */
const PROGRAMS = [
  {
    prepare: ['npm install ky got axios axios-retry undici ofetch', 'npm ls --depth=0'],
    start: [process.execPath, 'layers.mjs'],
    layers: ['ky', 'got', 'axios-retry', 'undici RetryAgent', 'ofetch'].flatMap(withPost),
  },
  {
    prepare: ['python3 -m venv new', 'new/bin/pip install requests', 'new/bin/pip freeze'],
    start: ['new/bin/python', 'layers.py'],
    layers: withPost('requests'),
  },
  {
    prepare: ['python3 -m venv old', 'old/bin/pip install requests urllib3<2', 'old/bin/pip freeze'],
    start: ['old/bin/python', 'layers.py'],
    layers: withPost('requests on urllib3 1'),
  },
  {
    prepare: ['javac Layers.java', 'java -version'],
    start: ['java', 'Layers'],
    layers: ['HttpURLConnection'],
  },
  {
    prepare: ['go build layers.go', 'go version'],
    start: ['./layers'],
    layers: withPost('net/http'),
  },
];

/** A layer as it is, and one that may retry a POST. */
function withPost(layer) {
  return [layer, `${layer} with POST`];
}

const folder = mkdtempSync(join(tmpdir(), 'retry-layers-'));
cpSync(fileURLToPath(new URL('.', import.meta.url)), folder, { recursive: true });

function isPrepared({ prepare, layers }) {
  try {
    for (const command of prepare) {
      const [file, ...args] = command.split(' ');
      execFileSync(file, args, { cwd: folder, stdio: ['ignore', 2, 2] });
    }
    return true;
  } catch (error) {
    console.error(`LEFT OUT: ${layers}: ${error.message}`);
    return false;
  }
}

/**
 * Sends a plant for each case. A plant before each one opens the connection, since some layers
 * retry only on a connection that was used.
 *
 * @returns what the program learnt of each id
 */
async function learntBy([file, ...args], layer, idOf) {
  const env = { PLANT_STORE_URL: 'http://127.0.0.1:8080', ...process.env };
  const child = spawn(file, [...args, layer], { cwd: folder, env, stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(CASES.map(each => `${idOf(each) - 1}\t\n${idOf(each)}\t${each}\n`).join(''));
  const lines = (await text(child.stdout)).trim().split('\n');
  return new Map(lines.map(line => line.split('\t')));
}

/** @returns a function of the id of a plant */
async function verdictsOfIds() {
  const args = ['plant-store', 'sandbox', 'report', '--json'];
  const { stdout } = spawn('npx', args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const rows = (await text(stdout)).trim().split('\n').map(JSON.parse);
  const verdicts = Map.groupBy(
    rows.flatMap(({ verdict, ids }) => ids.map(id => ({ verdict, id }))),
    ({ id }) => id,
  );
  return id =>
    verdicts
      .get(id)
      .map(({ verdict }) => verdict)
      .join(', ');
}

/** The verdict, with what the report cannot see: whether the program reports an error. */
function cellOf(verdict, learnt, prefer) {
  const isConfirmed = /^200 \{.*\}$/.test(learnt);
  if (verdict === 'ok') return FINAL.includes(prefer) || isConfirmed ? verdict : `${verdict}, but an error`;
  return /^200 /.test(learnt) && !isConfirmed ? `${verdict}, no error` : verdict;
}

let nextId = Date.now();
const measured = [];
for (const { start, layers } of PROGRAMS.filter(isPrepared)) {
  for (const layer of layers) {
    const firstId = nextId;
    nextId += 2 * CASES.length;
    const idOf = prefer => firstId + 2 * CASES.indexOf(prefer) + 1;
    measured.push({ layer, idOf, learnt: await learntBy(start, layer, idOf) });
  }
}
const verdictOf = await verdictsOfIds();
const rows = measured.map(({ layer, idOf, learnt }) => {
  const cells = CASES.map(prefer => {
    const id = String(idOf(prefer));
    console.error(`${layer}, ${prefer}: ${learnt.get(id)}`);
    return cellOf(verdictOf(id), learnt.get(id), prefer);
  });
  return { layer, cells };
});

// Equal columns share one, and so do equal rows.
const columns = Map.groupBy(CASES, prefer => rows.map(({ cells }) => cells[CASES.indexOf(prefer)]).join());
const headers = [...columns.values()].map(cases => cases.map(each => `\`${each.replace(', times=1', '')}\``));
const printRow = cells => console.log(`| ${cells.join(' | ')} |`);
printRow(['Layer', ...headers.map(cases => cases.join(', '))]);
console.log(`|${'---|'.repeat(columns.size + 1)}`);
for (const equal of Map.groupBy(rows, ({ cells }) => cells.join()).values()) {
  const cells = [...columns.values()].map(([prefer]) => equal[0].cells[CASES.indexOf(prefer)]);
  printRow([equal.map(({ layer }) => layer).join('; '), ...cells]);
}
