import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { ERRORS } from '../../src/contract/errors.ts';
import { openApiJson } from '../../src/contract/openapi.ts';

type Content = Record<string, { schema: { $ref: string }; examples: Record<string, { value: unknown }> }>;

interface Response {
  description: string;
  headers?: Record<
    string,
    { schema: { type: string; pattern: string; enum: string[]; examples?: unknown[] } }
  >;
  content: Content;
}

const description = JSON.parse(openApiJson());
const operation = description.paths['/plants'].post;
const responses: Record<string, Response> = operation.responses;
const { schemas } = description.components;

suite('the description is valid OpenAPI 3.1', () => {
  test('by the schema of the OpenAPI Initiative, which rejects a response without description', async () => {
    assert.deepEqual(await new Validator().validate(JSON.parse(openApiJson())), { valid: true });
    const broken = JSON.parse(openApiJson());
    delete broken.paths['/plants'].post.responses['503'].description;
    assert.equal((await new Validator().validate(broken)).valid, false);
  });

  test('every schema is strict JSON Schema 2020-12, and every example matches its schema', () => {
    const ajv = new Ajv2020({ formats: { int32: true, int64: true } });
    ajv.addVocabulary(['components']);
    ajv.addSchema({ $id: 'plant-store', components: { schemas } });
    const bodies = [operation.requestBody as Response, ...Object.values(responses)];
    for (const { content } of bodies) {
      const { schema, examples } = content['application/json']!;
      const validate = ajv.compile({ $ref: `plant-store${schema.$ref}` });
      assert.ok(Object.keys(examples).length > 0);
      for (const { value } of Object.values(examples)) {
        assert.ok(validate(value), `${JSON.stringify(value)}: ${ajv.errorsText(validate.errors)}`);
      }
    }
    for (const { headers = {} } of Object.values(responses)) {
      for (const { schema } of Object.values(headers)) {
        const { examples = [], ...rules } = schema;
        for (const example of examples) assert.ok(ajv.validate(rules, example), JSON.stringify(example));
      }
    }
  });
});

suite('the description follows the interface', () => {
  test('version 1.0.0 under the MIT license, bearer authentication for the whole service', () => {
    assert.equal(description.openapi, '3.1.0');
    assert.equal(description.info.version, '1.0.0');
    assert.deepEqual(description.info.license, { name: 'MIT', identifier: 'MIT' });
    const { bearer, ...others } = description.components.securitySchemes;
    assert.deepEqual(others, {});
    assert.partialDeepStrictEqual(bearer, { type: 'http', scheme: 'bearer' });
    assert.deepEqual(description.security, [{ bearer: [] }]);
    assert.equal(operation.security, undefined);
  });

  test('one operation, POST {base_url}/plants, with no version segment and no parameters', () => {
    assert.deepEqual(Object.keys(description.paths), ['/plants']);
    assert.deepEqual(Object.keys(description.paths['/plants']), ['post']);
    assert.equal(operation.operationId, 'createPlant');
    assert.equal(operation.parameters, undefined);
    assert.equal(operation.requestBody.required, true);
    assertRefersTo(operation.requestBody.content, 'NewPlant');
    assert.equal(description.servers.length, 1);
    assert.equal(description.servers[0].url, '/');
  });

  test('three record shapes: no text limits, further members allowed, no id in Plant', () => {
    // A description may continue after the words of the interface.
    const meanings = JSON.parse(JSON.stringify(schemas), (key, value) =>
      key === 'description' ? value.split(/[:,]/, 1)[0] : value,
    );
    const error = { type: 'integer', format: 'int32', description: 'Error number' };
    // JSON.parse rounded the range of the id. Its exact digits are checked below.
    const id = {
      type: 'integer',
      format: 'int64',
      minimum: -(2 ** 63),
      maximum: 2 ** 63,
      description: 'Identification number of the plant',
    };
    assert.deepEqual(meanings, {
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
          { type: 'object', required: ['id'], properties: { id } },
        ],
      },
      Error: {
        type: 'object',
        required: ['error', 'message'],
        properties: { error, message: { type: 'string', description: 'Error message text' } },
      },
    });
    assert.match(openApiJson(), /"minimum": -9223372036854775808,\n\s*"maximum": 9223372036854775807,/);
  });

  test('200 is a Plant and every other status an Error, 400 described as an unexpected error', () => {
    assert.match(responses['200']!.description, /^Plant response: the plant was created/);
    assert.match(responses['400']!.description, /^Unexpected error: nothing was stored\. The message /);
    for (const [status, response] of Object.entries(responses))
      assertRefersTo(response.content, status === '200' ? 'Plant' : 'Error');
  });
});

test('the statuses, the headers of each, and which leave open whether the plant is stored', () => {
  const shown = Object.entries(responses).map(([status, { headers = {}, description }]) => [
    status,
    Object.keys(headers),
    /The plant may or may not be stored\. Sending it again is safe/.test(description),
  ]);
  assert.deepEqual(shown, [
    ['200', ['Plant-Id', 'Plant-Revision', 'Plant-Outcome', 'RateLimit-Policy', 'RateLimit'], false],
    ['400', ['Link'], false],
    ['401', ['WWW-Authenticate', 'Link'], false],
    ['404', ['Link'], false],
    ['405', ['Allow', 'Link'], false],
    ['408', ['Link'], false],
    ['413', ['Link'], false],
    ['415', ['Link'], false],
    ['429', ['Retry-After', 'RateLimit-Policy', 'RateLimit', 'Link'], false],
    ['431', ['Link'], false],
    ['500', ['Link'], true],
    ['503', ['Retry-After', 'Link'], true],
  ]);
  // The id is text, so that no reader rounds it.
  assert.equal(responses['200']!.headers!['Plant-Id']!.schema.type, 'string');
  assert.deepEqual(responses['200']!.headers!['Plant-Outcome']!.schema.enum, [
    'created',
    'unchanged',
    'revised',
  ]);
});

test('each error is described and has an example under its status only', () => {
  const described = Object.entries(responses).flatMap(([status, response]) => {
    const lines = [...response.description.matchAll(/^- `([0-9]+)`: (.*?)( \(the same .*)?$/gm)];
    const shown = Object.entries(response.content['application/json']!.examples);
    if (status !== '200') assert.equal(lines.length, shown.length);
    return lines.map(([, number, message, retry], index) => {
      const [name, { value }] = shown[index]!;
      assert.partialDeepStrictEqual(value, { error: Number(number) });
      const entry = { number: Number(number), status: Number(status), retry: retry !== undefined, message };
      return [name, entry];
    });
  });
  assert.deepEqual(Object.fromEntries(described), ERRORS);
});

function assertRefersTo(content: Content, schema: string): void {
  assert.deepEqual(Object.keys(content), ['application/json']);
  assert.deepEqual(content['application/json']!.schema, { $ref: `#/components/schemas/${schema}` });
}
