import { describe, expect, it, onTestFinished } from "vitest";
import { defineAgent } from "../../src/agent/index.ts";
import { isTerminal, TaskFold } from "@parley/a2a/internal/model/index";
import { defineExtension } from "@parley/a2a/extensions";
import { callContext, fakeClock, inProcess, type InProcessOptions } from "@parley/testing";
import { memoryStore, type Store, type TaskHead } from "../../src/store/index.ts";
import { bound, eventually, gate, gist, harness, messageOf, Reading, type OnMessage } from "./support.ts";

/**
 * Creates two engines on one store. To "kill" the first engine, a test disconnects it from the store, so that it cannot store anything. The
 * tests in test/crash kill real processes.
 */
function twoNodes(onMessage: OnMessage, options: InProcessOptions & { resumable?: boolean } = {}) {
  const { resumable = false, ...rest } = options;
  const shared = memoryStore();
  const clock = fakeClock();
  const definition = { name: "test", description: "a test", version: "1", skills: [], resumable, onMessage };
  let alive = true;
  const cut: Store = {
    ...bound(shared),
    append: (items) => (alive ? shared.append(items) : new Promise(() => {})),
  };
  const node = (store: Store) => {
    const made = inProcess(defineAgent(definition), { clock, store, lease: { ttl: 3_000, maxAttempts: 3 }, ...rest });
    onTestFinished(() => void made.engine.close());
    return made;
  };
  return {
    clock,
    shared,
    first: node(cut),
    kill: () => (alive = false),
    /** Starts the successor, after the first engine's leases have expired. */
    takeOver() {
      const second = node(shared);
      clock.advance(10_000);
      return second;
    },
    successor: () => node(shared),
  };
}

async function begin({ first }: { first: ReturnType<typeof inProcess> }, text = "Go") {
  const { batches } = await first.service.stream("SendStreamingMessage", { message: messageOf(text) }, callContext());
  const reading = new Reading(batches);
  const id = (await reading.next())?.payload.value.task?.id ?? "";
  return { id, reading };
}

describe("a task that was read as lost", () => {
  it.each([
    { says: "said something", speaks: true },
    { says: "said nothing yet", speaks: false },
  ])("is not taken over with its old turn if its run has reached the next one, and has $says", async ({ speaks }) => {
    const shared = memoryStore();
    const [answered, scanned] = [gate(), gate()];
    const definition = { name: "test", description: "a test", version: "1", skills: [], resumable: true };
    const calls: string[] = [];
    const agent = (node: string) =>
      defineAgent({
        ...definition,
        async *onMessage(turn) {
          calls.push(`${node}: turn ${turn.number}, attempt ${turn.attempt}`);
          if (speaks || turn.number === 1) yield turn.working();
          if (turn.number === 1) await answered.opened;
          else await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
        },
      });
    const first = inProcess(agent("first"), { store: shared, lease: { ttl: 200 } });
    onTestFinished(() => void first.engine.close());
    const { id } = await begin({ first });

    // The second node considers the first node dead, and is slow after it has read the lost runs.
    let reads = 0;
    const slow: Store = {
      ...bound(shared),
      async claimable(query) {
        const page = await shared.claimable(query);
        if (page.heads.length > 0 && (reads += 1) === 1) await scanned.opened;
        return page;
      },
    };
    const second = inProcess(agent("second"), { store: slow, lease: { ttl: 200, isGone: () => true } });
    onTestFinished(() => void second.engine.close());
    await eventually(() => reads > 0);
    const message = messageOf("more", { taskId: id });
    await first.service.call("SendMessage", { message, configuration: { returnImmediately: true } }, callContext());
    answered.open();
    await eventually(async () => (await shared.head({ agent: "agent" }, id))?.run?.turn === 2);
    await eventually(() => calls.length === 2);
    scanned.open();
    await eventually(() => calls.length > 2);
    expect(calls.slice(0, 3)).toEqual([
      "first: turn 1, attempt 1",
      "first: turn 2, attempt 1",
      "second: turn 2, attempt 2",
    ]);
  });
});

describe("a lost run", () => {
  it("fails with the reason if its agent cannot resume", async () => {
    const { opened } = gate();
    const nodes = twoNodes(async function* (turn) {
      yield turn.artifact({ parts: [{ text: "half" }] });
      await opened;
    });
    const { id, reading } = await begin(nodes);
    await reading.next();
    nodes.kill();
    const { service } = nodes.takeOver();
    const get = async () => (await service.call("GetTask", { id }, callContext())).payload.value;
    await eventually(async () => (await get()).status.state !== "TASK_STATE_WORKING");
    const task = await get();
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    expect(task.status.message?.parts[0]?.text).toContain("interrupted");
    expect(task.artifacts).toHaveLength(1);
  });

  it("sends a file again from its beginning, and stored parts are not stored twice", async () => {
    const bytes = Uint8Array.from({ length: 10_000 }, (_, at) => at % 251);
    const { opened } = gate();
    async function* source(attempt: number): AsyncGenerator<Uint8Array> {
      // The source has different pieces in each attempt, but the chunks are the same.
      const size = attempt === 1 ? 700 : 1_700;
      for (let at = 0; at < bytes.length; at += size) {
        if (attempt === 1 && at > 6_500) await opened;
        yield bytes.subarray(at, at + size);
      }
    }
    const nodes = twoNodes(
      async function* (turn) {
        yield* turn.file(source(turn.attempt), { name: "a.bin", chunkBytes: 999 });
      },
      { resumable: true },
    );
    const { id, reading } = await begin(nodes);
    for (let seen = 0; seen < 6; seen += 1) await reading.next();
    nodes.kill();
    const { service } = nodes.takeOver();
    const get = async () => (await service.call("GetTask", { id }, callContext())).payload.value;
    await eventually(async () => (await get()).status.state === "TASK_STATE_COMPLETED");
    const pieces = ((await get()).artifacts?.[0]?.parts ?? []).map(({ raw = "" }) => Buffer.from(raw, "base64"));
    expect(pieces.map(({ length }) => length)).toEqual([...Array<number>(10).fill(999), 10]);
    expect(Buffer.compare(Buffer.concat(pieces), bytes)).toBe(0);
  });

  it("resumes after its last checkpoint: no event is stored twice, and the task equals that of an undisturbed run", async () => {
    const attempts: unknown[] = [];
    const { opened, open } = gate();
    const agent = (stopAt: number): OnMessage =>
      async function* (turn) {
        attempts.push([turn.attempt, turn.checkpoint]);
        const from = (turn.checkpoint as number | undefined) ?? 0;
        if (from === 0) yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "start" }] } };
        for (let n = from + 1; n <= 9; n += 1) {
          yield turn.working(`step ${n}`, { keep: true });
          const chunk = turn.append("a", [{ text: String(n) }], { last: n === 9 });
          // Every third step saves a checkpoint in the same commit as its chunk.
          yield n % 3 === 0 ? [chunk, turn.saveCheckpoint(n)] : chunk;
          if (n === stopAt && turn.attempt === 1) await opened;
        }
      };
    const undisturbed = await harness(agent(0), { ids: counted() }).send("Go", { message: { messageId: "m" } });
    attempts.length = 0;
    for (const stopAt of [1, 2, 3, 4, 5, 8]) {
      const nodes = twoNodes(agent(stopAt), { resumable: true, ids: counted() });
      const { id, reading } = await begin(nodes);
      await reading.until((event) => event.artifactUpdate?.artifact.parts[0]?.text === String(stopAt));
      nodes.kill();
      const { service } = nodes.takeOver();
      const get = async () => (await service.call("GetTask", { id }, callContext())).payload.value;
      await eventually(async () => (await get()).status.state === "TASK_STATE_COMPLETED");
      const task = await get();
      expect(task.artifacts).toEqual(undisturbed.artifacts);
      const said = (history: typeof task.history) => history?.slice(1).map(({ parts }) => parts[0]?.text);
      expect(said(task.history)).toEqual(said(undisturbed.history));
      const page = await nodes.shared.read({ agent: "agent" }, id, { after: 0, limit: 100 });
      expect(page?.records).toHaveLength(1 + 1 + 18 + 1);
    }
    expect(attempts.slice(0, 2)).toEqual([
      [1, undefined],
      [2, undefined],
    ]);
    expect(attempts.at(-1)).toEqual([2, 6]);
    open();
  });

  it("stores the new events if the resumed agent does something else than before", async () => {
    const { opened } = gate();
    const nodes = twoNodes(
      async function* (turn) {
        yield turn.working("the same");
        yield turn.artifact({ artifactId: `try-${turn.attempt}`, parts: [{ text: "different" }] });
        if (turn.attempt === 1) await opened;
      },
      { resumable: true },
    );
    const { id, reading } = await begin(nodes);
    await reading.until((event) => event.artifactUpdate !== undefined);
    nodes.kill();
    const { service } = nodes.takeOver();
    const get = async () => (await service.call("GetTask", { id }, callContext())).payload.value;
    await eventually(async () => (await get()).status.state === "TASK_STATE_COMPLETED");
    expect((await get()).artifacts?.map(({ artifactId }) => artifactId)).toEqual(["try-1", "try-2"]);
  });

  it.each([
    ["and completes", true],
    ["and returns", false],
  ])(
    "has the artifact of the third run, which repeats the first after a shorter second run, %s",
    async (_how, says) => {
      const shared = memoryStore();
      const clock = fakeClock();
      const { opened } = gate();
      const words = [["Loo", "king ", "it up"], ["Looking "], ["Loo", "king ", "it up"]];
      const agent = defineAgent({
        name: "test",
        description: "a test",
        version: "1",
        skills: [],
        resumable: true,
        async *onMessage(turn) {
          for (const [at, word] of (words[turn.attempt - 1] ?? []).entries()) {
            yield {
              kind: "artifact",
              artifact: { artifactId: "a", parts: [{ text: word }] },
              ...(at > 0 && { append: true }),
            };
          }
          if (turn.attempt < 3) await opened;
          if (says) yield turn.completed();
        },
      });
      let id = "";
      for (const attempt of [1, 2, 3]) {
        let alive = true;
        const append: Store["append"] = (items) => (alive ? shared.append(items) : new Promise(() => {}));
        const { service, engine } = inProcess(agent, {
          clock,
          store: { ...bound(shared), append },
          lease: { ttl: 3_000, maxAttempts: 5 },
        });
        onTestFinished(() => void engine.close());
        if (attempt === 1) {
          const { batches } = await service.stream("SendStreamingMessage", { message: messageOf("Go") }, callContext());
          id = (await new Reading(batches).next())?.payload.value.task?.id ?? "";
        } else clock.advance(10_000);
        const get = async () => (await service.call("GetTask", { id }, callContext())).payload.value;
        const text = async () => (await get()).artifacts?.[0]?.parts.map((part) => part.text).join("");
        const written = attempt === 2 ? "Looking " : "Looking it up";
        await eventually(async () => (await text()) === written);
        if (attempt === 3) await eventually(async () => (await get()).status.state === "TASK_STATE_COMPLETED");
        expect(await text()).toBe(written);
        alive = false;
      }
    },
  );

  it("is restored once, in events within limits.eventBytes: mirrored when it ends, and not extended again", async () => {
    const shared = memoryStore();
    const clock = fakeClock();
    const { opened } = gate();
    const uri = "https://example.com/extensions/stamp/v1";
    const stamp = defineExtension({
      uri,
      onAppend: (event) =>
        event.kind === "artifact"
          ? { ...event, artifact: { ...event.artifact, parts: [...event.artifact.parts, { text: "." }] } }
          : event,
    });
    const many = Array.from({ length: 50 }, (_, at) => `${at} `);
    const agent = defineAgent({
      name: "test",
      description: "a test",
      version: "1",
      skills: [],
      resumable: true,
      mirrorArtifactText: true,
      extensions: [stamp],
      async *onMessage(turn) {
        // The third attempt repeats the texts of the first attempt, and finds the chunk of the second one.
        for (const [at, text] of (turn.attempt === 2 ? ["other"] : many).entries()) {
          yield {
            kind: "artifact",
            artifact: { artifactId: "a", parts: [{ text }, { data: { more: "x".repeat(50) } }] },
            ...(at > 0 && { append: true }),
          };
        }
        if (turn.attempt < 3) await opened;
        yield turn.completed();
      },
    });
    const context = { ...callContext(), extensions: [uri] };
    let id = "";
    for (const attempt of [1, 2, 3]) {
      let alive = true;
      const append: Store["append"] = (items) => (alive ? shared.append(items) : new Promise(() => {}));
      const { service, engine } = inProcess(agent, {
        clock,
        store: { ...bound(shared), append },
        lease: { ttl: 3_000, maxAttempts: 5 },
        limits: { eventBytes: 2_500 },
      });
      onTestFinished(() => void engine.close());
      if (attempt === 1) {
        const { batches } = await service.stream("SendStreamingMessage", { message: messageOf("Go") }, context);
        id = (await new Reading(batches).next())?.payload.value.task?.id ?? "";
      } else clock.advance(10_000);
      const get = async () => (await service.call("GetTask", { id }, callContext())).payload.value;
      const text = async () => (await get()).artifacts?.[0]?.parts.map((part) => part.text ?? "").join("");
      const written = attempt === 2 ? "other." : many.map((text) => `${text}.`).join("");
      if (attempt < 3) await eventually(async () => (await text()) === written);
      else await eventually(async () => isTerminal((await get()).status.state));
      expect(await text()).toBe(written);
      if (attempt === 3) {
        expect((await get()).status.state).toBe("TASK_STATE_COMPLETED");
        expect((await get()).status.message?.parts[0]?.text).toBe(written);
      }
      alive = false;
    }
  });

  it.each([
    ["in other chunks", ["a ", "b ", "c ", "d "], 1_000],
    ["in other words", ["a ", "x ", "y ", "z "], 1],
    ["in fewer words", ["a ", "b "], 1],
  ])("repeats an unfinished artifact %s, and the artifact is that of the last run", async (_how, words, maxChars) => {
    const { opened } = gate();
    const nodes = twoNodes(
      async function* (turn) {
        const again = turn.attempt > 1;
        yield turn.working("first", { keep: true });
        const writer = turn.writer({ artifactId: "a", name: "answer", maxChars: again ? maxChars : 1 });
        for (const word of again ? words : ["a ", "b ", "c "]) yield writer.write(word);
        if (!again) await opened;
        yield writer.end();
      },
      { resumable: true },
    );
    const { id, reading } = await begin(nodes);
    await reading.until((event) => event.artifactUpdate?.artifact.parts[0]?.text === "c ");
    nodes.kill();
    const { service } = nodes.takeOver();
    const get = async () => (await service.call("GetTask", { id }, callContext())).payload.value;
    await eventually(async () => (await get()).status.state === "TASK_STATE_COMPLETED");
    const { artifacts = [], history = [] } = await get();
    expect(artifacts).toMatchObject([{ artifactId: "a", name: "answer" }]);
    expect(artifacts[0]?.parts.map(({ text }) => text).join("")).toBe(words.join(""));
    expect(history).toHaveLength(2);
    // If a reader folds the events, the result has the same artifacts.
    const { batches } = await service.stream("SubscribeToTask", { id }, callContext({ after: 1 }));
    const working = { id, contextId: "", status: { state: "TASK_STATE_WORKING" } } as const;
    const fold = new TaskFold(working, { mergeTextParts: true });
    for (const {
      payload: { value: event },
    } of await new Reading(batches).all())
      if (event.message === undefined) fold.apply(event);
    expect(fold.snapshot().artifacts).toEqual(artifacts);
  });

  it("stores no event twice that a checkpoint covers, if it is lost again after it yielded something else", async () => {
    const { opened } = gate();
    const nodes = twoNodes(
      async function* (turn) {
        const { attempt } = turn;
        if (turn.checkpoint === undefined) {
          yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "0" }] } };
          yield turn.working(`attempt ${attempt}`, { keep: true });
          yield turn.append("a", [{ text: `1 of ${attempt}` }], { last: attempt === 1 });
          if (attempt === 1) await opened;
          yield turn.saveCheckpoint(1);
        }
        yield turn.append("a", [{ text: "2" }]);
        yield turn.working("nearly there", { keep: true });
        if (attempt === 2) await opened;
        yield turn.append("a", [{ text: "3" }], { last: true });
      },
      { resumable: true },
    );
    const { id, reading } = await begin(nodes);
    await reading.until((event) => event.artifactUpdate?.lastChunk === true);
    nodes.kill();
    const second = nodes.takeOver();
    const get = async () => (await second.service.call("GetTask", { id }, callContext())).payload.value;
    await eventually(async () => (await get()).history?.length === 4);
    await second.engine.close();
    const third = nodes.takeOver();
    const last = async () => (await third.service.call("GetTask", { id }, callContext())).payload.value;
    await eventually(async () => (await last()).status.state === "TASK_STATE_COMPLETED");
    const { artifacts, history = [] } = await last();
    expect(artifacts?.[0]?.parts).toEqual([{ text: "01 of 223" }]);
    const kept = history.slice(1).map(({ parts }) => parts[0]?.text);
    expect(kept).toEqual(["attempt 1", "attempt 2", "nearly there"]);
    expect(new Set(history.map(({ messageId }) => messageId)).size).toBe(4);
  });

  it("is taken over even if its task has no room for the row that tells operators so", async () => {
    const { opened } = gate();
    const nodes = twoNodes(
      async function* (turn) {
        yield turn.working();
        if (turn.attempt === 1) await opened;
      },
      { resumable: true },
    );
    const { id, reading } = await begin(nodes);
    await reading.leave();
    nodes.kill();
    const append = nodes.shared.append.bind(nodes.shared);
    nodes.shared.append = async (items) => {
      const isFull = items.some(({ effects }) =>
        effects?.some((each) => each.effect === "feature" && each.feature === "takeover"),
      );
      return isFull ? items.map(() => ({ ok: false, reason: "full" })) : append(items);
    };
    nodes.takeOver();
    await eventually(async () => (await nodes.shared.head({ agent: "agent" }, id))?.state === "TASK_STATE_COMPLETED");
  });

  it("is suspended after maxAttempts", async () => {
    const nodes = twoNodes(() => new Promise(() => {}), { resumable: true, card: {} });
    const { shared, clock } = nodes;
    const { service } = nodes.first;
    const reply = service.call(
      "SendMessage",
      { message: messageOf("Go"), configuration: { returnImmediately: true } },
      callContext(),
    );
    const lostRun = async (): Promise<TaskHead | undefined> =>
      (await shared.claimable({ now: Number.MAX_SAFE_INTEGER, agents: ["agent"], limit: 1 })).heads[0];
    await eventually(async () => {
      clock.advance(600);
      return (await lostRun()) !== undefined;
    });
    const id = (await reply).payload.value.task?.id ?? "";
    nodes.kill();
    // Simulates that the successors have crashed as well.
    for (let attempt = 2; attempt <= 3; attempt += 1) {
      const head = await lostRun();
      const run = { turn: 1, attempt, input: 1, deaths: attempt };
      const effects = [
        { effect: "lease", op: "revoke" },
        { effect: "run", run },
      ] as const;
      await shared.append([{ task: head?.task ?? { agent: "", owner: "", taskId: "" }, records: [], effects }]);
    }
    const last = nodes.takeOver();
    await eventually(async () => (await lostRun())?.run?.suspended === true);
    const { payload } = await last.service.call("GetTask", { id }, callContext());
    expect(payload.value.status.state).not.toBe("TASK_STATE_FAILED");
  });

  it("can no longer write if its process was wrongly considered dead", async () => {
    const { opened, open } = gate();
    let wrote = 0;
    const nodes = twoNodes(
      async function* (turn) {
        yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "0" }] } };
        if (turn.attempt === 1) {
          await opened;
          for (wrote = 1; wrote < 5; wrote += 1) yield turn.append("a", [{ text: "of the old node" }]);
          await turn.flush();
        }
      },
      { resumable: true },
    );
    const { id, reading } = await begin(nodes);
    // The old node continues without renewing its lease, as if its process had been paused for a long time.
    const { clock, shared } = nodes;
    const second = nodes.successor();
    const head = await shared.head({ agent: "agent" }, id);
    const now = clock.now();
    await shared.append([
      {
        task: head?.task ?? { agent: "", owner: "", taskId: "" },
        records: [],
        effects: [
          { effect: "lease", op: "revoke" },
          { effect: "lease", op: "acquire", holder: "another", now, until: now + 1 },
          { effect: "run", run: { turn: 1, attempt: 1, input: 1 } },
        ],
      },
    ]);
    open();
    clock.advance(5_000);
    const get = async () => (await second.service.call("GetTask", { id }, callContext())).payload.value;
    await eventually(async () => (await get()).status.state === "TASK_STATE_COMPLETED");
    expect((await get()).artifacts?.[0]?.parts).toEqual([{ text: "0" }]);
    await reading.leave();
  });

  it("keeps its waiting messages: they get their turns on the other node", async () => {
    const { opened } = gate();
    const turns: string[] = [];
    const nodes = twoNodes(
      async function* (turn) {
        turns.push(`${turn.text} ${turn.attempt}`);
        yield turn.working(turn.text);
        if (turn.attempt === 1 && turn.number === 1) await opened;
      },
      { resumable: true },
    );
    const { id } = await begin(nodes, "one");
    const follow = { message: messageOf("two", { taskId: id }), configuration: { returnImmediately: true } };
    await nodes.first.service.call("SendMessage", follow, callContext());
    nodes.kill();
    const { service } = nodes.takeOver();
    const get = async () => (await service.call("GetTask", { id }, callContext())).payload.value;
    await eventually(async () => (await get()).status.state === "TASK_STATE_COMPLETED");
    expect(turns).toEqual(["one 1", "one 2", "two 1"]);
  });

  it.each(["before", "after"])(
    "that has asked is over: the answer, %s it is taken over, finds the state of the question, and no turn but its own",
    async (when) => {
      const { opened } = gate();
      const turns: string[] = [];
      const nodes = twoNodes(
        async function* (turn) {
          turns.push(`${turn.number} ${turn.attempt} ${turn.text}`);
          const before = turn.state();
          turn.setState([...(Array.isArray(before) ? before : []), turn.text]);
          if (turn.number === 2) return yield turn.completed(JSON.stringify(before));
          yield turn.inputRequired("More?");
          await opened;
        },
        { resumable: true },
      );
      const { id, reading } = await begin(nodes, "one");
      await eventually(
        async () => (await nodes.shared.head({ agent: "agent" }, id))?.state.endsWith("REQUIRED") === true,
      );
      await reading.leave();
      const answer = { message: messageOf("two", { taskId: id }), configuration: { returnImmediately: true } };
      if (when === "before") await nodes.first.service.call("SendMessage", answer, callContext());
      nodes.kill();
      const { service } = nodes.takeOver();
      if (when === "after") {
        await eventually(async () => (await nodes.shared.head({ agent: "agent" }, id))?.run === undefined);
        await service.call("SendMessage", answer, callContext());
      }
      const get = async () => (await service.call("GetTask", { id }, callContext())).payload.value;
      await eventually(async () => (await get()).status.state === "TASK_STATE_COMPLETED");
      expect((await get()).status.message?.parts).toEqual([{ text: '["one"]' }]);
      expect(turns).toEqual(["1 1 one", "2 1 two"]);
    },
  );

  it("stores the states that it leaves with its end: lost in between, it would begin again without them", async () => {
    const { opened } = gate();
    const appends: string[] = [];
    const nodes = twoNodes(
      async function* (turn) {
        if (turn.attempt === 1) turn.setState("half");
        yield turn.working();
        if (turn.attempt === 1) await opened;
        turn.setState(undefined);
        turn.context.setState("done");
      },
      { resumable: true },
    );
    const { id, reading } = await begin(nodes);
    await eventually(async () => (await nodes.shared.head({ agent: "agent" }, id))?.run !== undefined);
    await reading.leave();
    nodes.kill();
    const append = nodes.shared.append.bind(nodes.shared);
    nodes.shared.append = (items) => {
      appends.push(...items.map((item) => JSON.stringify(item)));
      return append(items);
    };
    nodes.takeOver();
    await eventually(async () => (await nodes.shared.head({ agent: "agent" }, id))?.state === "TASK_STATE_COMPLETED");
    const states = appends.filter((item) => /"effect":"(taskState|contextState)"/.test(item));
    expect(states).toHaveLength(1);
    expect(states[0]).toContain('"TASK_STATE_COMPLETED"');
  });

  it("can be read on any node, before and after it is taken over", async () => {
    const { opened } = gate();
    const nodes = twoNodes(
      async function* (turn) {
        yield turn.working("first node");
        if (turn.attempt === 1) await opened;
        yield turn.working("second node");
      },
      { resumable: true },
    );
    const { id } = await begin(nodes);
    const second = nodes.successor();
    const { batches } = await second.service.stream("SubscribeToTask", { id }, callContext({ after: 1 }));
    const reading = new Reading(batches);
    expect(gist((await reading.next())?.payload.value ?? { message: messageOf("") })).toBe("working");
    nodes.kill();
    const rest = reading.all();
    await eventually(async () => {
      nodes.clock.advance(1_000);
      return (await nodes.shared.head({ agent: "agent" }, id))?.state === "TASK_STATE_COMPLETED";
    });
    nodes.clock.advance(2_000);
    expect((await rest).map(({ payload }) => gist(payload.value))).toEqual(["working", "completed"]);
  });
});

describe("a closed engine", () => {
  it("lets turns end within the grace time, and rejects new messages", async () => {
    const { opened, open } = gate();
    const { stream, engine, send } = harness(async function* (turn) {
      yield turn.working();
      await opened;
      yield turn.artifact({ parts: [{ text: "in time" }] });
    });
    const reading = await stream("Go");
    await reading.next();
    const closed = engine.close({ grace: 60_000 });
    await expect(send("more")).rejects.toMatchObject({ code: "Unavailable" });
    open();
    expect((await reading.all()).map(({ payload }) => gist(payload.value)).at(-1)).toBe("completed");
    await closed;
  });

  it("ends streams and waiting sends, including those that start to wait later", async () => {
    const { stream, subscribe, engine, ask } = harness(async function* (turn) {
      yield turn.inputRequired("?");
    });
    const first = await stream("Go");
    const id = (await first.next())?.payload.value.task?.id ?? "";
    const early = await subscribe(id);
    const late = await subscribe(id);
    await early.next();
    const waiting = early.all().catch((error: unknown) => error);
    await engine.close();
    expect(await waiting).toMatchObject({ code: "Unavailable" });
    await late.next();
    await expect(late.all()).rejects.toMatchObject({ code: "Unavailable" });
    await expect(ask("more")).rejects.toMatchObject({ code: "Unavailable" });
  });

  it("leaves a resumable task to the next process at once, and fails other tasks with the reason", async () => {
    for (const resumable of [true, false]) {
      const shared = memoryStore();
      let attempts = 0;
      const onMessage: OnMessage = async function* (turn) {
        attempts += 1;
        yield turn.working();
        if (turn.attempt === 1) await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
        yield turn.artifact({ parts: [{ text: "from the successor" }] });
      };
      const before = harness(onMessage, { store: shared, behaviour: { resumable } });
      const reading = await before.stream("Go");
      const id = (await reading.next())?.payload.value.task?.id ?? "";
      await reading.next();
      const rest = reading.all().catch((error: unknown) => error);
      await before.engine.close({ grace: 1 });
      const after = harness(onMessage, { store: shared, behaviour: { resumable } });
      await eventually(async () => (await after.get(id)).status.state !== "TASK_STATE_WORKING");
      const task = await after.get(id);
      expect(task.status.state).toBe(resumable ? "TASK_STATE_COMPLETED" : "TASK_STATE_FAILED");
      expect(attempts).toBe(resumable ? 2 : 1);
      // If a task is resumed elsewhere, its stream ends with an error, so that the client reconnects.
      if (resumable) expect(await rest).toMatchObject({ code: "Unavailable" });
      else expect(((await rest) as { event: object }[]).length).toBeGreaterThan(0);
    }
  });

  it.each([true, false])("keeps the question of a turn that has not returned (resumable: %s)", async (resumable) => {
    const shared: Store = { ...bound(memoryStore()), close: async () => {} };
    const onMessage: OnMessage = async function* (turn) {
      if (turn.number === 2) return yield turn.completed(`You said ${turn.text}`);
      try {
        yield turn.inputRequired("More?");
      } finally {
        await new Promise(() => {});
      }
    };
    const before = harness(onMessage, { store: shared, behaviour: { resumable } });
    const { id } = await before.send("one", { configuration: { returnImmediately: true } });
    await eventually(async () => (await before.get(id)).status.state === "TASK_STATE_INPUT_REQUIRED");
    await before.engine.close({ grace: 1 });
    const after = harness(onMessage, { store: shared, behaviour: { resumable } });
    expect((await after.get(id)).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    const task = await after.send("two", { message: { taskId: id } });
    expect(task.status.message?.parts).toEqual([{ text: "You said two" }]);
  });
});

/** Returns an id generator that produces the same ids in each engine. */
function counted(): { next(): string } {
  let n = 0;
  return { next: () => `id-${(n += 1)}` };
}
