import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { commandProcess } from './command-lines.ts';
import type { Finished } from './program.ts';
import { type RunningService, startTestService } from './running-service.ts';

/** A file as people have it, byte by byte, and what an import stores and says. */
export interface FileCase {
  what: string;
  content: string | Uint8Array;
  args?: string[];
  /** Standard input instead of a file. */
  isStream?: true;
  /** The lines of an export without its header. */
  stored?: string[];
  /** The lines of the rejects file, with the header of CSV. */
  rejects?: (string | RegExp)[];
  /** Options with which the rejects file is imported. */
  rejectsArgs?: string[];
  /** The message that ends the import. */
  failure?: RegExp;
  note?: RegExp;
}

/** The header of the rejects file of a CSV file with the columns id and name. */
export const REJECTS_HEADER = 'id,name,line,row,error,message';

async function rejectsIn(
  { folder }: RunningService,
  pattern: RegExp,
): Promise<{ name: string; text: string } | undefined> {
  const name = (await readdir(folder)).find(each => pattern.test(each));
  return name === undefined ? undefined : { name, text: await readFile(join(folder, name), 'utf8') };
}

/** Imports each file into an empty store. */
export function testImports(name: string, cases: FileCase[]): void {
  const commands = commandProcess();
  const importInto = (
    { url, token, folder }: RunningService,
    args: string[],
    stdin: string | Uint8Array = '',
  ): Promise<Finished> =>
    commands.run({ args: ['import', '--url', url, '--token', token, ...args], cwd: folder, stdin });
  suite(name, { concurrency: 4 }, () => {
    for (const each of cases)
      test(each.what, async () => {
        const { content, args = [], isStream, stored = [], rejects = [], rejectsArgs = [] } = each;
        const { failure, note } = each;
        await using service = await startTestService();
        await writeFile(join(service.folder, 'list'), content);
        const { stdout, stderr, exitCode } = await importInto(
          service,
          [...args, isStream ? '-' : 'list'],
          isStream === undefined ? '' : content,
        );
        const lines = stderr.trimEnd().split('\n');
        if (failure !== undefined) assert.match(lines.at(-1)!, failure);
        if (note !== undefined) assert.match(lines.join('\n'), new RegExp(note, 'm'));
        assert.equal(exitCode, failure === undefined && rejects.length === 0 ? 0 : 1, stdout + stderr);
        const { stdout: exported } = await commands.run({ args: ['export', '--database', service.database] });
        assert.deepEqual(exported.trimEnd().split('\n').slice(1), stored);
        const written = await rejectsIn(service, /\.rejects\./);
        const rejectedLines = written?.text.trimEnd().split('\n') ?? [];
        assert.equal(rejectedLines.length, rejects.length, written?.text ?? 'no row is rejected');
        for (const [index, expected] of rejects.entries()) {
          if (typeof expected === 'string') assert.equal(rejectedLines[index], expected);
          else assert.match(rejectedLines[index]!, expected);
        }
        if (written === undefined) return;
        // A rejects file can be imported, and its rows stay rejected until they are corrected.
        const again = await importInto(service, [...rejectsArgs, written.name]);
        assert.match(again.stdout, /rows?: 0 created, 0 unchanged, 0 replaced, [1-9][0-9]* rejected /);
        const reasons = (text: string): string =>
          text.replace(
            /[0-9]+(?=,(?:[0-9]+,)?(?:4000[0-9]|quotes|fields|encoding))|"(?:line|row)":[0-9]+/g,
            'N',
          );
        assert.equal(reasons((await rejectsIn(service, /\.rejects-2\./))!.text), reasons(written.text));
      });
  });
}
