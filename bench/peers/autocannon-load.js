/**
 * Drives a closed loop; runLoad of ../load.ts starts it as a process of its own where there is no wrk. Takes an order as
 * JSON on stdin and prints the result as JSON.
 */
import { json as readJson } from 'node:stream/consumers';
import autocannon from 'autocannon';
import { quantile } from '../../test/harness/statistics.ts';
import { plantMaker } from '../create-requests.ts';

const order = await readJson(process.stdin);
const nextPlant = plantMaker(order);
const latenciesUs = [];
let turn = 0;

const load = autocannon({
  url: `${order.url}/plants`,
  connections: order.connections,
  duration: order.seconds,
  method: 'POST',
  requests: [
    {
      setupRequest: request => ({
        ...request,
        headers: {
          authorization: `Bearer ${order.tokens[turn++ % order.tokens.length]}`,
          'content-type': 'application/json',
        },
        body: nextPlant(),
      }),
    },
  ],
});
// autocannon's own latencies are whole milliseconds.
load.on('response', (_client, _status, _bytes, responseMs) => latenciesUs.push(responseMs * 1000));
const { requests, duration, errors, non2xx } = await load;
console.log(
  JSON.stringify({
    requests: requests.total,
    ratePerSecond: requests.total / duration,
    p50Us: quantile(latenciesUs, 0.5),
    p99Us: quantile(latenciesUs, 0.99),
    p999Us: quantile(latenciesUs, 0.999),
    maxUs: quantile(latenciesUs, 1),
    failures: errors + non2xx,
  }),
);
