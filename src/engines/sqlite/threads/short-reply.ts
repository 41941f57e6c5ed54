/** Longest reply, in bytes. The results of one plant take about 60. */
const REPLY_MAX_BYTES = 256;

/** Indexes of the words at the start of the memory. */
const STATE = 0;
const REPLY_BYTES = 1;
const WORDS_BYTES = 2 * Int32Array.BYTES_PER_ELEMENT;

/** States of the memory. */
const PENDING = 0;
const AWAITED = 1;
const IN_MEMORY = 2;
const AS_MESSAGE = 3;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * A reply in memory that a thread shares with its caller. The caller sleeps on a futex in it, and
 * so wakes sooner than its event loop would for a message.
 *
 * | state     | event                      | next state | what happens                                |
 * | --------- | -------------------------- | ---------- | ------------------------------------------- |
 * | any       | `begin`, before each call  | pending    |                                             |
 * | pending   | `wait`                     | awaited    | the caller sleeps                           |
 * | pending   | `put`                      | asMessage  | the thread sends a message                  |
 * | awaited   | `put` of a short text      | inMemory   | the caller wakes                            |
 * | awaited   | `put` of any other reply   | asMessage  | the caller wakes, and gets a message        |
 * | awaited   | the time of `wait` is over | asMessage  | the caller goes on, and gets a message      |
 * | inMemory  | `wait` ends                | asMessage  | the caller takes the reply                  |
 * | asMessage | `wait` or `put`            | asMessage  | the caller goes on, and gets a message      |
 *
 * The two threads change the state by atomic exchanges, because the time may be over while the thread
 * replies. So the caller gets each reply once: here or as a message. It waits only while it has one
 * pending call.
 */
export class ShortReply {
  /** Another thread makes its `ShortReply` of the same memory. */
  readonly memory: SharedArrayBuffer;
  readonly #words: Int32Array<SharedArrayBuffer>;
  readonly #text: Uint8Array<SharedArrayBuffer>;

  constructor(memory = new SharedArrayBuffer(WORDS_BYTES + REPLY_MAX_BYTES)) {
    this.memory = memory;
    this.#words = new Int32Array(memory, 0, 2);
    this.#text = new Uint8Array(memory, WORDS_BYTES);
  }

  /** The caller makes a call. */
  begin(): void {
    Atomics.store(this.#words, STATE, PENDING);
  }

  /** The first step of {@link wait}, which a simulation takes before the thread replies. */
  expect(): void {
    Atomics.compareExchange(this.#words, STATE, PENDING, AWAITED);
  }

  /** The caller sleeps until the reply is here. @returns undefined if it comes as a message */
  wait(timeoutMs: number): string | undefined {
    this.expect();
    Atomics.wait(this.#words, STATE, AWAITED, timeoutMs);
    if (Atomics.exchange(this.#words, STATE, AS_MESSAGE) !== IN_MEMORY) return undefined;
    return decoder.decode(this.#text.subarray(0, Atomics.load(this.#words, REPLY_BYTES)));
  }

  /** The thread puts its reply here. @returns false if it must send the reply as a message */
  put(reply: unknown): boolean {
    if (Atomics.compareExchange(this.#words, STATE, PENDING, AS_MESSAGE) !== AWAITED) return false;
    const text = typeof reply === 'string' ? reply : undefined;
    const { read, written } = encoder.encodeInto(text ?? '', this.#text);
    const isShort = read === text?.length;
    Atomics.store(this.#words, REPLY_BYTES, written);
    const next = isShort ? IN_MEMORY : AS_MESSAGE;
    const wasAwaited = Atomics.compareExchange(this.#words, STATE, AWAITED, next) === AWAITED;
    // The caller may already wait for its next reply. If this wakes it, that one comes as a message.
    if (wasAwaited) Atomics.notify(this.#words, STATE);
    return isShort && wasAwaited;
  }
}
