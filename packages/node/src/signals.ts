const stopSignals = ["SIGTERM", "SIGINT"] as const;

/**
 * Has SIGTERM and SIGINT close something before the process ends of them as it would have done. A second signal does not
 * wait. The returned function takes it back.
 */
export function onStopSignal(close: () => Promise<void>): () => void {
  let closing = false;
  const forget = (): void => {
    for (const signal of stopSignals) process.off(signal, stop);
  };
  const finish = (signal: NodeJS.Signals): void => {
    forget();
    // Who else listens, another server or the program itself, decides when the process ends.
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  };
  const stop = (signal: NodeJS.Signals): void => {
    if (closing) {
      finish(signal);
      return;
    }
    closing = true;
    void close().finally(() => finish(signal));
  };
  for (const signal of stopSignals) process.on(signal, stop);
  return forget;
}
