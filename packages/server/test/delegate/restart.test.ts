import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  DelegationFailed,
  type DelegateClient,
  type DelegateOptions,
  type Turn,
} from "@parley/a2a/internal/protocol/index";
import { memoryStore, type AppendItem, type Store } from "../../src/store/index.ts";
import { text } from "@parley/a2a/internal/model/index";
import type { Client } from "@parley/a2a/internal/client/index";
import { fakeClock } from "@parley/testing";
import { agentOf, gate, gists, serving, type Served } from "./support.ts";

/* Tests delegations of processes that stop, die, and share a store. */

const isGone = { lease: { isGone: () => true } };

async function stateOf(served: Served, taskId: string): Promise<string> {
  return (await (await served.client()).getTask(taskId)).status.state;
}

const ended = (served: Served, taskId: string, state = "TASK_STATE_COMPLETED"): Promise<void> =>
  vi.waitFor(async () => expect(await stateOf(served, taskId)).toBe(state));

/** Creates an agent that yields half of the poem, waits, and yields the rest. `turns`: how many times the agent was called. */
function poet() {
  const wait = gate();
  const turns: string[] = [];
  const served = serving(
    agentOf(async function* (turn: Turn) {
      turns.push(turn.text);
      yield turn.working("Thinking");
      yield turn.artifact({ artifactId: "poem", parts: [text("Roses ")], open: true });
      await wait.opened;
      yield turn.append("poem", [text("are red")], { last: true });
    }),
  );
  return { served, wait, turns };
}

/** Creates an agent that delegates to another agent. */
function editor(client: DelegateClient, resumable: boolean) {
  const attempts: number[] = [];
  const agent = agentOf(
    async function* (turn) {
      attempts.push(turn.attempt);
      yield turn.artifact({ parts: [text("Title")] });
      const { text: poem } = yield* turn.delegate(client, turn.text);
      yield turn.completed(poem);
    },
    { resumable },
  );
  return { agent, attempts };
}

const whole = ["1-1 Title.", "WORKING: Thinking", "d1-poem Roses ", "+d1-poem are red.", "COMPLETED: Roses are red"];

async function begun(served: Served) {
  const client = await served.client();
  const events = client.sendStreamingMessage("A poem")[Symbol.asyncIterator]();
  for (;;) {
    const { value, done } = await events.next();
    if (done === true) throw new Error("The stream ended");
    if (value.artifactUpdate?.artifact.artifactId === "d1-poem") return value.artifactUpdate.taskId;
  }
}

/** Returns all events of a task, from the task's log. */
async function logOf(served: Served, taskId: string): Promise<readonly string[]> {
  const page = await served.store.read({ agent: "/" }, taskId, { after: 1, limit: 1000 });
  const seen = page?.records.map(({ kind, json }) => ({ [kind]: JSON.parse(json) as unknown })) ?? [];
  return gists(
    (async function* () {
      yield* seen as never[];
    })(),
  );
}

describe("a delegation", () => {
  test.each([true, false])(
    "continues after a restart, and sends and stores nothing twice (resumable: %s)",
    async (resumable) => {
      const { served, wait, turns } = poet();
      const { agent, attempts } = editor(await served.client(), resumable);
      const store = memoryStore();
      const first = serving(agent, { store });
      const taskId = await begun(first);
      await first.handler.close({ grace: 60_000 });
      const second = serving(agent, { store });
      await vi.waitFor(() => expect(attempts).toEqual([1, 2]));
      wait.open();
      await ended(second, taskId);
      expect(turns).toEqual(["A poem"]);
      expect(served.requests.filter((name) => name.startsWith("Send"))).toHaveLength(1);
      expect(await logOf(second, taskId)).toEqual(whole);
    },
  );

  test("continues after each of several process deaths", async () => {
    const { served, wait, turns } = poet();
    const { agent, attempts } = editor(await served.client(), false);
    const store = memoryStore();
    const first = serving(agent, { store });
    const taskId = await begun(first);
    let last = first;
    for (let life = 2; life < 7; life += 1) {
      const clock = fakeClock(Date.now());
      last = serving(agent, { store, clock, ...isGone });
      await vi.waitFor(() => expect(attempts).toHaveLength(life));
      await vi.waitFor(() =>
        expect(served.requests.filter((name) => name === "SubscribeToTask")).toHaveLength(life - 1),
      );
      // A run that only waits is not suspected of causing a crash, however long the other agent is silent.
      await vi.waitFor(async () => {
        clock.advance(1000);
        expect((await store.head({ agent: "/" }, taskId))?.run).toMatchObject({ attempt: life });
        expect((await store.head({ agent: "/" }, taskId))?.run?.deaths).toBeUndefined();
      });
    }
    wait.open();
    await ended(last, taskId);
    expect(turns).toEqual(["A poem"]);
    expect(await logOf(last, taskId)).toEqual(whole);
  });

  test("that is finished returns the same result in a later attempt, without a call", async () => {
    const { served, wait } = poet();
    wait.open();
    const client = await served.client();
    const results: string[] = [];
    const agent = agentOf(
      async function* (turn) {
        const { text: poem, artifacts, task } = yield* turn.delegate(client, turn.text);
        results.push(JSON.stringify([poem, artifacts, task]));
        if (turn.attempt === 1) await new Promise(() => {});
        yield turn.completed(poem);
      },
      { resumable: true },
    );
    const store = memoryStore();
    const first = serving(agent, { store });
    const { task } = await (
      await first.client()
    ).sendMessage({
      message: "A poem",
      configuration: { returnImmediately: true },
    });
    await vi.waitFor(() => expect(results).toHaveLength(1));
    const before = served.requests.length;
    const second = serving(agent, { store, ...isGone });
    await ended(second, task?.id ?? "");
    expect(results[1]).toBe(results[0]);
    expect(served.requests).toHaveLength(before);
  });

  test("of an agent that is not resumable does not save the function's later work", async () => {
    const { served, wait } = poet();
    wait.open();
    const client = await served.client();
    const reached = gate();
    const agent = agentOf(async function* (turn) {
      yield* turn.delegate(client, turn.text);
      reached.open();
      await new Promise(() => {});
    });
    const store = memoryStore();
    const first = serving(agent, { store });
    const sent = await (
      await first.client()
    ).sendMessage({ message: "Go", configuration: { returnImmediately: true } });
    await reached.opened;
    const second = serving(agent, { store, ...isGone });
    await ended(second, sent.task?.id ?? "", "TASK_STATE_FAILED");
  });

  test("that failed fails again in a later attempt, even if the function caught it", async () => {
    const sub = serving(
      agentOf(async function* (turn) {
        yield turn.failed("Out of ink");
      }),
    );
    const client = await sub.client();
    const caught: string[] = [];
    const agent = agentOf(
      async function* (turn) {
        try {
          yield* turn.delegate(client, "Write");
        } catch (error) {
          if (!(error instanceof DelegationFailed)) throw error;
          caught.push(`${error.kind} ${error.message} ${error.task?.status.state}`);
        }
        if (turn.attempt === 1) await new Promise(() => {});
        yield turn.completed("Done without");
      },
      { resumable: true },
    );
    const store = memoryStore();
    const first = serving(agent, { store });
    const sent = await (
      await first.client()
    ).sendMessage({ message: "Go", configuration: { returnImmediately: true } });
    await vi.waitFor(() => expect(caught).toHaveLength(1));
    const second = serving(agent, { store, ...isGone });
    await ended(second, sent.task?.id ?? "");
    expect(caught).toEqual(Array(2).fill("failed Agent could not do its part: Out of ink TASK_STATE_FAILED"));
    expect(sub.requests.filter((name) => name.startsWith("Send"))).toHaveLength(1);
  });

  test.each([true, false])(
    "asks one question in a turn, although the process died between the question and the end of the run (resumable: %s)",
    async (resumable) => {
      const asker = (question: string, before = Promise.resolve()) =>
        serving(
          agentOf(async function* (turn: Turn) {
            await before;
            if (turn.task === undefined) yield turn.inputRequired(question);
            else yield turn.completed(turn.text);
          }),
        );
      const asked = gate();
      const clients = [await asker("Which colour?").client(), await asker("Which size?", asked.opened).client()];
      const attempts: number[] = [];
      const agent = agentOf(
        async function* (turn) {
          attempts.push(turn.attempt);
          const heard = yield* turn.all(clients.map((client) => turn.delegate(client, "A coat")));
          yield turn.completed(heard.map((each) => each.text).join());
        },
        { resumable },
      );
      const store = memoryStore();
      const over = gate();
      const first = serving(agent, { store: diesAtQuestion(store, asked.open, over.opened), ...isGone });
      onTestFinished(over.open);
      const sent = await (await first.client()).sendMessage("A coat");
      const taskId = sent.task?.id ?? "";
      await asked.opened;
      // The store has the question, but not the end of the run.
      expect((await store.head({ agent: "/" }, taskId))?.run).toBeDefined();
      const second = serving(agent, { store, ...isGone });
      await vi.waitFor(async () => expect((await store.head({ agent: "/" }, taskId))?.run).toBeUndefined());
      const client = await second.client();
      const questions: (string | undefined)[] = [];
      for (const answer of ["Red", "Large"]) {
        questions.push((await client.getTask(taskId)).status.message?.parts[0]?.text);
        await client.sendMessage({ taskId, parts: [text(answer)] });
      }
      await ended(second, taskId);
      expect(questions).toEqual(["Which colour?", "Which size?"]);
      expect((await client.getTask(taskId)).status.message?.parts[0]?.text).toBe("Red,Large");
      expect(attempts).toEqual([1, 2, 3]);
    },
  );

  test("asks again after a restart, and takes the answer to the same task", async () => {
    const hotel = serving(
      agentOf(async function* (turn) {
        if (turn.number < 3) return yield turn.inputRequired(`Question ${turn.number}`);
        yield turn.completed(`Booked ${turn.text}`);
      }),
    );
    const { agent, attempts } = editor(await hotel.client(), false);
    const store = memoryStore();
    let served = serving(agent, { store });
    const { task } = await (await served.client()).sendMessage("Basel");
    const id = task?.id ?? "";
    expect(task?.status).toMatchObject({
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { parts: [{ text: "Question 1" }] },
    });
    for (const answer of ["May", "June"]) {
      await served.handler.close();
      served = serving(agent, { store });
      await (await served.client()).sendMessage({ taskId: id, parts: [text(answer)] });
    }
    await ended(served, id);
    expect(attempts).toEqual([1, 2, 3]);
    expect(await logOf(served, id)).toEqual([
      "1-1 Title.",
      "INPUT_REQUIRED: Question 1",
      "WORKING",
      "message May",
      "INPUT_REQUIRED: Question 2",
      "WORKING",
      "message June",
      "COMPLETED: Booked June",
    ]);
    expect((await (await hotel.client()).listTasks()).tasks).toHaveLength(1);
  });
});

/** Returns a store whose process dies after the commit of a question, before the end of the run is committed. */
function diesAtQuestion(store: Store, died: () => void, over: Promise<void>): Store {
  let isDead = false;
  const append: Store["append"] = async (items) => {
    // Appends of the dead process wait until the test is over. Then the engine can be closed, because it has lost its lease.
    if (isDead) await over;
    const asks = !isDead && items.some(isQuestion);
    if (!asks) return store.append(items);
    isDead = true;
    const outcomes = await store.append(items.map(withoutEnd));
    died();
    return outcomes;
  };
  return new Proxy({} as Store, {
    get: (_, name) => (name === "append" ? append : bound(Reflect.get(store, name), store)),
  });
}

function isQuestion(item: AppendItem): boolean {
  return "records" in item && item.records.some(({ state }) => state === "TASK_STATE_INPUT_REQUIRED");
}

function withoutEnd(item: AppendItem): AppendItem {
  if (!("records" in item)) return item;
  const { effects = [] } = item;
  return { ...item, effects: effects.filter((each) => each.effect !== "lease" && (each.effect !== "run" || each.run)) };
}

function bound(member: unknown, store: Store): unknown {
  return typeof member === "function" ? member.bind(store) : member;
}

/** Returns a client whose process dies before it reads the response to a send, so that the row is stored, but the task id is unknown. */
function dying(client: Client, without: readonly string[] = []): DelegateClient & { sends: number } {
  const { capabilities } = client.card;
  const extensions = capabilities.extensions?.filter(({ uri }) => !without.some((each) => uri?.includes(each))) ?? [];
  let sends = 0;
  return {
    card: { ...client.card, capabilities: { ...capabilities, extensions } },
    get sends() {
      return sends;
    },
    sendStreamingMessage(request, options) {
      sends += 1;
      if (sends > 1) return client.sendStreamingMessage(request, options);
      const events = client.sendStreamingMessage(request);
      const next = async (): Promise<never> => {
        await events.next();
        return new Promise(() => {});
      };
      return { [Symbol.asyncIterator]: () => ({ next }) };
    },
    sendMessage: (request, options) => client.sendMessage(request, options),
    subscribeToTask: (id, options) => client.subscribeToTask(id, options),
    getTask: (id, options) => client.getTask(id, options),
    listTasks: (request, options) => client.listTasks(request, options),
    cancelTask: (id, options) => client.cancelTask(id, options),
  };
}

describe("a send that may or may not have arrived", () => {
  async function afterCrash(without: readonly string[], options: object = {}, lists = true) {
    const { served, wait, turns } = poet();
    wait.open();
    const client = dying(await served.client(), without);
    if (!lists) client.listTasks = () => Promise.reject(new Error("It cannot list"));
    const agent = agentOf(async function* (turn) {
      const { text: poem } = yield* turn.delegate(client, turn.text, options);
      yield turn.completed(poem);
    });
    const store = memoryStore();
    const first = serving(agent, { store });
    const sent = await (
      await first.client()
    ).sendMessage({ message: "A poem", configuration: { returnImmediately: true } });
    await vi.waitFor(() => expect(turns).toHaveLength(1));
    const second = serving(agent, { store, ...isGone });
    return { second, id: sent.task?.id ?? "", client, turns };
  }

  test("is repeated if the agent promises to deduplicate it", async () => {
    const { second, id, client, turns } = await afterCrash([]);
    await ended(second, id);
    expect([client.sends, turns.length]).toEqual([2, 1]);
  });

  test("is searched for if the agent does not, and followed", async () => {
    const { second, id, client, turns } = await afterCrash(["idempotent-send"]);
    await ended(second, id);
    expect([client.sends, turns.length]).toEqual([1, 1]);
  });

  test("fails if it cannot be found, and says so", async () => {
    const { second, id, client } = await afterCrash(["idempotent-send"], {}, false);
    await ended(second, id, "TASK_STATE_FAILED");
    const { status } = await (await second.client()).getTask(id);
    expect(status.message?.parts[0]?.text).toBe("It is not known whether Agent has received its message.");
    expect(client.sends).toBe(1);
  });

  test("is repeated with onUncertain: resend", async () => {
    const { second, id, client } = await afterCrash(["idempotent-send"], { onUncertain: "resend" }, false);
    await ended(second, id);
    expect(client.sends).toBe(2);
  });
});

describe("two agents with the same name and message", () => {
  /** Creates an agent that yields a word once `wait` is open. `got`: the messages that the agent received. */
  function worker(says: string, replies = false) {
    const wait = gate();
    const got: string[] = [];
    const served = serving(
      agentOf(
        async function* (turn: Turn) {
          got.push(turn.text);
          if (replies) return yield turn.reply(says);
          yield turn.artifact({ parts: [text(says)] });
          await wait.opened;
        },
        { name: "Worker" },
      ),
    );
    return { served, wait, got };
  }

  interface Lives {
    /** The agents to which the first process delegates, in order. */
    readonly first: readonly DelegateClient[];
    readonly second: readonly DelegateClient[];
    /** Once this resolves, the first process dies. */
    readonly until: (store: Store, taskId: string) => Promise<unknown>;
    /** Called while the second process runs. */
    readonly afterwards?: () => void;
    readonly options?: DelegateOptions;
  }

  /** Runs two processes. Returns the outcome that the second process reports. */
  async function asking({ first, second, until, afterwards, options = {} }: Lives): Promise<string | undefined> {
    let clients = first;
    const again = gate();
    const agent = agentOf(
      async function* (turn) {
        if (turn.attempt > 1) again.open();
        const heard: string[] = [];
        for (const client of clients) {
          try {
            heard.push((yield* turn.delegate(client, turn.text, options)).text);
          } catch (error) {
            if (!(error instanceof DelegationFailed)) throw error;
            heard.push(error.kind);
          }
        }
        if (turn.attempt === 1) await new Promise(() => {});
        yield turn.completed(heard.join(" and "));
      },
      { resumable: true },
    );
    const store = memoryStore();
    const client = await serving(agent, { store }).client();
    const { task } = await client.sendMessage({ message: "Go", configuration: { returnImmediately: true } });
    const id = task?.id ?? "";
    await vi.waitFor(() => until(store, id));
    clients = second;
    const after = await serving(agent, { store, ...isGone }).client();
    await again.opened;
    afterwards?.();
    return (await after.waitFor(id)).status.message?.parts[0]?.text;
  }

  /** Expects that the task has one delegation, open or closed, that passes the check. */
  const has =
    (feature: "delegation" | "delegation.over", check: (value: string) => boolean = () => true) =>
    async (store: Store, taskId: string): Promise<void> => {
      const rows = await store.features({ agent: "/" }, taskId, feature);
      expect(rows.filter(({ value }) => check(value))).toHaveLength(1);
    };

  /** Returns the client with a different card. */
  function withCard(client: DelegateClient, change: Partial<DelegateClient["card"]>): DelegateClient {
    const card = { ...client.card, ...change };
    return new Proxy(client, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target);
        if (name === "card") return card;
        return typeof member === "function" ? (member.bind(target) as unknown) : member;
      },
    });
  }

  function at(client: DelegateClient, urls: readonly string[], tenant?: string): DelegateClient {
    const more = { protocolBinding: "JSONRPC", protocolVersion: "1.0", ...(tenant !== undefined && { tenant }) };
    return withCard(client, { supportedInterfaces: urls.map((url) => ({ url, ...more })) });
  }

  test("are not confused while one works, if their order changes", async () => {
    const [one, two] = [worker("one"), worker("two")];
    const [a, b] = [await one.served.client(), await two.served.client()];
    two.wait.open();
    const began = Date.now();
    const sinceOf = (value: string): number => (JSON.parse(value) as { readonly since: number }).since;
    const known = has("delegation", (value) => value.includes("taskId") && sinceOf(value) >= began);
    const said = await asking({ first: [a], second: [b, a], until: known, afterwards: one.wait.open });
    expect(said).toBe("two and one");
    expect([one.got, two.got]).toEqual([["Go"], ["Go"]]);
  });

  test("are not confused once one is done, if their order changes", async () => {
    const [one, two] = [worker("one"), worker("two")];
    const [a, b] = [await one.served.client(), await two.served.client()];
    one.wait.open();
    two.wait.open();
    expect(await asking({ first: [a], second: [b, a], until: has("delegation.over") })).toBe("two and one");
    expect([one.got, two.got]).toEqual([["Go"], ["Go"]]);
  });

  test.each([true, false])("are not confused if one may have its message (it deduplicates: %s)", async (joins) => {
    const [one, two] = [worker("one"), worker("two")];
    const without = joins ? [] : ["idempotent-send"];
    const [a, b] = [dying(await one.served.client(), without), await two.served.client()];
    const { capabilities } = b.card;
    const other = joins ? b : withCard(b, { capabilities: { ...capabilities, extensions: [] } });
    one.wait.open();
    two.wait.open();
    const sent = async () => expect(one.got).toHaveLength(1);
    // The other URL may belong to the same agent with an incomplete task list, so the server does not call it.
    const said = await asking({ first: [a], second: [other, a], until: sent });
    expect(said).toBe(joins ? "two and one" : "uncertain and one");
    expect([one.got, two.got]).toEqual([["Go"], joins ? ["Go"] : []]);
  });

  test.each([
    ["nothing is sent", {}, "uncertain and one", []],
    ["the message is sent again with onUncertain: resend", { onUncertain: "resend" }, "two and one", ["Go"]],
  ] as const)("if one has replied without a task: %s", async (_, options, heard, got) => {
    const [one, two] = [worker("one", true), worker("two", true)];
    const [a, b] = [await one.served.client(), await two.served.client()];
    expect(await asking({ first: [a], second: [b, a], until: has("delegation.over"), options })).toBe(heard);
    expect([one.got, two.got]).toEqual([["Go"], got]);
  });

  test("are one agent if the card lists its addresses in another order", async () => {
    const one = worker("one", true);
    const client = await one.served.client();
    const [a, b] = [
      at(client, ["https://one.example", "https://two.example"]),
      at(client, ["https://two.example", "https://one.example"]),
    ];
    expect(await asking({ first: [a], second: [b], until: has("delegation.over") })).toBe("one");
    expect(one.got).toEqual(["Go"]);
  });

  test("are two if they share an address and differ by tenant", async () => {
    const [one, two] = [worker("one"), worker("two")];
    const urls = ["https://shared.example"];
    const [a, b] = [at(await one.served.client(), urls, "one"), at(await two.served.client(), urls, "two")];
    one.wait.open();
    two.wait.open();
    expect(await asking({ first: [a], second: [b, a], until: has("delegation.over") })).toBe("two and one");
    expect([one.got, two.got]).toEqual([["Go"], ["Go"]]);
  });
});
