import { appendFileSync, existsSync, readFileSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';

/** A request with the hash of its plant, or the status of a response that was sent. */
export type RecordedLine =
  | { request: string; at: string; id: string; content: string; asked: string; status?: undefined }
  | { request: string; status: number };

export type SandboxFiles = ReturnType<typeof sandboxFilesOf>;

/**
 * The files of a sandbox beside its store: `STORE-sandbox`, which marks it, with what the requests
 * of tokens prefer; and `STORE-sandbox-requests`.
 *
 * @returns them, and whether the store is that of a sandbox; undefined: it does not exist
 */
export function sandboxFilesOf(store: string) {
  const exists = existsSync(store);
  const marker = `${exists ? realpathSync(store) : resolve(store)}-sandbox`;
  const tokens = jsonLinesFile<{ hash: string; prefer: string }>(marker);
  const requests = jsonLinesFile<RecordedLine>(`${marker}-requests`);
  return { tokens, requests, isSandbox: exists ? existsSync(marker) : undefined };
}

function jsonLinesFile<Line>(path: string) {
  return {
    /** Creates the file if it is missing, also without a line. */
    append: (...lines: Line[]): void => {
      // Each begins a line, so that it does not continue one that was cut off.
      const text = lines.map(line => `\n${JSON.stringify(line)}`).join('');
      appendFileSync(path, text, { mode: 0o600 });
    },
    /** Reads all lines, but not those that were cut off. */
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
