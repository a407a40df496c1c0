import { describe, expect, test, vi } from "vitest";
import { memoryStore } from "../../src/store/index.ts";
import { text, type Task } from "@parley/a2a/internal/model/index";
import type { DelegateOptions } from "@parley/a2a/internal/protocol/index";
import { fakeClock } from "@parley/testing";
import { agentOf, gate, serving, type Served } from "./support.ts";

/* Tests what the other agent's task does when the delegating task ends. */

/** Creates an agent that works until the test tells it to stop. */
function worker() {
  const begun = gate();
  const served = serving(
    agentOf(async function* (turn) {
      yield turn.working("On it");
      begun.open();
      await new Promise<void>((resolve) => turn.signal.addEventListener("abort", () => resolve()));
    }),
  );
  return { served, begun };
}

const states = async (served: Served): Promise<readonly string[]> =>
  (await (await served.client()).listTasks()).tasks.map(({ status }) => status.state.replace("TASK_STATE_", ""));

const becomes = (served: Served, ...wanted: readonly string[]): Promise<void> =>
  vi.waitFor(async () => expect(await states(served)).toEqual(wanted));

async function delegating(options: DelegateOptions = {}, more: Parameters<typeof serving>[1] = {}) {
  const { served, begun } = worker();
  const client = await served.client();
  const main = serving(
    agentOf(
      async function* (turn) {
        yield* turn.delegate(client, "Go", options);
      },
      { resumable: true, turnTimeout: 60_000, idleTimeout: false },
    ),
    more,
  );
  const sent = await (await main.client()).sendMessage({ message: "Go", configuration: { returnImmediately: true } });
  await begun.opened;
  const id = (sent.task as Task).id;
  // The server knows the sub-task once its progress is stored.
  await vi.waitFor(async () => expect((await (await main.client()).getTask(id)).status.message).toBeDefined());
  return { served, main, id };
}

describe("the other agent's task", () => {
  test("is canceled with this agent's task", async () => {
    const { served, main, id } = await delegating();
    await (await main.client()).cancelTask(id);
    await becomes(served, "CANCELED");
  });

  test("is canceled although the first attempts fail, while this process lives", async () => {
    const { served, begun } = worker();
    const client = await served.client();
    let tries = 0;
    const clock = fakeClock();
    const cancelTask: typeof client.cancelTask = (task, options) => {
      tries += 1;
      return tries < 3 ? Promise.reject(new Error("The network is down")) : client.cancelTask(task, options);
    };
    const flaky = {
      card: client.card,
      sendStreamingMessage: client.sendStreamingMessage.bind(client),
      sendMessage: client.sendMessage.bind(client),
      subscribeToTask: client.subscribeToTask.bind(client),
      getTask: client.getTask.bind(client),
      listTasks: client.listTasks.bind(client),
      cancelTask,
    };
    const main = serving(
      agentOf(async function* (turn) {
        yield* turn.delegate(flaky, "Go");
      }),
      { clock },
    );
    const user = await main.client();
    const events = user.sendStreamingMessage("Go")[Symbol.asyncIterator]();
    let id = "";
    for (let state = ""; state !== "TASK_STATE_WORKING";) {
      const { value } = await events.next();
      id = value?.task?.id ?? id;
      state = (value?.statusUpdate?.status.state as string | undefined) ?? "";
    }
    await begun.opened;
    await user.cancelTask(id);
    await vi.waitFor(async () => {
      clock.advance(10_000);
      expect(await states(served)).toEqual(["CANCELED"]);
    });
    expect(tries).toBe(3);
  });

  test("is canceled when the turn takes too long", async () => {
    const clock = fakeClock();
    const { served } = await delegating({}, { clock });
    await vi.waitFor(async () => {
      clock.advance(30_000);
      expect(await states(served)).toEqual(["CANCELED"]);
    });
  });

  test("continues when the turn takes too long, with cancel: canceled", async () => {
    const clock = fakeClock();
    const { served, main, id } = await delegating({ cancel: "canceled" }, { clock });
    await vi.waitFor(async () => {
      clock.advance(30_000);
      expect((await (await main.client()).getTask(id)).status.state).toBe("TASK_STATE_FAILED");
    });
    expect(served.requests).not.toContain("CancelTask");
  });

  test("continues when this one is canceled, with cancel: never", async () => {
    const { served, main, id } = await delegating({ cancel: "never" });
    await (await main.client()).cancelTask(id);
    expect(await states(served)).toEqual(["WORKING"]);
    expect(served.requests).not.toContain("CancelTask");
  });

  test("continues when the server stops", async () => {
    const { served, main } = await delegating();
    await main.handler.close();
    expect(await states(served)).toEqual(["WORKING"]);
    expect(served.requests).not.toContain("CancelTask");
  });

  test("continues when another process has taken over this task", async () => {
    const store = memoryStore();
    const { served } = await delegating({}, { store });
    const client = await served.client();
    const reached = gate();
    const agent = agentOf(
      async function* (turn) {
        reached.open();
        yield* turn.delegate(client, "Go");
      },
      { resumable: true },
    );
    serving(agent, { store, lease: { isGone: () => true } });
    await reached.opened;
    await vi.waitFor(() => expect(served.requests).toContain("SubscribeToTask"));
    expect(await states(served)).toEqual(["WORKING"]);
    expect(served.requests).not.toContain("CancelTask");
  });

  test("is canceled if this task is canceled while it asks the question, and so are parallel ones", async () => {
    const hotel = serving(
      agentOf(async function* (turn) {
        yield turn.inputRequired("Which dates?");
      }),
    );
    const { served: beside, begun } = worker();
    const [asking, working] = [await hotel.client(), await beside.client()];
    const main = serving(
      agentOf(async function* (turn) {
        yield* turn.all([
          turn.delegate(working, "Go"),
          (async function* () {
            await begun.opened;
            return yield* turn.delegate(asking, "Go");
          })(),
        ]);
      }),
    );
    const user = await main.client();
    const { task } = await user.sendMessage("Go");
    expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(await states(beside)).toEqual(["WORKING"]);
    await user.cancelTask(task?.id ?? "");
    await becomes(hotel, "CANCELED");
    await becomes(beside, "CANCELED");
  });

  test("remains if this task is canceled after a restart, while it asks the question", async () => {
    const hotel = serving(
      agentOf(async function* (turn) {
        yield turn.inputRequired("Which dates?");
      }),
    );
    const client = await hotel.client();
    const agent = agentOf(async function* (turn) {
      yield* turn.delegate(client, "Go");
    });
    const store = memoryStore();
    const first = serving(agent, { store });
    const { task } = await (await first.client()).sendMessage("Go");
    await first.handler.close();
    const user = await serving(agent, { store }).client();
    expect((await user.cancelTask(task?.id ?? "")).status.state).toBe("TASK_STATE_CANCELED");
    expect(await states(hotel)).toEqual(["INPUT_REQUIRED"]);
    expect(hotel.requests).not.toContain("CancelTask");
  });

  test("is canceled if the function throws meanwhile", async () => {
    const { served, begun } = worker();
    const client = await served.client();
    const main = serving(
      agentOf(async function* (turn) {
        yield* turn.all([
          turn.delegate(client, "Go"),
          (async function* () {
            await begun.opened;
            yield turn.working("Failing");
            throw new Error("It broke");
          })(),
        ]);
      }),
    );
    const { task } = await (await main.client()).sendMessage("Go");
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
    await becomes(served, "CANCELED");
  });
});

test("an uncaught error of the other agent fails the task with its name and message", async () => {
  for (const [state, sentence] of [
    ["failed", "Clerk could not do its part: No paper"],
    ["rejected", "Clerk refused its part: No paper"],
  ] as const) {
    const clerk = serving(
      agentOf(
        async function* (turn) {
          yield turn[state]("No paper");
        },
        { name: "Clerk" },
      ),
    );
    const client = await clerk.client();
    const main = serving(
      agentOf(async function* (turn) {
        yield* turn.delegate(client, "Go");
      }),
    );
    const { task } = await (await main.client()).sendMessage("Go");
    expect(task?.status).toMatchObject({ state: "TASK_STATE_FAILED", message: { parts: [{ text: sentence }] } });
    expect(main.log.join()).toContain("Clerk");
  }
});

test("an agent that cannot be reached, or rejects the message, fails the task without its error", async () => {
  const clerk = serving(
    agentOf(async function* (turn) {
      yield turn.artifact({ parts: [text("x")] });
    }),
  );
  const client = await clerk.client({ retry: false } as object);
  await clerk.handler.close();
  const main = serving(
    agentOf(async function* (turn) {
      yield* turn.delegate(client, "Go");
    }),
    { clock: fakeClock() },
  );
  const { task } = await (await main.client()).sendMessage("Go");
  expect(task?.status).toMatchObject({
    state: "TASK_STATE_FAILED",
    message: { parts: [{ text: "Agent could not do its part (Unavailable)." }] },
  });
});
