import { setTimeout as wait } from 'node:timers/promises';
import { hashToken } from '../../core/tokens/token.ts';
import type { OperatorTables } from '../../engines/operator-tables.ts';
import { makeConsoleSecret } from './console-code.ts';

/** A session ends after this time without a request. */
const SESSION_IDLE_MS = 8 * 3_600_000;
/** The store extends a session at most this often, so a session may end this much earlier. */
const EXTENSION_INTERVAL_MS = 10 * 60_000;
/** A use of a session reads its state from the store again after this time. */
const REFRESH_INTERVAL_MS = 3_000;
/** Shortest interval between two lookups of the same kind in the store. */
const LOOKUP_INTERVAL_MS = 200;

const SECRET = /^[A-Za-z0-9_-]{43} [A-Za-z0-9_-]{43}$/;

/**
 * The sessions of signed-in operators. The store has the hash of each secret, so a session survives
 * a restart. A session in memory stays valid while the store fails, since operators need the
 * console then.
 */
export class Sessions {
  readonly #store: OperatorTables;
  /**
   * Sessions by key. `expiresAt` is in ms since 1970, `refreshedAt` in ms on the monotonic clock.
   */
  readonly #active = new Map<string, { expiresAt: number; refreshedAt: number }>();
  /** Keys of sessions that ended here. A lookup that began earlier must not restore them. */
  readonly #signedOut = new Set<string>();
  /** @returns the hashes of the valid codes of the batch, which are invalid from then on */
  readonly #takeCodes: (hash: string) => Promise<Set<string>>;
  /** @returns the end of each valid session of the batch, ms since 1970 */
  readonly #readSessions: (key: string) => Promise<Map<string, number>>;

  constructor(store: OperatorTables) {
    this.#store = store;
    this.#takeCodes = inBatches(async hashes => new Set(await store.takeConsoleCodes(hashes, Date.now())));
    this.#readSessions = inBatches(keys => store.consoleSessions(keys, Date.now()));
  }

  /** @returns both halves of a secret, with a blank between them; undefined for a wrong code */
  async signIn(code: string): Promise<string | undefined> {
    const hash = hashToken(code);
    // Of several requests with the same code, the first one gets the session.
    if (!(await this.#takeCodes(hash)).delete(hash)) return undefined;
    const secret = `${makeConsoleSecret()} ${makeConsoleSecret()}`;
    const expiresAt = Date.now() + SESSION_IDLE_MS;
    await this.#store.createConsoleSession(hashToken(secret), expiresAt);
    this.#active.set(hashToken(secret), { expiresAt, refreshedAt: performance.now() });
    return secret;
  }

  /** Whether a session is active. The call extends the session. */
  async isActive(secret: string): Promise<boolean> {
    if (!SECRET.test(secret)) return false;
    const key = hashToken(secret);
    const session = this.#active.get(key);
    if (session === undefined || session.expiresAt <= Date.now()) {
      await this.#refresh(key);
    } else if (performance.now() - session.refreshedAt > REFRESH_INTERVAL_MS) {
      session.refreshedAt = performance.now();
      // The refresh is not awaited, because the store may hang.
      this.#refresh(key).catch(() => {});
    }
    const current = this.#active.get(key);
    return current !== undefined && current.expiresAt > Date.now();
  }

  /** @throws {StoreUnavailable} if the session ended only in memory, so a restart may restore it */
  async signOut(secret: string): Promise<void> {
    const key = hashToken(secret);
    // Requests without a session do not load the store.
    if (!this.#signedOut.has(key) && !(await this.isActive(secret))) return;
    this.#signedOut.add(key);
    this.#active.delete(key);
    await this.#store.endConsoleSession(key);
  }

  /** Reads the state of a session from the store, and extends the session there. */
  async #refresh(key: string): Promise<void> {
    const end = (await this.#readSessions(key)).get(key);
    if (end === undefined || this.#signedOut.has(key)) {
      this.#active.delete(key);
      return;
    }
    const later = Date.now() + SESSION_IDLE_MS;
    let expiresAt = end;
    // This is an UPDATE, so it cannot restore a session that is deleted at the same time.
    const extend = () => this.#store.extendConsoleSession(key, later).then(() => later);
    // A full disk must not end the session.
    if (later - end > EXTENSION_INTERVAL_MS) expiresAt = await extend().catch(() => end);
    if (!this.#signedOut.has(key)) this.#active.set(key, { expiresAt, refreshedAt: performance.now() });
  }
}

/**
 * Makes one lookup for all keys of an interval, so a flood of invalid keys does not load the store.
 */
function inBatches<Found>(run: (keys: string[]) => Promise<Found>): (key: string) => Promise<Found> {
  const keys: string[] = [];
  let lookup: Promise<Found> | undefined;
  /** Settles when the next lookup may begin. */
  let pause: Promise<unknown> | undefined;
  const next = async () => {
    await pause;
    lookup = undefined;
    const found = run(keys.splice(0));
    // The timer does not keep the process running.
    pause = Promise.allSettled([found, wait(LOOKUP_INTERVAL_MS, undefined, { ref: false })]);
    return await found;
  };
  return key => {
    keys.push(key);
    lookup ??= next();
    return lookup;
  };
}
