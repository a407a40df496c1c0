import { A2AError } from "@parley/a2a";
import { pause } from "./harms.ts";

/**
 * Does something with the database, again and again while it is unavailable: on a busy machine it does not answer in the time that a call has.
 * The nodes are started again for the same reason.
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
