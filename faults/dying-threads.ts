/**
 * Lets the threads of a service die when it gets SIGUSR2: each other time they are ended wherever they are, and each other
 * time they fail by themselves. Loaded before the service, on each of its threads: `node --import`.
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
    throw new Error('this thread was told to fail');
  };
}
channel.unref();
