import { execFile, spawnSync } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { delimiter, dirname } from 'node:path';
import { pipeline } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { newPlantJson } from '../src/contract/plant.ts';
import { listen } from '../test/harness/loopback-server.ts';
import { runProgram, startServe } from '../test/harness/program.ts';
import { newSqliteFile, type Result, type Scenario } from './scenario.ts';

const CREATES = 1_000;
/** Far longer than any client takes. */
const CLIENT_MS_MAX = 120_000;
/** The mutant cuts a connection after this number of responses. */
const CUT_AFTER_RESPONSES = 500;

/** With Content-Length; chunked; with Content-Length and `Expect: 100-continue`. */
const MODES = ['plain', 'chunked', 'expect'] as const;

/**
 * Arguments of a program of `faults/clients`: the URL, a token, the first id, the number of plants,
 * a mode. It prints the status of each response. The probe succeeds if the client is installed.
 */
type Client = [name: string, program: string, probe: string, install: string];

const CLIENTS: readonly Client[] = [
  ['curl', 'sh curl.sh', 'curl --version', 'apt-get install curl'],
  ['Python http.client', 'python3 http_client.py', 'python3 --version', 'apt-get install python3'],
  [
    'Python requests',
    'python3 requests_session.py',
    'python3 -c "import requests"',
    'apt-get install python3-requests',
  ],
  ['Java HttpClient', 'java Client.java', 'javac --version', 'apt-get install default-jdk-headless'],
  ['Go net/http', 'go run client.go', 'go version', 'apt-get install golang-go'],
  ['Ruby Net::HTTP', 'ruby client.rb', 'ruby --version', 'apt-get install ruby'],
  ['PHP curl', 'php client.php', 'php -r "curl_init();"', 'apt-get install php-cli php-curl'],
  ['Node fetch', 'node client.ts', 'node --version', 'npm ci'],
  ['Bun fetch', 'bun client.ts', 'bun --version', 'npm run test:install'],
  [
    'Deno fetch',
    'deno run --no-config --allow-net=127.0.0.1 client.ts',
    'deno --version',
    'npm run test:install',
  ],
];
/** Node's `fetch` rejects the header Expect. */
const WITHOUT_EXPECT = 'Node fetch';

const PROGRAMS = fileURLToPath(new URL('./clients/', import.meta.url));
const NPM_PROGRAMS = fileURLToPath(new URL('../test/node_modules/.bin/', import.meta.url));
const PATH = [dirname(process.execPath), NPM_PROGRAMS, process.env.PATH].join(delimiter);
const ENVIRONMENT = { cwd: PROGRAMS, env: { ...process.env, PATH }, timeout: CLIENT_MS_MAX };

export const commonClients: Scenario = {
  name: 'clients',
  summary: `${CREATES} creates one after another by each of ${CLIENTS.length} HTTP clients, on one connection`,
  needs: [],
  secondsMin: 60,
  finds: ['cut-connections'],
  async run({ mutant, signal, tell }) {
    await using opened = new AsyncDisposableStack();
    const database = `sqlite:${newSqliteFile(opened)}`;
    const { url, token, stop } = await startServe(database);
    opened.defer(async () => void (await stop('SIGTERM')));
    const gateway = await startGateway(new URL(url).port, mutant === 'cut-connections', opened);
    const result: Result = { faults: [], measurements: {} };
    const runs = CLIENTS.filter(client => isInstalled(client, tell)).flatMap(([name, program]) =>
      MODES.filter(mode => mode !== 'expect' || name !== WITHOUT_EXPECT).map(
        mode => [name, program, mode] as const,
      ),
    );
    for (const [index, [name, program, mode]] of runs.entries()) {
      if (mutant !== undefined && result.faults.length > 0) break;
      gateway.connections = 0;
      const firstId = 1 + index * CREATES;
      const args = [`${gateway.url}/plants`, token, String(firstId), String(CREATES), mode];
      const { confirmed, stderr } = await runClient(program, args, signal);
      if (signal.aborted) break;
      const { connections } = gateway;
      const stored = await countStored(database, firstId);
      result.measurements[`${name}, ${mode}, connections`] = connections;
      if (connections !== 1 || confirmed !== CREATES || stored !== CREATES)
        result.faults.push(
          `${name}, ${mode}: ${connections} connections, ${confirmed} responses 200, ${stored} stored. ${stderr}`.trim(),
        );
    }
    return result;
  },
};

function isInstalled([name, , probe, install]: Client, tell: (line: string) => void): boolean {
  const installed = spawnSync(probe, { ...ENVIRONMENT, shell: true }).status === 0;
  if (!installed) tell(`SKIPPED ${name}: it is not installed (${install})`);
  return installed;
}

/** Starts a gateway between clients and the service that counts the connections of clients. */
async function startGateway(
  servicePort: string,
  cutsConnections: boolean,
  opened: AsyncDisposableStack,
): Promise<{ url: string; connections: number }> {
  const options = { allowHalfOpen: true, noDelay: true };
  const server = createServer(options, client => {
    gateway.connections++;
    const service = connect({ ...options, host: '127.0.0.1', port: Number(servicePort) });
    pipeline(client, service, client, () => {});
    let responses = 0;
    // The service writes each response as one chunk.
    service.on('data', () => {
      if (cutsConnections && ++responses === CUT_AFTER_RESPONSES) client.destroySoon();
    });
  });
  const gateway = { url: opened.use(await listen(server)).url, connections: 0 };
  return gateway;
}

async function runClient(
  program: string,
  args: string[],
  signal: AbortSignal,
): Promise<{ confirmed: number; stderr: string }> {
  const [command = '', ...programArgs] = program.split(' ');
  const running = promisify(execFile)(command, [...programArgs, ...args], { ...ENVIRONMENT, signal });
  // The error of a failed client contains its output.
  const { stdout, stderr }: { stdout: string; stderr: string } = await running.catch(error => error);
  return { confirmed: stdout.split('\n').filter(line => line === '200').length, stderr };
}

async function countStored(database: string, firstId: number): Promise<number> {
  const { stdout } = await runProgram(['export', '--database', database, '--format', 'jsonl']);
  const stored = new Set(stdout.split('\n'));
  const ids = Array.from({ length: CREATES }, (_, index) => BigInt(firstId + index));
  return ids.filter(id => stored.has(newPlantJson({ id, name: 'Monstera' }))).length;
}
