/**
 * Ends the threads of a service on SIGUSR2: alternately by a terminate from outside, and by an
 * exception of their own. `node --import` loads this file before the service, on each of its
 * threads.
 */
import { isMainThread, type Worker } from 'node:worker_threads';

const channel = new BroadcastChannel('dying-threads');

if (isMainThread) {
  const workers = new Set<Worker>();
  process.on('worker', worker => {
    workers.add(worker);
    worker.once('exit', () => workers.delete(worker));
  });
  let deaths = 0;
  process.on('SIGUSR2', () => {
    if (++deaths % 2 === 0) channel.postMessage('fail');
    else for (const worker of workers) void worker.terminate();
  });
} else {
  channel.onmessage = () => {
    throw new Error('this thread fails on purpose');
  };
}
channel.unref();
