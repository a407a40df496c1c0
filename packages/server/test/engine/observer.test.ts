import { AsyncLocalStorage, createHook } from "node:async_hooks";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { A2AError } from "@parley/a2a/internal/model/index";
import { createHandler } from "../../src/handler.ts";
import { defineAgent } from "../../src/agent/index.ts";
import { memoryStore } from "../../src/store/index.ts";
import { connect, type CachedCard } from "@parley/a2a/internal/client/index";
import {
  observeCalls,
  observeRequests,
  safeObserver,
  type Gauges,
  type Interceptor,
  type Observation,
  type Observer,
} from "@parley/a2a/internal/protocol/index";
import { LinesLogger } from "../../../a2a/test/transport/support.ts";
import { callContext, fakeClock } from "@parley/testing";
import { harness, messageOf, type OnMessage } from "./support.ts";

const agentOf = (onMessage: OnMessage) =>
  defineAgent({ name: "Toy", description: "A toy", version: "1", skills: [], onMessage });

async function* counting(turn: Parameters<OnMessage>[0]) {
  if (turn.text === "hello") return turn.reply("Hello");
  if (turn.text === "throw") throw new Error("the agent is broken");
  if (turn.text === "wait") {
    yield turn.working("Waits until it is canceled");
    await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    return undefined;
  }
  yield turn.artifact({ artifactId: "a", parts: [{ text: "0" }], open: true });
  for (let n = 1; n < 100; n += 1) yield turn.append("a", [{ text: String(n) }]);
  return undefined;
}

/** Creates a simple observer that adds a line at each begin and each end. */
function noting(): { readonly observer: Observer; readonly lines: string[] } {
  const lines: string[] = [];
  const begin = (what: string) => {
    lines.push(`${what} begins`);
    return (error?: A2AError) => void lines.push(`${what} ${error?.code ?? "ends"}`);
  };
  return {
    lines,
    observer: {
      call: ({ operation, agent, principal, version }) =>
        begin(`${agent} ${operation} ${principal.subject} ${version}`),
      turn: ({ agent, turn, attempt }) => begin(`${agent} turn ${turn}/${attempt}`),
      commit: ({ items }) => begin(`commit of ${items}`),
      append: ({ agent, records, seq }) => void lines.push(`${agent} append ${records} to ${seq}`),
      request: ({ operation, version }) => begin(`request ${operation} ${version}`),
      card: ({ url }) => begin(`card ${url}`),
    },
  };
}

/** Connects a client to an agent in this process, through the fetch host. Both sides can be observed. */
async function connected(observer: Observer | undefined, requests?: Observer) {
  const logger = new LinesLogger();
  const handler = createHandler([{ agent: agentOf(counting), id: "toy" }], {
    publicUrl: "http://localhost:4000",
    store: memoryStore(),
    logger,
    ...(observer !== undefined && { observer }),
  });
  onTestFinished(() => handler.close());
  const interceptors: readonly Interceptor[] = requests === undefined ? [] : [observeRequests(requests)];
  const fetch = (url: string, init: RequestInit): Promise<Response> => handler.fetch(new Request(url, init));
  const client = await connect("http://localhost:4000", { fetch, interceptors, binding: "JSONRPC" });
  return { client, handler, logger };
}

describe("an observer", () => {
  test("sees a call, its turn, its commit and its append, each begin once and end once", async () => {
    const { observer, lines } = noting();
    const { client } = await connected(observer);
    await client.sendMessage("work");
    await vi.waitFor(() => expect(lines).toContain("toy turn 1/1 ends"));
    expect(lines[0]).toBe("toy SendMessage anonymous 1.0 begins");
    expect(lines.at(-1)).toBe("toy SendMessage anonymous 1.0 ends");
    for (const what of ["toy turn 1/1", "toy SendMessage anonymous 1.0"]) {
      expect(lines.filter((line) => line.startsWith(what))).toEqual([`${what} begins`, `${what} ends`]);
    }
    const appends = lines.filter((line) => line.includes("append"));
    // The appends contain the task, 100 chunks and the end.
    expect(appends.reduce((sum, line) => sum + Number(/append (\d+)/.exec(line)?.[1]), 0)).toBe(102);
    expect(appends.at(-1)).toMatch(/ to 102$/);
    const commits = lines.filter((line) => line.startsWith("commit"));
    expect(commits.filter((line) => line.endsWith("begins"))).toHaveLength(commits.length / 2);
  });

  test("learns why a call and a turn failed", async () => {
    const { observer, lines } = noting();
    const { client } = await connected(observer);
    await client.getTask("unknown").catch(() => undefined);
    await client.sendMessage("throw");
    expect(lines).toContain("toy GetTask anonymous 1.0 TaskNotFound");
    expect(lines).toContain("toy turn 1/1 InternalError");
  });

  test("learns of the end of a stream, and of its reader leaving", async () => {
    const { observer, lines } = noting();
    const { client } = await connected(observer);
    const told = () => lines.filter((line) => line.includes("SendStreamingMessage"));
    for await (const { task } of client.sendStreamingMessage("wait")) {
      if (task === undefined) continue;
      expect(told()).toEqual(["toy SendStreamingMessage anonymous 1.0 begins"]);
      await client.cancelTask(task.id);
    }
    await vi.waitFor(() => expect(told()).toHaveLength(2));
    expect(told()[1]).toBe("toy SendStreamingMessage anonymous 1.0 ends");
    const leaving = client.sendStreamingMessage("wait");
    await leaving.next();
    await leaving.return();
    await vi.waitFor(() => expect(told()).toHaveLength(4));
  });

  test("sees each request of a client, with every try", async () => {
    const { observer, lines } = noting();
    const { client, handler } = await connected(undefined, observer);
    const [service] = [...handler.host.services.values()];
    const call = vi.spyOn(service as NonNullable<typeof service>, "call");
    call.mockRejectedValueOnce(new A2AError("Unavailable", undefined, { retryAfter: 0 }));
    await client.sendMessage("hello");
    expect(lines).toEqual([
      "request SendMessage 1.0 begins",
      "request SendMessage 1.0 Unavailable",
      "request SendMessage 1.0 begins",
      "request SendMessage 1.0 ends",
    ]);
  });

  test("sees each request for a card, also failed ones, and none if the card is cached", async () => {
    const { observer, lines } = noting();
    const { handler } = await connected(undefined);
    const fetch = (url: string, init: RequestInit): Promise<Response> => handler.fetch(new Request(url, init));
    const options = { fetch, observer, cardCache: new Map<string, CachedCard>() };
    await connect("http://localhost:4000/nothing", options).catch(() => undefined);
    expect(lines[0]).toBe("card http://localhost:4000/nothing/.well-known/agent-card.json begins");
    expect(lines[1]).toMatch(/^card .* [A-Z]\w+$/);
    expect(lines.filter((line) => line.endsWith("begins"))).toHaveLength(lines.length / 2);
    lines.length = 0;
    const card = "card http://localhost:4000/.well-known/agent-card.json";
    for (const [url, { card: known, etag }] of options.cardCache) {
      options.cardCache.set(url, { card: known, etag, freshUntil: Date.now() + 60_000 });
    }
    await connect("http://localhost:4000", options);
    expect(lines).toEqual([]);
    await connect("http://localhost:4000", { fetch, observer });
    expect(lines).toEqual([`${card} begins`, `${card} ends`]);
  });

  test("of deliveries gets their results, and may throw", () => {
    const seen: unknown[] = [];
    const attempt = {
      agent: "toy",
      taskId: "t",
      configId: "c",
      origin: "https://example.com",
      seq: 3,
      attempt: 2,
      trace: undefined,
    };
    const logger = new LinesLogger();
    const observer = safeObserver(
      {
        delivery(delivery) {
          seen.push(delivery);
          return (result) => {
            seen.push(result);
            throw new Error("no collector");
          };
        },
      },
      logger,
    );
    const begun = observer.delivery?.(attempt);
    if (typeof begun === "object") begun.end?.({ status: 503, error: new A2AError("Unavailable") });
    expect(seen).toEqual([attempt, { status: 503, error: new A2AError("Unavailable") }]);
    expect(logger.lines.map(({ message }) => message)).toEqual(["An observer failed"]);
  });

  test("that throws is logged, and disturbs nothing", async () => {
    const broken = (): never => {
      throw new Error("no collector");
    };
    for (const observer of [
      { call: broken, turn: broken, commit: broken, append: broken },
      { call: () => broken, turn: () => broken, commit: () => broken },
    ]) {
      const { client, logger } = await connected(observer);
      const { task } = await client.sendMessage("work");
      expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
      await client.getTask("unknown").catch((error: A2AError) => expect(error.code).toBe("TaskNotFound"));
      expect(new Set(logger.lines.map(({ message }) => message))).toEqual(new Set(["An observer failed"]));
    }
  });
});

describe("an observer that fails (observer.ts: an observer changes nothing)", () => {
  const broken = (): never => {
    throw new Error("no collector");
  };
  const rejecting = (async () => broken()) as () => never;
  const told = (logger: LinesLogger) => new Set(logger.lines.map(({ message }) => message));

  test.each([
    ["that rejects", rejecting],
    ["whose end rejects", () => rejecting],
  ])("on a server: one %s is logged, without an unhandled rejection", async (_, member) => {
    const unhandled = vi.fn<() => void>();
    process.on("unhandledRejection", unhandled);
    onTestFinished(() => void process.off("unhandledRejection", unhandled));
    const append = member === rejecting ? { append: rejecting } : {};
    const { client, logger } = await connected({ call: member, turn: member, commit: member, ...append });
    expect((await client.sendMessage("work")).task?.status.state).toBe("TASK_STATE_COMPLETED");
    await vi.waitFor(() => expect(told(logger)).toEqual(new Set(["An observer failed"])));
    await new Promise((resolve) => setTimeout(resolve));
    expect(unhandled).not.toHaveBeenCalled();
  });

  test.each([
    ["that throws", broken],
    ["whose end throws", () => broken],
    ["that rejects", rejecting],
    ["whose end rejects", () => rejecting],
  ])("at a client: one %s is logged by the client's logger, and no call fails", async (_, member) => {
    const unhandled = vi.fn<() => void>();
    process.on("unhandledRejection", unhandled);
    onTestFinished(() => void process.off("unhandledRejection", unhandled));
    const { handler } = await connected(undefined);
    const fetch = (url: string, init: RequestInit): Promise<Response> => handler.fetch(new Request(url, init));
    const [cards, requests] = [new LinesLogger(), new LinesLogger()];
    const client = await connect("http://localhost:4000", {
      fetch,
      binding: "JSONRPC",
      observer: { card: member },
      logger: cards,
      interceptors: [observeRequests({ request: member }, requests), observeRequests({ request: member })],
    });
    expect((await client.sendMessage("hello")).message?.parts[0]?.text).toBe("Hello");
    const events = [];
    for await (const event of client.sendStreamingMessage("work")) events.push(event);
    expect(events.length).toBeGreaterThan(1);
    await client.getTask("unknown").catch((error: A2AError) => expect(error.code).toBe("TaskNotFound"));
    await vi.waitFor(() => expect(requests.lines).toHaveLength(1));
    expect([told(cards), told(requests)]).toEqual([new Set(["An observer failed"]), new Set(["An observer failed"])]);
    await new Promise((resolve) => setTimeout(resolve));
    expect(unhandled).not.toHaveBeenCalled();
  });
});

describe("without an observer", () => {
  /** Counts the promises that an agent's answer creates in this process. Measures the second answer, when everything is initialized. */
  async function promisesOf(observer: Observer | undefined): Promise<number> {
    const { service } = harness(counting, observer === undefined ? {} : { observer });
    let promises = 0;
    const hook = createHook({ init: (_id, type) => void (promises += type === "PROMISE" ? 1 : 0) });
    for (let time = 0; time < 2; time += 1) {
      hook.enable();
      promises = 0;
      await service.call("SendMessage", { message: messageOf("hello") }, callContext());
      hook.disable();
    }
    return promises;
  }

  test("a message costs an extra promise and service only with an observer of turns", async () => {
    const unobserved = await promisesOf(undefined);
    expect(await promisesOf({})).toBe(unobserved);
    expect(await promisesOf({ turn: () => undefined })).toBeGreaterThan(unobserved);
    // Wraps an observed service with an additional service.
    const around = async (observer: Observer | undefined) => {
      const { handler } = await connected(observer);
      return [...handler.host.services.values()].map((service) => service.call.toString());
    };
    const plain = await around(undefined);
    expect(await around({})).toEqual(plain);
    expect(await around({ call: () => undefined })).not.toEqual(plain);
  });

  test("a missing member is looked up when the handler is created, and never again", async () => {
    let reads = 0;
    const observer: Observer = {
      get turn() {
        reads += 1;
        return undefined as never;
      },
      get commit() {
        reads += 1;
        return undefined as never;
      },
      get append() {
        reads += 1;
        return undefined as never;
      },
      get call() {
        reads += 1;
        return undefined as never;
      },
    };
    const { client } = await connected(observer);
    const before = reads;
    await client.sendMessage("work");
    expect([before > 0, reads]).toEqual([true, before]);
  });
});

describe("an observer that is not an object", () => {
  const observer = (() => undefined) as unknown as Observer;
  const refused = { code: "InvalidParams", fields: [expect.objectContaining({ field: "observer" })] };

  test("is rejected when the handler is created", () => {
    const agent = agentOf(counting);
    const publicUrl = "http://127.0.0.1";
    expect(() => createHandler(agent, { publicUrl, store: memoryStore(), observer })).toThrow(
      expect.objectContaining(refused),
    );
  });

  test("is rejected by connect()", async () => {
    await expect(connect("http://127.0.0.1:1", { observer })).rejects.toMatchObject(refused);
  });
});

describe("the context that an observer opens", () => {
  const spans = (name: string, storage: AsyncLocalStorage<string>) => {
    let count = 0;
    return ({ trace }: { readonly trace: string | undefined }): Observation => {
      const span = `${name} ${(count += 1)} in ${trace ?? "nothing"}`;
      return { trace: span, run: (work) => storage.run(span, work) };
    };
  };

  test("for a call is the parent of the turn's context, and that one the parent of its delegations'", async () => {
    const storage = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const { service } = harness(
      (turn) => {
        seen.push(storage.getStore(), turn.call.trace);
        return turn.reply("Hello");
      },
      { observer: { turn: spans("turn", storage) } },
    );
    const observed = observeCalls({ call: spans("call", storage) }, "toy")(service);
    await observed.call("SendMessage", { message: messageOf("hello") }, callContext({ trace: "caller" }));
    expect(seen).toEqual(Array(2).fill("turn 1 in call 1 in caller"));
  });

  test.each<[string, Observation["run"]]>([
    ["that does not call it", () => undefined as never],
    ["that calls it twice", (work) => (work(), work())],
    [
      "that calls it and throws",
      (work) => {
        work();
        throw new Error("no collector");
      },
    ],
    [
      "that throws",
      () => {
        throw new Error("no collector");
      },
    ],
  ])("runs an agent once, even with a context %s", async (_, run) => {
    let runs = 0;
    const { ask } = harness(
      (turn) => {
        runs += 1;
        return turn.reply("Hello");
      },
      { observer: { turn: () => ({ run: run as NonNullable<Observation["run"]> }) } },
    );
    expect((await ask("hello")).message?.parts[0]?.text).toBe("Hello");
    expect(runs).toBe(1);
  });
});

describe("gauges", () => {
  test("report the work of a process and the waiting tasks of the store, and end with the server", async () => {
    let gauges: Gauges | undefined;
    let closed = 0;
    const release = new Map<string, () => void>();
    const clock = fakeClock();
    const observer: Observer = {
      gauges(given) {
        gauges = given;
        return () => (closed += 1);
      },
    };
    const { engine, send, store } = harness(
      async function* (turn) {
        yield turn.working(turn.text);
        if (turn.text === "sleep") yield* turn.sleep(60_000);
        else await new Promise<void>((resolve) => release.set(turn.text, resolve));
      },
      { observer, clock, limits: { runs: 1 } },
    );
    const configuration = { returnImmediately: true };
    await send("sleep", { configuration });
    await vi.waitFor(async () => expect((await gauges?.store())?.waitingTasks).toBe(1));
    await send("first", { configuration });
    await send("second", { configuration });
    await vi.waitFor(() => expect(release.has("first")).toBe(true));
    clock.advance(5_000);
    expect(gauges?.process()).toMatchObject({ activeRuns: 1, restingRuns: 0 });
    expect(gauges?.process().usedBytes).toBeGreaterThan(0);
    const waiting = {
      queuedTasks: 1,
      queueAgeMs: 5_000,
      waitingTasks: 1,
      dueWebhooks: 0,
      webhookDelayMs: 0,
      suspendedTasks: 0,
    };
    expect(await gauges?.store()).toEqual(waiting);
    const [suspended] = (await store.claimable({ now: Infinity, agents: ["agent"], limit: 1 })).heads;
    const { task, fence, run } = suspended as NonNullable<typeof suspended>;
    const effects = [
      { effect: "lease", op: "revoke" },
      { effect: "run", run: { ...(run as NonNullable<typeof run>), suspended: true } },
    ] as const;
    await store.append([{ task, fence, records: [], effects }]);
    expect((await gauges?.store())?.suspendedTasks).toBe(1);
    expect(closed).toBe(0);
    await engine.close();
    expect(closed).toBe(1);
  });
});
