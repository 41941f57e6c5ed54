/**
 * Node's codes for a certificate that it does not trust, and what helps: OpenSSL's names
 * (https://nodejs.org/api/tls.html#x509-certificate-error-codes), and of Node's own those that begin with ERR_TLS_CERT.
 * An alert such as ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED is none of them: it is about the client's certificate.
 */
const ADVICE: readonly [codes: RegExp, advice: string][] = [
  [
    /SELF_SIGNED|ISSUER_CERT|LEAF_SIGNATURE|^CERT_UNTRUSTED/,
    'name the file with the certificate of its authority in NODE_EXTRA_CA_CERTS',
  ],
  [
    /^ERR_TLS_CERT_ALTNAME|^HOSTNAME/,
    'it is that of another name; give the address with the name that it is for',
  ],
  [
    /^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)/,
    'it is not valid today; ask who runs the service to renew it, unless the clock of this machine is wrong',
  ],
  [/^(?:CERT|CRL|ERROR_IN|INVALID|PATH_LENGTH|UNABLE_TO)_/, 'ask who runs the service to mend it'],
];

/** What to do where a certificate is not trusted. @returns undefined when the code of the network's error is another one */
export function untrustedCertificate(url: string, code: string | undefined): string | undefined {
  const [, advice] = ADVICE.find(([codes]) => codes.test(code ?? '')) ?? [];
  return advice && `the certificate of ${url} is not trusted (${code}); ${advice}`;
}
