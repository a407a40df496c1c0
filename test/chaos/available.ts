import { A2AError } from "@parley/a2a";
import { pause } from "./harms.ts";

/**
 * Retries an operation while the database is unavailable, because the database may miss the time limit of a call on a busy machine.
 * Nodes are restarted for the same reason.
 */
export async function available<Result>(work: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch (thrown) {
      if (!(thrown instanceof A2AError && thrown.code === "Unavailable")) throw thrown;
    }
    await pause(200);
  }
}
