import type { PlantRevision } from '../../core/commit/plant-revision.ts';
import { newPlantJson, plantJson } from '../../core/contract/plant.ts';
import type { PlantReader } from '../../engines/plant-reader.ts';
import { visible } from '../../formats/visible-text.ts';

/** A revision as JSON. @param label of its token; without it, only the plant is written */
export function revisionJson(each: PlantRevision, label: string | undefined): string {
  const json = newPlantJson(each.plant);
  if (label === undefined) return json;
  const record = { revision: each.revision, recorded_at: new Date(each.recordedAt), recorded_by: label };
  return `${json.slice(0, -1)},${JSON.stringify(record).slice(1)}`;
}

/** A revision for a person, without the id of the plant, as a line for `alignedColumns`. */
export function revisionText(each: PlantRevision, label: string): string {
  const time = new Date(each.recordedAt).toISOString();
  return `revision ${each.revision}\t${time}\tby ${label}\t${visible(plantJson(each.plant))}`;
}

/** @returns a function from token id to label; a token that is not in this store gets its id */
export function tokenLabels(reader: PlantReader): (tokenId: number) => Promise<string> {
  const labels = new Map<number, string>();
  return async tokenId => {
    if (!labels.has(tokenId)) {
      for (const { id, label } of await reader.tokens()) labels.set(id, label);
      if (!labels.has(tokenId)) labels.set(tokenId, String(tokenId));
    }
    return labels.get(tokenId)!;
  };
}
