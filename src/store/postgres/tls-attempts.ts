import { readFileSync } from 'node:fs';
import {
  type ConnectionOptions,
  createSecureContext,
  getCACertificates,
  setDefaultCACertificates,
} from 'node:tls';
import { StoreRefused } from '../plant-store.ts';
import { sqlStateOf, TlsFailed } from './failure.ts';
import { type HostAddress, type PostgresAddress, SYSTEM_ROOTS } from './postgres-url.ts';

/** How one attempt to connect is protected; false: not at all. */
export type TlsAttempt = ConnectionOptions | false;

/**
 * What is tried in turn: libpq's modes `allow` and `prefer` have a second choice (its manual, section 34.19).
 *
 * @throws {StoreRefused} when a file that the address names cannot be used
 */
export function tlsAttempts(address: PostgresAddress, { host }: HostAddress): [TlsAttempt, TlsAttempt?] {
  const { tlsMode, rootCertificateFile, certificateFile, keyFile } = address;
  // libpq never uses TLS over a Unix socket.
  if (tlsMode === 'disable' || host.startsWith('/')) return [false];
  if (rootCertificateFile === SYSTEM_ROOTS) trustSystemRoots();
  const ca = rootCertificateFile === SYSTEM_ROOTS ? undefined : pem(rootCertificateFile, 'sslrootcert');
  const options: ConnectionOptions = {
    secureContext: secureContext(ca, pem(certificateFile, 'sslcert'), pem(keyFile, 'sslkey')),
    // With a root certificate `require` verifies as `verify-ca` does, as in libpq.
    rejectUnauthorized: rootCertificateFile !== undefined,
  };
  if (tlsMode !== 'verify-full') options.checkServerIdentity = () => undefined;
  if (tlsMode === 'allow') return [false, options];
  return tlsMode === 'prefer' ? [options, false] : [options];
}

/** Whether the second choice is worth a try after the first failed so. */
export function isAboutTls(error: unknown): boolean {
  // 28000: pg_hba.conf has no entry for a connection with, or without, TLS.
  return error instanceof TlsFailed || sqlStateOf(error) === '28000';
}

/** Node's, OpenSSL's, and those of https://nodejs.org/api/tls.html#x509-certificate-error-codes. */
const TLS_CODE =
  /^(?:EPROTO$|ERR_(?:TLS|SSL|OSSL)_|CERT_|CRL_|ERROR_IN_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|INVALID_|PATH_LENGTH_|HOSTNAME_)/;

/**
 * Tells failures of TLS from others.
 *
 * @param error of an attempt with TLS
 * @param firstByte that the server answered; `N`: it has no TLS
 *   (https://www.postgresql.org/docs/current/protocol-flow.html, section 54.2.10)
 */
export function tlsFailure(error: unknown, firstByte: string): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (firstByte === 'N') return new TlsFailed('the server does not offer TLS', { cause: error });
  // What the server says over TLS has an SQLSTATE, which looks like none of these.
  if (!TLS_CODE.test(code ?? '')) return error;
  return new TlsFailed(`the TLS connection failed: ${message}`, { cause: error });
}

let systemRootsAreTrusted = false;

/** Those of the system beside those of Node; once, since it takes longer than a connection. */
function trustSystemRoots(): void {
  if (systemRootsAreTrusted) return;
  setDefaultCACertificates([...getCACertificates('default'), ...getCACertificates('system')]);
  systemRootsAreTrusted = true;
}

function secureContext(
  ca: string | undefined,
  cert: string | undefined,
  key: string | undefined,
): NonNullable<ConnectionOptions['secureContext']> {
  try {
    return createSecureContext({ ca, cert, key });
  } catch (error) {
    throw new StoreRefused(
      `the files that sslrootcert, sslcert and sslkey name do not hold what they should (${(error as Error).message}); they must be PEM, and the key without a passphrase and that of the certificate`,
      { cause: error },
    );
  }
}

function pem(file: string | undefined, parameter: string): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new StoreRefused(
      `the file that ${parameter} names cannot be read (${(error as Error).message}); check the address of the store`,
      { cause: error },
    );
  }
}
