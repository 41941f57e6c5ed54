import { setTimeout as sleep } from 'node:timers/promises';
import type { OperatorTables } from '../../engines/tables/operator-tables.ts';
import { hashSecret, randomSecret } from './console-code.ts';

/** A session ends after this time without a request. */
const SESSION_IDLE_MS = 8 * 3_600_000;
/** The store extends a session at most once in this time, so it may end this much earlier. */
const EXTENSION_INTERVAL_MS = 10 * 60_000;
/** After this time, a use of a session reads its state from the store again. */
const REFRESH_INTERVAL_MS = 3_000;
/** Shortest interval between two lookups of the same kind in the store. */
const LOOKUP_INTERVAL_MS = 200;

/**
 * The secret of a session. A cookie has one half, which browsers send to all ports of the host. The
 * page stores the other half for its own origin, and sends it in a header field.
 */
export interface SessionSecret {
  cookieHalf: string;
  headerHalf: string;
}

/** The form of {@link randomSecret}. */
const HALF = /^[\w-]{43}$/;

/** The key of a session in the store. */
function keyOf({ cookieHalf, headerHalf }: SessionSecret): string {
  return hashSecret(`${cookieHalf} ${headerHalf}`);
}

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
  /** Makes codes invalid. @returns the hashes of those codes of the batch that were valid */
  readonly #takeCodes: (hash: string) => Promise<Set<string>>;
  /** Reads the end of each valid session of the batch, by key; ms since 1970. */
  readonly #readSessions: (key: string) => Promise<Map<string, number>>;

  constructor(store: OperatorTables) {
    this.#store = store;
    this.#takeCodes = inBatches(async hashes => new Set(await store.takeConsoleCodes(hashes, Date.now())));
    this.#readSessions = inBatches(keys => store.consoleSessions(keys, Date.now()));
  }

  /** Starts a session. @returns undefined if the code was used, has expired or is wrong */
  async signIn(code: string): Promise<SessionSecret | undefined> {
    const hash = hashSecret(code);
    // Of several requests with the same code, the first one gets the session.
    if (!(await this.#takeCodes(hash)).delete(hash)) return undefined;
    const secret = { cookieHalf: randomSecret(), headerHalf: randomSecret() };
    const key = keyOf(secret);
    const expiresAt = Date.now() + SESSION_IDLE_MS;
    await this.#store.createConsoleSession(key, expiresAt);
    this.#active.set(key, { expiresAt, refreshedAt: performance.now() });
    return secret;
  }

  /** Whether a session is active. The call extends the session. */
  async isActive(secret: SessionSecret): Promise<boolean> {
    if (!HALF.test(secret.cookieHalf) || !HALF.test(secret.headerHalf)) return false;
    const key = keyOf(secret);
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

  /**
   * Ends a session.
   *
   * @throws {StoreUnavailable} if it ended only in memory, so a restart may restore it
   */
  async signOut(secret: SessionSecret): Promise<void> {
    const key = keyOf(secret);
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
    const expiresAt = await this.#extend(key, end);
    if (!this.#signedOut.has(key)) this.#active.set(key, { expiresAt, refreshedAt: performance.now() });
  }

  /** Extends a session in the store, if it is due. @returns the new end, ms since 1970 */
  async #extend(key: string, end: number): Promise<number> {
    const later = Date.now() + SESSION_IDLE_MS;
    if (later - end <= EXTENSION_INTERVAL_MS) return end;
    try {
      // This is an UPDATE, so it cannot restore a session that is deleted at the same time.
      await this.#store.extendConsoleSession(key, later);
      return later;
    } catch {
      // A full disk must not end the session.
      return end;
    }
  }
}

/**
 * Collects the keys of an interval for one lookup, so a flood of invalid keys does not load the
 * store. Each caller gets the result for all keys.
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
    pause = Promise.allSettled([found, sleep(LOOKUP_INTERVAL_MS, undefined, { ref: false })]);
    return await found;
  };
  return key => {
    keys.push(key);
    lookup ??= next();
    return lookup;
  };
}
