import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { commandProcess } from './command-lines.ts';
import { paste } from './pasted-commands.ts';
import type { Finished } from './program.ts';
import type { RunningService } from './running-service.ts';
import { testFolder } from './test-folder.ts';

/** A service whose store can be read, and how commands reach both. */
export interface Site {
  service: RunningService;
  env: Record<string, string>;
  folder: string;
  run(...args: string[]): Promise<Finished>;
  write(files: Record<string, string>): Promise<void>;
  read(name: string): Promise<string>;
  exported(): Promise<string>;
}

export async function siteOf(
  commands: ReturnType<typeof commandProcess>,
  service: RunningService,
  token = service.token,
  url = service.url,
): Promise<Site> {
  const cwd = testFolder();
  const env = {
    PLANT_STORE_URL: url,
    PLANT_STORE_TOKEN: token,
    PLANT_STORE_DATABASE: service.database,
  };
  const run = (...args: string[]): Promise<Finished> => commands.run({ args, env, cwd });
  return {
    service,
    env,
    folder: cwd,
    run,
    write: async files => {
      for (const [name, text] of Object.entries(files)) await writeFile(join(cwd, name), text);
    },
    read: name => readFile(join(cwd, name), 'utf8'),
    exported: async () => (await run('export')).stdout,
  };
}

export function linesOf(text: string): string[] {
  return text.trimEnd().split('\n');
}

/** The counts that an import prints, or a dry run expects: `1 created, 0 unchanged, …`. */
export function countsIn({ stdout }: Finished): string {
  return /[0-9,]+ created, [0-9,]+ unchanged, [0-9,]+ replaced, [0-9,]+ rejected/.exec(stdout)?.[0] ?? stdout;
}

/** The command that a line of the output has. */
export function commandIn({ stdout }: Finished, start: string): string {
  const line = linesOf(stdout).find(each => each.includes(start));
  assert.ok(line !== undefined, stdout);
  return line.slice(line.indexOf('npx '));
}

/** Pastes both commands that undo replacements. @returns what the second one prints */
export async function pasteUndo(
  imported: Finished,
  { env, folder }: Pick<Site, 'env' | 'folder'>,
): Promise<Finished> {
  await paste(commandIn(imported, 'to undo what '), folder, env);
  return { ...(await paste(commandIn(imported, 'then set these plants back'), folder, env)), exitCode: 0 };
}
