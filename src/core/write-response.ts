import type { NewPlantWrite, NotConfirmed, WriteResult } from './commit/plant-commits.ts';
import { type NewPlant, plantJson } from './contract/plant.ts';
import type { HeaderFields } from './header-fields.ts';
import { errorResponse, type HttpResponse, jsonResponse } from './response.ts';

/** The response to a queued plant. @param fields header fields of the response, whatever its status */
export function writeResponse(
  { plant, ifRevision }: NewPlantWrite,
  result: WriteResult | NotConfirmed,
  fields: HeaderFields,
): HttpResponse {
  if (result.kind !== 'confirmed') {
    if (result.error === 'plantChanged') return changedResponse(plant, ifRevision, result.revision, fields);
    return errorResponse(result.error, undefined, fields);
  }
  const { outcome, revision } = result;
  const proof = ['Plant-Id', `${plant.id}`, 'Plant-Revision', `${revision}`, 'Plant-Outcome', outcome];
  const response = jsonResponse(200, plantJson(plant), [...proof, ...fields], outcome);
  return { ...response, plantId: plant.id, revision };
}

/** @param revision the number of the latest revision; 0: there is no plant */
function changedResponse(
  { id }: NewPlant,
  ifRevision: number | undefined,
  revision: number,
  fields: HeaderFields,
): HttpResponse {
  const found =
    revision === 0
      ? `there is no plant ${id}, so it has no revision ${ifRevision}`
      : `plant ${id} has revision ${revision}, not ${ifRevision}`;
  const proof = ['Plant-Id', `${id}`, 'Plant-Revision', `${revision}`];
  const response = errorResponse('plantChanged', `${found}; nothing was stored`, [...proof, ...fields]);
  return { ...response, plantId: id };
}
