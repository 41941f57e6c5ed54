import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ERRORS, type ErrorName } from '../../core/contract/errors.ts';
import type { NewPlant } from '../../core/contract/plant.ts';
import type { Admission, OperationWrapper } from '../../core/extension-points.ts';
import { fieldValues } from '../../core/header-fields.ts';
import { type Delivery, errorResponse, type HttpResponse } from '../../core/response.ts';
import type { OpenExtra } from '../../service.ts';
import { NO_FAULTS, preferencesOf } from './preferences.ts';
import type { RecordedInvalid, RecordedRequest, RecordedResponse, SandboxFiles } from './sandbox-files.ts';

/** Its users see it in the log, at `/docs`, in the console and as a warning of `/readyz`. */
const WARNING = {
  name: 'sandbox',
  fault: 'this is a sandbox, which fails on request; send it no plants that you want to keep',
  advice: 'use it only to test clients',
};

/**
 * Makes a service fail on request. It creates the file that identifies the store of a sandbox.
 *
 * @param prefer the faults of requests that ask for none, neither themselves nor by their tokens
 */
export function sandboxExtra(files: SandboxFiles, prefer: string): OpenExtra {
  return async () => {
    files.tokens.append();
    return { wrappers: [failingOperation(files, prefer)] };
  };
}

/** Makes requests fail as they ask, and records what clients do. */
function failingOperation(files: SandboxFiles, prefer: string): OperationWrapper {
  /** The number of failed requests with the same token, id and faults, if `times` limits it. */
  const failures = new Map<string, number>();

  const asked = ({ request: { headers }, storedHash }: Admission) => {
    const ofToken = files.tokens.read().find(({ hash }) => hash === storedHash)?.prefer ?? '';
    const texts = [fieldValues(headers.fields, 'prefer').join(), ofToken, prefer];
    return texts.map(preferencesOf).find(({ text }) => text !== '') ?? NO_FAULTS;
  };

  /** Records a plant that arrived. */
  const recordPlant = (line: RecordedRequest | RecordedInvalid): void => {
    // `report --reset` has removed the file.
    if (!files.requests.exists()) failures.clear();
    files.requests.append(line);
  };

  /** Records a response. After a reset, it belongs to a request that the report has forgotten. */
  const recordResponse = (line: RecordedResponse): void => {
    if (files.requests.exists()) files.requests.append(line);
  };

  /** Records a request. @returns its faults, or none after `times` failures */
  const begin = (admission: Admission, { id, name, tag }: NewPlant) => {
    const { storedHash } = admission;
    const preferences = asked(admission);
    const { text, times } = preferences;
    const request = crypto.randomUUID();
    const plant = { id: `${id}`, name: hashOf(name), ...(tag !== undefined && { tag: hashOf(tag) }) };
    recordPlant({ kind: 'request', request, at: Date.now(), storedHash, asked: text, ...plant });
    const key = `${storedHash} ${id} ${text}`;
    const failed = failures.get(key) ?? 0;
    if (failed === times) return { ...NO_FAULTS, request };
    if (times !== Infinity) failures.set(key, failed + 1);
    return { ...preferences, request };
  };

  const recordInvalid = (admission: Admission, error: ErrorName): void => {
    const { storedHash } = admission;
    const { text } = asked(admission);
    recordPlant({ kind: 'invalid', at: Date.now(), storedHash, asked: text, error });
  };

  return {
    warning: WARNING,
    wrap: create => async (admission, reading) => {
      // An invalid plant gets its own error.
      if (reading.kind === 'invalid') {
        recordInvalid(admission, reading.error);
        return marked(await create(admission, reading));
      }
      const { request, text, code, lose, delayMs } = begin(admission, reading.plant);
      // `create` queues the plant, and nothing is awaited before. So plants stay in the order of
      // their requests.
      const response =
        code === undefined && lose !== 'request'
          ? await create(admission, reading)
          : catalogueResponse(code ?? 'internal', admission, reading.plant);
      if (text !== '') await sleep(delayMs, undefined, { ref: false });
      const at = Date.now();
      const record = (received: RecordedResponse['received']): void => {
        const [retryAfter] = fieldValues(response.fields, 'retry-after');
        const wait = retryAfter === undefined ? {} : { retryAfterSeconds: Number(retryAfter) };
        const { result } = response;
        recordResponse({ kind: 'response', request, at, result, received, ...wait });
      };
      if (lose !== undefined) {
        record(lose === 'half' ? 'half' : 'nothing');
        return marked(response, text, { kind: 'cut', partOf: lose === 'half' ? firstHalf : () => '' });
      }
      const isLast = code !== undefined && CLOSING.includes(code);
      const onTaken = (isClientThere: boolean): void => record(isClientThere ? 'whole' : 'left');
      return marked(response, text, { kind: 'whole', isLast, onTaken });
    },
  };
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** An incomplete message (RFC 9112 section 8). */
function firstHalf(headers: string, body: string): string {
  return headers + body.slice(0, body.length / 2);
}

/** Adds the field that says that this is a sandbox, and the applied faults. */
function marked(response: HttpResponse, faults = '', delivery?: Delivery): HttpResponse {
  const applied = faults === '' ? 'sandbox' : `sandbox, ${faults}`;
  const fields = [...response.fields, 'Preference-Applied', applied];
  return { ...response, fields, ...(delivery && { delivery }) };
}

/** Errors after which the service closes the connection. */
const CLOSING: readonly ErrorName[] = ['badHttp', 'tooSlow', 'headersTooLarge', 'shuttingDown'];
/** Statuses of errors for which the service has counted the request against the rate limit. */
const COUNTED: readonly number[] = [400, 412, 413, 415, 429, 503];

function catalogueResponse(
  name: ErrorName,
  { fields: rateLimitFields, ifRevision = 0 }: Admission,
  { id }: NewPlant,
): HttpResponse {
  if (CLOSING.includes(name)) return errorResponse(name);
  const fields = COUNTED.includes(ERRORS[name].status) ? [...rateLimitFields] : [];
  if (name === 'methodNotAllowed') fields.push('Allow', 'POST');
  if (name === 'tooManyRequests') fields.push('Retry-After', '1');
  if (name !== 'plantChanged') return errorResponse(name, undefined, fields);
  // Any revision but the one that the request names.
  fields.push('Plant-Id', `${id}`, 'Plant-Revision', `${ifRevision + 1}`);
  return { ...errorResponse(name, undefined, fields), plantId: id };
}
