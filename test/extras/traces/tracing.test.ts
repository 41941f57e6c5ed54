import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { defaultTextMapSetter, ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { readTraceSettings } from '../../../src/extras/traces/trace-settings.ts';
import { tracesExtra } from '../../../src/extras/traces/traces.ts';
import { VERSION } from '../../../src/version.ts';
import type { Json } from '../../harness/console-session.ts';
import { listen } from '../../harness/loopback-server.ts';
import { sendPlant, startServe } from '../../harness/program.ts';
import {
  ask,
  chunked,
  RawConnection,
  type RequestParts,
  requestBytes,
} from '../../harness/raw-connection.ts';
import { startTestService } from '../../harness/running-service.ts';
import { scrape } from '../../harness/scrape.ts';
import { enginesUnderTest } from '../../harness/store-under-test.ts';
import { until } from '../../harness/until.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
const VALID = `00-${TRACE_ID}-${SPAN_ID}-01`;
const UNSAMPLED = `00-${TRACE_ID}-${SPAN_ID}-00`;
const SECRET = 'key of the collector';
const BODY = '{"id":1,"name":"A"}';

const engines = await enginesUnderTest();

/** A collector. It responds after a time, or never. */
async function startCollector(respondsAfterMs = 0) {
  const spans: Json[] = [];
  const state = { spans, respondsAfterMs, requestsInFlight: 0, requestsInFlightMax: 0 };
  const server = createServer(async (request, response) => {
    state.requestsInFlightMax = Math.max(state.requestsInFlightMax, ++state.requestsInFlight);
    if (state.respondsAfterMs === Number.POSITIVE_INFINITY) return;
    await wait(state.respondsAfterMs);
    const { resourceSpans } = (await json(request)) as Json;
    for (const { resource, scopeSpans } of resourceSpans) {
      const sender = { resource: valuesOf(resource), url: request.url, headers: request.headers };
      for (const each of scopeSpans[0].spans) spans.push({ ...each, sender });
    }
    state.requestsInFlight--;
    response.setHeader('Content-Type', 'application/json').end('{}');
  });
  return Object.assign(state, await listen(server));
}

function valuesOf({ attributes }: Json): Json {
  return Object.fromEntries(attributes.map(({ key, value }: Json) => [key, Object.values(value)[0]]));
}

/** The settings of valid variables. */
const settingsOf = (env: NodeJS.ProcessEnv) => readTraceSettings(env, assert.fail)!;

/** `traceparent` fields, and the trace that a request with them belongs to. */
const TRACEPARENTS: [traceparent: string | string[], traceId?: string][] = [
  [VALID, TRACE_ID],
  [UNSAMPLED, TRACE_ID],
  [`cc-${TRACE_ID}-${SPAN_ID}-01-what-comes-later`, TRACE_ID],
  [`cc-${TRACE_ID}-${SPAN_ID}-01.what-comes-later`],
  [`${VALID}-more`],
  [`ff-${TRACE_ID}-${SPAN_ID}-01`],
  [VALID.toUpperCase()],
  [`00-${'0'.repeat(32)}-${SPAN_ID}-01`],
  [`00-${TRACE_ID}-${'0'.repeat(16)}-01`],
  [`00-${TRACE_ID}-${SPAN_ID}`],
  [`${VALID} more`],
  [[VALID, VALID]],
];

test('trace_id is in the log line of a request with one valid traceparent, without a collector', async () => {
  await using serve = await startServe(await engines[0].newDatabase(), ['--log-requests', 'on']);
  const port = Number(new URL(serve.url).port);
  for (const [traceparent] of TRACEPARENTS)
    for (const { headers, body } of [{ headers: {}, body: BODY }, chunked(BODY)])
      for (const name of ['traceparent', 'Traceparent', 'TRACEPARENT'])
        await ask(port, serve.token, { headers: { ...headers, [name]: traceparent }, body: body! });
  const { stdout } = await serve.stop('SIGTERM');
  const lines = stdout.split('\n').filter(line => line.includes('request completed'));
  assert.deepEqual(
    lines.map(line => JSON.parse(line)).map(({ status, trace_id }) => [status, trace_id]),
    TRACEPARENTS.flatMap(([, traceId]) => Array(6).fill([200, traceId])),
  );
});

for (const engine of engines) {
  test(`a span of the SDK is the parent of the span of its request on ${engine.name}`, async () => {
    await using collector = await startCollector();
    const traces = settingsOf({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
      OTEL_EXPORTER_OTLP_HEADERS: `x-key=${encodeURIComponent(SECRET)}`,
      OTEL_SERVICE_NAME: 'garden',
    });
    const exporter = new OTLPTraceExporter({ url: `${collector.url}/v1/traces` });
    const provider = new TracerProvider({ spanProcessors: [new BatchSpanProcessor({ exporter })] });
    const span = provider.getTracer('client').startSpan('send', { kind: SpanKind.CLIENT });
    const headers: Record<string, string> = {};
    const context = trace.setSpan(ROOT_CONTEXT, span);
    new W3CTraceContextPropagator().inject(context, headers, defaultTextMapSetter);
    {
      await using service = await startTestService({
        database: await engine.newDatabase(),
        extras: [tracesExtra(traces)],
      });
      const { token, address } = service;
      using connection = await RawConnection.open(address.port);
      const pair = [7, 8].map(id => requestBytes(token, { headers, body: `{"id":${id},"name":"A"}` }));
      connection.write(Buffer.concat(pair));
      for (const _ of pair) assert.equal((await connection.response()).status, 200);
      const inChunks = chunked(BODY);
      await ask(address.port, token, { ...inChunks, headers: { ...inChunks.headers, ...headers } });
      await ask(address.port, token, { method: 'PUT', target: `/${token}`, headers });
      await ask(address.port, token, { headers: { traceparent: UNSAMPLED } });
      // The commits are sent before the last span.
      await until('the spans arrive', () => collector.spans.filter(each => each.kind === 2).length === 4);
    }
    span.end();
    await provider.shutdown();

    const { traceId, spanId } = span.spanContext();
    const parent = collector.spans.find(each => each.spanId === spanId)!;
    const served = collector.spans.filter(each => each.kind === 2);
    assert.deepEqual(
      served.map(each => [each.traceId, each.parentSpanId, each.name]),
      ['POST /plants', 'POST /plants', 'POST /plants', 'PUT'].map(name => [traceId, spanId, name]),
    );
    const { sender } = served[0];
    assert.deepEqual([sender.url, sender.headers['x-key']], ['/v1/traces', SECRET]);
    const { 'service.instance.id': instanceId, ...resource } = sender.resource;
    assert.deepEqual(resource, { 'service.version': VERSION, 'service.name': 'garden' });
    assert.match(instanceId, /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    assert.deepEqual(valuesOf(served[0]!), {
      'http.request.method': 'POST',
      'http.response.status_code': '200',
      'http.route': '/plants',
      'server.address': 'plants.example',
      'url.path': '/plants',
      'url.scheme': 'http',
      'client.address': '127.0.0.1',
      'plant_store.result': 'created',
      'plant_store.plant_id': '7',
    });
    assert.equal(valuesOf(served[3]!)['url.path'], '/plant_…');
    const commits = collector.spans.filter(each => each.name === 'commit');
    const linked = served.map(each => each.links?.[0]?.spanId);
    assert.deepEqual(new Set(linked), new Set([...commits.map(each => each.spanId), undefined]));
    // The first two usually share a commit.
    for (const each of commits) {
      const plants = linked.filter(id => id === each.spanId).length;
      assert.deepEqual(valuesOf(each), { 'plant_store.batch_plants': String(plants) });
    }
    for (const each of [...served, ...commits]) {
      const times = [parent.startTimeUnixNano, each.startTimeUnixNano, each.endTimeUnixNano].map(BigInt);
      assert.ok(times[1]! <= times[2]! && times[2]! - times[0]! < 600_000_000_000n, times.join());
    }
  });
}

const SHOWN_LENGTH_MAX = 200;
const OWN_TOKEN = `plant_${'a1'.repeat(20)}`;
const JWT = `eyJ${'hbGci'.repeat(8)}.eyJzdWIi.c2ln`;

/** Requests, and what differs in their spans from that of a plain create. Empty: no attribute. */
const CLIENT_PARTS: [parts: RequestParts, attributes: Record<string, string>, name?: string][] = [
  [{ headers: { 'User-Agent': 'garden/1' } }, { 'user_agent.original': 'garden/1' }],
  [chunked(BODY), {}],
  [
    { ...chunked(BODY), headers: { ...chunked(BODY).headers, 'User-Agent': 'b' } },
    { 'user_agent.original': 'b' },
  ],
  [{ headers: { Host: 'a.example:8443' } }, { 'server.address': 'a.example', 'server.port': '8443' }],
  [{ headers: { Host: '[2001:db8::1]:80' } }, { 'server.address': '2001:db8::1', 'server.port': '80' }],
  [{ headers: { Host: 'a.example:' } }, { 'server.address': 'a.example' }],
  [{ headers: { Host: 'a.example:123456' } }, { 'server.address': '' }],
  [{ headers: { Host: null }, version: '1.0' }, { 'server.address': '' }],
  [{ headers: { Host: `${OWN_TOKEN}.example` } }, { 'server.address': 'plant_….example' }],
  [{ headers: { 'User-Agent': `a ${OWN_TOKEN}` } }, { 'user_agent.original': 'a plant_…' }],
  [{ headers: { 'User-Agent': `a ${JWT}` } }, { 'user_agent.original': 'a eyJ…' }],
  [
    { headers: { 'User-Agent': 'a'.repeat(SHOWN_LENGTH_MAX + 1) } },
    { 'user_agent.original': 'a'.repeat(SHOWN_LENGTH_MAX) },
  ],
  [{ method: 'QUERY', target: '/a' }, { 'http.request.method': 'QUERY' }, 'QUERY'],
  [
    { method: 'PROPFIND' },
    { 'http.request.method': '_OTHER', 'http.request.method_original': 'PROPFIND' },
    'HTTP /plants',
  ],
  [
    { method: 'PROPFIND', target: '/a' },
    { 'http.request.method': '_OTHER', 'http.request.method_original': 'PROPFIND' },
    'HTTP',
  ],
];

test('a span has the trace of its log line, and by the semantic conventions the method, host and user agent', async () => {
  await using collector = await startCollector();
  const traces = settingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  const logged: Json[] = [];
  await using service = await startTestService({
    extras: [tracesExtra(traces)],
    logRequest: line => logged.push(line),
  });
  for (const [parts] of CLIENT_PARTS) await ask(service.address.port, service.token, parts);
  const served = () => collector.spans.filter(each => each.kind === 2);
  await until('the spans arrive', () => served().length === CLIENT_PARTS.length);
  assert.deepEqual(
    served().map(each => each.traceId),
    logged.map(line => line.trace_id),
  );
  const isOfClient = ([name]: [string, unknown]) => /^(?:http\.request|server|user_agent)\./.test(name);
  assert.deepEqual(
    served().map(each => [each.name, Object.fromEntries(Object.entries(valuesOf(each)).filter(isOfClient))]),
    CLIENT_PARTS.map(([, attributes, name = 'POST /plants']) => {
      const expected = { 'http.request.method': 'POST', 'server.address': 'plants.example', ...attributes };
      return [name, Object.fromEntries(Object.entries(expected).filter(([, value]) => value !== ''))];
    }),
  );
});

test('a collector that does not respond costs only spans, which a metric counts', async () => {
  await using collector = await startCollector(Number.POSITIVE_INFINITY);
  const traces = settingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  await using service = await startTestService({ extras: [tracesExtra(traces)] });
  using connection = await RawConnection.open(service.address.port);
  const requests = 3_000;
  connection.write(Buffer.concat(Array(requests).fill(requestBytes(service.token))));
  for (let index = 0; index < requests; index++) assert.equal((await connection.response()).status, 200);
  await until('all spans are dropped', async () => {
    const { values } = await scrape(service.opsUrl);
    return values.get('plant_store_spans_dropped_total')! > requests;
  });
  assert.ok(
    service.logged.some(line =>
      /^the trace collector at \S+ takes no spans; they are dropped until it does$/.test(line),
    ),
  );
});

test('the log names the collector and the timeout, but no query, and says when spans are taken again', async () => {
  await using collector = await startCollector(Number.POSITIVE_INFINITY);
  const env = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/traces?key=secret`,
    OTEL_EXPORTER_OTLP_TIMEOUT: '500',
  };
  await using serve = await startServe(await engines[0].newDatabase(), [], { env });
  const lineWith = (text: string) => serve.logged().find(line => line.includes(text));
  const sendUntilLogged = (text: string) =>
    until(text, async () => {
      assert.equal(await sendPlant(serve.url, serve.token, 1n), 200);
      return lineWith(text) !== undefined;
    });
  await sendUntilLogged('takes no spans');
  const line = lineWith('takes no spans')!;
  const { level, msg, err } = JSON.parse(line);
  const name = `the trace collector at ${collector.url}/traces`;
  assert.deepEqual([level, msg], [40, `${name} takes no spans; they are dropped until it does`]);
  assert.deepEqual([Object.keys(err).sort(), err.message], [ERROR_MEMBERS, 'no response within 500 ms']);
  collector.respondsAfterMs = 0;
  await sendUntilLogged('takes spans again');
  assert.partialDeepStrictEqual(JSON.parse(lineWith('again')!), {
    level: 30,
    msg: `${name} takes spans again`,
  });
  assert.ok(!serve.logged().join().includes('secret'));
});

test('with a longer timeout, one export waits for the other', async () => {
  await using collector = await startCollector(1_500);
  const traces = settingsOf({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_TIMEOUT: '300000',
  });
  await using service = await startTestService({ extras: [tracesExtra(traces)] });
  const served = () => collector.spans.filter(each => each.kind === 2).length;
  for (let requests = 1; requests <= 3; requests++) {
    await ask(service.address.port, service.token);
    await until('an export begins', () => collector.requestsInFlight > 0);
  }
  await until('the spans arrive', () => served() === 3);
  assert.equal(collector.requestsInFlightMax, 1);
  assert.equal((await scrape(service.opsUrl)).values.get('plant_store_spans_dropped_total'), 0);
});

test('a stop aborts an export to a collector that does not respond', async () => {
  await using collector = await startCollector(Number.POSITIVE_INFINITY);
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_TIMEOUT: '60000' };
  await using serve = await startServe(await engines[0].newDatabase(), [], { env });
  assert.equal(await sendPlant(serve.url, serve.token, 1n), 200);
  await until('an export begins', () => collector.requestsInFlight > 0);
  assert.equal(await sendPlant(serve.url, serve.token, 2n), 200);
  assert.equal((await serve.stop('SIGTERM')).exitCode, 0);
});

test('a stop closes the store before it waits for a collector that does not respond', async () => {
  const isStoreOpen: boolean[] = [];
  let wal = '';
  const hanging = createServer(request => {
    // SQLite deletes the log when the store is closed.
    request.socket.on('close', () => isStoreOpen.push(existsSync(wal)));
  });
  await using collector = await listen(hanging);
  const traces = settingsOf({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_TIMEOUT: '60000',
  });
  await using service = await startTestService({ extras: [tracesExtra(traces)] });
  wal = `${service.database.slice('sqlite:'.length)}-wal`;
  const exporting = once(hanging, 'request');
  await ask(service.address.port, service.token);
  await exporting;
  assert.ok(existsSync(wal));
  await service.close();
  await until('the export is given up', () => isStoreOpen.length > 0);
  assert.equal(isStoreOpen[0], false);
});

test('waiting spans are sent at the stop', async () => {
  await using collector = await startCollector();
  const traces = settingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  // On a busy machine the time for this can be too short, so it may take several attempts.
  await until('a span arrives before the stop ends', async () => {
    const service = await startTestService({ extras: [tracesExtra(traces)] });
    await ask(service.address.port, service.token);
    await service[Symbol.asyncDispose]();
    return collector.spans.length > 0;
  });
});

const ERROR_MEMBERS = ['message', 'stack', 'type'];

const TO = 'EXPORTER_OTLP_ENDPOINT=http://collector';
const DEFAULTS = {
  url: 'http://collector/v1/traces',
  headers: {},
  timeoutMs: 1_000,
  isParentBased: true,
  ratio: 1,
};
/** Without `OTEL_` before each name. */
const VARIABLES: [env: string, settings: object | undefined, ignored?: string][] = [
  ['', undefined],
  [TO, DEFAULTS],
  ['EXPORTER_OTLP_ENDPOINT=http://a/b/', { url: 'http://a/b/v1/traces' }],
  [`${TO} EXPORTER_OTLP_TRACES_ENDPOINT=http://a/b/`, { url: 'http://a/b/' }],
  [`${TO} SDK_DISABLED=True`, undefined],
  [`${TO} SDK_DISABLED=1`, DEFAULTS, 'SDK_DISABLED'],
  [`${TO} TRACES_EXPORTER=otlp`, DEFAULTS],
  [`${TO} TRACES_EXPORTER=none`, undefined],
  [`${TO} TRACES_EXPORTER=console`, undefined, 'TRACES_EXPORTER'],
  [`${TO} TRACES_EXPORTER=otlp,zipkin`, undefined, 'TRACES_EXPORTER'],
  [`${TO} EXPORTER_OTLP_PROTOCOL=grpc`, DEFAULTS, 'EXPORTER_OTLP_PROTOCOL'],
  [
    `${TO} EXPORTER_OTLP_PROTOCOL=http/json EXPORTER_OTLP_TRACES_PROTOCOL=grpc`,
    DEFAULTS,
    'EXPORTER_OTLP_TRACES_PROTOCOL',
  ],
  [`${TO} EXPORTER_OTLP_PROTOCOL=grpc EXPORTER_OTLP_TRACES_PROTOCOL=http/json`, DEFAULTS],
  [`${TO} EXPORTER_OTLP_HEADERS=a=1 EXPORTER_OTLP_TRACES_HEADERS=b=2`, { headers: { b: '2' } }],
  [`${TO} EXPORTER_OTLP_TIMEOUT=20000`, { timeoutMs: 20_000 }],
  [`${TO} EXPORTER_OTLP_TIMEOUT=20000 EXPORTER_OTLP_TRACES_TIMEOUT=500`, { timeoutMs: 500 }],
  [`${TO} EXPORTER_OTLP_TIMEOUT=0`, { timeoutMs: 300_000 }],
  [`${TO} EXPORTER_OTLP_TIMEOUT=2147483648`, { timeoutMs: 300_000 }],
  [`${TO} EXPORTER_OTLP_TRACES_TIMEOUT=-1`, DEFAULTS, 'EXPORTER_OTLP_TRACES_TIMEOUT'],
  [`${TO} PROPAGATORS=secret BSP_SCHEDULE_DELAY=secret`, DEFAULTS, 'BSP_SCHEDULE_DELAY, OTEL_PROPAGATORS'],
  ['SERVICE_NAME=secret TRACES_SAMPLER=secret', undefined, 'EXPORTER_OTLP_ENDPOINT'],
  ['SERVICE_NAME=secret TRACES_EXPORTER=none', undefined],
  ['SERVICE_NAME=secret SDK_DISABLED=true', undefined],
  ['EXPORTER_OTLP_TRACES_ENDPOINT=secret', undefined, 'EXPORTER_OTLP_TRACES_ENDPOINT'],
  [`${TO} EXPORTER_OTLP_TRACES_ENDPOINT=secret`, DEFAULTS, 'EXPORTER_OTLP_TRACES_ENDPOINT'],
  ['PROPAGATORS=', undefined],
  [`${TO} TRACES_SAMPLER=always_off`, { isParentBased: false, ratio: 0 }],
  [`${TO} TRACES_SAMPLER=traceidratio`, { isParentBased: false, ratio: 1 }],
  [
    `${TO} TRACES_SAMPLER=parentbased_traceidratio TRACES_SAMPLER_ARG=0.25`,
    { isParentBased: true, ratio: 0.25 },
  ],
  ['EXPORTER_OTLP_ENDPOINT=http://user:secret@a', undefined, 'EXPORTER_OTLP_ENDPOINT'],
  [`${TO} EXPORTER_OTLP_HEADERS=a=x%0Asecret`, DEFAULTS, 'EXPORTER_OTLP_HEADERS'],
  [`${TO} EXPORTER_OTLP_HEADERS=a=é`, DEFAULTS, 'EXPORTER_OTLP_HEADERS'],
  [`${TO} EXPORTER_OTLP_HEADERS=a=x\tsecret`, DEFAULTS, 'EXPORTER_OTLP_HEADERS'],
  [`${TO} EXPORTER_OTLP_HEADERS=,a=1,,`, { headers: { a: '1' } }],
  [`${TO} EXPORTER_OTLP_HEADERS=a`, DEFAULTS, 'EXPORTER_OTLP_HEADERS'],
  [`${TO} RESOURCE_ATTRIBUTES=a`, DEFAULTS, 'RESOURCE_ATTRIBUTES'],
  [`${TO} TRACES_SAMPLER=jaeger_remote`, DEFAULTS, 'TRACES_SAMPLER'],
  [`${TO} TRACES_SAMPLER_ARG=1.1`, DEFAULTS, 'TRACES_SAMPLER_ARG'],
];

test('the variables of OpenTelemetry make the settings, and the log names ignored ones', () => {
  for (const [text, expected, ignored] of VARIABLES) {
    const env = Object.fromEntries(text.split(' ').map(each => `OTEL_${each}`.split(/=(.*)/)));
    const warnings: string[] = [];
    const settings: Json = readTraceSettings(env, warning => warnings.push(warning));
    const actual = expected && Object.fromEntries(Object.keys(expected).map(key => [key, settings[key]]));
    assert.deepEqual([settings && actual], [expected], text);
    const named = warnings.map(warning => /^(?:OTEL_\w+(?:, )?)+/.exec(warning)?.[0]);
    assert.deepEqual(named, ignored ? [`OTEL_${ignored}`] : [], text);
    assert.ok(!warnings.join().includes('secret'));
    for (const warning of warnings.filter(each => each.includes(' is invalid')))
      assert.match(warning, /^OTEL_\w+ is invalid, so .{5,}; use .{5,}$/);
  }
});

test('a long list of header fields that is invalid is rejected at once', () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector',
    OTEL_EXPORTER_OTLP_HEADERS: `a=${' '.repeat(2_000)}é`,
  };
  const beganAt = performance.now();
  assert.deepEqual(readTraceSettings(env, () => {})!.headers, {});
  assert.ok(performance.now() - beganAt < 1_000);
});

test('blanks and a final comma are allowed in lists, headers for spans replace others, the log names ignored variables', async () => {
  await using collector = await startCollector();
  await using serve = await startServe(await engines[0].newDatabase(), [], {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-general=1',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: ` x-key = ${encodeURIComponent(SECRET)} , x-other = a=b ,`,
      OTEL_RESOURCE_ATTRIBUTES: ' service.instance.id = garden-1 , host.name= a%20b ,',
      OTEL_TRACES_EXPORTER: '',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'secret',
      OTEL_LOGS_EXPORTER: 'secret',
    },
  });
  await ask(Number(new URL(serve.url).port), serve.token);
  await until('a span arrives', () => collector.spans.length > 0);
  const { headers, resource } = collector.spans[0].sender;
  const { 'x-general': general, 'x-key': key, 'x-other': other } = headers;
  assert.deepEqual([general, key, other], [undefined, SECRET, 'a=b']);
  assert.partialDeepStrictEqual(resource, { 'service.instance.id': 'garden-1', 'host.name': 'a b' });
  const warnings = serve.logged().filter(line => line.includes('OTEL_'));
  assert.deepEqual(
    warnings.map(line => JSON.parse(line).msg),
    ['OTEL_EXPORTER_OTLP_COMPRESSION, OTEL_LOGS_EXPORTER: not supported, so ignored'],
  );
});
