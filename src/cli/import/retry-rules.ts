import type { PlantStoreError } from '../../client/plant-store.ts';
import { takesNoHttp } from '../../client/transport.ts';
import { ERRORS } from '../../contract/errors.ts';
import { Failure } from '../failure.ts';
import type { ServiceAddress } from '../service-options.ts';
import { visible, withoutToken } from '../visible-text.ts';
import { IMPORT_RESPONSE_TIMEOUT_MS, OUTAGE_MAX_MS, OUTAGE_SAID_AFTER_MS } from './limits.ts';

const OUTAGE_MAX_MINUTES = OUTAGE_MAX_MS / 60_000;
/** Errors of a service that is there but was interrupted; any other one on first contact is a wrong address. */
const MAY_PASS: readonly (string | undefined)[] = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT'];

/** Puts into words what goes wrong between `import` and the service. */
export class ServiceTrouble {
  readonly #address: ServiceAddress;
  readonly #say: (line: string) => void;
  #hasResponded = false;
  /** Since when tries fail and no row was settled, by `performance.now()`, and whether that was said. */
  #outage: { sinceMs: number; isSaid: boolean } | undefined;
  #limitSaid = false;

  constructor(address: ServiceAddress, say: (line: string) => void) {
    this.#address = address;
    this.#say = say;
  }

  /** A row is stored, or the service has rejected it. */
  settled(): void {
    this.#hasResponded = true;
    if (this.#outage?.isSaid) {
      const seconds = (performance.now() - this.#outage.sinceMs) / 1000;
      this.#say(`the service is back after ${seconds.toFixed(1)} s; going on`);
    }
    this.#outage = undefined;
  }

  /**
   * A try has failed and will be repeated. An outage is said once, and only after a second of it: a connection cut here and
   * there is not worth a line.
   *
   * @throws {Failure} when nothing has answered yet, and it is not worth waiting for
   */
  retried(error: PlantStoreError): void {
    const { status, code, message } = error;
    if (status !== undefined) this.#hasResponded = true;
    else if (!this.#hasResponded && !MAY_PASS.includes(code)) {
      const noService =
        `no service answers at ${this.#address.url} (${code}); start one with: npx plant-store serve, ` +
        'or give its address with --url';
      throw new Failure(takesNoHttp(code) ? message : noService);
    }
    if (status === 429) {
      if (!this.#limitSaid)
        this.#say('the service limits how many plants this token may send; going on at that rate');
      this.#limitSaid = true;
      return;
    }
    // Tried a few times only, so it is no outage.
    if (error.error === ERRORS.badHttp.number) return;
    const nowMs = performance.now();
    const sinceMs = nowMs - (code === 'ETIMEDOUT' ? IMPORT_RESPONSE_TIMEOUT_MS : 0);
    this.#outage ??= { sinceMs, isSaid: false };
    if (this.#outage.isSaid || nowMs - this.#outage.sinceMs < OUTAGE_SAID_AFTER_MS) return;
    this.#outage.isSaid = true;
    const waiting = `waiting for up to ${OUTAGE_MAX_MINUTES} minutes and trying again…`;
    this.#say(`the service ${whatItDoes(error)}; ${waiting}`);
  }

  failure(error: PlantStoreError): Failure {
    const { status, error: number, canRetry } = error;
    const message = this.shown(error.message);
    const { url } = this.#address;
    // 40000 was tried again in vain.
    if (canRetry && number !== ERRORS.badHttp.number) {
      return new Failure(
        `giving up: no plant could be stored for ${OUTAGE_MAX_MINUTES} minutes, for the service ${whatItDoes(error)}; ` +
          'what was stored before is kept, and running the import again is harmless',
      );
    }
    if (status === undefined) return new Failure(message);
    if (status === 401) {
      return new Failure(
        'the service refuses the token; make one for the store that it runs on, with: npx plant-store token create LABEL',
      );
    }
    if (number === undefined) return new Failure(`${url}: ${message}`);
    const question =
      status === 404 || status === 405
        ? 'is this the right --url?'
        : 'does a gateway before the service change requests?';
    return new Failure(`${url} answers ${status} (${message}); ${question}`);
  }

  /** What the service or a gateway said, fit for a terminal and for a file. */
  shown(message: string): string {
    return visible(withoutToken(message, this.#address.token));
  }
}

function whatItDoes({ status, code }: PlantStoreError): string {
  return status === undefined ? `does not answer (${code})` : `answers ${status}`;
}
