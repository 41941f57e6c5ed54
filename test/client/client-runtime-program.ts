/** Runs in Node, Bun and Deno; see client-in-runtime.ts. The environment names the service. */
import { useClient } from './client-in-runtime.ts';

console.log(JSON.stringify(await useClient({}, process.argv[2]!)));
