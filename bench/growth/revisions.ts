import { Client } from 'undici';
import { openForWriting } from '../../src/store/sqlite/database.ts';
import { median } from '../statistics.ts';
import type { RunningSubject } from '../subjects.ts';
import { type Bench, type Curve, type MeasuredPlace, powersOfTen, shuffled } from './curve.ts';
import { withService } from './service-load.ts';

const REVISIONS_MAX = 1e5;
/** Plants for each number of revisions: fewer where they would fill the store, but some, so that one tells of others. */
const PLANTS = 300;
const PLANTS_MIN = 3;
const ROWS = 300_000;
/** Writes for each number of revisions in a round; plants with few revisions are written to once. */
const WRITES_IN_ROUND = 100;
const WARM_UP_WRITES = 2_000;

interface Plant {
  id: number;
  /** Stored before. */
  revisions: number;
}

/**
 * How often a plant was revised. All plants are in one store, and each round writes to them in a random order, so that
 * nothing but the number of their revisions tells them apart.
 */
export const revisions: Curve = {
  name: 'revisions',
  title: 'The next revision of a plant',
  description:
    'Median time of the next write to a plant on one connection, by the revisions it has. It stays level.',
  x: { label: 'revisions stored', scale: 'log' },
  panels: [{ y: { label: 'median latency, µs', scale: 'linear' }, figure: 'p50Us' }],
  measure: bench => {
    const plants = plantsToRevise();
    return withService(
      service => reviseInRounds(bench, service, plants),
      path => storePlants(path, plants),
    );
  },
};

function plantsToRevise(): Plant[] {
  let id = 1_000_000_000_000_000;
  return powersOfTen(1, REVISIONS_MAX).flatMap(revisions => {
    const count = Math.max(PLANTS_MIN, Math.min(PLANTS, Math.floor(ROWS / revisions)));
    return Array.from({ length: count }, () => ({ id: ++id, revisions }));
  });
}

/** Straight into the table, as the service would have written them. */
function storePlants(path: string, plants: readonly Plant[]): void {
  const database = openForWriting(path);
  const insert = database.prepare(
    `INSERT INTO plant_revision (id, revision, name, tag, recorded_at, recorded_by)
     VALUES (?, ?, ?, 'houseplant', ?, 1)`,
  );
  database.exec('BEGIN');
  for (const { id, revisions } of plants) {
    for (let revision = 1; revision <= revisions; revision++) {
      insert.run(id, revision, nameOf(revision), Date.now());
    }
  }
  database.exec('COMMIT');
  database.close();
}

async function reviseInRounds(
  bench: Bench,
  { url, token }: RunningSubject,
  plants: readonly Plant[],
): Promise<MeasuredPlace[]> {
  const client = new Client(url);
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  let writes = 0;
  const write = async (id: number): Promise<number> => {
    const body = JSON.stringify({ id, name: nameOf(REVISIONS_MAX * 10 + ++writes), tag: 'houseplant' });
    const sinceMs = performance.now();
    const answer = await client.request({ path: '/plants', method: 'POST', headers, body });
    await answer.body.dump();
    if (answer.statusCode !== 200) throw new Error(`a revision was answered ${answer.statusCode}, not 200`);
    return (performance.now() - sinceMs) * 1000;
  };
  try {
    for (let count = 0; count < WARM_UP_WRITES; count++) await write(1);
    const places = powersOfTen(1, REVISIONS_MAX).map(at => ({
      at,
      of: 'next revision',
      figures: { p50Us: [] as number[] },
    }));
    for (let round = 0; round < bench.rounds; round++) {
      bench.signal.throwIfAborted();
      bench.report(`round ${round + 1} of ${bench.rounds}`);
      const order = shuffled(
        places.flatMap(place => writesOfRound(plants, place.at, round).map(id => ({ place, id }))),
      );
      const timesUs = new Map(places.map(place => [place, [] as number[]]));
      for (const { place, id } of order) timesUs.get(place)!.push(await write(id));
      for (const [place, times] of timesUs) place.figures.p50Us.push(median(times));
    }
    return places;
  } finally {
    await client.destroy();
  }
}

/** The plants that a round writes to, of those with a number of revisions; the next round takes the next ones. */
function writesOfRound(plants: readonly Plant[], revisions: number, round: number): number[] {
  const all = plants.filter(plant => plant.revisions === revisions);
  return Array.from(
    { length: WRITES_IN_ROUND },
    (_, index) => all[(round * WRITES_IN_ROUND + index) % all.length]!.id,
  );
}

/** All names have the same length. */
function nameOf(number: number): string {
  return `Monstera deliciosa ${String(number).padStart(16, '0')}`;
}
