/**
 * Listens for SIGINT and SIGTERM. The second one ends the process at once, and leaves servers and folders behind.
 *
 * @param saying what is done about the first one
 * @returns is aborted by the first one
 */
export function interruption(saying: string): AbortSignal {
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      console.error(`\n${signal}: ${saying}`);
      interruption.abort();
    });
  }
  return interruption.signal;
}
