import { ERROR_NAMES, ERRORS, type ErrorName } from '../../core/contract/errors.ts';
import { HTTP_TOKEN } from '../../core/header-fields.ts';

/** A member of the list of RFC 7240 section 2. A quoted text may contain commas. */
const MEMBER = /(?:[^",]|"(?:[^"\\]|\\.)*"?)+/g;
/** A preference with a value. Its parameters are ignored, since no fault has any. */
const PREFERENCE = new RegExp(
  `^\\s*(${HTTP_TOKEN})\\s*=\\s*(?:(${HTTP_TOKEN})|"((?:[^"\\\\]|\\\\.)*)")\\s*(?:;.*)?$`,
);
/** The known preferences, and which values are valid. */
const VALID: Record<string, (value: string) => unknown> = {
  code: errorNamed,
  delay: value => /^[0-9]{1,2}(?:\.[0-9]{1,9})?$/.test(value) && Number(value) <= 60,
  lose: value => /^(?:request|response|half)$/.test(value),
  times: value => /^[1-9][0-9]{0,8}$/.test(value),
};

/**
 * Reads a `Prefer` field. Of several preferences with one name, only the first one counts.
 *
 * @returns the faults, and their text for `Preference-Applied`, which is empty without a fault
 */
export function preferencesOf(field: string) {
  const values = new Map<string, string>();
  for (const [member] of field.matchAll(MEMBER)) {
    const [, name = '', token, quoted = ''] = PREFERENCE.exec(member) ?? [];
    const key = name.toLowerCase();
    const value = token ?? quoted.replace(/\\(.)/g, '$1');
    if (Object.hasOwn(VALID, key) && !values.has(key) && VALID[key]!(value)) values.set(key, value);
  }
  // `times` alone asks for no fault.
  if (values.size === 1) values.delete('times');
  return {
    text: Array.from(values, ([key, value]) => `${key}=${value}`).join(', '),
    code: errorNamed(values.get('code')),
    delayMs: Number(values.get('delay') ?? 0) * 1000,
    lose: values.get('lose'),
    times: Number(values.get('times') ?? Infinity),
  };
}

/** @param value a name or number of the catalogue, or a status, which means its first error */
function errorNamed(value: string | undefined): ErrorName | undefined {
  return ERROR_NAMES.find(name =>
    [name, ERRORS[name].number, ERRORS[name].status].map(String).includes(value!),
  );
}

export const NO_FAULTS = preferencesOf('');
