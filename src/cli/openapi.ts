import { Command } from 'commander';
import { openApiJson } from '../client/openapi.ts';

export function openApiCommand(): Command {
  return new Command('openapi')
    .description('print the OpenAPI 3.1 description that the service serves at /openapi.json')
    .action(() => void process.stdout.write(openApiJson()));
}
