/** Stands for the file of the same name that `@hey-api/openapi-ts` generates. */
import { createClient, createConfig } from '@hey-api/client-fetch';

export const client = createClient(createConfig());
