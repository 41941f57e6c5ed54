import { InvalidDatabaseUrl } from '../invalid-database-url.ts';

/** Timeout to connect to one host and to authenticate. The default of `connect_timeout`. */
export const CONNECT_TIMEOUT_MS = 1_500;
/** The default for the first connection of a service, which cannot start without a connection. */
export const START_TIMEOUT_MS = 60_000;

/** The values of sslmode, with their meaning in libpq (section 34.19 of its manual). */
export const TLS_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
export type TlsMode = (typeof TLS_MODES)[number];

/** `require`: the server must prove that it terminates TLS, and knows the password. */
const CHANNEL_BINDINGS = ['disable', 'prefer', 'require'] as const;
type ChannelBinding = (typeof CHANNEL_BINDINGS)[number];

/** The value of sslrootcert for the root certificates that the operating system trusts. */
export const SYSTEM_ROOTS = 'system';

export interface HostAddress {
  /** A name, an IP address, or the absolute path of the directory of a Unix socket. */
  host: string;
  port: number;
}

/** The name of a server in messages. */
export function hostName({ host, port }: HostAddress): string {
  return `${host}:${port}`;
}

export interface PostgresAddress {
  /** At least one. */
  hosts: HostAddress[];
  database: string;
  user: string;
  /** If it is undefined, it comes from PGPASSFILE or ~/.pgpass, should the server require one. */
  password: string | undefined;
  tlsMode: TlsMode;
  /** The path of a PEM file, as the next two are, or {@link SYSTEM_ROOTS}. */
  rootCertificateFile: string | undefined;
  certificateFile: string | undefined;
  keyFile: string | undefined;
  channelBinding: ChannelBinding;
  applicationName: string;
  /** It is undefined if the URL gives none. */
  connectTimeoutMs: number | undefined;
  /** The servers of Citus to which plants are sent. Without Citus it does not matter. */
  citus: CitusRoute;
  /** Server settings for this connection, as `-c name=value`. */
  options: string | undefined;
}

/** `coordinator`: for a cluster whose workers cannot be reached from here. */
const CITUS_ROUTES = ['workers', 'coordinator'] as const;
type CitusRoute = (typeof CITUS_ROUTES)[number];

/** The parameters and their values, those of libpq and `citus`; docs/scale.md describes them. */
const PARAMETERS = {
  host: [/./, 'a host'],
  port: [/^[1-9][0-9]{0,4}(?:,[1-9][0-9]{0,4})*$/, 'a number from 1 to 65535, or one for each host'],
  password: [/^/, 'a password'],
  sslmode: [new RegExp(`^(?:${TLS_MODES.join('|')})$`), `one of ${TLS_MODES.join(', ')}`],
  sslrootcert: [/./, 'a file or system'],
  sslcert: [/./, 'a file'],
  sslkey: [/./, 'a file'],
  channel_binding: [
    new RegExp(`^(?:${CHANNEL_BINDINGS.join('|')})$`),
    `one of ${CHANNEL_BINDINGS.join(', ')}`,
  ],
  citus: [new RegExp(`^(?:${CITUS_ROUTES.join('|')})$`), `one of ${CITUS_ROUTES.join(', ')}`],
  connect_timeout: [/^[1-9][0-9]{0,2}$/, 'a whole number of seconds from 1 to 999'],
  options: [/^/, 'server settings'],
  application_name: [/^/, 'a name'],
  target_session_attrs: [/^read-write$/, 'read-write, since a plant store needs a host that accepts writes'],
} as const;
type ParameterName = keyof typeof PARAMETERS;
const PARAMETER_NAMES = Object.keys(PARAMETERS) as ParameterName[];

export const POSTGRES_SCHEME = /^postgres(?:ql)?:\/\//;
const FORM = 'postgres://USER@HOST:PORT/DATABASE';
const PORT_DEFAULT = '5432';
const PORT = /^[1-9][0-9]{0,4}$/;
/** No `@` may follow the hosts: the rest of a password with an unencoded `/` would be shown. */
const PARTS = /^(?:([^/?]*)@)?([^@/?]*)(?:\/([^@/?]*))?(?:\?([^@]*))?$/s;
const HOST = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]*))(?::([0-9]{1,5}))?$/;

/**
 * Parses a connection URI of libpq (section 34.1.1.2 of its manual):
 * `postgres://user:password@host1:5432,host2:5432/database?sslmode=verify-full`. As in libpq, a
 * parameter replaces what the URI says before it.
 *
 * `pg-connection-string`, the parser of pg, differs from libpq. It knows no list of ports, cuts a
 * password at `#`, and reads `+` as a blank. It ignores a second value, and accepts an invalid `%`.
 * It opens the files of `sslcert`, `sslkey` and `sslrootcert`, even `system`.
 *
 * @throws {InvalidDatabaseUrl}
 */
export function postgresAddressOf(text: string): PostgresAddress {
  const parts = PARTS.exec(text.replace(POSTGRES_SCHEME, ''));
  if (parts === null) {
    throw invalidUrl(
      `is not ${FORM}`,
      'write @, /, ? and % within the user, the password or a parameter as %40, %2F, %3F and %25',
    );
  }
  const [, credentials = '', hosts = '', database = '', query = ''] = parts;
  const [, user = '', password = ''] = /^([^:]*)(?::(.*))?$/s.exec(credentials)!;
  if (user.includes('@')) throw invalidUrl('has an @ in the user', 'write it as %40');
  const given = parametersOf(query);
  const address: PostgresAddress = {
    hosts: hostsOf(given.host ?? (decoded(hosts, 'the host') || 'localhost'), given.port),
    database: decoded(database, 'the database'),
    user: decoded(user, 'the user'),
    password: given.password || decoded(password, 'the password') || undefined,
    tlsMode: (given.sslmode ?? (given.sslrootcert === SYSTEM_ROOTS ? 'verify-full' : 'prefer')) as TlsMode,
    rootCertificateFile: given.sslrootcert,
    certificateFile: given.sslcert,
    keyFile: given.sslkey,
    channelBinding: (given.channel_binding ?? 'disable') as ChannelBinding,
    applicationName: given.application_name ?? 'plant-store',
    connectTimeoutMs: given.connect_timeout ? Number(given.connect_timeout) * 1_000 : undefined,
    citus: (given.citus ?? 'workers') as CitusRoute,
    options: given.options,
  };
  validateAddress(address);
  return address;
}

/** The address for logs and messages, without password and parameters. */
export function shownPostgresAddress({ user, hosts, database }: PostgresAddress): string {
  const shownHosts = hosts.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`);
  return `postgres://${user}@${shownHosts.join(',')}/${database}`;
}

function parametersOf(query: string): Partial<Record<ParameterName, string>> {
  const given: Partial<Record<ParameterName, string>> = {};
  for (const [index, pair] of query.split('&').filter(Boolean).entries()) {
    const [, encodedName = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(pair)!;
    const text = decoded(encodedName, 'the name of a parameter');
    const name = PARAMETER_NAMES.find(each => each === text);
    if (name === undefined) {
      // A name after a password may be the rest of the password, behind an unencoded &.
      const isShown = given.password === undefined && /^\w{1,40}$/.test(text);
      const which = isShown ? `the parameter ${text}` : `an unknown parameter, number ${index + 1}`;
      throw invalidUrl(`has ${which}, which is not supported`, `known are ${PARAMETER_NAMES.join(', ')}`);
    }
    // A second value is accepted after an empty one, such as an empty password.
    if (given[name]) throw invalidUrl(`has the parameter ${name} twice`);
    const [pattern, meaning] = PARAMETERS[name];
    const decodedValue = decoded(value, `the parameter ${name}`);
    if (!pattern.test(decodedValue)) throw invalidUrl(`has an invalid ${name}`, `it must be ${meaning}`);
    given[name] = decodedValue;
  }
  return given;
}

/** @param ports one for all hosts, or one for each; undefined: those in the text */
function hostsOf(text: string, ports?: string): HostAddress[] {
  const hosts = text.split(',');
  const given = ports?.split(',') ?? [];
  if (given.length > 1 && given.length !== hosts.length)
    throw invalidUrl(
      `gives ${given.length} ports, but names ${hosts.length === 1 ? '1 host' : `${hosts.length} hosts`}`,
      'give one port, or one for each host',
    );
  return hosts.map((each, index) => {
    const [, literal, name, own = PORT_DEFAULT] = HOST.exec(each) ?? [];
    const host = literal ?? name ?? '';
    const port = given[index] ?? given[0] ?? own;
    if (host === '' || !PORT.test(own) || Number(port) > 65_535) {
      // The message does not repeat the host, because it may be part of a password with a slash.
      throw invalidUrl(
        'has an invalid host',
        'write HOST:PORT,HOST:PORT, and a / in user or password as %2F',
      );
    }
    return { host, port: Number(port) };
  });
}

function validateAddress(address: PostgresAddress): void {
  const { tlsMode, rootCertificateFile, certificateFile, keyFile } = address;
  if (address.database === '') throw invalidUrl('names no database', `write ${FORM}`);
  if (address.user === '') throw invalidUrl('names no user', `write ${FORM}`);
  if (rootCertificateFile === SYSTEM_ROOTS && tlsMode !== 'verify-full') {
    // Anyone can get a trusted certificate, so the host name must be checked, as in libpq.
    throw invalidUrl('has sslrootcert=system with a weaker sslmode than verify-full', 'use that');
  }
  if (tlsMode.startsWith('verify-') && rootCertificateFile === undefined) {
    throw invalidUrl(`has sslmode=${tlsMode} without sslrootcert`, 'name a file with it, or `system`');
  }
  if ((certificateFile === undefined) !== (keyFile === undefined)) {
    throw invalidUrl('has one of sslcert and sslkey without the other');
  }
}

function decoded(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalidUrl(
      `has a % in ${what} that is not followed by two hexadecimal digits of UTF-8`,
      'write % as %25',
    );
  }
}

function invalidUrl(fault: string, advice?: string): InvalidDatabaseUrl {
  return new InvalidDatabaseUrl(`the postgres:// URL of the database ${fault}`, advice);
}
