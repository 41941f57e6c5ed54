/**
 * Compares creates with an access token of an OpenID provider with creates with an own token, and
 * measures how much longer the first request of an access token takes. It needs wrk.
 *
 *   node bench/access-tokens.ts
 */
import { join } from 'node:path';
import { runWrk } from '../test/harness/load.ts';
import { AUDIENCE, makeKey, SCOPE, startProvider } from '../test/harness/openid-provider.ts';
import { startServe } from '../test/harness/program.ts';
import { RawConnection, requestBytes } from '../test/harness/raw-connection.ts';
import { median } from '../test/harness/statistics.ts';
import { cpuUsOf } from './server-process.ts';
import { newFolder } from './trial.ts';

const ROUNDS = 6;
const SECONDS = 3;
const CONNECTIONS = 64;
const FIRST_REQUESTS = 300;
/** Access tokens of common providers have 1 to 1.5 KiB. */
const PADDING = 'a'.repeat(500);

using folder = newFolder();
await using provider = await startProvider();
provider.keys = [await makeKey('rsa', 'RS256')];
const flags = ['--oidc-issuer', provider.url, '--oidc-audience', AUDIENCE, '--oidc-scope', SCOPE];
await using serve = await startServe(`sqlite:${join(folder.path, 'plants.db')}`, flags);
const access = await provider.token({ exp: 4e9, PADDING });
/** The own token with another field, in as many bytes as an access token: wrk sends fewer of these. */
const padded = `${serve.token}\r\nX-Padding: `.padEnd(access.length, 'a');
const tokens = { own: serve.token, padded, access };

const rates: Record<keyof typeof tokens, number[]> = { own: [], padded: [], access: [] };
/** CPU time of the service for each create, which other programs disturb less than the rate. */
const cpuUs: typeof rates = { own: [], padded: [], access: [] };
for (let round = -1; round < ROUNDS; round++) {
  const names = Object.keys(tokens) as (keyof typeof tokens)[];
  for (const name of round % 2 === 0 ? names : names.reverse()) {
    const load = { url: serve.url, token: tokens[name], connections: CONNECTIONS, seconds: SECONDS };
    const cpuUsBefore = cpuUsOf(serve.child.pid!);
    const { ratePerSecond, requests, failures } = await runWrk({
      ...load,
      signal: AbortSignal.timeout(60_000),
    });
    if (failures > 0) throw new Error(`${failures} responses were not 200`);
    rates[name].push(ratePerSecond);
    cpuUs[name].push((cpuUsOf(serve.child.pid!) - cpuUsBefore) / requests);
  }
  // The first round warms up.
  if (round === -1) for (const each of [rates, cpuUs].flatMap(of => Object.values(of))) each.length = 0;
}

const connection = await RawConnection.open(Number(new URL(serve.url).port));
const latencies = { first: [] as number[], second: [] as number[] };
for (let count = 0; count < FIRST_REQUESTS; count++) {
  const token = await provider.token({ jti: String(count), PADDING });
  for (const name of ['first', 'second'] as const) {
    const body = `{"id":${count},"name":"${name}"}`;
    const startedAt = performance.now();
    connection.write(requestBytes(token, { body }));
    await connection.response();
    latencies[name].push(performance.now() - startedAt);
  }
}
connection[Symbol.dispose]();

for (const [name, { length }] of Object.entries(tokens)) {
  const of = name as keyof typeof tokens;
  const ratios = rates[of].map((each, round) => each / rates.own[round]!);
  console.log(
    `${name}, ${length} characters: ${Math.round(median(rates[of]))} creates/s, ` +
      `CPU time ${median(cpuUs[of]).toFixed(2)} µs; ratio to own ${median(ratios).toFixed(3)} ` +
      `(${ratios.map(each => each.toFixed(2)).join(' ')})`,
  );
}
const moreMs = median(latencies.first) - median(latencies.second);
console.log(`first request of an access token: ${moreMs.toFixed(2)} ms more than its second one`);
