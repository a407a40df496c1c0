import { eventually, type Harness } from "./support.ts";

/* Helpers for tests of steps and waits. */

export const minute = 60_000;
export const immediately = { configuration: { returnImmediately: true } } as const;

/** Resolves once a task waits: no run is active, and the function has ended. */
export async function waits(on: Pick<Harness, "store">, taskId: string): Promise<void> {
  await eventually(async () => {
    const head = await on.store.head({ agent: "agent" }, taskId);
    return head !== undefined && head.run === undefined && head.checkpoint?.includes("waiting") === true;
  });
}

/** Resolves once a task is terminal. Returns the task's state and last message. */
export async function over(on: Pick<Harness, "get">, taskId: string): Promise<string> {
  await eventually(async () => /COMPLETED|FAILED|CANCELED|REJECTED/.test((await on.get(taskId)).status.state));
  const { status } = await on.get(taskId);
  return `${status.state.replace("TASK_STATE_", "")} ${status.message?.parts[0]?.text ?? ""}`.trim();
}

/** Returns the keys of a feature's rows for a task. */
export async function keysOf(on: Pick<Harness, "store">, taskId: string, feature = "wait"): Promise<readonly string[]> {
  return (await on.store.features({ agent: "agent" }, taskId, feature)).map(({ key }) => key);
}

/** Lets the event loop turn this many times, so that a busy loop would show. */
export async function macrotasks(count = 50): Promise<void> {
  for (let at = 0; at < count; at += 1) await new Promise((resolve) => setImmediate(resolve));
}
