import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

/** What `serve` says on stderr before it takes the first plant. */
export interface ServeGreeting {
  /** Base address, without a slash at its end. */
  url: string;
  /** The token it made because its store was new; empty otherwise. */
  token: string;
}

/**
 * Waits until a `serve` process, however it was started, takes plants.
 *
 * @throws with what it said, when it ends instead
 */
export async function readGreeting(child: ChildProcess): Promise<ServeGreeting> {
  let said = '';
  for await (const line of createInterface(child.stderr!)) {
    said += `${line}\n`;
    const url = /^Taking plants at (\S+)\/plants/.exec(line)?.[1];
    if (url !== undefined) return { url, token: /^ {2}(plant_\w+)$/m.exec(said)?.[1] ?? '' };
  }
  throw new Error(`serve ended: ${said}`);
}
