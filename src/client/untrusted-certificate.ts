/**
 * Codes of https://nodejs.org/api/tls.html#x509-certificate-error-codes and Node's own, and how to
 * fix each. TLS alerts (`ERR_SSL_…`) about the client's certificate do not belong here.
 */
const ADVICE: readonly [codes: RegExp, advice: string][] = [
  [
    /SELF_SIGNED|ISSUER_CERT|LEAF_SIGNATURE|^CERT_UNTRUSTED/,
    'set NODE_EXTRA_CA_CERTS to the file with the certificate of its authority',
  ],
  [
    /^ERR_TLS_CERT_ALTNAME|^HOSTNAME/,
    'it is for another host name; use the host name that it is for in the address',
  ],
  [
    /^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)/,
    'it is expired or not valid yet; ask the operator to renew it, or set the clock of this machine right',
  ],
  [/^(?:CERT|CRL|ERROR_IN|INVALID|PATH_LENGTH|UNABLE_TO)_/, 'ask the operator of the service to replace it'],
];

/** What to do about an untrusted certificate; undefined if the network error is another one. */
export function untrustedCertificate(url: string, code: string | undefined): string | undefined {
  const [, advice] = ADVICE.find(([codes]) => codes.test(code ?? '')) ?? [];
  return advice && `the certificate of ${url} is not trusted (${code}); ${advice}`;
}
