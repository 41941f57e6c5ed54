import { isUtf8 } from 'node:buffer';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { openApiJson } from '../../src/client/openapi.ts';
import type { NewPlant } from '../../src/core/contract/plant.ts';

/*
 * A test oracle: a second reader of bodies that shares only the published description with src. Ajv
 * checks the shape with the published schema, BigInt arithmetic computes the id, and a list of JSON
 * tokens shows repeated names. It may be slow and may fail on deep nesting, but it must be
 * obviously correct.
 */

/** The plant in a body, or the error that rejects the body. */
type Verdict = { plant: NewPlant } | { error: 'notJson' | 'notNewPlant' };

const ajv = new Ajv2020({ formats: { int32: true, int64: true } });
ajv.addVocabulary(['components']);
ajv.addSchema({ $id: 'plant-store', components: { schemas: JSON.parse(openApiJson()).components.schemas } });
const hasShape = ajv.compile({ $ref: 'plant-store#/components/schemas/NewPlant' });

/** @param bytes a body; very deep nesting overflows the stack of the JSON.parse reviver */
export function testOracle(bytes: Uint8Array): Verdict {
  const text = Buffer.from(bytes).toString('utf8');
  if (!isUtf8(bytes) || text.startsWith('\ufeff')) return { error: 'notJson' };

  const idSources = new Map<unknown, string>();
  let value: { id: number; name: string; tag?: string };
  try {
    // The reviver receives the source text of a number, and `this` is the object that contains it.
    value = JSON.parse(text, function (this: unknown, key, parsed, context?: { source?: string }) {
      if (key === 'id') idSources.set(this, context?.source ?? '');
      return parsed;
    });
  } catch {
    return { error: 'notJson' };
  }
  if (!hasShape(value)) return { error: 'notNewPlant' };

  const { name, tag } = value;
  const id = exactInteger(idSources.get(value) ?? '');
  const names = topLevelNames(text);
  if (id === undefined || id < -(2n ** 63n) || id > 2n ** 63n - 1n) return { error: 'notNewPlant' };
  if (new Set(names).size < names.length) return { error: 'notNewPlant' };
  if (!isStorable(name) || !isStorable(tag ?? '')) return { error: 'notNewPlant' };
  return { plant: tag === undefined ? { id, name } : { id, name, tag } };
}

/**
 * The value of a JSON number, as numerator / 10^places, if it is an integer. The numbers of these
 * tests have too few digits for more than 1,000 places, so no power is computed there.
 */
function exactInteger(text: string): bigint | undefined {
  const [mantissa = '', exponentText = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const numerator = BigInt(`${whole}${fraction}`.replace('-', ''));
  const sign = mantissa.startsWith('-') ? -1n : 1n;
  if (numerator === 0n) return 0n;
  const places = BigInt(fraction.length) - BigInt(exponentText.replace('+', ''));
  if (places < -1_000n) return sign * 10n ** 1_000n;
  if (places <= 0n) return sign * numerator * 10n ** -places;
  if (places > 1_000n) return undefined;
  return numerator % 10n ** places === 0n ? (sign * numerator) / 10n ** places : undefined;
}

/** The member names of the outermost object, including repeated ones. */
function topLevelNames(json: string): string[] {
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s"{}[\]:,]+/g) ?? [];
  const names: string[] = [];
  let depth = 0;
  for (const [index, token] of tokens.entries()) {
    if (token === '{' || token === '[') depth++;
    if (token === '}' || token === ']') depth--;
    if (depth === 1 && tokens[index + 1] === ':') names.push(JSON.parse(token));
  }
  return names;
}

/** Whether UTF-8 can represent the text, and it has no U+0000. */
function isStorable(text: string): boolean {
  return Buffer.from(text).toString() === text && !text.includes('\u0000');
}
