import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

// The flag exposes gc() to contexts made after it, so the process needs no flag of its own.
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
setFlagsFromString("--no-expose-gc");

/** The memory of this process after a collection, so that it counts live objects and no garbage. */
export function liveMemory(): NodeJS.MemoryUsage {
  collect();
  return process.memoryUsage();
}
