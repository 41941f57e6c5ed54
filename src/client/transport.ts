/** A POST of one plant. */
export interface HttpRequest {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** A longer body of the response is cut. */
  responseBytesMax: number;
}

export interface ReceivedResponse {
  status: number;
  /** By lower-case name. The values of a repeated header are joined by commas. */
  headers: Readonly<Record<string, string | undefined>>;
  body: string;
}

/**
 * Sends a request, and resolves when the response is complete. It follows no redirect. It rejects
 * with the network error (its `code` is such as `ECONNREFUSED`), or with an error caused by it.
 */
export type Transport = (request: HttpRequest, signal: AbortSignal) => Promise<ReceivedResponse>;

/** Whether it is an http or https address without user name, password, ? and #. */
export function isBaseUrl({ protocol, username, password, search, hash }: URL): boolean {
  return ['http:', 'https:'].includes(protocol) && `${username}${password}${search}${hash}` === '';
}

/** The address of `POST /plants`. @param base with or without a final slash */
export function plantsUrl(base: URL): URL {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/plants`;
  // URL reports a bare ? or # as an empty string, but keeps it in href.
  url.search = '';
  url.hash = '';
  return url;
}

/**
 * Whether the server accepted the connection, but did not respond with HTTP or failed the TLS
 * handshake. Codes of Node's HTTP clients begin with HPE.
 */
export function isProtocolError(code: string | undefined): boolean {
  return /^(?:EPROTO$|ERR_SSL_|HPE_)/.test(code ?? '');
}

/**
 * Codes of https://nodejs.org/api/tls.html#x509-certificate-error-codes and Node's own. TLS alerts
 * (`ERR_SSL_…`) about the client's certificate do not belong here.
 */
const UNTRUSTED =
  /SELF_SIGNED|ISSUER_CERT|LEAF_SIGNATURE|^(?:CERT|CRL|ERR_TLS_CERT|ERROR_IN|HOSTNAME|INVALID|PATH_LENGTH|UNABLE_TO)_/;

/** The message for an untrusted certificate; undefined if the network error is another one. */
export function untrustedCertificate(url: string, code: string | undefined): string | undefined {
  if (!UNTRUSTED.test(code ?? '')) return undefined;
  return `the certificate of ${url} is not trusted (${code}); for a private authority, set NODE_EXTRA_CA_CERTS to the file with its certificate`;
}
