import {
  ERROR_NAMES,
  ERRORS,
  type ErrorBody,
  type ErrorName,
  type ErrorStatus,
  errorBody,
  ID_RULE,
} from './errors.ts';
import { helpLink } from './help-link.ts';
import {
  BODY_BYTES_MAX,
  HEADER_BYTES_MAX,
  ID_MAX,
  ID_MIN,
  REQUEST_TIMEOUT_MS,
  RETRY_AFTER_SECONDS,
} from './limits.ts';
import { OUTCOMES, readNewPlantText } from './plant.ts';

/**
 * The OpenAPI 3.1 description of the service, as JSON text. The ends of the range of ids stand in it digit for
 * digit; JSON.parse rounds the larger one.
 */
export function openApiJson(): string {
  return exactJson(DESCRIPTION);
}

/** A record shape of the interface. */
export type SchemaName = keyof typeof SCHEMAS;

/**
 * One record shape as a JSON Schema 2020-12 that stands alone, as JSON text. The ends of the range of ids stand in it as in
 * {@link openApiJson}.
 */
export function schemaJson(name: SchemaName): string {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $ref: `#/components/schemas/${name}`,
    $defs: SCHEMAS,
  };
  return exactJson(schema).replaceAll('#/components/schemas/', '#/$defs/');
}

/** Writes a value as JSON, a bigint as a number. By way of a text, since not every runtime of clients has JSON.rawJSON. */
function exactJson(value: unknown): string {
  const text = JSON.stringify(value, (_key, each) => (typeof each === 'bigint' ? `bigint ${each}` : each), 2);
  return `${text.replace(/"bigint (-?[0-9]+)"/g, '$1')}\n`;
}

export interface Header {
  description: string;
  required: boolean;
  schema: object;
}

function header(description: string, schema: object, required = true): Header {
  return { description, required, schema };
}

function text(...examples: string[]): object {
  return { type: 'string', examples };
}

function retryAfter(minimum: number): Header {
  const description = 'Seconds to wait before sending the plant again, RFC 9110 section 10.2.3.';
  return header(description, { type: 'integer', minimum, examples: [RETRY_AFTER_SECONDS] });
}

/** Those of draft-ietf-httpapi-ratelimit-headers-10; on a 200 they stand only where the service has such a limit. */
function rateLimitHeaders(required: boolean): Record<string, Header> {
  const policy = 'What the token is granted: q requests in each window of w seconds.';
  const left = 'What is left of that: r requests now, more in t seconds.';
  return {
    'RateLimit-Policy': header(policy, text('"default";q=100;w=1'), required),
    RateLimit: header(left, text('"default";r=99;t=1'), required),
  };
}

function jsonContent(shape: SchemaName, examples: Record<string, { value: unknown; summary?: string }>) {
  return { 'application/json': { schema: { $ref: `#/components/schemas/${shape}` }, examples } };
}

/** Of every 500 and 503: a gateway may have sent the plant before, so that none of them says that it is not kept. */
const STORED_OR_NOT = 'The plant may be kept or not; sending it again settles that, and does no harm.';

/**
 * What each status of the catalogue means, apart from its entries; the compiler refuses a catalogue with a status that is
 * not described here.
 */
export const STATUS_DESCRIPTIONS: Record<
  ErrorStatus,
  { description: string; headers?: Record<string, Header> }
> = {
  400: {
    description:
      'Unexpected error. The message names every fault of the body at once. Besides what NewPlant asks for, a ' +
      'body is refused when it is not UTF-8 or begins with a byte order mark, when it gives a member twice at ' +
      'its top level, or when name or tag contains U+0000 or an unpaired surrogate. ' +
      `Number ${ERRORS.idTaken.number} is answered only by a service whose operator chose to refuse repeated ids.`,
  },
  401: {
    description: 'No credential, or one that is not accepted. Nothing of the body is read.',
    headers: {
      'WWW-Authenticate': header('The challenge of RFC 6750 section 3.', text('Bearer realm="plant-store"')),
    },
  },
  404: { description: 'There is nothing at this path. Paths are case-sensitive.' },
  405: {
    description: 'The path does not take this method.',
    headers: { Allow: header('The methods that this path takes, RFC 9110 section 10.2.1.', text('POST')) },
  },
  408: {
    description: `The request did not arrive whole, by default within ${REQUEST_TIMEOUT_MS / 1_000} s.`,
  },
  413: { description: `The body is too large, by default larger than ${BODY_BYTES_MAX} bytes.` },
  415: { description: 'The body is not application/json in UTF-8, or it is compressed.' },
  429: {
    description: 'The service limits how many requests a token may send, which it does not by default.',
    headers: { 'Retry-After': retryAfter(1), ...rateLimitHeaders(true) },
  },
  431: { description: `The request line and the headers are larger than ${HEADER_BYTES_MAX} bytes.` },
  500: { description: `The service failed. ${STORED_OR_NOT}` },
  503: {
    description: `The service cannot keep the plant now, or cannot tell. ${STORED_OR_NOT}`,
    headers: { 'Retry-After': retryAfter(0) },
  },
};

/** Describes the response with one error status: its numbers as a list, and an example of each. */
function errorResponse(status: ErrorStatus): object {
  const names = ERROR_NAMES.filter(name => ERRORS[name].status === status);
  const { description, headers } = STATUS_DESCRIPTIONS[status];
  const help = 'Where the documentation page of the service says more of this error, RFC 8288.';
  return {
    description: `${description}\n\n${names.map(catalogueLine).join('\n')}`,
    // A service that runs without its documentation page sends no Link.
    headers: { ...headers, Link: header(help, text(...names.map(helpLink)), false) },
    content: jsonContent('Error', Object.fromEntries(names.map(exampleError))),
  };
}

function catalogueLine(name: ErrorName): string {
  const { number, message, retry } = ERRORS[name];
  return `- \`${number}\`: ${message}${retry ? ' (the same request may succeed later)' : ''}`;
}

/** What the service itself says to a faulty NewPlant. */
const FAULTS_NAMED = readNewPlantText('{"id": 1.5, "tag": null}').message;

function exampleError(name: ErrorName): [ErrorName, { value: ErrorBody }] {
  return [name, { value: errorBody(name, name === 'notNewPlant' ? FAULTS_NAMED : undefined) }];
}

export const PLANT_HEADERS: Record<string, Header> = {
  'Plant-Id': header('The id of the plant, every digit of it; the Plant itself has none.', {
    type: 'string',
    pattern: '^(0|-?[1-9][0-9]*)$',
    examples: ['9007199254740993'],
  }),
  'Plant-Revision': header('How many contents have been stored under this id, this one included.', {
    type: 'integer',
    minimum: 1,
    examples: [1],
  }),
  'Plant-Outcome': header(
    'created: the id was new. unchanged: the latest revision of this id says the same, and nothing was ' +
      'stored. revised: the id was known with other content, and this is stored as its next revision.',
    { type: 'string', enum: OUTCOMES },
  ),
  ...rateLimitHeaders(false),
};

export const PLANT_RESPONSE = {
  description: 'Plant response: the plant was created. It is on disk before this answer is sent.',
  headers: PLANT_HEADERS,
  content: jsonContent('Plant', {
    tagged: { value: { name: 'Araucaria angustifolia', tag: 'tree' } },
    untagged: { value: { name: 'Araucaria angustifolia' } },
  }),
};

export const CREATE_PLANT = {
  operationId: 'createPlant',
  summary: 'Creates a new plant in the store',
  description:
    'Answers with the Plant once it is stored. Sending the same plant again changes nothing, so a retry is ' +
    'always safe. Sending other content under the same id stores the next revision; no revision is ever lost. ' +
    'After an answer of 400 to 499 nothing is stored.',
  requestBody: {
    description: 'The plant to create, as UTF-8 without a byte order mark.',
    required: true,
    content: jsonContent('NewPlant', {
      tagged: { value: { id: 1, name: 'Araucaria angustifolia', tag: 'tree' } },
      untagged: { value: { id: 2, name: 'Araucaria angustifolia' } },
      largestId: {
        summary: 'The largest id; a reader that takes numbers as doubles rounds it',
        value: { id: ID_MAX, name: 'Araucaria angustifolia' },
      },
    }),
  },
  responses: {
    200: PLANT_RESPONSE,
    ...Object.fromEntries(Object.values(ERRORS).map(({ status }) => [status, errorResponse(status)])),
  },
};

export const ID_SCHEMA = {
  type: 'integer',
  format: 'int64',
  minimum: ID_MIN,
  maximum: ID_MAX,
  description:
    `Identification number of the plant: ${ID_RULE}. It is judged on its digits: 1.0 and 1e3 are ` +
    'integers, 9007199254740993.5 is none.',
};

/**
 * The record shapes of the interface. Members beyond those listed are allowed in each, as JSON Schema has it when nothing
 * else is said. Forbidding them in Plant would forbid NewPlant its id.
 */
export const SCHEMAS = {
  Plant: {
    type: 'object',
    required: ['name'],
    properties: {
      name: { type: 'string', description: 'The name of the plant' },
      tag: { type: 'string', description: 'Tag to specify the type' },
    },
  },
  NewPlant: {
    allOf: [
      { $ref: '#/components/schemas/Plant' },
      {
        type: 'object',
        required: ['id'],
        properties: { id: ID_SCHEMA },
      },
    ],
  },
  Error: {
    type: 'object',
    required: ['error', 'message'],
    properties: {
      error: {
        type: 'integer',
        format: 'int32',
        description: 'Error number: the HTTP status times 100 plus a counter. It never changes its meaning.',
      },
      message: { type: 'string', description: 'Error message text, for a person' },
    },
  },
};

const DESCRIPTION = {
  openapi: '3.1.0',
  info: {
    title: 'Plant Store',
    version: '1.0.0',
    description:
      'A plant store. A client submits a plant record, and the service answers with the plant record.',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [{ url: '/', description: 'The service that this description was read from' }],
  security: [{ bearer: [] }],
  paths: { '/plants': { post: CREATE_PLANT } },
  components: {
    schemas: SCHEMAS,
    securitySchemes: {
      bearer: {
        type: 'http',
        scheme: 'bearer',
        description: 'A token that the operator of the service made; RFC 6750 section 2.1.',
      },
    },
  },
};
