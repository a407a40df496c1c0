import { eventually, type Harness } from "./support.ts";

/* Helpers for tests of steps and waits. */

export const minute = 60_000;
export const immediately = { configuration: { returnImmediately: true } } as const;

/** A task is waiting: nothing runs, and the function has ended. */
export async function waits(on: Pick<Harness, "store">, taskId: string): Promise<void> {
  await eventually(async () => {
    const head = await on.store.head({ agent: "agent" }, taskId);
    return head !== undefined && head.run === undefined && head.checkpoint?.includes("waiting") === true;
  });
}

/** A task is over: its state and the last message. */
export async function over(on: Pick<Harness, "get">, taskId: string): Promise<string> {
  await eventually(async () => /COMPLETED|FAILED|CANCELED|REJECTED/.test((await on.get(taskId)).status.state));
  const { status } = await on.get(taskId);
  return `${status.state.replace("TASK_STATE_", "")} ${status.message?.parts[0]?.text ?? ""}`.trim();
}

/** The keys of the rows that a feature keeps with a task. */
export async function keysOf(on: Pick<Harness, "store">, taskId: string, feature = "wait"): Promise<readonly string[]> {
  return (await on.store.features({ agent: "agent" }, taskId, feature)).map(({ key }) => key);
}

/** Lets a busy loop show itself. */
export async function macrotasks(count = 50): Promise<void> {
  for (let at = 0; at < count; at += 1) await new Promise((resolve) => setImmediate(resolve));
}
