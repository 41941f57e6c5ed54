import querystring from 'node:querystring';

/** A variable with one value. */
interface Form {
  pattern: RegExp;
  /** The effect of an invalid value, for the warning. */
  instead: string;
  /** The valid values, for the warning. */
  use: string;
}

const TIMEOUT = { pattern: /^\d{1,10}$/, use: 'milliseconds in digits, such as 1000' };

/** The variables with one value. */
export const FORMS = {
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
export const LIST_FORMS = {
  OTEL_EXPORTER_OTLP_HEADERS: HEADER_FIELD,
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: HEADER_FIELD,
  OTEL_RESOURCE_ATTRIBUTES: { name: /^\S+$/, value: /^/, instead: 'its attributes are not sent' },
};
const LIST_USE = 'name=value,name=value with values in percent-encoding';

/**
 * The variables of OpenTelemetry. An invalid one is ignored with a warning, as they specify:
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 *
 * Warnings name variables, but contain no value, which may be a secret.
 */
export class OtelVariables {
  readonly #env: NodeJS.ProcessEnv;
  readonly #warn: (message: string) => void;

  constructor(env: NodeJS.ProcessEnv, warn: (message: string) => void) {
    this.#env = env;
    this.#warn = warn;
  }

  /** Reads a variable with one value. @returns undefined if it is absent, empty or invalid */
  text(name: keyof typeof FORMS): string | undefined {
    const text = this.#env[name];
    if (!text) return undefined;
    const { pattern, ...form } = FORMS[name];
    if (pattern.test(text) && (!name.endsWith('ENDPOINT') || URL.canParse(text))) return text;
    this.#warnOfValue(name, form);
    return undefined;
  }

  /** Reads a list of pairs. @returns undefined if it is absent, empty or invalid */
  list(name: keyof typeof LIST_FORMS): Record<string, string> | undefined {
    const text = this.#env[name];
    if (!text) return undefined;
    const form = LIST_FORMS[name];
    const pairs = pairsOf(text);
    if (pairs.every(pair => form.name.test(pair.name) && form.value.test(pair.value)))
      return Object.fromEntries(pairs.map(pair => [pair.name, querystring.unescape(pair.value)]));
    this.#warnOfValue(name, { ...form, use: LIST_USE });
    return undefined;
  }

  #warnOfValue(name: string, { instead, use }: Omit<Form, 'pattern'>): void {
    this.#warn(`${name} is invalid, so ${instead}; use ${use}`);
  }
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
