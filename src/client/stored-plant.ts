import { ERRORS } from '../core/contract/errors.ts';
import { type NewPlant, OUTCOMES, type Outcome, type Plant, plantJson } from '../core/contract/plant.ts';
import { errorOfResponse, jsonObject, PlantChanged, PlantStoreError } from './plant-store-error.ts';
import type { ReceivedResponse } from './transport.ts';

/** A plant that is stored on the disk of the service. */
export interface StoredPlant extends Plant {
  id: bigint;
  /** 1 for the first content of this id. Each change of the content adds 1. */
  revision: number;
  outcome: Outcome;
  /** For `JSON.stringify`: the id as decimal text, because JSON.parse rounds large numbers. */
  toJSON(): Omit<StoredPlant, 'id' | 'toJSON'> & { id: string };
}

/**
 * @param ifRevision the condition that was sent; undefined: none
 * @param addressAdvice what to check if the address may be wrong
 * @throws {PlantChanged} when the response proves that the latest revision is another one
 * @throws {PlantStoreError} when the response does not prove that this plant is stored
 */
export function readStoredPlant(
  sent: NewPlant,
  ifRevision: number | undefined,
  response: ReceivedResponse,
  addressAdvice: string,
): StoredPlant {
  const { status, headers, body } = response;
  if (status !== 200) throw rejectionOf(sent, ifRevision, response, addressAdvice);
  const outcome = OUTCOMES.find(each => each === headers['plant-outcome']);
  const revision = revisionIn(headers);
  const id = headers['plant-id'];
  if (outcome === undefined || !(revision >= 1) || id === undefined)
    throw noProof(
      'without the headers that prove what was stored (Plant-Id, Plant-Revision, Plant-Outcome); ' +
        'is this a plant store, or does a gateway in front of it remove them?',
    );
  if (id !== String(sent.id))
    throw noProof(
      `for another id: a gateway changed the id from ${sent.id} to ${id}, and the plant may be stored ` +
        'under that id; make the gateway forward bodies unchanged',
    );
  // The service serializes plants as the client does. Other JSON may mean the same plant.
  const { name, tag } = body === plantJson(sent) ? sent : jsonObject(body);
  if (typeof name !== 'string' || (tag !== undefined && typeof tag !== 'string'))
    throw noProof('and its body is not a Plant; is this a plant store?');
  if (name !== sent.name || tag !== sent.tag)
    throw noProof(
      'with a different name or tag; is this a plant store, or does a gateway in front of it change them?',
    );
  if (ifRevision !== undefined && outcome !== 'unchanged' && revision !== ifRevision + 1)
    throw noProof(
      `for revision ${revision}, which does not follow revision ${ifRevision}: the service, or a gateway in front of it, ` +
        'ignores If-Plant-Revision, and the plant was stored; update the service, or make the gateway forward this header',
    );
  const plant = { ...sent, revision, outcome };
  const value: StoredPlant['toJSON'] = () => ({ ...plant, id: String(plant.id) });
  // Not enumerable, so that comparisons and copies see only data.
  return Object.defineProperty(plant, 'toJSON', { value }) as StoredPlant;
}

/** @returns NaN if the field is missing or no number */
function revisionIn(headers: ReceivedResponse['headers']): number {
  return Number(/^(?:0|[1-9][0-9]{0,15})$/.exec(headers['plant-revision'] ?? '')?.[0]);
}

function rejectionOf(
  { id }: NewPlant,
  ifRevision: number | undefined,
  { status, headers, body }: ReceivedResponse,
  addressAdvice: string,
): PlantStoreError {
  const error = errorOfResponse(status, headers['retry-after'], body, addressAdvice);
  const storedRevision = revisionIn(headers);
  const isChanged =
    error.error === ERRORS.plantChanged.number && headers['plant-id'] === String(id) && storedRevision >= 0;
  if (!isChanged || ifRevision === undefined) return error;
  return new PlantChanged(error.message, { expectedRevision: ifRevision, storedRevision });
}

function noProof(detail: string): PlantStoreError {
  return new PlantStoreError(`the response is 200 ${detail}`, { status: 200, canRetry: false });
}
