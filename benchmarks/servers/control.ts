import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { answerParent, type Answers } from "../ipc.ts";

/** Where a server is reached. */
export interface Address {
  readonly jsonRpc: string;
  readonly rest: string;
}

/** What a server has used so far, as it reads it off itself. */
export interface Usage {
  /** Microseconds of CPU, of all its threads. */
  readonly cpu: number;
  /** Bytes resident. */
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

/** Lets the command ask this server for its address, its use of the machine, and what else it can do. */
export function control(address: Address, more: Answers = {}): void {
  answerParent({
    address: () => address,
    usage,
    /** The same, once what nobody holds is gone, and the young generation is touched all over, as after hours of work. */
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
