import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  connect,
  defineAgent,
  serve,
  text,
  type AgentEvent,
  type AgentYield,
  type HistoryEntry,
  type Store,
  type Turn,
} from "@parley/node";
import type { HistoryOptions } from "@parley/a2a/internal/protocol/index";
import { callContext, inProcess, type InProcess } from "@parley/testing";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { placeOf, stores } from "./stores.ts";

/** Tests the stored history of a conversation, after a restart and in the form for a language model. */

describe("a conversation of direct replies", () => {
  it("is kept with its state when its server restarts, with the defaults of serve()", async () => {
    const folder = await mkdtemp(join(tmpdir(), "parley-conversations-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const agent = defineAgent({
      name: "Rememberer",
      description: "Says what was said",
      version: "1",
      skills: [],
      async onMessage(turn) {
        const count = (turn.context.state<number>() ?? 0) + 1;
        turn.context.setState(count);
        const history = await turn.context.history();
        return turn.reply(`${count}: ${history.map(({ role, text: said }) => `${role} ${said}`).join(", ")}`);
      },
    });
    const start = async () => {
      const store = await sqliteStore({ path: join(folder, "tasks.db") });
      const server = await serve(agent, { port: 0, signals: false, store });
      return {
        url: server.url,
        async stop() {
          await server.close({ grace: 0 });
          await store.close();
        },
      };
    };
    const first = await start();
    const before = (await connect(first.url)).conversation();
    const one = await before.send("one");
    expect(one.message?.parts).toEqual([{ text: "1: user one" }]);
    await before.send("two");
    await first.stop();

    const second = await start();
    onTestFinished(() => second.stop());
    const contextId = one.message?.contextId ?? "";
    const after = (await connect(second.url)).conversation({ contextId });
    expect((await after.send("three")).message?.parts).toEqual([
      { text: "3: user one, agent 1: user one, user two, agent 2: user one, agent 1: user one, user two, user three" },
    ]);
  });
});

describe.each(stores)("turn.context.history(), on %s", (kind) => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  type OnMessage = (turn: Turn) => AsyncGenerator<AgentYield, AgentEvent | void, void>;

  async function open(): Promise<Store> {
    const place = await placeOf(kind);
    closing.push(() => place.remove());
    const store = await place.open();
    closing.push(() => store.close());
    return store;
  }

  function run(store: Store, onMessage: OnMessage): InProcess {
    const agent = defineAgent({ name: "A", description: "B", version: "1", skills: [], resumable: true, onMessage });
    const made = inProcess(agent, { store });
    closing.push(() => made.engine.close());
    return made;
  }

  async function send({ service }: InProcess, said: string, more: { taskId?: string; contextId?: string } = {}) {
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER" as const, parts: [{ text: said }], ...more };
    const { task, message: reply } = (await service.call("SendMessage", { message }, callContext())).payload.value;
    return { taskId: task?.id ?? "", contextId: task?.contextId ?? reply?.contextId ?? "", task };
  }

  async function* tokens(said: string): AsyncGenerator<string> {
    yield* said.match(/.{1,3}/gu) ?? [];
  }

  function short(history: readonly HistoryEntry[]): readonly string[] {
    return history.map(({ role, text: said, name }) => `${role}${name === undefined ? "" : ` (${name})`}: ${said}`);
  }

  it("has the artifacts of all tasks and the direct replies, in the form that a language model needs", async () => {
    const seen: (readonly HistoryEntry[])[] = [];
    const made = run(await open(), async function* (turn) {
      seen.push(await turn.context.history());
      if (turn.text === "hello") return turn.reply("Hi");
      yield turn.working("thinking");
      yield turn.working("kept", { keep: true });
      yield* turn.stream(tokens(`You said ${turn.text}.`), { name: "answer", maxDelay: 0 });
      yield turn.artifact({
        name: "file",
        parts: [{ raw: "AAEC", mediaType: "image/png", filename: "x.png" }, text("one"), text("two")],
      });
      return turn.text === "ask" ? turn.inputRequired("More?") : undefined;
    });
    const { contextId } = await send(made, "hello");
    const { taskId } = await send(made, "ask", { contextId });
    await send(made, "on", { taskId });
    await send(made, "else", { contextId });
    const turn = (said: string): readonly string[] => [
      "agent: kept",
      `agent (answer): You said ${said}.`,
      "agent (file): onetwo",
    ];
    const first = ["user: hello", "agent: Hi", "user: ask", ...turn("ask"), "agent: More?"];
    expect(seen.map(short)).toEqual([
      ["user: hello"],
      ["user: hello", "agent: Hi", "user: ask"],
      [...first, "user: on"],
      [...first, "user: on", ...turn("on"), "user: else"],
    ]);
    const [answer, file] = seen[2]?.slice(4) ?? [];
    expect(answer).toMatchObject({ role: "agent", taskId, artifactId: "1-1", name: "answer" });
    expect(file?.parts[0]).toEqual({ raw: "AAEC", mediaType: "image/png", filename: "x.png" });
    expect(answer?.cut).toBeUndefined();
    expect(seen[3]?.map(({ time }) => time)).toEqual(seen[3]?.map(({ time }) => time).toSorted((a, b) => a - b));
  });

  it("is limited in entries and bytes to the newest, and always has the message of the turn", async () => {
    const seen: (readonly HistoryEntry[])[] = [];
    const bounds: HistoryOptions[] = [{}, { limit: 3 }, { limit: 1 }, { bytes: 6_000 }, { bytes: 1 }];
    const made = run(await open(), async function* (turn) {
      if (turn.text === "look") {
        for (const options of bounds) seen.push(await turn.context.history(options));
        return turn.reply("seen");
      }
      yield turn.artifact({ artifactId: "long", parts: [text("0".repeat(1_000))], open: true });
      for (let n = 1; n < 10; n += 1) yield turn.append("long", [text(String(n).repeat(1_000))], { last: n === 9 });
      return undefined;
    });
    const { contextId } = await send(made, "Go");
    await send(made, "look", { contextId });
    expect(seen.map((history) => history.length)).toEqual([3, 3, 1, 2, 2]);
    expect(seen.map((history) => history.at(-1)?.text)).toEqual(bounds.map(() => "look"));
    const [long] = seen[3] ?? [];
    expect(long).toMatchObject({ artifactId: "long", cut: true });
    expect(long?.text).toMatch(/^(\d)\1{999}.*9{1000}$/u);
    expect(long?.text.length).toBeLessThan(6_000);
    expect(seen[0]?.[1]?.text.length).toBe(10_000);
  });

  it("is the same for each attempt of a turn, without what a lost run of the turn yielded", async () => {
    const store = await open();
    const seen: (readonly string[])[] = [];
    const agent: OnMessage = async function* (turn) {
      seen.push(short(await turn.context.history()));
      if (turn.number === 1)
        return yield [turn.artifact({ name: "before", parts: [text("a")] }), turn.inputRequired("?")];
      yield turn.working("lost", { keep: true });
      yield turn.artifact({ artifactId: "b", name: "lost too", parts: [text(`b ${turn.attempt}`)] });
      seen.push(short(await turn.context.history()));
      if (turn.attempt === 1) await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      return turn.completed("end");
    };
    const first = run(store, agent);
    const { taskId } = await send(first, "one");
    const message = { messageId: "m2", taskId, role: "ROLE_USER" as const, parts: [{ text: "two" }] };
    const request = { message, configuration: { returnImmediately: true } };
    await first.service.call("SendMessage", request, callContext());
    await expect.poll(() => seen.length).toBe(3);
    await first.engine.close();
    const second = run(store, agent);
    await expect.poll(() => seen.length).toBe(5);
    const whole = ["user: one", "agent (before): a", "agent: ?", "user: two"];
    expect(seen).toEqual([["user: one"], whole, whole, whole, whole]);
    await expect
      .poll(
        async () => (await second.service.call("GetTask", { id: taskId }, callContext())).payload.value.status.state,
      )
      .toBe("TASK_STATE_COMPLETED");
  });
});
