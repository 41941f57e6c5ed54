import { Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import pg from 'pg';
import { ConnectionLost, connectionError } from '../postgres-errors.ts';
import type { HostAddress, PostgresAddress } from '../postgres-url.ts';
import { passwordFromFile } from './password-file.ts';
import { withinTimeout } from './within-timeout.ts';

const KEEP_ALIVE_DELAY_MS = 5_000;

/** A client of pg, which is not connected yet. */
export interface PgClient {
  client: pg.Client;
  socket: Socket;
  /**
   * Connects and authenticates. After a failure, the caller destroys the socket.
   *
   * @throws {ConnectionLost} also after the timeout
   * @throws {StoreRejected}
   */
  connect(): Promise<void>;
}

export function pgClientOf(
  address: PostgresAddress,
  host: HostAddress,
  ssl: ConnectionOptions | false,
  timeoutMs: number,
): PgClient {
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
    // Detects that the host of an idle connection has vanished without closing it.
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
  });
  const connect = async (): Promise<void> => {
    try {
      const onTimeout = () => new ConnectionLost('PostgreSQL accepted no connection in time');
      await withinTimeout(client.connect(), timeoutMs, onTimeout);
    } catch (error) {
      throw connectionError(error as Error);
    }
  };
  return { client, socket, connect };
}
