import { ERROR_NAMES, ERRORS, errorBody, ID_RULE } from '../core/contract/errors.ts';
import {
  BODY_MAX_BYTES,
  HEADER_MAX_BYTES,
  REQUEST_TIMEOUT_MS,
  RETRY_AFTER_SECONDS,
  REVISION_MAX,
} from '../core/contract/limits.ts';
import { OUTCOMES, readNewPlantText } from '../core/contract/plant.ts';
import { helpLink } from './help-link.ts';

/** The OpenAPI 3.1 description, as JSON. @param serverUrl may be relative to the description */
export function openApiJson(serverUrl = '/'): string {
  const servers = [{ url: serverUrl, description: 'The service that provides this description' }];
  return jsonText({ ...DESCRIPTION, servers });
}

/** The record shapes of the interface. */
export type SchemaName = 'Plant' | 'NewPlant' | 'Error';

/** One record shape as a self-contained JSON Schema 2020-12, as JSON text. */
export function schemaJson(name: SchemaName): string {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $ref: `#/components/schemas/${name}`,
    $defs: SCHEMAS,
  };
  return jsonText(schema).replaceAll('#/components/schemas/', '#/$defs/');
}

function jsonText(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

interface Header {
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

function retryAfter(minimum: number, required = true): Header {
  const description = 'Seconds to wait before sending the plant again (RFC 9110 section 10.2.3).';
  return header(description, { type: 'integer', minimum, examples: [RETRY_AFTER_SECONDS] }, required);
}

/** The fields of draft-ietf-httpapi-ratelimit-headers-10. Only a 429 always has them. */
function rateLimitHeaders(required: boolean): Record<string, Header> {
  const policy = 'The rate limit of the token: q requests at once, and q more in every w seconds.';
  const left = 'What remains of the rate limit: r requests now, and more after t seconds.';
  return {
    'RateLimit-Policy': header(policy, text('"default";q=100;w=1'), required),
    RateLimit: header(left, text('"default";r=99;t=1'), required),
  };
}

function jsonContent(shape: SchemaName, examples: Record<string, { value: unknown }>) {
  return { 'application/json': { schema: { $ref: `#/components/schemas/${shape}` }, examples } };
}

const PLANT_ID = header('The id of the plant, with all its digits. The body has no id.', {
  type: 'string',
  pattern: '^(0|-?[1-9][0-9]*)$',
  examples: ['1', '2'],
});

const CHANGED_HEADERS = {
  'Plant-Id': PLANT_ID,
  'Plant-Revision': header('The number of the latest revision; 0 if there is no plant with this id.', {
    type: 'integer',
    minimum: 0,
    maximum: REVISION_MAX,
    examples: [2],
  }),
};

/** It never says "not stored": a gateway may have sent the same plant before, with success. */
const STORED_OR_NOT = 'The plant may or may not be stored. Sending it again is safe.';

export const STATUS_DESCRIPTIONS: Record<string, { description: string; headers?: Record<string, Header> }> =
  {
    400: {
      description:
        'Unexpected error: nothing was stored. The message lists every problem of the body. A body is rejected ' +
        'if it is not a NewPlant, is not UTF-8, begins with a byte order mark, or has a member twice at its top ' +
        'level. It is also rejected if name or tag contains U+0000 or an unpaired surrogate. ' +
        `Error ${ERRORS.idTaken.number} occurs only if the service runs with \`--repeated-id reject\`. ` +
        `Error ${ERRORS.badHttp.number} also means that If-Plant-Revision is invalid.`,
    },
    401: {
      description: 'The bearer token is missing or not accepted. The service does not read the body.',
      headers: {
        'WWW-Authenticate': header(
          'The challenge: the request needs a valid bearer token (RFC 6750 section 3).',
          text('Bearer realm="plant-store"'),
        ),
      },
    },
    404: { description: 'The path does not exist. Paths are case-sensitive.' },
    405: {
      description: 'The path does not accept this method.',
      headers: {
        Allow: header('The methods that the path accepts (RFC 9110 section 10.2.1).', text('POST')),
      },
    },
    408: { description: `The complete request did not arrive within ${REQUEST_TIMEOUT_MS / 1_000} s.` },
    412: {
      description:
        'The latest revision of the plant is not the one in If-Plant-Revision, and has different content. Nothing was stored.',
      headers: CHANGED_HEADERS,
    },
    413: { description: `The body exceeds the size limit, ${BODY_MAX_BYTES} bytes by default.` },
    415: { description: 'The body is not application/json in UTF-8, or it has a Content-Encoding.' },
    429: {
      description: 'The token exceeded its rate limit. By default there is no rate limit.',
      headers: { 'Retry-After': retryAfter(1), ...rateLimitHeaders(true) },
    },
    431: { description: `The request line and the headers are larger than ${HEADER_MAX_BYTES} bytes.` },
    500: { description: `Unexpected internal error. ${STORED_OR_NOT}` },
    503: {
      description: `The service cannot store the plant now, or cannot confirm that it did. ${STORED_OR_NOT}`,
      // An error that is not to be retried has no Retry-After.
      headers: { 'Retry-After': retryAfter(0, false) },
    },
  };

/** Statuses of requests that count for a rate limit. A 429 has its own headers. */
const COUNTED_STATUSES = ['400', '412', '413', '415', '503'];

const INVALID = readNewPlantText('{"id": 1.5, "tag": null}');
/** The message of the service itself for an invalid NewPlant. */
const FAULTS_NAMED = INVALID.kind === 'invalid' ? INVALID.message : undefined;

/** Describes the response with one error status: a list and an example of its error numbers. */
function errorResponse(status: string): object {
  const withStatus = ERROR_NAMES.filter(name => ERRORS[name].status === Number(status));
  // A mock responds to an invalid plant with the first example of a 400.
  const names = withStatus.toSorted((a, b) => Number(b === 'notNewPlant') - Number(a === 'notNewPlant'));
  const lines = names.map(name => {
    const { number, message, retry } = ERRORS[name];
    return `- \`${number}\`: ${message}${retry ? ' (the same request may succeed later)' : ''}`;
  });
  const examples = names.map(name => {
    return [name, { value: errorBody(name, name === 'notNewPlant' ? FAULTS_NAMED : undefined) }];
  });
  const { description, headers } = STATUS_DESCRIPTIONS[status]!;
  const rateLimit = COUNTED_STATUSES.includes(status) ? rateLimitHeaders(false) : {};
  const help = 'The explanation of this error on the documentation page of the service (RFC 8288).';
  return {
    description: `${description}\n\n${lines.join('\n')}`,
    // A service that runs without its documentation page sends no Link.
    headers: { ...headers, ...rateLimit, Link: header(help, text(...names.map(helpLink)), false) },
    content: jsonContent('Error', Object.fromEntries(examples)),
  };
}

export const CREATE_PLANT = {
  operationId: 'createPlant',
  summary: 'Create a plant',
  tags: ['plants'],
  description:
    'Stores the plant, then responds with it. Sending the same plant again changes nothing, so a retry ' +
    'is safe unless newer content was stored in between. Sending different content under the same id stores ' +
    'the next revision, and every earlier revision remains stored. The header If-Plant-Revision prevents that. A response from 400 to 499 means that nothing was stored.',
  parameters: [
    {
      name: 'If-Plant-Revision',
      in: 'header',
      required: false,
      description:
        'The number that the latest revision of the plant must have, or 0: there must be no plant with this id. Otherwise ' +
        `the response is 412 (error ${ERRORS.plantChanged.number}), and nothing is stored. If the latest revision has the same ` +
        'content, the response is 200 whatever the number is, so a retry is safe. Without this header, the plant is always stored.',
      schema: { type: 'integer', minimum: 0, maximum: REVISION_MAX, examples: [0] },
    },
  ],
  requestBody: {
    description: 'The plant to create, as UTF-8 without a byte order mark.',
    required: true,
    content: jsonContent('NewPlant', {
      tagged: { value: { id: 1, name: 'Araucaria angustifolia', tag: 'tree' } },
      untagged: { value: { id: 2, name: 'Araucaria angustifolia' } },
    }),
  },
  responses: {
    200: {
      description:
        'Plant response: the plant was created. It is on disk. The status is also 200 for a plant that is already ' +
        'stored, and for new content of a stored id. Plant-Outcome names which of the three it is.',
      headers: {
        'Plant-Id': PLANT_ID,
        'Plant-Revision': header(
          'The number of this revision. The first revision of an id has the number 1.',
          { type: 'integer', minimum: 1, examples: [1] },
        ),
        'Plant-Outcome': header(
          'created: the id was new. unchanged: the latest revision of this id has the same content, and ' +
            'nothing was stored. revised: the id was stored with different content, and this plant is its next ' +
            'revision.',
          { type: 'string', enum: OUTCOMES },
        ),
        ...rateLimitHeaders(false),
      },
      content: jsonContent('Plant', {
        tagged: { value: { name: 'Araucaria angustifolia', tag: 'tree' } },
        untagged: { value: { name: 'Araucaria angustifolia' } },
      }),
    },
    ...Object.fromEntries(Object.keys(STATUS_DESCRIPTIONS).map(status => [status, errorResponse(status)])),
  },
};

/** It has no `minimum` and `maximum`, which JavaScript would round. The format implies both. */
export const ID_SCHEMA = {
  type: 'integer',
  format: 'int64',
  description:
    `Identification number of the plant: ${ID_RULE}. The service checks all digits without rounding: ` +
    '1.0 and 1e3 are integers, 9007199254740993.5 is not.',
};

/**
 * The JSON Schema of each record shape. Each allows further members, as by default. If Plant did
 * not allow them, NewPlant could not have an id.
 */
export const SCHEMAS = {
  Plant: {
    type: 'object',
    required: ['name'],
    properties: {
      name: { type: 'string', description: 'The name of the plant' },
      tag: {
        type: 'string',
        description:
          'Tag to specify the type: a text of your choice for the type of plant, such as houseplant',
      },
    },
  },
  NewPlant: {
    allOf: [
      { $ref: '#/components/schemas/Plant' },
      { type: 'object', required: ['id'], properties: { id: ID_SCHEMA } },
    ],
  },
  Error: {
    type: 'object',
    required: ['error', 'message'],
    properties: {
      error: {
        type: 'integer',
        format: 'int32',
        description: 'Error number: the HTTP status times 100 plus a counter. Its meaning never changes.',
      },
      message: { type: 'string', description: 'Error message text, for people' },
    },
  },
} satisfies Record<SchemaName, object>;

const DESCRIPTION = {
  openapi: '3.1.0',
  info: {
    title: 'Plant Store',
    version: '1.0.0',
    description:
      'A plant store. A client submits a plant record, and the service responds with the plant record.',
    // Relative to this description, which the service provides beside its documentation page.
    contact: { name: 'The operator of this service', url: 'docs' },
    license: { name: 'MIT', url: 'https://spdx.org/licenses/MIT.html' },
  },
  tags: [{ name: 'plants', description: 'The plants of the store.' }],
  security: [{ bearer: [] }],
  paths: { '/plants': { post: CREATE_PLANT } },
  components: {
    schemas: SCHEMAS,
    securitySchemes: {
      bearer: {
        type: 'http',
        scheme: 'bearer',
        description: 'A token from the operator of the service (RFC 6750 section 2.1).',
      },
    },
  },
};
