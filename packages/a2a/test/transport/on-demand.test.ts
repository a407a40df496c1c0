import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createHandler, type Handler, type HandlerOptions } from "@parley/server/internal/handler";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import type { Agent } from "../../src/protocol/index.ts";
import { fetchMount } from "@parley/server/internal/server/fetch";
import { fakeClock } from "@parley/testing";

const day = 24 * 60 * 60_000;

/** Creates an agent that starts a task, and continues when the test says so. */
function gated(resumable = true) {
  let open = (): void => {};
  const gate = new Promise<void>((resolve) => (open = resolve));
  const attempts: number[] = [];
  const agent = defineAgent({
    name: "Gated",
    description: "Waits.",
    version: "1.0.0",
    skills: [],
    resumable,
    async *onMessage(turn) {
      if (turn.text === "hello") return turn.reply("hi");
      attempts.push(turn.attempt);
      yield turn.working("waiting");
      await gate;
      yield turn.artifact({ artifactId: "a", parts: [{ text: "done" }] });
      return undefined;
    },
  });
  return { agent, open, attempts };
}

function serve(agent: Agent, options: Partial<HandlerOptions> = {}): Handler {
  const handler = createHandler(agent, { store: memoryStore(), publicUrl: "https://agents.example", ...options });
  onTestFinished(() => handler.close());
  return handler;
}

let sent = 0;
const url = "https://agents.example";
const headers = { "content-type": "application/json", "a2a-version": "1.0" };

function request(path: string, text: string, configuration?: object): Request {
  const message = { messageId: `m${(sent += 1)}`, role: "ROLE_USER", parts: [{ text }] };
  return new Request(url + path, { method: "POST", headers, body: JSON.stringify({ message, configuration }) });
}

async function begin(handler: Handler): Promise<string> {
  const answer = await handler.fetch(request("/message:send", "go", { returnImmediately: true }), "env", "ctx");
  return ((await answer.json()) as { task: { id: string } }).task.id;
}

async function stateOf(handler: Handler, id: string): Promise<string> {
  const answer = await handler.fetch(new Request(`${url}/tasks/${id}`, { headers }));
  return ((await answer.json()) as { status: { state: string } }).status.state;
}

/** Reads the task id at the start of a stream. The stream continues. */
async function streamedId(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  for (let text = ""; ;) {
    const { done = true, value } = (await reader?.read()) ?? {};
    text += new TextDecoder().decode(value);
    const id = /"task":\{"id":"([^"]+)"/.exec(text)?.[1];
    if (id !== undefined) return id;
    if (done) throw new Error(`No task in ${text}`);
  }
}

/** Simulates a platform that records the promises passed to `waitUntil`, and counts the settled ones. */
function platform() {
  const passed: (readonly unknown[])[] = [];
  let over = 0;
  const waitUntil: HandlerOptions["waitUntil"] = (work, ...more) => {
    passed.push(more);
    void work.then(() => (over += 1));
  };
  return { waitUntil, passed, over: () => over };
}

/** Lets work continue that does not depend on time. */
const settle = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 20));

describe("a handler with waitUntil", () => {
  test("keeps the platform running until the task ends, after an answer with returnImmediately (A2A 1.0 §3.2.2)", async () => {
    const { waitUntil, passed, over } = platform();
    const { agent, open } = gated();
    const handler = serve(agent, { waitUntil });
    const id = await begin(handler);
    expect(passed).toEqual([["env", "ctx"]]);
    await settle();
    expect(over()).toBe(0);
    open();
    await expect.poll(over).toBe(1);
    expect(await stateOf(handler, id)).toBe("TASK_STATE_COMPLETED");
  });

  test("keeps it running when the client leaves its stream", async () => {
    const { waitUntil, over } = platform();
    const { agent, open } = gated();
    const handler = serve(agent, { waitUntil });
    const leaving = new AbortController();
    const going = new Request(request("/message:stream", "go"), { signal: leaving.signal });
    const id = await streamedId(await handler.fetch(going));
    leaving.abort();
    await settle();
    expect(over()).toBe(0);
    open();
    await expect.poll(over).toBe(1);
    expect(await stateOf(handler, id)).toBe("TASK_STATE_COMPLETED");
  });

  test("keeps it running for a mount in a framework that knows its users, too", async () => {
    const { waitUntil, passed, over } = platform();
    const { agent, open } = gated();
    const answer = fetchMount<[string]>(serve(agent, { waitUntil }));
    await answer(request("/message:send", "go", { returnImmediately: true }), "context");
    await settle();
    expect([passed, over()]).toEqual([[["context"]], 0]);
    open();
    await expect.poll(over).toBe(1);
  });

  test("releases it at once if nothing runs after the answer", async () => {
    const { waitUntil, over } = platform();
    const handler = serve(gated().agent, { waitUntil });
    await (await handler.fetch(request("/message:send", "hello"))).json();
    await expect.poll(over).toBe(1);
    // A rejected request also counts as finished.
    await handler.fetch(new Request(`${url}/nothing`));
    await expect.poll(over).toBe(2);
  });

  test("does not query the store or start a timer before its first request", async () => {
    const clock = fakeClock();
    const store = memoryStore();
    const asked = vi.spyOn(store, "claimable");
    const random = vi.spyOn(crypto, "getRandomValues");
    onTestFinished(() => random.mockRestore());
    const handler = serve(gated().agent, { store, clock, waitUntil: () => {} });
    await settle();
    expect([asked.mock.calls.length, random.mock.calls.length, clock.next()]).toEqual([0, 0, undefined]);
    await handler.fetch(new Request(`${url}/.well-known/agent-card.json`));
    await expect.poll(() => asked.mock.calls.length).toBe(1);
  });

  test("renews leases while a request keeps the platform running, so the task is not taken over", async () => {
    const clock = fakeClock();
    const store = memoryStore();
    const { agent, open, attempts } = gated();
    const handler = serve(agent, { store, clock, waitUntil: () => {} });
    // The response waits until the task ends, or for half a second.
    const id = begin(handler);
    await settle();
    const other = serve(agent, { store, clock });
    for (let second = 0; second < 90; second += 5) {
      clock.advance(5_000);
      await settle();
    }
    expect(attempts).toEqual([1]);
    open();
    await expect.poll(async () => stateOf(other, await id)).toBe("TASK_STATE_COMPLETED");
  });
});

describe("wake", () => {
  test("takes over a run whose process is gone, waits for it, and says when to call again", async () => {
    const clock = fakeClock();
    const store = memoryStore();
    const lost = gated();
    // The platform freezes the process, so the timers of the process do not fire.
    const frozen = { ...fakeClock(clock.now()), after: () => () => {} };
    const first = serve(lost.agent, { store, clock: frozen, waitUntil: () => {}, directReplyWithin: 0 });
    const id = await streamedId(await first.fetch(request("/message:stream", "go")));
    const found = gated();
    found.open();
    const second = serve(found.agent, { store, clock, waitUntil: () => {} });
    // The next work is due when the lease expires, after 30 s.
    expect(await second.wake()).toEqual({ next: clock.now() + 30_000 });
    expect(found.attempts).toEqual([]);
    clock.advance(30_001);
    const waking = second.wake({ wait: 5_000 });
    await expect.poll(() => found.attempts).toEqual([2]);
    await settle();
    clock.advance(1_000);
    expect(await waking).toEqual({});
    expect(await stateOf(second, id)).toBe("TASK_STATE_COMPLETED");
  });

  test("does not wait longer than told", async () => {
    const { agent } = gated();
    const handler = serve(agent, { waitUntil: () => {} });
    await begin(handler);
    const { next } = await handler.wake({ wait: 30 });
    expect(next).toBeGreaterThan(Date.now());
  });

  test("deletes expired data, although no minute has passed since the start", async () => {
    const clock = fakeClock();
    const store = memoryStore();
    const { agent, open } = gated();
    open();
    const handler = serve(agent, { store, clock, waitUntil: () => {} });
    await handler.fetch(request("/message:send", "go"));
    expect((await store.list({ agent: "/" }, { limit: 1, artifacts: false })).total).toBe(1);
    clock.advance(31 * day);
    const later = serve(agent, { store, clock, waitUntil: () => {} });
    await later.wake();
    expect((await store.list({ agent: "/" }, { limit: 1, artifacts: false })).total).toBe(0);
  });

  test("is rejected after close", async () => {
    const handler = serve(gated().agent, { waitUntil: () => {} });
    await handler.close();
    await expect(handler.wake()).rejects.toMatchObject({ code: "Unavailable" });
  });
});

describe("a store that only one process can open", () => {
  test("takes over lost runs at once, and lowers the server's limits to the largest record", async () => {
    const store = Object.assign(memoryStore(), { exclusive: true, recordBytes: 4_000 });
    const clock = fakeClock();
    const frozen = { ...clock, after: () => () => {} };
    const first = serve(gated().agent, { store, clock: frozen, waitUntil: () => {} });
    await streamedId(await first.fetch(request("/message:stream", "go")));
    const found = gated();
    serve(found.agent, { store, clock });
    await expect.poll(() => found.attempts).toEqual([2]);
    const large = await first.fetch(request("/message:send", "x".repeat(4_000)));
    expect([large.status, await large.text()]).toEqual([413, expect.stringContaining("4000")]);
  });
});

test("a signal stores its event, and does not begin a run that the platform would freeze: the next wake() continues with it", async () => {
  const calls: number[] = [];
  const agent = defineAgent({
    name: "Waiter",
    description: "Waits.",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      calls.push(turn.attempt);
      yield turn.working();
      yield turn.completed(JSON.stringify(yield* turn.waitFor("paid")));
    },
  });
  const works: Promise<void>[] = [];
  const handler = serve(agent, { waitUntil: (work) => void works.push(work) });
  const id = await begin(handler);
  await Promise.all(works);
  const attended = works.length;
  await handler.signal(id, "paid", 7);
  for (let at = 0; at < 20; at += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(calls).toEqual([1]);
  expect(works).toHaveLength(attended);
  expect((await handler.wake({ wait: 10_000 })).next).toBeUndefined();
  expect(calls).toEqual([1, 2]);
  expect(await stateOf(handler, id)).toBe("TASK_STATE_COMPLETED");
});
