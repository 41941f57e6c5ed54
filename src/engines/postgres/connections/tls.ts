import { readFileSync } from 'node:fs';
import {
  type ConnectionOptions,
  createSecureContext,
  getCACertificates,
  setDefaultCACertificates,
} from 'node:tls';
import { StoreRejected } from '../../../core/commit/store-errors.ts';
import { sqlStateOf, TlsFailed } from '../postgres-errors.ts';
import { type HostAddress, type PostgresAddress, SYSTEM_ROOTS } from '../postgres-url.ts';

/** @returns false for no TLS. @throws {StoreRejected} if a file of the address cannot be used */
export function tlsOptions(address: PostgresAddress, { host }: HostAddress): ConnectionOptions | false {
  const { tlsMode, rootCertificateFile } = address;
  // libpq never uses TLS over a Unix socket.
  if (tlsMode === 'disable' || host.startsWith('/')) return false;
  if (rootCertificateFile === SYSTEM_ROOTS) trustSystemRoots();
  const options: ConnectionOptions = {
    secureContext: secureContext(address),
    // As in libpq, `require` with a root certificate verifies like `verify-ca`.
    rejectUnauthorized: rootCertificateFile !== undefined,
  };
  if (tlsMode !== 'verify-full') options.checkServerIdentity = () => undefined;
  return options;
}

/** Whether a connection with `sslmode=prefer` is tried again without TLS. */
export function isAboutTls(error: unknown): boolean {
  // 28000: pg_hba.conf rejects connections with TLS.
  return error instanceof TlsFailed || sqlStateOf(error) === '28000';
}

/**
 * The message of pg 8.23.1 (`lib/connection.js`) when the server offers no TLS. The error has no
 * code. test/engines/postgres/postgres-opening.test.ts finds another text.
 */
const TLS_NOT_OFFERED = 'The server does not support SSL connections';
/** Codes of Node and OpenSSL, and https://nodejs.org/api/tls.html#x509-certificate-error-codes. */
const TLS_CODE =
  /^(?:EPROTO$|ERR_(?:TLS|SSL|OSSL)_|CERT_|CRL_|ERROR_IN_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|INVALID_|PATH_LENGTH_|HOSTNAME_)/;

/** Makes a {@link TlsFailed} of an error about TLS. Returns any other error as it is. */
export function tlsFailure(error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (message === TLS_NOT_OFFERED) return new TlsFailed('the server does not offer TLS', { cause: error });
  // No SQLSTATE, which the server may send over TLS, matches this expression.
  if (!TLS_CODE.test(code ?? '')) return error;
  return new TlsFailed(`the TLS connection failed: ${message}`, { cause: error });
}

let systemRootsAreTrusted = false;

/** Adds the root certificates of the system to those of Node, only once, because it is slow. */
function trustSystemRoots(): void {
  if (systemRootsAreTrusted) return;
  setDefaultCACertificates([...getCACertificates('default'), ...getCACertificates('system')]);
  systemRootsAreTrusted = true;
}

function secureContext(address: PostgresAddress): NonNullable<ConnectionOptions['secureContext']> {
  const { rootCertificateFile, certificateFile, keyFile } = address;
  const pem = (file: string | undefined): string | undefined =>
    file === undefined || file === SYSTEM_ROOTS ? undefined : readFileSync(file, 'utf8');
  try {
    return createSecureContext({
      ca: pem(rootCertificateFile),
      cert: pem(certificateFile),
      key: pem(keyFile),
    });
  } catch (error) {
    throw new StoreRejected(
      `the files that sslrootcert, sslcert and sslkey name cannot be used (${(error as Error).message})`,
      {
        advice:
          'they must be readable PEM files, and the key must match the certificate and have no passphrase',
        cause: error,
      },
    );
  }
}
