import {
  StoreDamaged,
  StoreInternalError,
  StoreRejected,
  StoreUnavailable,
} from '../../../core/commit/store-errors.ts';
import type { Problem } from '../../../core/problem.ts';
import { StoreFileReplaced, storeFailure } from '../sqlite-errors.ts';

/** A message loses the class of an error, so a reply has the index of the first class that fits. */
const ERROR_CLASSES = [StoreRejected, StoreFileReplaced, StoreDamaged, StoreUnavailable];

/** The reply of a thread to a call. */
export type Reply<Result> = { kind: 'result'; result: Result } | ErrorReply;

type ErrorReply =
  | { kind: 'storeError'; errorClass: number; fault: string; advice: Problem['advice'] }
  /** The copy of an error keeps its stack, and its class if the class is built into JavaScript. */
  | { kind: 'internalError'; cause: unknown };

/** Runs a call in its thread. */
export function replyTo<Call>(resultOf: (call: Call) => unknown, call: Call): Reply<unknown> {
  try {
    return { kind: 'result', result: resultOf(call) };
  } catch (error) {
    const reported = storeFailure(error);
    if (reported instanceof StoreInternalError) return { kind: 'internalError', cause: reported.cause };
    const errorClass = ERROR_CLASSES.findIndex(each => reported instanceof each);
    const { fault, advice } = reported;
    return { kind: 'storeError', errorClass, fault, advice };
  }
}

/** Makes the error of a reply again, for the caller. */
export function errorOf(reply: ErrorReply): StoreInternalError | StoreUnavailable | StoreRejected {
  if (reply.kind === 'internalError') return new StoreInternalError(reply.cause);
  return new ERROR_CLASSES[reply.errorClass]!(reply.fault, { advice: reply.advice });
}
