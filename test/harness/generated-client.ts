import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '@hey-api/openapi-ts';
import { openApiJson } from '../../src/client/openapi.ts';
import { testFolder } from './test-folder.ts';

interface GeneratedClient {
  createPlant(options: { baseUrl: string; auth: string; body: object }): Promise<{ error?: unknown }>;
}

/** Generates a client with hey-api as in docs/generated-clients.md. To be called outside of tests. */
export async function generatedClient(): Promise<GeneratedClient> {
  const folder = testFolder();
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  await createClient({
    input: JSON.parse(openApiJson()),
    output: { path: join(folder, 'generated'), importFileExtension: '.ts' },
    plugins: ['@hey-api/client-fetch', '@hey-api/sdk'],
    logs: { level: 'silent', file: false },
  });
  return await import(join(folder, 'generated/sdk.gen.ts'));
}
