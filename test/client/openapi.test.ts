import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { openApiJson } from '../../src/client/openapi.ts';
import { ERRORS } from '../../src/core/contract/errors.ts';

type Content = Record<string, { schema: { $ref: string }; examples: Record<string, { value: unknown }> }>;

interface Response {
  description: string;
  headers?: Record<
    string,
    { required: boolean; schema: { type: string; enum: string[]; examples?: unknown[] } }
  >;
  content: Content;
}

const description = JSON.parse(openApiJson());
const operation = description.paths['/plants'].post;
const responses: Record<string, Response> = operation.responses;
const { schemas } = description.components;

test('the description is valid by the schema of the OpenAPI Initiative', async () => {
  assert.deepEqual(await new Validator().validate(JSON.parse(openApiJson())), { valid: true });
});

test('every schema is strict JSON Schema 2020-12, and every example matches its schema', () => {
  const ajv = new Ajv2020({ formats: { int32: true, int64: true } });
  ajv.addVocabulary(['components']);
  ajv.addSchema({ $id: 'plant-store', components: { schemas } });
  for (const { content, headers = {} } of [operation.requestBody as Response, ...Object.values(responses)]) {
    const { schema, examples } = content['application/json']!;
    const validate = ajv.compile({ $ref: `plant-store${schema.$ref}` });
    assert.ok(Object.keys(examples).length > 0);
    for (const { value } of Object.values(examples))
      assert.ok(validate(value), `${JSON.stringify(value)}: ${ajv.errorsText(validate.errors)}`);
    for (const { examples: headerExamples = [], ...rules } of Object.values(headers).map(each => each.schema))
      for (const example of headerExamples) assert.ok(ajv.validate(rules, example), JSON.stringify(example));
  }
});

test('the description has version 1.0.0 under the MIT license, one operation with one optional header, bearer authentication', () => {
  const { info, security, servers, paths, components } = description;
  const license = { name: 'MIT', url: 'https://spdx.org/licenses/MIT.html' };
  assert.partialDeepStrictEqual(info, { version: '1.0.0', license, contact: { url: 'docs' } });
  assert.deepEqual(Object.keys(components.securitySchemes), ['bearer']);
  assert.partialDeepStrictEqual(components.securitySchemes.bearer, { type: 'http', scheme: 'bearer' });
  assert.deepEqual([security, operation.security], [[{ bearer: [] }], undefined]);
  assert.partialDeepStrictEqual(servers, [{ url: '/' }]);
  const address = 'https://plants.example/garden';
  assert.equal(JSON.parse(openApiJson(address)).servers[0].url, address);
  assert.deepEqual(Object.keys(paths), ['/plants']);
  assert.deepEqual(Object.keys(paths['/plants']), ['post']);
  assert.partialDeepStrictEqual(operation, { operationId: 'createPlant', requestBody: { required: true } });
  assert.equal(operation.parameters.length, 1);
  assert.partialDeepStrictEqual(operation.parameters[0], {
    name: 'If-Plant-Revision',
    in: 'header',
    required: false,
    schema: { type: 'integer', minimum: 0 },
  });
  assertRefersTo(operation.requestBody.content, 'NewPlant');
});

test('the description has three record shapes: no text limits, further members allowed, no id in Plant', () => {
  // A description may continue after the words of the interface.
  const meanings = JSON.parse(JSON.stringify(schemas), (key, value) =>
    key === 'description' ? value.split(/[:,]/, 1)[0] : value,
  );
  const text = (description: string): object => ({ type: 'string', description });
  const error = { type: 'integer', format: 'int32', description: 'Error number' };
  // Without minimum and maximum, which JSON.parse rounds.
  const id = { type: 'integer', format: 'int64', description: 'Identification number of the plant' };
  assert.deepEqual(meanings, {
    Plant: {
      type: 'object',
      required: ['name'],
      properties: { name: text('The name of the plant'), tag: text('Tag to specify the type') },
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
      properties: { error, message: text('Error message text') },
    },
  });
});

test('in the description, 200 is a Plant and every other status an Error, 400 is described as an unexpected error', () => {
  assert.match(responses['200']!.description, /^Plant response: the plant was created/);
  assert.match(responses['400']!.description, /^Unexpected error: nothing was stored\. The message /);
  for (const [status, response] of Object.entries(responses))
    assertRefersTo(response.content, status === '200' ? 'Plant' : 'Error');
});

test('the statuses, the headers of each, and which leave open whether the plant is stored', () => {
  const shown = Object.entries(responses).map(([status, { headers = {}, description }]) => [
    status,
    // A question mark: only sometimes.
    Object.entries(headers).map(([name, { required }]) => (required ? name : `${name}?`)),
    /The plant may or may not be stored\. Sending it again is safe/.test(description),
  ]);
  assert.deepEqual(shown, [
    ['200', ['Plant-Id', 'Plant-Revision', 'Plant-Outcome', 'RateLimit-Policy?', 'RateLimit?'], false],
    ['400', ['RateLimit-Policy?', 'RateLimit?', 'Link?'], false],
    ['401', ['WWW-Authenticate', 'Link?'], false],
    ['404', ['Link?'], false],
    ['405', ['Allow', 'Link?'], false],
    ['408', ['Link?'], false],
    ['412', ['Plant-Id', 'Plant-Revision', 'RateLimit-Policy?', 'RateLimit?', 'Link?'], false],
    ['413', ['RateLimit-Policy?', 'RateLimit?', 'Link?'], false],
    ['415', ['RateLimit-Policy?', 'RateLimit?', 'Link?'], false],
    ['429', ['Retry-After', 'RateLimit-Policy', 'RateLimit', 'Link?'], false],
    ['431', ['Link?'], false],
    ['500', ['Link?'], true],
    ['503', ['Retry-After?', 'RateLimit-Policy?', 'RateLimit?', 'Link?'], true],
  ]);
  const { 'Plant-Id': id, 'Plant-Outcome': outcome } = responses['200']!.headers!;
  assert.equal(id!.schema.type, 'string', 'no reader rounds it');
  const sent = Object.values((operation.requestBody.content as Content)['application/json']!.examples);
  const ids = sent.map(({ value }) => String((value as { id: number }).id));
  assert.deepEqual(id!.schema.examples, ids);
  assert.deepEqual(outcome!.schema.enum, ['created', 'unchanged', 'revised']);
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
  const [firstOf400] = Object.keys(responses['400']!.content['application/json']!.examples);
  assert.equal(firstOf400, 'notNewPlant', 'a mock responds with the first example');
});

function assertRefersTo(content: Content, schema: string): void {
  assert.deepEqual(Object.keys(content), ['application/json']);
  assert.deepEqual(content['application/json']!.schema, { $ref: `#/components/schemas/${schema}` });
}
