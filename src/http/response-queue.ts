import type { Socket } from 'node:net';
import { type Answer, type AnsweredRequest, answerText, errorAnswer } from './answer.ts';
import type { Listener } from './plant-service.ts';

/** A request whose response is not written yet. */
export interface Pending extends AnsweredRequest {
  answer: Answer | undefined;
}

/** Writes the responses of one connection in the order of its requests, those to plants of one commit in one write. */
export class ResponseQueue {
  readonly #socket: Socket;
  readonly #listener: Listener;
  readonly #isLast: () => boolean;
  readonly #written: (isLast: boolean) => void;
  readonly #pending: Pending[] = [];
  #isWriteDue = false;

  /**
   * @param isLast asked when no further response is pending: whether the connection is closed behind this one
   * @param written told of each write
   */
  constructor(socket: Socket, listener: Listener, isLast: () => boolean, written: (isLast: boolean) => void) {
    this.#socket = socket;
    this.#listener = listener;
    this.#isLast = isLast;
    this.#written = written;
  }

  /** How many responses are pending. */
  get length(): number {
    return this.#pending.length;
  }

  /** Has a response written when it is there, and those to all requests before it. */
  add(pending: Pending, answering: Promise<Answer>): void {
    this.#pending.push(pending);
    answering.then(
      answer => this.#answered(pending, answer),
      cause => {
        this.#listener.failed(cause);
        this.#answered(pending, errorAnswer('internal'));
      },
    );
  }

  #answered(pending: Pending, answer: Answer): void {
    pending.answer = answer;
    if (this.#pending.length === 1) this.#write();
    else if (!this.#isWriteDue) {
      // A tick runs when all promises that one commit has settled have called this: one write for all of them.
      this.#isWriteDue = true;
      process.nextTick(() => this.#write());
    }
  }

  #write(): void {
    this.#isWriteDue = false;
    const { answered, documentation } = this.#listener;
    if (this.#socket.destroyed) return;
    let text = '';
    let isLast = false;
    for (let next = this.#pending[0]; next?.answer !== undefined; next = this.#pending[0]) {
      this.#pending.shift();
      isLast = this.#pending.length === 0 && this.#isLast();
      answered(next.answer, next, this.#socket);
      text += answerText(next.answer, isLast, documentation !== undefined);
    }
    if (text !== '') this.#socket.write(text);
    this.#written(isLast);
  }
}
