import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CONNECTIONS_DEFAULT } from '../../src/cli/options/serve-options.ts';
import { hashToken, makeToken } from '../../src/core/tokens/token.ts';
import { databaseAddressOf } from '../../src/engines/openers/database-url.ts';
import { type Service, type ServiceSettings, startService } from '../../src/service.ts';
import { openCommandStore } from './open-store.ts';

/** A real service with a new database file, on free ports of this machine. */
export interface RunningService extends Service {
  /** The base URL, without a trailing slash. */
  url: string;
  opsUrl: string;
  token: string;
  /** The database URL, as for `--database`. */
  database: string;
  folder: string;
  logged: string[];
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TestSettings extends Partial<Omit<ServiceSettings, 'database'>> {
  /** The database URL; undefined: a new file. */
  database?: string;
}

/** `await using` ends it and deletes its folder. @param settings other than by default */
export async function startTestService(settings: TestSettings = {}): Promise<RunningService> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-test-'));
  const database = settings.database ?? `sqlite:${join(folder, 'plants.db')}`;
  const logged: string[] = [];
  const service = await startService({
    listen: { host: '127.0.0.1', port: 0 },
    ops: { host: '127.0.0.1', port: 0 },
    repeatedIdRule: 'revise',
    connections: CONNECTIONS_DEFAULT,
    bodyBytesMax: 1024 * 1024,
    docs: true,
    handOverFirstToken: () => true,
    log: {
      info: message => logged.push(message),
      warn: (_details, message) => logged.push(message),
      error: (_details, message) => logged.push(message),
    },
    ...settings,
    database: databaseAddressOf(database),
  });
  return {
    ...service,
    url: `http://127.0.0.1:${service.address.port}`,
    opsUrl: `http://127.0.0.1:${service.opsAddress.port}`,
    token: service.firstToken ?? '',
    database,
    folder,
    logged,
    [Symbol.asyncDispose]: async () => {
      await service.close();
      await rm(folder, { recursive: true });
    },
  };
}

/** Creates a token, as `token create` does beside a running service. */
export async function addToken(
  database: string,
  label: string,
  expiresAt: number | null = null,
): Promise<string> {
  const token = makeToken();
  const store = await openCommandStore(database);
  await store.tokenTable.createToken({ hash: hashToken(token), label, createdAt: 1, expiresAt });
  await store.close();
  return token;
}
