import { hashToken, makeToken } from '../../src/auth/token.ts';
import { openForWriting } from '../../src/store/sqlite/database.ts';
import { type Curve, measureInRounds, powersOfTen } from './curve.ts';
import { loadService, withService } from './service-load.ts';

const CONNECTIONS = 64;
/** Of a body beside its name, as the load sends it. */
const BODY_BYTES_BESIDE_NAME = 52;
const KIB = 1024;
const MB = 1e6;

/** How much a store holds. */
export const storedPlants: Curve = {
  name: 'stored-plants',
  title: 'Creates with plants stored already',
  description: `Durable creates a second at ${CONNECTIONS} connections, by the plants stored before, under random ids.`,
  x: { label: 'plants stored before', scale: 'log' },
  panels: [{ y: { label: 'creates/s', scale: 'linear' }, figure: 'ratePerSecond' }],
  measure: bench => {
    const places = powersOfTen(1e3, bench.plantsMax).flatMap(at => [
      { at, of: 'ascending ids', ids: 'ascending' as const },
      { at, of: 'random ids', ids: 'random' as const },
    ]);
    return measureInRounds(bench, places, async ({ at, ids }) =>
      withService(
        async service => {
          const load = { connections: CONNECTIONS, seconds: bench.seconds, ids };
          const { ratePerSecond } = await loadService(service, load);
          return { ratePerSecond };
        },
        path => bench.stores.copy(at, path),
      ),
    );
  },
};

/** How large a plant is. */
export const bodySize: Curve = {
  name: 'body-size',
  title: 'Creates by the size of the body',
  description: `Durable creates a second at ${CONNECTIONS} connections, and the bodies they carry in megabytes a second.`,
  x: { label: 'body', scale: 'log', ticks: [64, KIB, 16 * KIB, 64 * KIB], format: bytesText },
  panels: [
    { y: { label: 'creates/s', scale: 'log' }, figure: 'ratePerSecond' },
    { y: { label: 'MB/s', scale: 'log' }, figure: 'bytesPerSecond', unit: MB },
  ],
  measure: bench => {
    const sizes = [60, KIB, 4 * KIB, 16 * KIB, 64 * KIB].map(at => ({ at, of: 'bodies in bytes' }));
    return measureInRounds(bench, sizes, async ({ at }) =>
      withService(async service => {
        const nameBytes = at - BODY_BYTES_BESIDE_NAME;
        const load = { connections: CONNECTIONS, seconds: bench.seconds, nameBytes };
        const { ratePerSecond } = await loadService(service, load);
        return { ratePerSecond, bytesPerSecond: ratePerSecond * at };
      }),
    );
  },
};

/** How many tokens there are. */
export const tokens: Curve = {
  name: 'tokens',
  title: 'Creates with many tokens',
  description: `Durable creates a second at ${CONNECTIONS} connections, by the tokens stored, which are sent in turn.`,
  x: { label: 'tokens stored and sent in turn', scale: 'log' },
  panels: [
    { y: { label: 'creates/s', scale: 'linear' }, figure: 'ratePerSecond' },
    { y: { label: 'p99 latency, ms', scale: 'log' }, figure: 'p99Us', unit: 1000 },
  ],
  measure: bench => {
    const counts = [1, 100, 1e4, 1e5].map(at => ({ at, of: 'tokens' }));
    return measureInRounds(bench, counts, async ({ at }) => {
      const stored = Array.from({ length: at }, makeToken);
      return withService(
        async service => {
          const load = { connections: CONNECTIONS, seconds: bench.seconds, tokens: stored };
          const { ratePerSecond, p99Us } = await loadService(service, load);
          return { ratePerSecond, p99Us };
        },
        path => storeTokens(path, stored),
      );
    });
  },
};

/** Straight into the table: a command for each would take hours. */
function storeTokens(path: string, stored: readonly string[]): void {
  const database = openForWriting(path);
  const insert = database.prepare(
    'INSERT INTO token (hash, label, created_at, change_number) VALUES (?, ?, ?, ?)',
  );
  database.exec('BEGIN');
  for (const [index, token] of stored.entries()) {
    insert.run(hashToken(token), `token ${index}`, Date.now(), index + 1);
  }
  database.exec('COMMIT');
  database.close();
}

function bytesText(bytes: number): string {
  return bytes < KIB ? `${bytes} B` : `${bytes / KIB} KiB`;
}
