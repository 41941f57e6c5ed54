/** Stands for the file of the same name that `@hey-api/openapi-ts` generates. */
import { client } from './client.gen.ts';

export function createPlant(options: {
  body: { id: bigint; name: string };
  headers?: { 'If-Plant-Revision'?: number };
  baseUrl?: string;
  auth?: string;
}) {
  return client.post({
    security: [{ scheme: 'bearer', type: 'http' }],
    url: '/plants',
    ...options,
    headers: { 'Content-Type': 'application/json', ...options.headers },
  });
}
