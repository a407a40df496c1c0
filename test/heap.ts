import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

// The flag exposes gc() to contexts that are created after it, so the process needs no command-line flag.
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
setFlagsFromString("--no-expose-gc");

/** The memory of this process after a garbage collection, so that only live objects count. */
export function liveMemory(): NodeJS.MemoryUsage {
  collect();
  return process.memoryUsage();
}
