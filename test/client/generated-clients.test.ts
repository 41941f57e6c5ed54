import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import createClient from 'openapi-fetch';
import { startTestService } from '../harness/running-service.ts';
import { runExamples } from './document-examples.ts';
import { client as heyApiClient } from './generated/client.gen.ts';
import { createPlant } from './generated/sdk.gen.ts';

const DOCUMENT = readFileSync(new URL('../../docs/generated-clients.md', import.meta.url), 'utf8');
const EXACT = '200 9007199254740993\n';

suite('docs/generated-clients.md', () => {
  test('contains a recipe for each client that sends an id above 2^53 exactly', async () => {
    await runExamples(DOCUMENT, [EXACT, EXACT], startTestService, {
      'openapi-fetch': import.meta.resolve('openapi-fetch'),
      './generated/client.gen.ts': import.meta.resolve('./generated/client.gen.ts'),
      './generated/sdk.gen.ts': import.meta.resolve('./generated/sdk.gen.ts'),
    });
  });

  test('states that openapi-fetch rounds a number without the recipe', async () => {
    await using service = await startTestService();
    const client = createClient<{ '/plants': { post: { requestBody: { content: JsonPlant } } } }>({
      baseUrl: service.url,
      headers: { Authorization: `Bearer ${service.token}` },
    });
    // The same value as 9007199254740993, which the linter does not accept as a literal.
    const body = { id: Number('9007199254740993'), name: 'Monstera deliciosa' };
    const { response } = await client.POST('/plants', { body });
    assert.deepEqual([response.status, response.headers.get('Plant-Id')], [200, '9007199254740992']);
  });

  test('states that hey-api sends a bigint as text without the recipe', async () => {
    await using service = await startTestService();
    heyApiClient.setConfig({ baseUrl: service.url, auth: service.token });
    const { response, error } = await createPlant({ body: { id: 9007199254740993n, name: 'Monstera' } });
    assert.deepEqual([response.status, Object(error).error], [400, 40002]);
  });
});

interface JsonPlant {
  'application/json': { id: number; name: string };
}
