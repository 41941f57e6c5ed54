import querystring from 'node:querystring';
import { VERSION } from '../../version.ts';

/** Valid values, where they are checked. A header field must be plain ASCII. */
const FORMS = {
  OTEL_EXPORTER_OTLP_ENDPOINT: /^https?:\/\/[^@?#\s]+$/,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: /^https?:\/\/[^@#\s]+$/,
  OTEL_EXPORTER_OTLP_HEADERS: /^(?:(?:^|,)\s*[\w-]+=(?:[ -$&-+\--~]|%[2-6][0-9a-f]|%7[0-9a-e])*)+$/i,
  OTEL_RESOURCE_ATTRIBUTES: /^(?:(?:^|,)\s*[^=,]+=[^,]*)+$/,
  OTEL_TRACES_SAMPLER: /^(?:parentbased_)?(?:always_on|always_off|traceidratio)$/,
  OTEL_TRACES_SAMPLER_ARG: /^(?:0?\.\d+|0|1(?:\.0*)?|\d(?:\.\d+)?e-\d+)$/,
};

/**
 * Reads these variables. An invalid one is ignored with a warning, as their specification requires
 * (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
 */
export function readTraceSettings(env: NodeJS.ProcessEnv, warn: (message: string) => void) {
  const read = (name: keyof typeof FORMS): string => {
    const text = env[name] ?? '';
    const isUrl = !name.endsWith('ENDPOINT') || URL.canParse(text);
    if (text === '' || (FORMS[name].test(text) && isUrl)) return text;
    // Its value may be a secret.
    warn(`${name} is invalid, so it is ignored`);
    return '';
  };
  const base = read('OTEL_EXPORTER_OTLP_ENDPOINT').replace(/\/*$/, '/v1/traces');
  const url = read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') || base;
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || !url.startsWith('http')) return undefined;
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL || 'http/json';
  if (protocol !== 'http/json')
    warn(`OTEL_EXPORTER_OTLP_PROTOCOL is ignored: spans are sent in JSON, not ${protocol}`);
  const sampler = read('OTEL_TRACES_SAMPLER') || 'parentbased_always_on';
  const ratio = Number(read('OTEL_TRACES_SAMPLER_ARG') || 1);
  const resource = pairsOf(read('OTEL_RESOURCE_ATTRIBUTES'));
  const name = env.OTEL_SERVICE_NAME || resource['service.name'] || 'plant-store';
  return {
    url,
    headers: pairsOf(read('OTEL_EXPORTER_OTLP_HEADERS')),
    resource: { 'service.version': VERSION, ...resource, 'service.name': name },
    isParentBased: sampler.startsWith('parentbased_'),
    ratio: sampler.endsWith('ratio') ? ratio : Number(sampler.endsWith('on')),
  };
}

/** Reads `name=value,name=value`, with values in percent-encoding. */
function pairsOf(text: string): Record<string, string> {
  const pairs = text.matchAll(/([^=,\s]+)\s*=([^,]*)/g);
  return Object.fromEntries(pairs.map(([, name, value]) => [name!, querystring.unescape(value!.trim())]));
}
