import { Failure } from '../../../src/cli/shared/failure.ts';
import { type ServiceAddress, unauthorizedText } from '../../../src/cli/shared/service-options.ts';
import type { PlantStoreError } from '../../../src/client/plant-store.ts';
import { isProtocolError } from '../../../src/client/transport.ts';
import { ERRORS } from '../../../src/core/contract/errors.ts';
import { visible, withoutToken } from '../../../src/formats/visible-text.ts';
import { SAFE_TO_REPEAT } from '../rows/plant-row.ts';

/** Timeout of one response; see the option `responseTimeoutMs` of the client. */
export const IMPORT_RESPONSE_TIMEOUT_MS = 30_000;
/** The import ends if no row was stored or rejected for this long. */
export const OUTAGE_MAX_MS = 5 * 60_000;
/** An outage that lasts longer is reported on the terminal. */
const OUTAGE_REPORT_DELAY_MS = 1_000;
const OUTAGE_MAX_MINUTES = OUTAGE_MAX_MS / 60_000;
/** Errors of an open connection. Another error before the first response means a wrong address. */
const INTERRUPTED_CODES: readonly (string | undefined)[] = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT'];

/** A time in which tries fail and no row is settled. */
interface Outage {
  /** When the first of these tries began; ms, monotonic clock. */
  sinceMs: number;
  isReported: boolean;
}

/**
 * The retry rules of `import`. The client sends a failed plant again. These rules decide what to
 * print, and when to stop before the client does.
 *
 * | what happened | what import does | until when |
 * |---|---|---|
 * | a row is stored, or rejected for its content | counts it; ends the outage | - |
 * | no response ever; code not in INTERRUPTED_CODES | stops at once: wrong address | - |
 * | no response, in any other case | sends the row again | no row settled for OUTAGE_MAX_MS |
 * | 408, 502, 503, 504 | sends the row again | no row settled for OUTAGE_MAX_MS |
 * | 429 | prints one line, once; sends at the permitted rate | no row settled for OUTAGE_MAX_MS |
 * | error 50001 | sends the row again | the client's limit of tries; then the row is rejected |
 * | error 40000 | sends the row again | the client's limit of tries; then the import stops |
 * | 401, any other response, an untrusted TLS certificate, or an ignored header | stops at once | - |
 *
 * An outage begins with the first failed try; 429 and error 40000 begin none. It is printed once,
 * after OUTAGE_REPORT_DELAY_MS, since a single lost connection needs no message.
 */
export class RetryRules {
  readonly #service: ServiceAddress;
  readonly #print: (line: string) => void;
  #hasResponded = false;
  #outage: Outage | undefined;
  #isRateLimitReported = false;

  constructor(service: ServiceAddress, print: (line: string) => void) {
    this.#service = service;
    this.#print = print;
  }

  /** Notes a row that was stored, or rejected for its content. */
  settled(): void {
    this.#hasResponded = true;
    if (this.#outage?.isReported) {
      const seconds = (performance.now() - this.#outage.sinceMs) / 1000;
      this.#print(`the service is available again after ${seconds.toFixed(1)} s; the import continues`);
    }
    this.#outage = undefined;
  }

  /**
   * Notes a failed try that the client will repeat.
   *
   * @throws {Failure} if the address is wrong, or the cause is a failure that no retry changes
   */
  retried(error: PlantStoreError): void {
    if (error.cause instanceof Failure) throw error.cause;
    const { status, code } = error;
    if (status !== undefined) this.#hasResponded = true;
    else if (!this.#hasResponded && !INTERRUPTED_CODES.includes(code)) throw this.#noService(error);
    if (status === 429) this.#reportRateLimit();
    else if (error.error !== ERRORS.badHttp.number) this.#reportOutage(error);
  }

  /** Makes the failure of an import that stops because the client gave up. */
  failure(error: PlantStoreError): Failure {
    const { url } = this.#service;
    const { status, error: number, canRetry } = error;
    const message = this.shown(error.message);
    if (canRetry && number !== ERRORS.badHttp.number)
      return new Failure(
        `giving up: no plant could be stored for ${OUTAGE_MAX_MINUTES} minutes, because the service ${symptomOf(error)}; ` +
          `confirmed plants are stored, and ${SAFE_TO_REPEAT}`,
      );
    // The message of a 404 or a 405 names the option with the address.
    if (status === undefined || (number !== undefined && [404, 405].includes(status)))
      return new Failure(message);
    if (status === 401) return new Failure(unauthorizedText(this.#service, message));
    if (number === undefined) return new Failure(`${url}: ${message}`);
    const question = 'check whether a proxy between this machine and the service changes requests';
    return new Failure(`${url} responds with ${status} (${message}); ${question}`);
  }

  /** Makes a text of the service or a proxy visible, and removes the token. */
  shown(message: string): string {
    return visible(withoutToken(message, this.#service.token));
  }

  #noService({ code, message }: PlantStoreError): Failure {
    if (isProtocolError(code)) return new Failure(message);
    return new Failure(
      `no service responds at ${this.#service.url} (${code}); start one with: npx plant-store serve, ` +
        'or give its address with --url',
    );
  }

  #reportRateLimit(): void {
    if (!this.#isRateLimitReported)
      this.#print('the service limits the request rate of this token; the import continues at that rate');
    this.#isRateLimitReported = true;
  }

  #reportOutage(error: PlantStoreError): void {
    const nowMs = performance.now();
    const tryMs = error.code === 'ETIMEDOUT' ? IMPORT_RESPONSE_TIMEOUT_MS : 0;
    this.#outage ??= { sinceMs: nowMs - tryMs, isReported: false };
    if (this.#outage.isReported || nowMs - this.#outage.sinceMs < OUTAGE_REPORT_DELAY_MS) return;
    this.#outage.isReported = true;
    this.#print(`the service ${symptomOf(error)}; retrying for up to ${OUTAGE_MAX_MINUTES} minutes…`);
  }
}

/** Completes a sentence that begins with "the service". */
function symptomOf({ status, code }: PlantStoreError): string {
  return status === undefined ? `does not respond (${code})` : `responds with ${status}`;
}
