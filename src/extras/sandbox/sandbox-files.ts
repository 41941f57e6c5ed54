import { appendFileSync, existsSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ErrorName } from '../../core/contract/errors.ts';
import type { RequestResult } from '../../core/response.ts';

/** A valid plant that arrived, with hashes of its texts. Times are milliseconds since 1970 UTC. */
export interface RecordedRequest {
  kind: 'request';
  request: string;
  at: number;
  storedHash: string;
  /** The faults for which it or its token asked. */
  asked: string;
  id: string;
  name: string;
  tag?: string;
}

/** How a response ended. If its connection ended early, there is none. */
export interface RecordedResponse {
  kind: 'response';
  request: string;
  /** When the response was ready. The client received it later. */
  at: number;
  result: RequestResult;
  /** What its client got; `left`: the client had ended the connection. */
  received: 'whole' | 'half' | 'nothing' | 'left';
  retryAfterSeconds?: number;
}

/** An invalid plant that arrived. It has no id. */
export interface RecordedInvalid {
  kind: 'invalid';
  at: number;
  storedHash: string;
  asked: string;
  error: ErrorName;
}

export type RecordedLine = RecordedRequest | RecordedResponse | RecordedInvalid;

/** The store: that of a sandbox, another one, or none yet. */
type SandboxFilesKind = 'sandbox' | 'other' | 'missing';

export type SandboxFiles = ReturnType<typeof sandboxFilesOf>;

/**
 * The files of a sandbox beside its store. `STORE-sandbox` identifies the store as that of a
 * sandbox, and has the preferences of tokens. `STORE-sandbox-requests` has the recorded requests.
 */
export function sandboxFilesOf(store: string) {
  const exists = existsSync(store);
  const tokensFile = `${exists ? realpathSync(store) : resolve(store)}-sandbox`;
  const tokens = jsonLinesFile<{ hash: string; prefer: string }>(tokensFile);
  const requests = jsonLinesFile<RecordedLine>(`${tokensFile}-requests`);
  const kind: SandboxFilesKind = exists ? (existsSync(tokensFile) ? 'sandbox' : 'other') : 'missing';
  return { kind, tokens, requests };
}

function jsonLinesFile<Line>(path: string) {
  return {
    exists: (): boolean => existsSync(path),
    remove: (): void => rmSync(path, { force: true }),
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
