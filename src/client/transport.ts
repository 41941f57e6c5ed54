import { RESPONSE_BYTES_MAX, RESPONSE_BYTES_PER_CHARACTER } from './limits.ts';

/** A complete HTTP response. */
export interface HttpResponse {
  status: number;
  /** By lower-case name. The values of a repeated header are joined by commas. */
  headers: Readonly<Record<string, string | undefined>>;
  body: string;
}

/** One HTTP request. */
export interface Post {
  /**
   * Redirects are not followed.
   *
   * @throws {NoResponse} when no complete response arrives
   * @throws the reason of `abandon`
   */
  readonly response: Promise<HttpResponse>;
  /** Stops waiting for the response. @param reason the error with which `response` rejects */
  abandon(reason: unknown): void;
}

/** Carries the requests of one client to one service. */
export interface Transport {
  post(body: string): Post;
  /** Closes the connections. Requests in flight and later requests fail. */
  close(): void;
}

export interface TransportSettings {
  url: URL;
  token: string;
  /** Timeout for one response, from when it is the next one on its connection. */
  responseTimeoutMs: number;
}

/** Whether it is an http or https address without user name, password, ? and #. */
export function isBaseUrl({ protocol, username, password, search, hash }: URL): boolean {
  return ['http:', 'https:'].includes(protocol) && `${username}${password}${search}${hash}` === '';
}

/**
 * The address of `POST /plants`.
 *
 * @param base address of the service, with or without a final slash
 */
export function plantsUrl(base: URL): URL {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/plants`;
  // URL reports a bare ? or # as an empty string, but keeps it in href.
  url.search = '';
  url.hash = '';
  return url;
}

/** Most bytes read of a response: a plant store repeats the plant, or describes its errors. */
export function responseBytesMax(request: string): number {
  return RESPONSE_BYTES_MAX + RESPONSE_BYTES_PER_CHARACTER * request.length;
}

/** No complete response arrived. The service may have processed the request. */
export class NoResponse extends Error {
  /**
   * Code of the network error, such as `ECONNREFUSED`; `ETIMEDOUT` after a timeout, `EPROTO` when
   * the bytes are not HTTP, `ECONNABORTED` when the client was closed. Undefined in browsers, which
   * give none.
   */
  readonly code: string | undefined;

  constructor(code: string | undefined, cause?: unknown) {
    super('no response', { cause });
    this.code = code;
  }
}

/**
 * Whether a server accepted the connection, but did not respond with HTTP or failed the TLS
 * handshake.
 *
 * @param code of the network error; codes of Node's own HTTP client begin with HPE
 */
export function isProtocolError(code: string | undefined): boolean {
  return /^(?:EPROTO$|ERR_SSL_|HPE_)/.test(code ?? '');
}
