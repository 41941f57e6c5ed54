import { type Clock, SYSTEM_CLOCK } from '../core/clock.ts';
import type { HeaderFields } from '../core/header-fields.ts';
import type { ReceivedRequest } from '../core/request.ts';
import { type HttpResponse, type RequestResult, STATUS_TEXTS } from '../core/response.ts';
import { type AllowedOrigins, crossOriginFields } from './cross-origin.ts';
import { KEEP_ALIVE_MS } from './timeouts.ts';

/** Header fields of every response, on both listeners: no content sniffing, no caching. */
export const COMMON_FIELDS = ['X-Content-Type-Options', 'nosniff', 'Cache-Control', 'no-store'];

const CLOSE = [...COMMON_FIELDS, 'Connection', 'close'];
const KEEP_ALIVE_TIMEOUT = ['Keep-Alive', `timeout=${KEEP_ALIVE_MS / 1000}`];
const KEEP_ALIVE = [...COMMON_FIELDS, 'Connection', 'keep-alive', ...KEEP_ALIVE_TIMEOUT];
const NO_FIELDS: HeaderFields = [];

/**
 * The fields that all responses of a second share, such as Date (RFC 9110 section 6.6.1), and the
 * empty line. `close` is for responses after which the connection ends.
 */
interface FinalFields {
  close: string;
  keepAlive: string;
}

/** The fields that lead from an error response to its help on a page. */
export type HelpFields = Partial<Record<RequestResult, HeaderFields>>;

/** Makes the header sections of the responses of one server. */
export class ResponseHeaders {
  readonly #helpFields: HelpFields;
  readonly #corsOrigins: AllowedOrigins | undefined;
  readonly #clock: Clock;
  #final: FinalFields | undefined;

  /** @param corsOrigins origins whose pages may read responses; undefined: only the own origin */
  constructor(helpFields: HelpFields = {}, corsOrigins?: AllowedOrigins, clock: Clock = SYSTEM_CLOCK) {
    this.#helpFields = helpFields;
    this.#corsOrigins = corsOrigins;
    this.#clock = clock;
  }

  /**
   * The status line and the header section of a response, as sent on the wire.
   *
   * @param isLast whether the connection ends after it
   * @param request undefined if the received bytes were no request
   */
  textOf(
    { result, status, fields }: Omit<HttpResponse, 'body'>,
    isLast: boolean,
    request?: ReceivedRequest,
  ): string {
    const help = this.#helpFields[result] ?? NO_FIELDS;
    const crossOrigin = this.#crossOriginFields(request);
    const { close, keepAlive } = this.#finalFields();
    return `HTTP/1.1 ${status} ${STATUS_TEXTS[status]}\r\n${fieldsText(fields)}${fieldsText(help)}${fieldsText(crossOrigin)}${isLast ? close : keepAlive}`;
  }

  #crossOriginFields(request: ReceivedRequest | undefined): HeaderFields {
    if (this.#corsOrigins === undefined || request === undefined) return NO_FIELDS;
    return crossOriginFields(this.#corsOrigins, request.headers.fields);
  }

  /** Makes the fields at most once per second. */
  #finalFields(): FinalFields {
    if (this.#final === undefined) {
      const now = new Date(this.#clock.wallNow());
      const textOf = (fields: string[]) => `${fieldsText(['Date', now.toUTCString(), ...fields])}\r\n`;
      this.#final = { close: textOf(CLOSE), keepAlive: textOf(KEEP_ALIVE) };
      this.#clock.setTimer(() => (this.#final = undefined), 1000 - now.getMilliseconds(), false);
    }
    return this.#final;
  }
}

function fieldsText(fields: HeaderFields): string {
  let text = '';
  for (let index = 0; index < fields.length; index += 2) text += `${fields[index]}: ${fields[index + 1]}\r\n`;
  return text;
}
