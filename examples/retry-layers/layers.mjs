/**
 * Sends plants with a retry layer, for measure.mjs. The argument selects it, and whether it may
 * retry a POST. Each line of stdin is an id and a text for the field Prefer. Each line of stdout is
 * the id, then what the program learns: a status with its body, or an error.
 */
import { createInterface } from 'node:readline';
import axios from 'axios';
import axiosRetry from 'axios-retry';
import got from 'got';
import ky from 'ky';
import { ofetch } from 'ofetch';
import { Agent, RetryAgent, request } from 'undici';

const url = `${process.env.PLANT_STORE_URL}/plants`;
const TIMEOUT_MS = 1000;

const axiosWith = options => async (body, headers) => {
  const own = axios.create({ timeout: TIMEOUT_MS, transformResponse: text => text });
  axiosRetry(own, options);
  const { status, data } = await own.post(url, body, { headers });
  return `${status} ${data}`;
};

const gotWith = retry => async (body, headers) => {
  const { statusCode, body: text } = await got.post(url, {
    body,
    headers,
    retry,
    timeout: { request: TIMEOUT_MS },
  });
  return `${statusCode} ${text}`;
};

const kyWith = retry => async (body, headers) => {
  const response = await ky.post(url, { body, headers, retry, timeout: TIMEOUT_MS });
  return `${response.status} ${await response.text()}`;
};

const ofetchWith = options => async (body, headers) => {
  const response = await ofetch.raw(url, {
    method: 'POST',
    body,
    headers,
    timeout: TIMEOUT_MS,
    responseType: 'text',
    ...options,
  });
  return `${response.status} ${response._data}`;
};

const undiciWith = options => {
  const dispatcher = new RetryAgent(new Agent({ headersTimeout: TIMEOUT_MS }), options);
  return async (body, headers) => {
    const response = await request(url, { method: 'POST', body, headers, dispatcher });
    return `${response.statusCode} ${await response.body.text()}`;
  };
};

const { isNetworkError, isRetryableError } = axiosRetry;
/** Two of its defaults, and the timeout. */
const UNDICI_CODES = ['ECONNRESET', 'UND_ERR_SOCKET', 'UND_ERR_HEADERS_TIMEOUT'];
const isTransient = error =>
  isNetworkError(error) || isRetryableError(error) || error.code === 'ECONNABORTED';

const LAYERS = {
  ky: kyWith(undefined),
  'ky with POST': kyWith({ methods: ['post'], retryOnTimeout: true }),
  got: gotWith(undefined),
  'got with POST': gotWith({ methods: ['POST'] }),
  'axios-retry': axiosWith({}),
  'axios-retry with POST': axiosWith({ retryCondition: isTransient, shouldResetTimeout: true }),
  'undici RetryAgent': undiciWith({}),
  'undici RetryAgent with POST': undiciWith({ methods: ['POST'], errorCodes: UNDICI_CODES }),
  ofetch: ofetchWith({}),
  'ofetch with POST': ofetchWith({ retry: 2 }),
};

const send = LAYERS[process.argv[2]];
for await (const line of createInterface({ input: process.stdin })) {
  const [id, prefer] = line.split('\t');
  const headers = {
    Authorization: `Bearer ${process.env.PLANT_STORE_TOKEN}`,
    'Content-Type': 'application/json',
    Prefer: prefer,
  };
  const learnt = await send(`{"id":${id},"name":"Plant ${id}"}`, headers).catch(
    error => `error ${error.message}`,
  );
  console.log(`${id}\t${learnt.replaceAll(/\s/g, ' ')}`);
}
// Idle connections would keep the process alive.
process.exit();
