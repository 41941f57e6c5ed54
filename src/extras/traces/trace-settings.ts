import { randomUUID } from 'node:crypto';
import querystring from 'node:querystring';
import { VERSION } from '../../version.ts';

interface Form {
  pattern: RegExp;
  /** The effect of an invalid value. */
  instead: string;
  /** The valid values of the variable. */
  use: string;
}

const TIMEOUT = { pattern: /^\d{1,10}$/, use: 'milliseconds in digits, such as 1000' };

/** The variables whose values are validated. */
const FORMS = {
  OTEL_SDK_DISABLED: { pattern: /^(?:true|false)$/i, instead: 'it disables nothing', use: 'true or false' },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    pattern: /^https?:\/\/[^@?#\s]+$/,
    instead: 'no spans are sent',
    use: 'an http or https address without user name, password, ? and #',
  },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: {
    pattern: /^https?:\/\/[^@#\s]+$/,
    instead: 'spans are sent only if OTEL_EXPORTER_OTLP_ENDPOINT is valid',
    use: 'an http or https address without user name, password and #',
  },
  OTEL_EXPORTER_OTLP_TIMEOUT: { ...TIMEOUT, instead: 'the timeout is 1000 ms' },
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: {
    ...TIMEOUT,
    instead: 'the timeout is OTEL_EXPORTER_OTLP_TIMEOUT or 1000 ms',
  },
  OTEL_TRACES_SAMPLER: {
    pattern: /^(?:parentbased_)?(?:always_on|always_off|traceidratio)$/,
    instead: 'it is parentbased_always_on',
    use: 'always_on, always_off or traceidratio, or one of them after parentbased_',
  },
  OTEL_TRACES_SAMPLER_ARG: {
    pattern: /^(?:0?\.\d+|0|1(?:\.0*)?|\d(?:\.\d+)?e-\d+)$/,
    instead: 'it is 1',
    use: 'a number from 0 to 1, such as 0.01',
  },
} satisfies Record<string, Form>;

/** The form of header fields, which must be ASCII. */
const HEADER_FIELD = {
  name: /^[\w-]+$/,
  value: /^(?:[ -$&-~]|%[2-6][0-9a-f]|%7[0-9a-e])*$/i,
  instead: 'its header fields are not sent',
};
/** The variables that are lists, with their valid names and values. */
const LIST_FORMS = {
  OTEL_EXPORTER_OTLP_HEADERS: HEADER_FIELD,
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: HEADER_FIELD,
  OTEL_RESOURCE_ATTRIBUTES: { name: /^\S+$/, value: /^/, instead: 'its attributes are not sent' },
};
const LIST_USE = 'name=value,name=value with values in percent-encoding';

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
 * Reads these variables. An invalid one is ignored with a warning, as their specification requires
 * (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/). Warnings name
 * variables, but contain no value, which may be a secret.
 */
export function readTraceSettings(env: NodeJS.ProcessEnv, warn: (message: string) => void) {
  const warnOfValue = (name: string, { instead, use }: Omit<Form, 'pattern'>): void =>
    warn(`${name} is invalid, so ${instead}; use ${use}`);
  const read = (name: keyof typeof FORMS): string => {
    const text = env[name] ?? '';
    const isUrl = !name.endsWith('ENDPOINT') || URL.canParse(text);
    if (text === '' || (FORMS[name].pattern.test(text) && isUrl)) return text;
    warnOfValue(name, FORMS[name]);
    return '';
  };
  const readList = (name: keyof typeof LIST_FORMS): Record<string, string> | undefined => {
    const text = env[name] ?? '';
    if (text === '') return undefined;
    const form = LIST_FORMS[name];
    const pairs = pairsOf(text);
    if (pairs.every(pair => form.name.test(pair.name) && form.value.test(pair.value)))
      return Object.fromEntries(pairs.map(pair => [pair.name, querystring.unescape(pair.value)]));
    warnOfValue(name, { ...form, use: LIST_USE });
    return undefined;
  };
  const unsupported = Object.keys(env).filter(
    name => name.startsWith('OTEL_') && env[name] && !SUPPORTED.has(name),
  );
  if (unsupported.length > 0) warn(`${unsupported.sort().join(', ')}: not supported, so ignored`);
  if (read('OTEL_SDK_DISABLED').toLowerCase() === 'true' || !isExported(env, warn)) return undefined;
  const own = read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT');
  const url = own || read('OTEL_EXPORTER_OTLP_ENDPOINT').replace(/\/*$/, '/v1/traces');
  if (!url.startsWith('http')) {
    const isSet = Object.keys(env).some(name => name.startsWith('OTEL_') && env[name]);
    if (isSet && !ENDPOINTS.some(name => env[name]))
      warn('OTEL_EXPORTER_OTLP_ENDPOINT is not set, so no spans are sent');
    return undefined;
  }
  const protocol = PROTOCOLS.find(name => env[name]);
  if (protocol !== undefined && env[protocol] !== 'http/json')
    warn(`${protocol} is ignored: spans are always sent as http/json`);
  const headers = readList('OTEL_EXPORTER_OTLP_TRACES_HEADERS') ?? readList('OTEL_EXPORTER_OTLP_HEADERS');
  const timeout = read('OTEL_EXPORTER_OTLP_TRACES_TIMEOUT') || read('OTEL_EXPORTER_OTLP_TIMEOUT');
  const sampler = read('OTEL_TRACES_SAMPLER') || 'parentbased_always_on';
  const ratio = Number(read('OTEL_TRACES_SAMPLER_ARG') || 1);
  const resource = readList('OTEL_RESOURCE_ATTRIBUTES') ?? {};
  const name = env.OTEL_SERVICE_NAME || resource['service.name'] || 'plant-store';
  return {
    url,
    headers: headers ?? {},
    // By the specification, 0 means no timeout, so this takes the longest one.
    timeoutMs: Math.min(Number(timeout || TIMEOUT_DEFAULT_MS) || TIMEOUT_MAX_MS, TIMEOUT_MAX_MS),
    resource: {
      'service.version': VERSION,
      'service.instance.id': randomUUID(),
      ...resource,
      'service.name': name,
    },
    isParentBased: sampler.startsWith('parentbased_'),
    ratio: sampler.endsWith('ratio') ? ratio : Number(sampler.endsWith('on')),
  };
}

function isExported(env: NodeJS.ProcessEnv, warn: (message: string) => void): boolean {
  const exporter = env.OTEL_TRACES_EXPORTER || 'otlp';
  if (exporter !== 'otlp' && exporter !== 'none')
    warn('OTEL_TRACES_EXPORTER has an unsupported value, so no spans are sent; use otlp or none');
  return exporter === 'otlp';
}

/**
 * Splits `name=value,name=value`. A list may end with a comma, or have an empty element, as in
 * RFC 9110 section 5.6.1. Without `=`, the name is empty, which no list allows.
 */
function pairsOf(text: string): { name: string; value: string }[] {
  const elements = text.split(',').map(each => each.trim());
  return elements
    .filter(each => each !== '')
    .map(each => {
      const end = Math.max(each.indexOf('='), 0);
      return { name: each.slice(0, end).trim(), value: each.slice(end + 1).trim() };
    });
}
