/**
 * Node's codes for a certificate that it does not trust, and what helps: OpenSSL's names
 * (https://nodejs.org/api/tls.html#x509-certificate-error-codes), and of Node's own those that begin with ERR_TLS_CERT.
 * An alert such as ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED is none of them: it is about the client's certificate.
 */
const ADVICE: readonly [codes: RegExp, advice: string][] = [
  [
    /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT(?:_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_UNTRUSTED)$/,
    'name the file with the certificate of its authority in NODE_EXTRA_CA_CERTS',
  ],
  [
    /^(?:ERR_TLS_CERT_ALTNAME_\w+|HOSTNAME_MISMATCH)$/,
    'it is that of another name; give the address with the name that it is for',
  ],
  [
    /^(?:CERT_HAS_EXPIRED|CERT_NOT_YET_VALID)$/,
    'it is not valid today; ask who runs the service to renew it, unless the clock of this machine is wrong',
  ],
  [
    /^(?:(?:CERT|CRL|INVALID|ERROR_IN|PATH_LENGTH|UNABLE_TO_(?:GET_CRL|DECRYPT|DECODE))(?:_\w+)?)$/,
    'ask who runs the service to mend it',
  ],
];

/**
 * Says that the certificate of a service is not trusted, and what to do.
 *
 * @param url of the operation
 * @param code of the network's error
 * @returns undefined when that is about something else
 */
export function untrustedCertificate(url: string, code: string | undefined): string | undefined {
  const [, advice] = ADVICE.find(([codes]) => codes.test(code ?? '')) ?? [];
  return advice && `the certificate of ${url} is not trusted (${code}); ${advice}`;
}
