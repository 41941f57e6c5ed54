import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A server of a test on this machine, on a free port unless one is named; `await using` cuts its connections and closes it. */
export interface LoopbackServer extends AsyncDisposable {
  /** Without a slash at the end. */
  url: string;
}

/** Settles when the server takes connections. */
export async function listen(server: Server, port = 0): Promise<LoopbackServer> {
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
