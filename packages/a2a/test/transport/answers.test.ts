import { describe, expect, test } from "vitest";
import type { Task } from "../../src/model/index.ts";
import {
  ByteBudget,
  Payload,
  TextPayload,
  type CallContext,
  type StreamItem,
  type UniversalRequest,
} from "../../src/protocol/index.ts";
import { codecV03 } from "../../src/wire/v03/index.ts";
import { codecV1 } from "../../src/wire/v1/index.ts";
import { ask, open, request, rpc, ScriptedService, serveAlone, settled, StillClock, task } from "./support.ts";

const kib = 1024;
/** This text is larger than one write. Each piece of 64 KiB ends within a surrogate pair. */
const text = `a${"😀".repeat(75 * kib)}`;
const large: Task = { ...task, artifacts: [{ artifactId: "a", parts: [{ text }] }] };
const json = JSON.stringify(large);
const bytes = 300 * kib;

/** A service that reserves memory before it loads a response, like the engine. It counts the loaded responses. */
class LargeService extends ScriptedService {
  loaded = 0;

  override script = async ({ operation, context }: { operation: string; context: CallContext }): Promise<unknown> => {
    await context.reserve?.(bytes);
    this.loaded++;
    if (operation !== "GetTask") return undefined;
    return { payload: new TextPayload([json.slice(0, 10), json.slice(10)]) };
  };
}

function serving(total = 1000 * kib) {
  const clock = new StillClock();
  const answers = new ByteBudget(total, clock, "busy");
  const service = new LargeService();
  const handler = serveAlone(service, {
    codecs: [codecV1, codecV03],
    clock,
    limits: { bodyBytes: 1000, depth: 64, answers },
    authenticate: (asked) => ({ subject: asked.header("x-name") ?? "somebody" }),
  });
  return { clock, answers, service, handler };
}

const get = (name = "somebody", signal?: AbortSignal): UniversalRequest =>
  request("GET", "/tasks/t1", { headers: { "x-name": name, "a2a-version": "1.0" }, ...(signal && { signal }) });

const bindings = [
  ["REST", () => get(), (said: string) => said],
  [
    "JSON-RPC",
    () => request("POST", "/", { body: rpc("GetTask", { id: "t1" }) }),
    (said: string) => JSON.stringify((JSON.parse(said) as { result: unknown }).result),
  ],
] as const;

/** Tests the memory that responses hold until they are read. */
describe("large answers", () => {
  test.each(bindings)("over %s wait, before they are loaded, until a reader took the previous one", async (...of) => {
    const [, asked, resultOf] = of;
    const { handler, service, answers } = serving();
    const first = await open(handler, asked(), true);
    const second = open(handler, asked());
    await settled();
    expect([service.loaded, answers.waiting]).toEqual([1, 1]);
    // A JSON character takes up to two bytes.
    expect(answers.used).toBe(2 * bytes);
    first.sink.drain();
    await first.done;
    const { sink, done } = await second;
    await done;
    expect([service.loaded, answers.waiting, answers.used]).toEqual([2, 0, 0]);
    expect(resultOf(sink.text)).toBe(json);
  });

  test("are written in pieces of 64 KiB that split no character, each when there is room for it", async () => {
    const { handler } = serving();
    const { sink, done } = await open(handler, get());
    await done;
    const encoder = new TextEncoder();
    expect(Buffer.concat(sink.writes.map((each) => encoder.encode(each))).toString()).toBe(json);
    expect(Math.max(...sink.writes.map(({ length }) => length))).toBeLessThanOrEqual(64 * kib + 1);

    const slow = await open(handler, get(), true);
    await settled();
    expect(slow.sink.writes.length).toBe(1);
  });

  test("release their memory when the reader leaves", async () => {
    const { handler, answers } = serving();
    const { sink, done } = await open(handler, get(), true);
    expect(answers.used).toBe(2 * bytes);
    sink.leave();
    await done;
    expect(answers.used).toBe(0);
  });

  test("are aborted if their reader takes no piece for ten seconds while others wait for memory", async () => {
    const { handler, service, answers, clock } = serving();
    const slow = await open(handler, get("slow"), true);
    const failure = slow.done.catch((thrown: unknown) => thrown);
    // The server does not abort a slow reader while there is enough memory.
    clock.advance(60_000);
    await settled();
    expect(answers.used).toBe(2 * bytes);
    const next = await open(handler, get("next"));
    expect(await failure).toMatchObject({ code: "Unavailable" });
    await next.done;
    expect([service.loaded, next.sink.text, answers.used]).toEqual([2, json, 0]);
  });

  test("continue if their reader takes a piece in time, even while others wait", async () => {
    const { handler, answers, clock } = serving();
    const slow = await open(handler, get("slow"), true);
    await settled();
    clock.advance(9_999);
    const next = open(handler, get("next"));
    await settled();
    expect(answers.waiting).toBe(1);
    slow.sink.drain();
    await slow.done;
    expect(slow.sink.text).toBe(json);
    await (
      await next
    ).done;
  });

  test("are rejected with Retry-After after ten seconds without memory, and hold nothing afterwards", async () => {
    const { handler, service, answers, clock } = serving();
    const first = await handler(get());
    const refused = ask(handler, get());
    await settled();
    clock.advance(9_999);
    await settled();
    expect(answers.waiting).toBe(1);
    clock.advance(1);
    const { status, headers, json: error } = await refused;
    expect([status, headers["retry-after"]]).toEqual([503, "5"]);
    expect(error).toMatchObject({ error: { code: 503, status: "UNAVAILABLE", message: "busy" } });
    expect([service.loaded, answers.waiting, answers.used, clock.timers]).toEqual([1, 0, 2 * bytes, 0]);
    expect(typeof first.body).toBe("function");
  });

  test("stop waiting for memory when their caller leaves", async () => {
    const { handler, answers, clock } = serving();
    await handler(get());
    const leaving = new AbortController();
    const left = ask(handler, get("somebody", leaving.signal));
    await settled();
    expect(answers.waiting).toBe(1);
    leaving.abort();
    expect((await left).status).toBeGreaterThanOrEqual(400);
    expect([answers.waiting, clock.timers, answers.used]).toEqual([0, 0, 2 * bytes]);
  });

  test("of one caller take at most half of the memory", async () => {
    const { handler, service, answers } = serving(2_000 * kib);
    await handler(get("greedy"));
    const waits = handler(get("greedy"));
    await settled();
    expect([service.loaded, answers.waiting]).toEqual([1, 1]);
    const other = await open(handler, get("another"));
    await other.done;
    expect(service.loaded).toBe(2);
    answers.close(new Error("over"));
    await waits;
  });

  test("release their memory when they fail", async () => {
    const { handler, service, answers } = serving();
    const load = service.script;
    service.script = async (call) => {
      await load(call);
      throw new Error("The store is gone");
    };
    for (const [, asked] of bindings) expect((await ask(handler, asked())).status).toBeGreaterThanOrEqual(200);
    expect(answers.used).toBe(0);
  });

  test("that are smaller than reserved are sent whole, and hold nothing", async () => {
    const { handler, service, answers } = serving();
    const load = service.script;
    service.script = async (call) => {
      await load(call);
      return { payload: new Payload(task) };
    };
    expect((await ask(handler, get())).json).toEqual(task);
    expect(answers.used).toBe(0);
  });

  test("of 0.3 count as they are during conversion, then by their size", async () => {
    const { handler, answers, service } = serving(4_000 * kib);
    let most = 0;
    const load = service.script;
    service.script = async (call) => {
      const reply = await load(call);
      most = answers.used;
      return reply;
    };
    const asked = request("POST", "/", { body: rpc("tasks/get", { id: "t1" }), headers: { "a2a-version": "0.3" } });
    const { sink, done } = await open(handler, asked, true);
    expect(most).toBe(4 * bytes);
    const { used } = answers;
    sink.drain();
    await done;
    expect(used).toBe(2 * sink.text.length);
    expect(answers.used).toBe(0);
  });
});

/** Tests the task at the start of a stream (A2A 1.0 §3.1.6). */
describe("a large event of a stream", () => {
  const event = `{"task":${json}}`;
  const item: StreamItem = { seq: 3, payload: new TextPayload(['{"task":', json, "}"]) };

  test.each([
    ["REST", () => request("POST", "/tasks/t1:subscribe"), event],
    [
      "JSON-RPC",
      () => request("POST", "/", { body: rpc("SubscribeToTask", { id: "t1" }) }),
      `{"jsonrpc":"2.0","id":1,"result":${event}}`,
    ],
  ] as const)("over %s is sent in pieces, and holds its memory until it is read", async (_name, asked, said) => {
    const { handler, service, answers, clock } = serving();
    const { sink, done } = await open(handler, asked());
    await settled();
    sink.full = true;
    service.feed.push(item);
    await settled();
    const { length } = sink.writes;
    expect(sink.text.length).toBeLessThan(70 * kib);
    expect(answers.used).toBe(2 * bytes);
    // The server must not send a keep-alive comment in the middle of the event.
    clock.advance(60_000);
    expect(sink.writes.length).toBe(length);
    sink.drain();
    await settled();
    expect(sink.text).toContain(`id: 3\ndata: ${said}\n\n`);
    expect(answers.used).toBe(0);
    service.feed.end();
    await done;
  });

  test("releases its memory when its reader leaves", async () => {
    const { handler, service, answers } = serving();
    const { sink, done } = await open(handler, request("POST", "/tasks/t1:subscribe"));
    sink.full = true;
    service.feed.push(item);
    await settled();
    expect(answers.used).toBe(2 * bytes);
    sink.leave();
    await done;
    expect(answers.used).toBe(0);
  });
});
