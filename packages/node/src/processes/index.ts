import cluster from "node:cluster";
import { availableParallelism } from "node:os";
import { isMainThread } from "node:worker_threads";
import type { ServeOptions, Server } from "../serve-options.ts";
import { Member, placeOfThisProcess } from "./member.ts";
import { startProcesses } from "./primary.ts";

/* `serve(agent, { processes: n })`: this process starts others, which run the same program, or is one of those. */

/** The most processes. */
const most = 256;

/** @param serveHere - Serves in this process, as one of several. */
export async function serveProcesses(
  options: ServeOptions,
  serveHere: (options: ServeOptions, member?: Member) => Promise<Server>,
): Promise<Server> {
  const place = placeOfThisProcess();
  if (place !== undefined) {
    const member = new Member(place);
    try {
      return await serveHere(options, member);
    } catch (thrown) {
      await member.fail(thrown);
      throw thrown;
    }
  }
  const count = countOf(options.processes);
  if (count === 1) return serveHere(options);
  refuseElsewhere();
  return startProcesses(options, count);
}

function countOf(processes: unknown): number {
  if (processes === "cores") return Math.min(most, availableParallelism());
  if (typeof processes === "number" && Number.isInteger(processes) && processes >= 1 && processes <= most)
    return processes;
  throw new TypeError(`The option \`processes\` must be a whole number from 1 to ${most}, or "cores"`);
}

/** Refuses to start processes where that would not start this program again, or where others have done so. */
function refuseElsewhere(): void {
  const why = !isMainThread
    ? "A worker thread cannot start processes that serve: call serve() in the main thread"
    : cluster.isWorker
      ? "This process was started by another program with node:cluster: leave `processes` to one of the two"
      : Object.keys(cluster.workers ?? {}).length > 0
        ? "This program has started processes already: only one of its servers can have `processes`"
        : process.argv[1] === undefined
          ? "There is no program to start again: `processes` needs a file that node runs"
          : undefined;
  if (why !== undefined) throw new Error(why);
}
