import { RESPONSE_BYTES_MAX, RESPONSE_BYTES_PER_CHARACTER } from './limits.ts';

/** An HTTP answer that has arrived whole. */
export interface HttpResponse {
  status: number;
  /** By their names in lower case; the values of a repeated one are joined by commas. */
  headers: Readonly<Record<string, string | undefined>>;
  body: string;
}

/** A request that was sent once. */
export interface Post {
  /**
   * Redirects are not followed.
   *
   * @throws {NoAnswer} when it does not arrive whole
   * @throws the reason for which it was abandoned
   */
  readonly response: Promise<HttpResponse>;
  /** Gives it up before it is answered. @param reason what whoever waits for the answer gets as an error */
  abandon(reason: unknown): void;
}

/** Carries requests of one client to one service. */
export interface Transport {
  post(body: string): Post;
  /** Cuts the connections. What was not answered fails, and so does all that is sent from then on. */
  close(): void;
}

export interface TransportSettings {
  url: URL;
  token: string;
  /** How long to wait for one answer, from when it is the next one to come. */
  responseTimeoutMs: number;
}

/** Whether it is an http or https address without user name, password, ? and #. */
export function isBaseUrl({ protocol, username, password, search, hash }: URL): boolean {
  return ['http:', 'https:'].includes(protocol) && `${username}${password}${search}${hash}` === '';
}

/** The address of the operation. @param base address of the service, with or without a / at its end */
export function plantsUrl(base: URL): URL {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/plants`;
  // A bare ? or # is not part of either, and would stay.
  url.search = '';
  url.hash = '';
  return url;
}

/**
 * The most that is read of the answer to a request, in bytes: a plant store repeats the plant, or says what is wrong
 * with it.
 */
export function responseBytesMax(request: string): number {
  return RESPONSE_BYTES_MAX + RESPONSE_BYTES_PER_CHARACTER * request.length;
}

/** No whole answer came; whether the request was taken is not known. */
export class NoResponse extends Error {
  /**
   * Of the network's error, such as `ECONNREFUSED`; `ETIMEDOUT` when it took too long, `EPROTO` for what is no HTTP,
   * `ECONNABORTED` when the client was closed; undefined where the runtime tells none, as a browser.
   */
  readonly code: string | undefined;

  constructor(code: string | undefined, cause?: unknown) {
    super('no answer', { cause });
    this.code = code;
  }
}

/**
 * Whether something listens there, but what came of it is no HTTP, or the handshake of TLS failed.
 *
 * @param code of the network's error; those of Node's own client for HTTP begin with HPE
 */
export function takesNoHttp(code: string | undefined): boolean {
  return /^(?:EPROTO$|ERR_SSL_|HPE_)/.test(code ?? '');
}
