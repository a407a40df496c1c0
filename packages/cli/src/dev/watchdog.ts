import process from "node:process";
import { parentPort, workerData } from "node:worker_threads";

/*
 * A thread of a child process of `parley dev`. When `parley dev` is killed, the child finishes its tasks and exits. If its module never
 * yields, this thread kills it.
 */

/** Time for the process to react, and to exit after the grace period of its tasks. */
const timeoutMs = 2_000;

const poll = setInterval(() => {
  if (process.ppid === workerData) return;
  clearInterval(poll);
  let end = setTimeout(kill, timeoutMs);
  parentPort?.on("message", (grace: number) => {
    clearTimeout(end);
    end = setTimeout(kill, grace + timeoutMs);
  });
}, 250);

function kill(): void {
  process.kill(process.pid, "SIGKILL");
}
