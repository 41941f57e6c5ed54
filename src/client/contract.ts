/**
 * The contract of the service, published as `plant-store-client/contract`: plants, the OpenAPI
 * description, the error catalogue and the limits. It runs in every JavaScript runtime.
 */
export { ERRORS, type ErrorBody, type ErrorName } from '../core/contract/errors.ts';
export { BODY_MAX_BYTES, HEADER_MAX_BYTES, ID_MAX, ID_MIN } from '../core/contract/limits.ts';
export {
  type NewPlant,
  type NewPlantReading,
  newPlantJson,
  OUTCOMES,
  type Outcome,
  type Plant,
  plantJson,
  readNewPlant,
  readNewPlantText,
} from '../core/contract/plant.ts';
export { openApiJson, type SchemaName, schemaJson } from './openapi.ts';
