import type { PlantStoreError } from '../../client/plant-store.ts';
import { isProtocolError } from '../../client/transport.ts';
import { ERRORS } from '../../core/contract/errors.ts';
import { type ServiceAddress, unauthorizedText } from '../options/service-options.ts';
import { Failure } from '../output/failure.ts';
import { visible, withoutToken } from '../output/visible-text.ts';
import { SAFE_TO_REPEAT } from './plant-row.ts';

/** Timeout of one response; see the option `responseTimeoutMs` of the client. */
export const IMPORT_RESPONSE_TIMEOUT_MS = 30_000;
/** The import ends if no row was stored or rejected for this long. */
export const OUTAGE_MAX_MS = 5 * 60_000;
/** An outage that lasts longer is reported on the terminal. */
const OUTAGE_REPORT_DELAY_MS = 1_000;
const OUTAGE_MAX_MINUTES = OUTAGE_MAX_MS / 60_000;
/** Errors of an open connection. Another error before the first response means a wrong address. */
const INTERRUPTED_CODES: readonly (string | undefined)[] = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT'];

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
 * | 401, any other response, or an untrusted TLS certificate | stops at once | - |
 *
 * An outage begins with the first failed try; 429 and error 40000 begin none. It is printed once,
 * after OUTAGE_REPORT_DELAY_MS, since a single lost connection needs no message.
 */
export function retryRules(service: ServiceAddress, say: (line: string) => void) {
  const { url, token } = service;
  let hasResponded = false;
  /** The time since which tries fail and no row was settled; ms, monotonic clock. */
  let outage: { sinceMs: number; isReported: boolean } | undefined;
  let isRateLimitReported = false;
  /** A text of the service or a proxy, without control characters and token. */
  const shown = (message: string): string => visible(withoutToken(message, token));
  return {
    shown,
    settled(): void {
      hasResponded = true;
      if (outage?.isReported) {
        const seconds = (performance.now() - outage.sinceMs) / 1000;
        say(`the service is available again after ${seconds.toFixed(1)} s; the import continues`);
      }
      outage = undefined;
    },
    /** Notes a failed try that the client will repeat. @throws {Failure} if the address is wrong */
    retried(error: PlantStoreError): void {
      const { status, code, message } = error;
      if (status !== undefined) hasResponded = true;
      else if (!hasResponded && !INTERRUPTED_CODES.includes(code)) {
        const noService =
          `no service responds at ${url} (${code}); start one with: npx plant-store serve, ` +
          'or give its address with --url';
        throw new Failure(isProtocolError(code) ? message : noService);
      }
      if (status === 429) {
        if (!isRateLimitReported)
          say('the service limits the request rate of this token; the import continues at that rate');
        isRateLimitReported = true;
        return;
      }
      if (error.error === ERRORS.badHttp.number) return;
      const nowMs = performance.now();
      outage ??= {
        sinceMs: nowMs - (code === 'ETIMEDOUT' ? IMPORT_RESPONSE_TIMEOUT_MS : 0),
        isReported: false,
      };
      if (outage.isReported || nowMs - outage.sinceMs < OUTAGE_REPORT_DELAY_MS) return;
      outage.isReported = true;
      say(`the service ${symptomOf(error)}; retrying for up to ${OUTAGE_MAX_MINUTES} minutes…`);
    },
    /** Makes the failure of an import that stops because the client gave up. */
    failure(error: PlantStoreError): Failure {
      const { status, error: number, canRetry } = error;
      const message = shown(error.message);
      if (canRetry && number !== ERRORS.badHttp.number)
        return new Failure(
          `giving up: no plant could be stored for ${OUTAGE_MAX_MINUTES} minutes, because the service ${symptomOf(error)}; ` +
            `confirmed plants are stored, and ${SAFE_TO_REPEAT}`,
        );
      if (status === undefined) return new Failure(message);
      if (status === 401) return new Failure(unauthorizedText(service, message));
      if (number === undefined) return new Failure(`${url}: ${message}`);
      const question =
        status === 404 || status === 405
          ? 'check the address in --url'
          : 'check whether a proxy between this machine and the service changes requests';
      return new Failure(`${url} responds with ${status} (${message}); ${question}`);
    },
  };
}

/** Completes a sentence that begins with "the service". */
function symptomOf({ status, code }: PlantStoreError): string {
  return status === undefined ? `does not respond (${code})` : `responds with ${status}`;
}
