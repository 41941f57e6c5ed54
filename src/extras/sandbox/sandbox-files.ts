import { appendFileSync, existsSync, readFileSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';

/** A request with the hash of its plant, or the status of a response that was sent. */
export type RecordedLine =
  | { request: string; at: string; id: string; content: string; asked: string; status?: undefined }
  | { request: string; status: number };

export type SandboxFiles = ReturnType<typeof sandboxFilesOf>;

/**
 * The files of a sandbox beside its store. `STORE-sandbox` identifies the store as that of a
 * sandbox, and has the preferences of tokens. `STORE-sandbox-requests` has the recorded requests.
 *
 * @returns the files, and whether the store is that of a sandbox; undefined: it does not exist
 */
export function sandboxFilesOf(store: string) {
  const exists = existsSync(store);
  const tokensFile = `${exists ? realpathSync(store) : resolve(store)}-sandbox`;
  const tokens = jsonLinesFile<{ hash: string; prefer: string }>(tokensFile);
  const requests = jsonLinesFile<RecordedLine>(`${tokensFile}-requests`);
  return { tokens, requests, isSandbox: exists ? existsSync(tokensFile) : undefined };
}

function jsonLinesFile<Line>(path: string) {
  return {
    /** Adds lines, and creates the file if it is missing, even without a line. */
    append: (...lines: Line[]): void => {
      // A line end before each line separates it from a line that was cut off.
      const text = lines.map(line => `\n${JSON.stringify(line)}`).join('');
      appendFileSync(path, text, { mode: 0o600 });
    },
    /** Reads all complete lines. */
    read: (): Line[] => {
      const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [];
      return lines.flatMap(line => {
        try {
          return [JSON.parse(line) as Line];
        } catch {
          return [];
        }
      });
    },
  };
}
