import { randomUUID } from "node:crypto";
import { readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { isMainThread } from "node:worker_threads";
import type { LeaseOptions } from "@parley/a2a";

/**
 * A name for the leases of this process that its successor on the same machine can judge: tasks of a process that
 * is known to be dead need not wait for their leases to run out. Where nothing is known, they wait.
 */
export function processLease(): Required<Pick<LeaseOptions, "holder" | "isGone">> {
  const here = { place: place(), pid: process.pid, start: isMainThread ? Math.round(performance.timeOrigin) : 0 };
  return {
    holder: JSON.stringify([here.place, here.pid, here.start, randomUUID()]),
    isGone(holder) {
      const [where, pid, start] = parse(holder);
      if (where !== here.place || typeof pid !== "number" || typeof start !== "number") return false;
      if (pid !== here.pid) return !isAlive(pid);
      // In containers the successor often has its predecessor's number; only the time of their start tells them apart.
      return start > 0 && here.start > 0 && start !== here.start;
    },
  };
}

/** Within what process numbers mean something: a machine, and in it a container. */
function place(): string {
  try {
    return `${hostname()} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return hostname();
  }
}

function parse(holder: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(holder);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user is there all the same.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

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
