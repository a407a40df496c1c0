import { describe, expect, test, vi } from "vitest";
import { memoryStore } from "../../src/store/index.ts";
import { text } from "@parley/a2a/internal/model/index";
import type { AgentYield, Delegated } from "@parley/a2a/internal/protocol/index";
import { fakeClock } from "@parley/testing";
import { agentOf, gate, serving } from "./support.ts";

/* Tests the time limits of a turn that waits for another agent. */

/** Options that make a condition wait as long as a busy machine needs. */
const patient = { interval: 10 };

const minute = 60_000;
const behaviour = { idleTimeout: 5 * minute, turnTimeout: 120 * minute };

/** Creates an agent that is silent for a long time. */
function sleeper() {
  const wait = gate();
  const served = serving(
    agentOf(
      async function* (turn) {
        yield turn.working("On it");
        await wait.opened;
        yield turn.completed("Done");
      },
      { idleTimeout: false, turnTimeout: false },
    ),
  );
  return { served, wait };
}

async function delegating(after: (said: Delegated) => Promise<void> = async () => {}) {
  const { served, wait } = sleeper();
  const client = await served.client();
  const clock = fakeClock();
  const main = serving(
    agentOf(async function* (turn) {
      const said = yield* turn.delegate(client, "Go");
      await after(said);
      yield turn.completed(said.text);
    }, behaviour),
    { clock },
  );
  const user = await main.client();
  const sent = await user.sendMessage({ message: "Go", configuration: { returnImmediately: true } });
  const id = sent.task?.id ?? "";
  await vi.waitFor(async () => expect((await user.getTask(id)).status.message).toBeDefined(), patient);
  return { clock, wait, status: async () => (await user.getTask(id)).status };
}

async function minutes(clock: ReturnType<typeof fakeClock>, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    clock.advance(minute);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe("a turn that waits for another agent", () => {
  test("is not ended by idleTimeout, however long the other agent is silent", async () => {
    const { clock, wait, status } = await delegating();
    await minutes(clock, 60);
    expect((await status()).state).toBe("TASK_STATE_WORKING");
    wait.open();
    await vi.waitFor(async () => expect(await status()).toMatchObject({ state: "TASK_STATE_COMPLETED" }), patient);
  });

  test("has its full idleTimeout after that, and no more", async () => {
    const after = gate();
    const { clock, wait, status } = await delegating(async () => {
      after.open();
      await new Promise(() => {});
    });
    await minutes(clock, 60);
    wait.open();
    await after.opened;
    await minutes(clock, 4);
    expect((await status()).state).toBe("TASK_STATE_WORKING");
    await vi.waitFor(async () => {
      clock.advance(minute);
      expect(await status()).toMatchObject({
        state: "TASK_STATE_FAILED",
        message: { parts: [{ text: "The agent gave no sign of life for too long." }] },
      });
    }, patient);
  });

  test("is ended by turnTimeout", async () => {
    const { clock, status } = await delegating();
    await vi.waitFor(async () => {
      clock.advance(30 * minute);
      expect(await status()).toMatchObject({
        state: "TASK_STATE_FAILED",
        message: { parts: [{ text: "The agent did not finish in time." }] },
      });
    }, patient);
  });
});

test("a question that waits in turn.all() while another delegation fails is not asked, and its task is canceled", async () => {
  const [asked, failed] = [gate(), gate()];
  const hotel = serving(
    agentOf(async function* (turn) {
      yield turn.artifact({ artifactId: "offer", parts: [text("An offer")] });
      yield turn.inputRequired("Which dates?");
    }),
  );
  const flight = serving(
    agentOf(async function* (turn) {
      yield turn.working("Looking");
      await asked.opened;
      yield turn.failed("No seats");
    }),
  );
  const [hotels, flights] = [await hotel.client(), await flight.client()];
  /** Delays a question to `turn.all()` until the other delegation has failed. */
  async function* late(inner: AsyncGenerator<AgentYield, Delegated, void>) {
    try {
      for (;;) {
        const step = await inner.next();
        if (step.done === true) return step.value;
        if (JSON.stringify(step.value).includes("Which dates?")) {
          asked.open();
          await failed.opened;
        }
        yield step.value;
      }
    } finally {
      await inner.return(undefined as never);
    }
  }
  async function* telling(inner: AsyncGenerator<AgentYield, Delegated, void>) {
    try {
      return yield* inner;
    } finally {
      failed.open();
    }
  }
  const main = serving(
    agentOf(async function* (turn) {
      yield* turn.all([late(turn.delegate(hotels, "Basel")), telling(turn.delegate(flights, "Basel"))]);
    }),
  );
  const { task } = await (await main.client()).sendMessage("Go");
  expect(task?.status).toMatchObject({
    state: "TASK_STATE_FAILED",
    message: { parts: [{ text: "Agent could not do its part: No seats" }] },
  });
  await vi.waitFor(async () => {
    const { tasks } = await hotels.listTasks();
    expect(tasks.map(({ status }) => status.state)).toEqual(["TASK_STATE_CANCELED"]);
  }, patient);
});

test.each([0, 1])(
  "an agent that is unavailable when this one has restarted is retried, and asked once (after event %s)",
  async (stored) => {
    const wait = gate();
    const reached = gate();
    const other = serving(
      agentOf(async function* (turn) {
        reached.open();
        if (stored === 1) yield turn.artifact({ artifactId: "a", parts: [text("al")], open: true });
        await wait.opened;
        yield stored === 1
          ? turn.append("a", [text("pha")], { last: true })
          : turn.artifact({ parts: [text("alpha")] });
      }),
    );
    let away = 0;
    const fetch = async (url: string, init?: RequestInit): Promise<Response> => {
      away -= 1;
      if (away >= 0) throw new TypeError("fetch failed");
      return other.fetch(url, init);
    };
    const client = await other.client({ fetch, retry: false, reconnect: false });
    const store = memoryStore();
    const agent = agentOf(async function* (turn) {
      const said = yield* turn.delegate(client, "Go");
      yield turn.completed(said.artifacts.flatMap(({ parts }) => parts.map((part) => part.text)).join(""));
    });
    const first = serving(agent, { store });
    const user = await first.client();
    const sent = await user.sendMessage({ message: "Go", configuration: { returnImmediately: true } });
    const id = sent.task?.id ?? "";
    await reached.opened;
    if (stored === 1) await vi.waitFor(async () => expect((await user.getTask(id)).artifacts).toHaveLength(1), patient);
    await first.handler.close();
    away = 6;
    const clock = fakeClock(Date.now());
    const again = await serving(agent, { store, clock }).client();
    await vi.waitFor(async () => {
      clock.advance(1000);
      expect(away).toBeLessThan(0);
    }, patient);
    wait.open();
    await vi.waitFor(async () => {
      clock.advance(1000);
      expect((await again.getTask(id)).status).toMatchObject({
        state: "TASK_STATE_COMPLETED",
        message: { parts: [{ text: "alpha" }] },
      });
    }, patient);
    expect((await client.listTasks()).tasks).toHaveLength(1);
  },
);
