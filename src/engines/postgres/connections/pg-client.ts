import { Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import pg from 'pg';
import type { HostAddress, PostgresAddress } from '../postgres-url.ts';
import { passwordFromFile } from './password-file.ts';

const KEEP_ALIVE_DELAY_MS = 5_000;

/** Makes a client of pg, with its socket. It does not connect yet. */
export function pgClientOf(
  address: PostgresAddress,
  host: HostAddress,
  ssl: ConnectionOptions | false,
  timeoutMs: number,
): { client: pg.Client; socket: Socket } {
  const socket = new Socket();
  const client = new pg.Client({
    ...host,
    stream: () => socket,
    ssl,
    database: address.database,
    user: address.user,
    password: address.password ?? (() => passwordFromFile(address, host)),
    enableChannelBinding: address.channelBinding !== 'disable',
    application_name: address.applicationName,
    options: address.options,
    connectionTimeoutMillis: timeoutMs,
    // Detects that the host of an idle connection has vanished without closing it.
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
  });
  return { client, socket };
}
