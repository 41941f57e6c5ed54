import { randomUUID } from 'node:crypto';
import { VERSION } from '../../version.ts';
import { FORMS, LIST_FORMS, OtelVariables } from './otel-variables.ts';

/** Where spans go, and of which requests. The values of `headers` may be secrets. */
export interface TraceSettings {
  url: string;
  headers: Record<string, string>;
  /** After this time, a request to the collector is aborted. */
  timeoutMs: number;
  /** The attributes of the service. */
  resource: Record<string, string>;
  /** Whether the trace of the caller decides about its requests. */
  isParentBased: boolean;
  /** The sampled share of all requests about which no caller decides, from 0 to 1. */
  ratio: number;
}

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'];
const SUPPORTED = new Set([
  ...Object.keys(FORMS),
  ...Object.keys(LIST_FORMS),
  ...PROTOCOLS,
  'OTEL_TRACES_EXPORTER',
  'OTEL_SERVICE_NAME',
]);

const TIMEOUT_DEFAULT_MS = 1_000;
/** `fetch` itself gives up after this time. */
const TIMEOUT_MAX_MS = 300_000;

/**
 * Reads the settings from the variables of OpenTelemetry.
 *
 * @param warn gets no value of a variable, which may be a secret
 * @returns undefined if no spans are to be sent
 */
export function readTraceSettings(
  env: NodeJS.ProcessEnv,
  warn: (message: string) => void,
): TraceSettings | undefined {
  const variables = new OtelVariables(env, warn);
  const setNames = Object.keys(env).filter(name => name.startsWith('OTEL_') && env[name]);
  const unsupported = setNames.filter(name => !SUPPORTED.has(name));
  if (unsupported.length > 0) warn(`${unsupported.sort().join(', ')}: not supported, so ignored`);
  const isDisabled = variables.text('OTEL_SDK_DISABLED')?.toLowerCase() === 'true';
  if (isDisabled || !isExported(env, warn)) return undefined;
  const url = urlOf(variables);
  if (url === undefined) {
    if (setNames.length > 0 && !ENDPOINTS.some(name => env[name]))
      warn('OTEL_EXPORTER_OTLP_ENDPOINT is not set, so no spans are sent');
    return undefined;
  }
  const protocol = PROTOCOLS.find(name => env[name]);
  if (protocol !== undefined && env[protocol] !== 'http/json')
    warn(`${protocol} is ignored: spans are always sent as http/json`);
  const headers =
    variables.list('OTEL_EXPORTER_OTLP_TRACES_HEADERS') ?? variables.list('OTEL_EXPORTER_OTLP_HEADERS');
  const timeoutMs = timeoutMsOf(variables);
  const sampler = variables.text('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on';
  const ratio = Number(variables.text('OTEL_TRACES_SAMPLER_ARG') ?? 1);
  const resource = variables.list('OTEL_RESOURCE_ATTRIBUTES') ?? {};
  return {
    url,
    headers: headers ?? {},
    timeoutMs,
    resource: {
      'service.version': VERSION,
      'service.instance.id': randomUUID(),
      ...resource,
      'service.name': env.OTEL_SERVICE_NAME || resource['service.name'] || 'plant-store',
    },
    isParentBased: sampler.startsWith('parentbased_'),
    ratio: sampledRatio(sampler, ratio),
  };
}

function isExported(env: NodeJS.ProcessEnv, warn: (message: string) => void): boolean {
  const exporter = env.OTEL_TRACES_EXPORTER || 'otlp';
  if (exporter !== 'otlp' && exporter !== 'none')
    warn('OTEL_TRACES_EXPORTER has an unsupported value, so no spans are sent; use otlp or none');
  return exporter === 'otlp';
}

/** The address for spans is used as it is. The address for all signals gets a path. */
function urlOf(variables: OtelVariables): string | undefined {
  return (
    variables.text('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') ??
    variables.text('OTEL_EXPORTER_OTLP_ENDPOINT')?.replace(/\/*$/, '/v1/traces')
  );
}

/** By the specification, 0 means no timeout. Then this is the longest one. */
function timeoutMsOf(variables: OtelVariables): number {
  const text =
    variables.text('OTEL_EXPORTER_OTLP_TRACES_TIMEOUT') ?? variables.text('OTEL_EXPORTER_OTLP_TIMEOUT');
  const timeoutMs = text === undefined ? TIMEOUT_DEFAULT_MS : Number(text);
  return timeoutMs === 0 ? TIMEOUT_MAX_MS : Math.min(timeoutMs, TIMEOUT_MAX_MS);
}

/** @param ratio of a sampler that has one */
function sampledRatio(sampler: string, ratio: number): number {
  if (sampler.endsWith('always_on')) return 1;
  return sampler.endsWith('always_off') ? 0 : ratio;
}
