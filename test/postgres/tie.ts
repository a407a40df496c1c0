import { spawn } from "node:child_process";
import type { Socket } from "node:net";

/**
 * Ends a process when this one ends, however that happens, and removes its folder: a small process waits for the end of a pipe. Returns a
 * function that releases it.
 */
export function tie(pid: number | undefined, signal: "QUIT" | "KILL", folder = ""): () => void {
  if (pid === undefined) return () => undefined;
  const script = 'read -r _; kill -"$2" "$1"; if [ -n "$3" ]; then sleep 1; rm -rf "$3"; fi';
  const child = spawn("sh", ["-c", script, "sh", String(pid), signal, folder], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  child.unref();
  (child.stdin as Socket).unref();
  return () => {
    child.kill("SIGKILL");
    child.stdin.destroy();
  };
}

/** Polls until the answer is yes, for a minute at most. `failure`: the error's message. */
export async function until(isThere: () => Promise<boolean>, failure: () => string): Promise<void> {
  const end = performance.now() + 60_000;
  while (!(await isThere())) {
    if (performance.now() > end) throw new Error(failure());
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
