import { connect, defineAgent, memoryStore, serve, silentLogger, text, type Store, type Task } from "@parley/node";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { sdkAgent03 } from "./sdk-js/obedient-0.3.ts";
import { sdkAgent } from "./sdk-js/obedient-1.ts";

/*
 * An agent delegates over real connections, to agents of Parley and of the official SDKs. The latter promise neither to deduplicate repeated
 * messages nor to number events. The other agent does what its message says: `go`, `ask`, `wait`.
 */

interface Obedient {
  readonly url: string;
  /** Lets a waiting task continue. */
  release(taskId: string): Promise<void>;
}

async function served(agent: Parameters<typeof serve>[0], store: Store = memoryStore()) {
  const server = await serve(agent, { port: 0, grpc: true, signals: false, store, logger: silentLogger });
  onTestFinished(() => server.close({ grace: 0 }));
  return server;
}

/** An agent like those of the SDKs, on a Parley server. */
async function parleyAgent(): Promise<Obedient> {
  const waiting = new Map<string, () => void>();
  const server = await served(
    defineAgent({
      name: "Obedient",
      description: "Does what it is told.",
      version: "1.0.0",
      skills: [],
      async *onMessage(turn) {
        if (turn.text === "ask") return yield turn.inputRequired("Which one?");
        yield turn.artifact({ artifactId: "a1", name: "out", parts: [text("al")], open: true });
        yield turn.append("a1", [text("pha")], { last: true });
        if (turn.text === "wait") await new Promise<void>((resolve) => waiting.set(turn.taskId, resolve));
        yield turn.completed();
      },
    }),
  );
  return { url: server.url, release: (taskId) => Promise.resolve(waiting.get(taskId)?.()) };
}

const delegating = async (url: string, binding: string) => {
  const client = await connect(url, { binding });
  const agent = defineAgent({
    name: "Main",
    description: "Lets others work.",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      const { text: said } = yield* turn.delegate(client, turn.text);
      yield turn.completed(`It said ${said}`);
    },
  });
  return { agent, client };
};

/** The artifacts' ids, names and texts. */
const taken = (task: Task | undefined) =>
  task?.artifacts?.map(({ artifactId, name, parts }) => [artifactId, name, ...parts.map((part) => part.text)]);

const whole = [["d1-a1", "out", "alpha"]];

/** Starts a task whose delegation waits. Returns it with the task of the other agent. */
async function begun(url: string, store: Store) {
  const user = await connect(url);
  const { task } = await user.sendMessage({ message: "wait", configuration: { returnImmediately: true } });
  const id = task?.id ?? "";
  await vi.waitFor(async () => expect(taken(await user.getTask(id))).toEqual(whole));
  const [row] = await store.features({ agent: "/" }, id, "delegation");
  const { taskId } = JSON.parse(row?.value ?? "{}") as { readonly taskId: string };
  return { user, id, taskId };
}

describe.each([
  ["Parley", parleyAgent],
  ["the official SDK", sdkAgent],
  ["the official SDK 0.3", sdkAgent03],
] as const)("an agent that delegates to one on %s", (_, start) => {
  describe.each(["JSONRPC", "HTTP+JSON", "GRPC"])("over %s", (binding) => {
    async function both(store = memoryStore()) {
      // The SDKs log every error to the console.
      for (const method of ["error", "warn", "log"] as const)
        vi.spyOn(console, method).mockImplementation(() => undefined);
      const other: Obedient = await start();
      const { agent, client } = await delegating(other.url, binding);
      return { other, agent, client, store, main: await served(agent, store) };
    }

    test("passes on its artifacts, and returns its result", async () => {
      const { main } = await both();
      const { task } = await (await connect(main.url)).sendMessage("go");
      expect(task?.status).toMatchObject({
        state: "TASK_STATE_COMPLETED",
        message: { parts: [{ text: "It said alpha" }] },
      });
      expect(taken(task)).toEqual(whole);
    });

    test("passes its question up and the answer down", async () => {
      const { main } = await both();
      const conversation = (await connect(main.url)).conversation();
      const asked = await conversation.send("ask");
      expect(asked.task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
      const { task } = await conversation.send("go");
      expect(task?.status.message?.parts[0]?.text).toBe("It said alpha");
      expect(task?.id).toBe(asked.task?.id);
      expect(taken(task)).toEqual(whole);
    });

    test("cancels its task", async () => {
      const { main, client, store } = await both();
      const { user, id, taskId } = await begun(main.url, store);
      await user.cancelTask(id);
      await vi.waitFor(async () => expect((await client.getTask(taskId)).status.state).toBe("TASK_STATE_CANCELED"));
    });

    test("continues after a restart, and takes nothing twice", async () => {
      const { other, agent, main, store } = await both();
      const { id, taskId } = await begun(main.url, store);
      await main.close({ grace: 0 });
      const again = await served(agent, store);
      await other.release(taskId);
      const user = await connect(again.url);
      const done = async () => expect((await user.getTask(id)).status.state).toBe("TASK_STATE_COMPLETED");
      await vi.waitFor(done);
      const task = await user.getTask(id);
      expect(task.status.message?.parts[0]?.text).toBe("It said alpha");
      expect(taken(task)).toEqual(whole);
    });
  });
});
