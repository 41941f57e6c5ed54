import { type NewPlant, OUTCOMES, type Outcome, type Plant, plantJson } from '../contract/plant.ts';
import { errorOfResponse, jsonObject, PlantStoreError } from './plant-store-error.ts';
import type { HttpResponse } from './transport.ts';

/** A plant that is on the disk of the service. */
export interface StoredPlant extends Plant {
  id: bigint;
  /** Of the plant with this id: 1 for the first content, one more for each other one. */
  revision: number;
  outcome: Outcome;
}

/** @throws {PlantStoreError} when the answer does not prove that this plant is stored */
export function readStoredPlant(sent: NewPlant, { status, headers, body }: HttpResponse): StoredPlant {
  if (status !== 200) throw errorOfResponse(status, headers['retry-after'], body);
  const outcome = OUTCOMES.find(each => each === headers['plant-outcome']);
  const revision = Number(/^[1-9][0-9]{0,15}$/.exec(headers['plant-revision'] ?? '')?.[0]);
  if (outcome === undefined || Number.isNaN(revision) || headers['plant-id'] !== String(sent.id)) {
    throw noProof(
      'without the headers that prove what was stored (Plant-Id, Plant-Revision, Plant-Outcome); ' +
        'is it a plant store, and does a gateway before it leave them out?',
    );
  }
  // The service writes a plant as it is written here; what differs may still mean the same.
  const { name, tag } = body === plantJson(sent) ? sent : jsonObject(body);
  if (typeof name !== 'string' || (tag !== undefined && typeof tag !== 'string'))
    throw noProof('and its body is no Plant; is it a plant store?');
  if (name === sent.name && tag === sent.tag) return { ...sent, revision, outcome };
  throw noProof(
    'with another name or tag than was sent; is it a plant store, and does a gateway before it change them?',
  );
}

function noProof(what: string): PlantStoreError {
  return new PlantStoreError(`the answer is 200 ${what}`, { status: 200, canRetry: false });
}
