import { describe, expect, test, vi } from "vitest";
import { memoryStore } from "../../src/store/index.ts";
import { text } from "@parley/a2a/internal/model/index";
import type { HandlerOptions } from "../../src/handler.ts";
import type { Turn } from "@parley/a2a/internal/protocol/index";
import { fakeClock } from "@parley/testing";
import { agentOf, asked, posted, rest, serving, type Served } from "./support.ts";

/* Tests a turn that waits for an authorization, with processes that stop, die, and share a store. */

const secret = "MARK-restart-4711";

/** Creates an agent that asks. `got`: the answers, in any process. */
function shop(resumable = false) {
  const got: string[] = [];
  const attempts: number[] = [];
  const agent = agentOf(
    async function* (turn: Turn) {
      attempts.push(turn.attempt);
      if (turn.number > 1) return yield turn.completed(`Said ${turn.text}`);
      yield turn.working("Looking");
      got.push(yield* turn.authorize({ form: "secret", reason: "The key", id: "shop-key" }));
      yield turn.artifact({ parts: [text("bought")] });
    },
    { resumable },
  );
  return { agent, got, attempts };
}

async function begun(served: Served) {
  const client = await served.client();
  const events = client.sendStreamingMessage("Buy bread")[Symbol.asyncIterator]();
  return { events, ...(await asked(events)) };
}

const give = { decision: "give", secret };

const stateOf = async (served: Served, taskId: string) => (await (await served.client()).getTask(taskId)).status.state;

const completed = (served: Served, taskId: string) =>
  vi.waitFor(async () => expect(await stateOf(served, taskId)).toBe("TASK_STATE_COMPLETED"));

describe("a wait for an authorization", () => {
  test.each([false, true])("survives a stop of the server, with the same link (resumable: %s)", async (resumable) => {
    const { agent, got, attempts } = shop(resumable);
    const store = memoryStore();
    const first = serving(agent, { store });
    const { request, taskId } = await begun(first);
    await first.handler.close({ grace: 60_000 });

    const second = serving(agent, { store });
    await vi.waitFor(() => expect(attempts).toEqual([1, 2]));
    const client = await second.client();
    const events = client.subscribeToTask(taskId)[Symbol.asyncIterator]();
    const again = await asked(events);
    expect(again.request).toEqual(request);
    expect((await posted(second, request, give)).status).toBe(200);
    expect(await rest(events)).toEqual(["WORKING", "bought", "COMPLETED"]);
    expect(got).toEqual([secret]);
    // The events of the first process are not stored a second time.
    const statuses = (await store.read({ agent: "/" }, taskId, { after: 0, limit: 100 }))?.records;
    expect(statuses?.map(({ state }) => state).filter((state) => state === "TASK_STATE_AUTH_REQUIRED")).toHaveLength(1);
  });

  test("continues in another process when its agent is removed", async () => {
    const { agent, attempts } = shop();
    const store = memoryStore();
    const first = serving(agent, { store });
    const { events, taskId } = await begun(first);
    await events.return?.();
    await first.handler.mounts.remove("/");
    const head = await store.head({ agent: "/" }, taskId);
    expect([head?.state, head?.holder]).toEqual(["TASK_STATE_AUTH_REQUIRED", undefined]);
    expect(attempts).toEqual([1]);

    serving(agent, { store });
    await vi.waitFor(() => expect(attempts).toEqual([1, 2]));
  });

  test("survives repeated process deaths, and only one process gets the credential", async () => {
    const { agent, got } = shop();
    const store = memoryStore();
    const lease = { isGone: () => true };
    const processes = [serving(agent, { store })];
    const { request, taskId } = await begun(processes[0] as Served);
    for (let life = 0; life < 6; life += 1) {
      processes.push(serving(agent, { store, lease }));
      await vi.waitFor(async () => {
        const head = await store.head({ agent: "/" }, taskId);
        expect(head).toMatchObject({ state: "TASK_STATE_AUTH_REQUIRED", run: { attempt: life + 2 } });
        expect(head?.run?.deaths).toBeUndefined();
      });
    }
    const last = processes.at(-1) as Served;
    expect((await posted(last, request, give)).status).toBe(200);
    await completed(last, taskId);
    expect(got).toEqual([secret]);
  });

  test("continues in another process if the waiting one stops before it knows of the credential", async () => {
    const { agent, got } = shop();
    const store = memoryStore();
    const first = serving(agent, { store, pollInterval: 3_600_000 });
    const { request, taskId } = await begun(first);
    const second = serving(agent, { store });
    expect((await posted(second, request, give)).status).toBe(200);
    expect(await stateOf(second, taskId)).toBe("TASK_STATE_AUTH_REQUIRED");
    await first.handler.close();
    const third = serving(agent, { store });
    await completed(third, taskId);
    expect(got).toEqual([secret]);
  });

  test("ends in the waiting process, whichever process took the answer", async () => {
    const { agent, got, attempts } = shop();
    const store = memoryStore();
    const options: Partial<HandlerOptions> = { store, pollInterval: 5 };
    const [first, second] = [serving(agent, options), serving(agent, options)];
    const { request, events } = await begun(first);
    expect((await posted(second, request, give)).status).toBe(200);
    expect(await rest(events)).toEqual(["WORKING", "bought", "COMPLETED"]);
    expect([got, attempts]).toEqual([[secret], [1]]);
  });

  test("costs one query a poll, however many turns wait, and none without a waiting turn", async () => {
    const { agent } = shop();
    const store = memoryStore();
    const clock = fakeClock();
    const served = serving(agent, { store, clock, pollInterval: 10_000 });
    const waiting = await Promise.all(Array.from({ length: 50 }, () => begun(served)));
    const [looks, reads] = [vi.spyOn(store, "dueFeatures"), vi.spyOn(store, "features")];
    // Queries for sleeping and queued tasks belong to other features.
    const others = ["wait", "queue"];
    const calls = (): number => looks.mock.calls.filter(([{ feature }]) => !others.includes(feature)).length;
    let advanced = 0;
    await vi.waitFor(() => {
      clock.advance(10_000);
      advanced += 1;
      expect(calls()).toBeGreaterThanOrEqual(3);
    });
    expect(calls()).toBeLessThanOrEqual(advanced);
    expect(reads).not.toHaveBeenCalled();
    for (const { request } of waiting) expect((await posted(served, request, give)).status).toBe(200);
    for (const { events } of waiting) expect((await rest(events)).at(-1)).toBe("COMPLETED");
    looks.mockClear();
    clock.advance(60_000);
    expect(calls()).toBe(0);
  });

  test("ends for a message that arrived at another process, even after a restart", async () => {
    const { agent, attempts } = shop();
    const store = memoryStore();
    const first = serving(agent, { store, pollInterval: 3_600_000 });
    const { taskId } = await begun(first);
    const second = serving(agent, { store });
    const sent = (await second.client()).sendMessage({ parts: [text("stop")], taskId, messageId: "m" });
    await vi.waitFor(async () =>
      expect(await store.features({ agent: "/" }, taskId, "authorization")).toMatchObject([
        { due: expect.any(Number) as number },
      ]),
    );
    expect(attempts).toEqual([1]);
    await first.handler.close();
    const third = serving(agent, { store });
    await completed(third, taskId);
    expect((await (await third.client()).getTask(taskId)).status.message?.parts[0]?.text).toBe("Said stop");
    await sent;
  });

  test("does not save a task that only claims to wait", async () => {
    const agent = agentOf(async function* (turn) {
      yield turn.authRequired("Log in there");
      await new Promise<void>((resolve) => turn.signal.addEventListener("abort", () => resolve()));
    });
    const store = memoryStore();
    const first = serving(agent, { store });
    const { task } = await (await first.client()).sendMessage("Buy");
    const second = serving(agent, { store, lease: { isGone: () => true } });
    await vi.waitFor(async () => expect(await stateOf(second, task?.id ?? "")).toBe("TASK_STATE_FAILED"));
  });

  test("works with each key of the server, including old ones, and with no other", async () => {
    const { agent } = shop();
    const store = memoryStore();
    const first = serving(agent, { store });
    const { request, taskId } = await begun(first);
    await first.handler.close();
    const second = serving(agent, { store, authorization: { keys: [Buffer.alloc(32, 9).toString("base64")] } });
    expect((await posted(second, request, give)).status).toBe(410);
    const third = serving(agent, {
      store,
      authorization: { keys: [Buffer.alloc(32, 9).toString("base64"), Buffer.alloc(32, 7).toString("base64")] },
    });
    expect((await posted(third, request, give)).status).toBe(200);
    await second.handler.close();
    await completed(
      serving(agent, { store, authorization: { keys: [Buffer.alloc(32, 9).toString("base64")] } }),
      taskId,
    );
  });
});
