/**
 * Listens for SIGINT and SIGTERM. The second signal ends the process at once and leaves servers and
 * folders behind.
 *
 * @param message printed at the first signal
 * @returns a signal that the first one aborts
 */
export function interruption(message: string): AbortSignal {
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      console.error(`\n${signal}: ${message}`);
      interruption.abort();
    });
  }
  return interruption.signal;
}
