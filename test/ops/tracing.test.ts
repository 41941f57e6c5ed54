import assert from 'node:assert/strict';
import { createServer, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { defaultTextMapSetter, ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { readTraceSettings } from '../../src/cli/options/trace-settings.ts';
import { listen } from '../harness/loopback-server.ts';
import { startServe } from '../harness/program.ts';
import { ask, chunked, RawConnection, requestBytes } from '../harness/raw-connection.ts';
import { startTestService } from '../harness/running-service.ts';
import { scrape } from '../harness/scrape.ts';
import { enginesUnderTest } from '../harness/store-under-test.ts';
import { until } from '../harness/until.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
const VALID = `00-${TRACE_ID}-${SPAN_ID}-01`;
const UNSAMPLED = `00-${TRACE_ID}-${SPAN_ID}-00`;
const SECRET = 'key of the collector';
const BODY = '{"id":1,"name":"A"}';

const engines = await enginesUnderTest();

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: Record<string, unknown> }[];
  links?: { spanId: string }[];
}

/** A collector. It does not respond while `respond` is false. */
async function startCollector(respond = true) {
  const spans: (Span & { service: unknown })[] = [];
  const requests: IncomingMessage[] = [];
  const server = createServer(async (request, response) => {
    requests.push(request);
    if (!respond) return;
    const { resourceSpans } = (await json(request)) as {
      resourceSpans: { resource: Span; scopeSpans: { spans: Span[] }[] }[];
    };
    for (const { resource, scopeSpans } of resourceSpans)
      for (const each of scopeSpans[0]!.spans)
        spans.push({ ...each, service: valuesOf(resource)['service.name'] });
    response.setHeader('Content-Type', 'application/json').end('{}');
  });
  return { ...(await listen(server)), spans, requests };
}

function valuesOf({ attributes }: Span): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

/** The settings of valid variables. */
const settingsOf = (env: NodeJS.ProcessEnv) => readTraceSettings(env, assert.fail);

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
      await using service = await startTestService({ database: await engine.newDatabase(), traces });
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
      served.map(each => [each.traceId, each.parentSpanId, each.name, each.service]),
      ['POST /plants', 'POST /plants', 'POST /plants', 'PUT'].map(name => [traceId, spanId, name, 'garden']),
    );
    assert.deepEqual(valuesOf(served[0]!), {
      ...{ 'http.request.method': 'POST', 'http.response.status_code': 200, 'http.route': '/plants' },
      ...{ 'url.path': '/plants', 'url.scheme': 'http', 'client.address': '127.0.0.1' },
      ...{ 'plant_store.result': 'created', 'plant_store.plant_id': '7' },
    });
    assert.equal(valuesOf(served[3]!)['url.path'], '/plant_…');
    const commits = collector.spans.filter(each => each.name === 'commit');
    const linked = served.map(each => each.links?.[0]?.spanId);
    assert.deepEqual(new Set(linked), new Set([...commits.map(each => each.spanId), undefined]));
    // The first two usually share a commit.
    for (const each of commits) {
      const plants = linked.filter(id => id === each.spanId).length;
      assert.deepEqual(valuesOf(each), { 'plant_store.batch_plants': plants });
    }
    for (const each of [...served, ...commits]) {
      const times = [parent.startTimeUnixNano, each.startTimeUnixNano, each.endTimeUnixNano].map(BigInt);
      assert.ok(times[1]! <= times[2]! && times[2]! - times[0]! < 600_000_000_000n, times.join());
    }
    const own = collector.requests.filter(each => each.headers['x-key'] === SECRET);
    assert.deepEqual(new Set(own.map(each => each.url)), new Set(['/v1/traces']));
  });
}

test('a collector that does not respond costs only spans, which a metric counts', async () => {
  await using collector = await startCollector(false);
  const traces = settingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  await using service = await startTestService({ traces });
  using connection = await RawConnection.open(service.address.port);
  const requests = 3_000;
  connection.write(Buffer.concat(Array(requests).fill(requestBytes(service.token))));
  for (let index = 0; index < requests; index++) assert.equal((await connection.response()).status, 200);
  await until('all spans are dropped', async () => {
    const { values } = await scrape(service.opsUrl);
    return values.get('plant_store_spans_dropped_total')! > requests;
  });
  assert.ok(service.logged.some(line => line.startsWith('the trace collector takes no spans')));
});

test('waiting spans are sent at the stop', async () => {
  await using collector = await startCollector();
  const traces = settingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  // On a busy machine the time for this can be too short, so it may take several attempts.
  await until('a span arrives before the stop ends', async () => {
    const service = await startTestService({ traces });
    await ask(service.address.port, service.token);
    await service[Symbol.asyncDispose]();
    return collector.spans.length > 0;
  });
});

const TO = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
const SAMPLERS: [sampler: string, argument: string, isParentBased: boolean, ratio: number][] = [
  ['', '', true, 1],
  ['always_off', '0.5', false, 0],
  ['traceidratio', '', false, 1],
  ['parentbased_traceidratio', '0.25', true, 0.25],
];
const ENDPOINTS: [env: NodeJS.ProcessEnv, url: string | undefined, warning?: RegExp][] = [
  [{}, undefined],
  [TO, 'http://collector:4318/v1/traces'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector/a/' }, 'http://collector/a/v1/traces'],
  [{ ...TO, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://other/a/' }, 'http://other/a/'],
  [{ ...TO, OTEL_SDK_DISABLED: 'True' }, undefined],
  [{ ...TO, OTEL_SDK_DISABLED: 'false' }, 'http://collector:4318/v1/traces'],
  [{ ...TO, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }, 'http://collector:4318/v1/traces', /in JSON/],
];
const INVALID: [variable: string, value: string][] = [
  ['OTEL_EXPORTER_OTLP_ENDPOINT', `http://user:${SECRET}@collector:4318`],
  ['OTEL_EXPORTER_OTLP_HEADERS', `a=x%0A${SECRET}`],
  ['OTEL_RESOURCE_ATTRIBUTES', 'a'],
  ['OTEL_TRACES_SAMPLER', 'jaeger_remote'],
  ['OTEL_TRACES_SAMPLER_ARG', '1.1'],
];

test('the variables of OpenTelemetry select the sampler, and invalid ones are ignored with a warning', () => {
  for (const [sampler, argument, isParentBased, ratio] of SAMPLERS) {
    const settings = settingsOf({ ...TO, OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: argument });
    assert.deepEqual([settings!.isParentBased, settings!.ratio], [isParentBased, ratio], sampler);
  }
  for (const [env, url, warning = /^$/] of ENDPOINTS) {
    const warnings: string[] = [];
    assert.equal(readTraceSettings(env, each => warnings.push(each))?.url, url);
    assert.match(warnings.join(), warning);
  }
  for (const [variable, value] of INVALID) {
    const warnings: string[] = [];
    const settings = readTraceSettings({ ...TO, [variable]: value }, warning => warnings.push(warning));
    assert.deepEqual(warnings, [`${variable} is invalid, so it is ignored`]);
    assert.deepEqual(settings, variable in TO ? undefined : settingsOf(TO));
  }
});
