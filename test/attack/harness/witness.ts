import { setTimeout as pause } from "node:timers/promises";
import { connect, type Client } from "@parley/node";

/** A normal caller that keeps calling during an attack. */
export interface Witness {
  /** Resolves after this many more correct responses, and rejects after a wrong response. */
  answers(count: number): Promise<void>;
  stop(): Promise<void>;
}

/** The pause between two calls, in milliseconds. */
const interval = 20;

/** Calls a server repeatedly for its card, for a direct reply, and for a task. */
export async function witness(url: string): Promise<Witness> {
  const client = await connect(url, { binding: "JSONRPC" });
  const taskId = await taskOf(client);
  return keepAsking(async () => {
    const { message } = replyOf(await client.sendMessage("hello"));
    if (message !== "Hello") throw new Error(`The answer to hello was ${message}`);
    const { id, status } = await client.getTask(taskId);
    if (id !== taskId || status.state !== "TASK_STATE_COMPLETED") throw new Error(`The task is ${status.state}`);
    await connect(url);
  });
}

/** Calls `ask` repeatedly. `ask` must reject if the response is wrong. */
export function keepAsking(ask: () => Promise<void>): Witness {
  let right = 0;
  let going = true;
  let wrong: { readonly error: unknown } | undefined;
  const wakes = new Set<() => void>();
  const run = async (): Promise<void> => {
    while (going && wrong === undefined) {
      try {
        await ask();
        right++;
      } catch (error) {
        wrong = { error };
      }
      for (const wake of wakes) wake();
      await pause(interval);
    }
  };
  const running = run();
  return {
    answers(count) {
      const wanted = right + count;
      const answered = new Promise<void>((resolve, reject) => {
        const look = (): void => {
          if (wrong === undefined && right < wanted) return;
          wakes.delete(look);
          if (wrong === undefined) resolve();
          else reject(new Error("Another caller got a wrong answer", { cause: wrong.error }));
        };
        wakes.add(look);
        look();
      });
      // If the attack also fails, no other code handles this rejection.
      answered.catch(() => undefined);
      return answered;
    },
    async stop() {
      going = false;
      await running;
    },
  };
}

async function taskOf(client: Client): Promise<string> {
  const answer = await client.sendMessage("work");
  if (!("task" in answer)) throw new Error("It made no task");
  return answer.task.id;
}

function replyOf(answer: Awaited<ReturnType<Client["sendMessage"]>>): { readonly message: string } {
  if ("message" in answer) return { message: String(answer.message.parts[0]?.text) };
  return { message: `a task, ${answer.task.status.state}` };
}
