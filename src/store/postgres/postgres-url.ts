import { StoreRefused } from '../plant-store.ts';

/** How a connection is protected; the names and what they mean are libpq's, section 34.19 of its manual. */
export const TLS_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
export type TlsMode = (typeof TLS_MODES)[number];

/** In place of the file of root certificates: those that this machine trusts. */
export const SYSTEM_ROOTS = 'system';

export interface HostAddress {
  /** A name, an IP address, or the folder of a Unix socket, which begins with a slash. */
  host: string;
  port: number;
}

/** Where a PostgreSQL store is, and how it is talked to. */
export interface PostgresAddress {
  /** One or more; whichever takes writes is used. */
  hosts: HostAddress[];
  database: string;
  user: string;
  /** Undefined: from PGPASSFILE or ~/.pgpass, if the server asks for one. */
  password: string | undefined;
  tlsMode: TlsMode;
  /** Paths of PEM files; the first may be {@link SYSTEM_ROOTS}. */
  rootCertificateFile: string | undefined;
  certificateFile: string | undefined;
  keyFile: string | undefined;
  applicationName: string;
  connectWaitMs: number | undefined;
  /** Settings of the server for this connection, as `-c name=value`. */
  options: string | undefined;
}

const SCHEME = /^postgres(?:ql)?:\/\//;
const FORM = 'postgres://USER@HOST:PORT/DATABASE';
const PORT_DEFAULT = '5432';
const PORT = /^[1-9][0-9]{0,4}$/;
/**
 * What stands before the last `@`, hosts, database, parameters. Nowhere behind the hosts is there an `@`: with a `/` or
 * `?` in it that is not encoded, the rest of a password would stand there, and be taken for something that is shown.
 */
const PARTS = /^(?:([^/?]*)@)?([^@/?]*)(?:\/([^@/?]*))?(?:\?([^@]*))?$/s;
const HOST = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]*))(?::([0-9]{1,5}))?$/;

export function isPostgresUrl(text: string): boolean {
  return SCHEME.test(text);
}

/**
 * Reads the address of a PostgreSQL store, a connection URI as libpq has it (its manual, section 34.1.1.2), several
 * hosts included.
 *
 * @param text `postgres://user:password@host1:5432,host2:5432/database?sslmode=verify-full`
 * @throws {StoreRefused} says what is wrong and repeats nothing that may be a password
 */
export function postgresAddressOf(text: string): PostgresAddress {
  const parts = PARTS.exec(text.replace(SCHEME, ''));
  if (parts === null) {
    throw refused(
      `is not ${FORM}; write @, /, ? and % within the user, the password or a parameter as %40, %2F, %3F and %25`,
    );
  }
  const [, credentials = '', hosts = '', database = '', query = ''] = parts;
  const [, user = '', password = ''] = /^([^:]*)(?::(.*))?$/s.exec(credentials)!;
  if (user.includes('@')) throw refused('has an @ in the user; write it as %40');
  const parameters = parametersOf(query);
  const take = (name: ParameterName): string | undefined => parameters.get(name);
  const address: PostgresAddress = {
    hosts: hostsOf(
      hosts === '' ? (take('host') ?? 'localhost') : decoded(hosts, 'the host'),
      take('port') ?? PORT_DEFAULT,
    ),
    database: decoded(database, 'the database') || (take('dbname') ?? ''),
    user: decoded(user, 'the user') || (take('user') ?? ''),
    password: decoded(password, 'the password') || take('password') || undefined,
    tlsMode: tlsModeOf(take('sslmode') ?? (take('sslrootcert') === SYSTEM_ROOTS ? 'verify-full' : 'prefer')),
    rootCertificateFile: take('sslrootcert'),
    certificateFile: take('sslcert'),
    keyFile: take('sslkey'),
    applicationName: take('application_name') ?? 'plant-store',
    connectWaitMs: connectWaitOf(take('connect_timeout')),
    options: take('options'),
  };
  checkAddress(address, take('target_session_attrs'));
  return address;
}

/** The address for logs and messages: all but the password and the parameters. */
export function shownPostgresAddress({ user, hosts, database }: PostgresAddress): string {
  const shownHosts = hosts.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`);
  return `postgres://${user}@${shownHosts.join(',')}/${database}`;
}

const PARAMETERS = [
  'host',
  'port',
  'user',
  'password',
  'dbname',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'application_name',
  'connect_timeout',
  'options',
  'target_session_attrs',
] as const;
type ParameterName = (typeof PARAMETERS)[number];

function parametersOf(query: string): Map<string, string> {
  const parameters = new Map<string, string>();
  for (const [index, pair] of query.split('&').filter(Boolean).entries()) {
    const [, name = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(pair)!;
    const key = decoded(name, 'the name of a parameter');
    if (!PARAMETERS.includes(key as ParameterName)) {
      // Not repeated: with a ? or & in it that was not encoded, it may be the rest of a password.
      throw refused(`has an unknown parameter, number ${index + 1}; known are ${PARAMETERS.join(', ')}`);
    }
    // An empty one, as a password that was left out, may be given further on.
    if (parameters.get(key)) throw refused(`has the parameter ${key} twice`);
    parameters.set(key, decoded(value, `the parameter ${key}`));
  }
  return parameters;
}

/** @param portDefault for those that name none; a folder of sockets cannot name one */
function hostsOf(text: string, portDefault: string): HostAddress[] {
  return text.split(',').map(each => {
    const [, literal, name, port = portDefault] = each.startsWith('/') ? [] : (HOST.exec(each) ?? []);
    const host = each.startsWith('/') ? each : (literal ?? name ?? '');
    if (host === '' || !PORT.test(port) || Number(port) > 65_535) {
      // Not repeated: with a slash in it that was not written as %2F, a password ends up here.
      throw refused(
        'names a host that is none; write HOST:PORT,HOST:PORT, and a / in user or password as %2F',
      );
    }
    return { host, port: Number(port) };
  });
}

function tlsModeOf(text: string): TlsMode {
  const mode = TLS_MODES.find(each => each === text);
  if (mode === undefined) throw refused(`has an unknown sslmode; known are ${TLS_MODES.join(', ')}`);
  return mode;
}

function connectWaitOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seconds = Number(text);
  if (!/^[0-9]{1,3}$/.test(text) || seconds < 1) {
    throw refused('has a connect_timeout that is no whole number of seconds from 1 to 999');
  }
  return seconds * 1_000;
}

function checkAddress(address: PostgresAddress, sessionAttributes: string | undefined): void {
  if (address.database === '') throw refused(`names no database; write ${FORM}`);
  if (address.user === '') throw refused(`names no user; write ${FORM}`);
  if (sessionAttributes !== undefined && sessionAttributes !== 'read-write') {
    throw refused(
      'asks for other target_session_attrs than read-write; a plant store needs a host that takes writes',
    );
  }
  const verifies = address.tlsMode.startsWith('verify-');
  if (address.rootCertificateFile === SYSTEM_ROOTS && address.tlsMode !== 'verify-full') {
    // Anyone can have a certificate that is trusted here; only the host name tells them apart. libpq does the same.
    throw refused('has sslrootcert=system with a weaker sslmode than verify-full; use that');
  }
  if (verifies && address.rootCertificateFile === undefined) {
    throw refused(`has sslmode=${address.tlsMode} without sslrootcert; name a file with it, or \`system\``);
  }
  if ((address.certificateFile === undefined) !== (address.keyFile === undefined)) {
    throw refused('has one of sslcert and sslkey without the other');
  }
}

function decoded(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refused(
      `has a % in ${what} that is not followed by two hexadecimal digits of UTF-8; write % as %25`,
    );
  }
}

function refused(what: string): StoreRefused {
  return new StoreRefused(`the postgres:// address of the store ${what}`);
}
