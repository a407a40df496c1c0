import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { isMainThread } from "node:worker_threads";
import type { LeaseOptions } from "@parley/server/internal/engine/index";
import type { CloseOptions, ServeOptions } from "./serve-options.ts";

/** The serving processes of one parent process, and how they ended. */
export interface Siblings {
  /** A name that identifies these processes. */
  readonly group: string;
  /** Whether the parent has reported that a process has ended, and how. */
  readonly hasEnded: (pid: number) => boolean;
  /** Whether a process was killed from outside. */
  readonly wasKilled: (pid: number) => boolean;
}

/**
 * The lease holder of this process. The next process on the same machine can tell from its name whether this process still
 * runs, so that the tasks of a dead process need not wait until their leases expire. If that is not known, they wait.
 *
 * Siblings consider a process gone only after the parent has reported how it ended. Earlier, they could not know that it was killed, and
 * would blame its tasks.
 */
export function processLease(
  siblings?: Siblings,
): Required<Pick<LeaseOptions, "holder" | "isGone">> & Pick<LeaseOptions, "wasKilled"> {
  const here = { place: place(), pid: process.pid, start: isMainThread ? Math.round(performance.timeOrigin) : 0 };
  const group = siblings === undefined ? [] : [siblings.group];
  return {
    holder: JSON.stringify([here.place, here.pid, here.start, randomUUID(), ...group]),
    isGone(holder) {
      const [where, pid, start, , ofGroup] = parse(holder);
      if (where !== here.place || typeof pid !== "number" || typeof start !== "number") return false;
      if (pid !== here.pid) {
        const isTold = siblings === undefined || ofGroup !== siblings.group || siblings.hasEnded(pid);
        return isTold && !isAlive(pid);
      }
      // In containers the next process often has the same pid, and differs only in its start time.
      return start > 0 && here.start > 0 && start !== here.start;
    },
    ...(siblings && {
      wasKilled(holder) {
        const [where, pid] = parse(holder);
        return where === here.place && typeof pid === "number" && siblings.wasKilled(pid);
      },
    }),
  };
}

/**
 * The scope of process ids: one boot of a machine, or of a container on it. Several machines may have the same host name, and
 * their first containers the same number.
 */
function place(): string {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${hostname()} ${boot} ${readlinkSync("/proc/self/ns/pid")}`;
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
    // Any other error means that the process exists, for example as a process of another user.
    return !(error instanceof Error && "code" in error && error.code === "ESRCH");
  }
}

/** Returns the `close` of a server, which takes effect once. SIGTERM and SIGINT call it too, unless `signals` is false. */
export function closeOnce(
  { drainDelay = 0, grace = 10_000, signals = true }: Pick<ServeOptions, "drainDelay" | "grace" | "signals">,
  end: (times: Required<CloseOptions>) => Promise<void>,
): (own?: CloseOptions) => Promise<void> {
  let closing: Promise<void> | undefined;
  let forget = (): void => {};
  const close = (own: CloseOptions = {}): Promise<void> => {
    forget();
    return (closing ??= end({ drainDelay: own.drainDelay ?? drainDelay, grace: own.grace ?? grace }));
  };
  if (signals) forget = onStopSignal(close);
  return close;
}

const stopSignals = ["SIGTERM", "SIGINT"] as const;

/**
 * Calls `close` at SIGTERM and SIGINT, and then lets the signal end the process. A second signal does not wait for `close`. The
 * returned function removes the listeners.
 */
function onStopSignal(close: () => Promise<void>): () => void {
  let closing = false;
  const forget = (): void => {
    for (const signal of stopSignals) process.off(signal, stop);
  };
  const finish = (signal: NodeJS.Signals): void => {
    forget();
    // Another listener, of another server or of the program, decides when the process ends.
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
