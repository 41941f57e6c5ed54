import { isIntact } from '../../core/commit/checksum.ts';
import { StoreDamaged } from '../../core/commit/store-errors.ts';
import { type PlantFilter, type PlantSearch, searchAll } from '../../engines/search/plant-search.ts';
import { REVISION_CSV_HEADER, revisionCsv } from '../../formats/csv.ts';
import type { LabelOf } from './rejected-requests.ts';

/** Without it, Excel reads UTF-8 as the encoding of its system. `import` ignores it. */
const BYTE_ORDER_MARK = '\ufeff';

/**
 * The found plants as chunks of CSV, without damaged revisions.
 *
 * @throws {StoreDamaged} at the end, if a revision is damaged; so the browser reports the download
 *   as incomplete
 */
export async function* plantsCsv(
  search: PlantSearch,
  filter: PlantFilter,
  labelOf: LabelOf,
): AsyncIterable<string> {
  yield `${BYTE_ORDER_MARK}${REVISION_CSV_HEADER}`;
  let damaged = 0;
  for await (const plants of searchAll(search, filter)) {
    const intact = plants.filter(isIntact);
    damaged += plants.length - intact.length;
    yield intact.map(each => revisionCsv(each, labelOf(each.recordedBy))).join('');
  }
  if (damaged > 0)
    throw new StoreDamaged(`${damaged} damaged revisions`, { advice: 'npx plant-store export names them' });
}
