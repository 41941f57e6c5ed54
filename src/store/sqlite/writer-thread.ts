import { parentPort, workerData } from 'node:worker_threads';
import { StoreRefused } from '../plant-store.ts';
import { type SqliteSettings, SqliteStore, StoreGone } from './sqlite-store.ts';

/** Names an operation of the store, with its arguments; `call` is repeated in the answer. */
export interface WriterCall {
  call: number;
  operation: keyof SqliteStore;
  args: unknown[];
}

/** The answer to a call: the result, or what went wrong, since an error loses its class between threads. */
export interface WriterAnswer {
  call: number;
  result?: unknown;
  failure?: { message: string; errcode: number | undefined; storeRefused: boolean; storeGone: boolean };
}

const store = new SqliteStore(workerData as SqliteSettings);

parentPort!.on('message', ({ call, operation, args }: WriterCall) => {
  parentPort!.postMessage(answer(call, operation, args));
});

function answer(call: number, operation: keyof SqliteStore, args: unknown[]): WriterAnswer {
  try {
    const run = store[operation] as (...args: unknown[]) => unknown;
    return { call, result: run.apply(store, args) };
  } catch (error) {
    const { message, errcode } = error as Error & { errcode?: number };
    const storeRefused = error instanceof StoreRefused;
    return { call, failure: { message, errcode, storeRefused, storeGone: error instanceof StoreGone } };
  }
}
