import { isBaseUrl } from '../../client/transport.ts';
import type { TraceSettings } from '../../service.ts';

const SAMPLER = /^(parentbased_)?(?:always_(on|off)|traceidratio)$/;

/**
 * Reads the environment variables of OpenTelemetry
 * (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
 *
 * @returns undefined if no collector is set
 * @throws {Error} that names the invalid variable, without its value, which may be a secret
 */
export function readTraceSettings(env: NodeJS.ProcessEnv): TraceSettings | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces } = env;
  if (!base && !traces) return undefined;
  const url = URL.parse(traces || `${base!.replace(/\/+$/, '')}/v1/traces`);
  if (url === null || !isBaseUrl(url))
    throw new Error('OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https address, without a password');
  const headers = pairsOf(env, 'OTEL_EXPORTER_OTLP_HEADERS');
  try {
    new Headers(headers);
  } catch {
    throw new Error('OTEL_EXPORTER_OTLP_HEADERS has a name or value that no header field can have');
  }
  const resource = { 'service.name': 'plant-store', ...pairsOf(env, 'OTEL_RESOURCE_ATTRIBUTES') };
  if (env.OTEL_SERVICE_NAME) resource['service.name'] = env.OTEL_SERVICE_NAME;
  return { url: url.href, headers, resource, sampler: samplerOf(env) };
}

function samplerOf(env: NodeJS.ProcessEnv): TraceSettings['sampler'] {
  const name = env.OTEL_TRACES_SAMPLER || 'parentbased_always_on';
  const [isKnown, parentBased, always] = SAMPLER.exec(name) ?? [];
  if (isKnown === undefined) throw new Error('OTEL_TRACES_SAMPLER is not a known sampler');
  const ratio = always === undefined ? Number(env.OTEL_TRACES_SAMPLER_ARG || 1) : Number(always === 'on');
  if (!(ratio >= 0 && ratio <= 1)) throw new Error('OTEL_TRACES_SAMPLER_ARG must be from 0 to 1');
  return { isParentBased: parentBased !== undefined, ratio };
}

/** Reads `name=value,name=value`, with values in percent-encoding. */
function pairsOf(env: NodeJS.ProcessEnv, variable: string): Record<string, string> {
  const pairs = (env[variable] ?? '').split(',').filter(pair => pair.trim() !== '');
  try {
    return Object.fromEntries(
      pairs.map(pair => {
        const [, name, value] = /^\s*([^=\s]+)\s*=(.*)$/s.exec(pair)!;
        return [name!, decodeURIComponent(value!.trim())];
      }),
    );
  } catch {
    throw new Error(`${variable} must be name=value,name=value with percent-encoded values`);
  }
}
