import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ports of outgoing connections, one of which could use the port before the server does.
 */
const PORT_MIN = 20_000;
const PORT_MAX = 32_767;

/** So many test files run at the same time. Each has ports of its own. */
export const FILES_AT_A_TIME = 6;
const PORTS_OF_FILE = Math.floor((PORT_MAX + 1 - PORT_MIN) / FILES_AT_A_TIME);
/** https://nodejs.org/api/test.html#contextworkerid; from 1 on, absent outside the test runner. */
const { NODE_TEST_WORKER_ID = '1' } = process.env;
const FIRST_PORT = PORT_MIN + ((Number(NODE_TEST_WORKER_ID) - 1) % FILES_AT_A_TIME) * PORTS_OF_FILE;

/** Their servers may not listen yet, or again. */
const given = new Set<number>();

/** @returns a port of this machine on which no server listened a moment ago */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + randomInt(PORTS_OF_FILE);
    if (given.has(port)) continue;
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') continue;
      throw error;
    }
    server.close();
    await once(server, 'close');
    given.add(port);
    return port;
  }
}
