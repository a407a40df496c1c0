import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { answerParent, type Answers } from "../ipc.ts";

/** The address of a server. */
export interface Address {
  readonly jsonRpc: string;
  readonly rest: string;
}

/** A server's use of resources so far, as it measures itself. */
export interface Usage {
  /** CPU time of all its threads, in microseconds. */
  readonly cpu: number;
  /** Resident memory in bytes. */
  readonly rss: number;
  /** Bytes in use on the heap and in buffers. */
  readonly live: number;
}

function usage(): Usage {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed, external } = process.memoryUsage();
  return { cpu: user + system, rss, live: heapUsed + external };
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

let garbage: readonly unknown[] = [];

/** Answers the command's requests for the address of this server, its use of resources, and its own functions. */
export function control(address: Address, more: Answers = {}): void {
  answerParent({
    address: () => address,
    usage,
    /** The usage after a garbage collection, with a young generation that was fully used, as after hours of work. */
    settled: async () => {
      for (let round = 0; round < 1_000_000; round++) garbage = [round, garbage.length, {}];
      for (let round = 0; round < 3; round++) {
        collectGarbage();
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return usage();
    },
    ...more,
  });
}
