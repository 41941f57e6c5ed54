import type { PlantQueue } from '../../core/commit/plant-commits.ts';
import { type DatabaseAddress, fileBeside } from '../../engines/openers/database-url.ts';
import { openerOf } from '../../engines/openers/open-store.ts';
import { errorLog } from '../log/rate-limited-log.ts';
import type { Metrics } from '../metrics.ts';
import { type ConsoleParts, OperatorConsole, type ShownService } from './operator-console.ts';
import { SampleFile } from './sample-file.ts';
import { Samples } from './samples.ts';

/** The parts of a service that its console shows or changes. */
interface ConsoleSources extends Pick<ConsoleParts, 'engine' | 'monitor' | 'tokens' | 'log'> {
  metrics: Metrics;
  queue: PlantQueue;
}

/**
 * Opens the console of a service, with its own access to the store for searches.
 *
 * @param shown what the console shows of the service
 */
export async function openConsole(
  shown: Omit<ShownService, 'isFirstStart'>,
  database: DatabaseAddress,
  { metrics, queue, ...parts }: ConsoleSources,
): Promise<OperatorConsole> {
  const search = await openerOf(database).openSearch();
  const samples = new Samples(metrics, queue);
  const historyFile = fileBeside(database, '-history');
  const onError = errorLog(parts.log, 'the history of the console could not be written');
  return new OperatorConsole({
    ...parts,
    shown: { ...shown, isFirstStart: parts.engine.schemaSteps.before === 0 },
    search,
    samples,
    sampleFile: historyFile === undefined ? undefined : new SampleFile(historyFile, samples, onError),
  });
}
