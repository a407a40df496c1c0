import { describe, expect, onTestFinished, test } from "vitest";
import type { StreamResponse } from "../../src/model/index.ts";
import {
  anonymous,
  intercept,
  Payload,
  TextPayload,
  type AgentService,
  type CallContext,
  type Interceptor,
  type StreamItem,
} from "../../src/protocol/index.ts";
import { callContext } from "@parley/testing";
import { harness } from "../../../server/test/engine/support.ts";
import {
  type Feed,
  LinesLogger,
  message,
  post,
  rpc,
  ScriptedService,
  serveAlone,
  status,
  task,
} from "../transport/support.ts";

const context = callContext();
const none: Interceptor = (next) => next;

/** Creates an interceptor whose answers to calls and streams come from `answer`, whatever their types. */
function answering(answer: (reply: object) => unknown): Interceptor {
  const change = async (reply: Promise<object>): Promise<never> => answer(await reply) as never;
  return function meddler(next) {
    return {
      call: (...asked) => change(next.call(...asked)),
      stream: (...asked) => change(next.stream(...asked)),
    };
  };
}

describe("an invalid interceptor is rejected when the handler is created", () => {
  test.each([
    ["no function", undefined],
    ["a function that returns nothing", () => undefined],
    ["a function that returns half a service", (next: AgentService) => ({ call: next.call.bind(next) })],
  ])("%s", (_, interceptor) => {
    const make = (): AgentService => intercept(new ScriptedService(), [none, interceptor as Interceptor]);
    expect(make).toThrow(
      expect.objectContaining({
        code: "InvalidParams",
        fields: [expect.objectContaining({ field: "interceptors[1]" })],
      }),
    );
  });
});

const rejected = (): Promise<never> => Promise.reject(new Error("forgotten"));

/** Invalid answers, and the cause that the error for each answer states. */
const replies: readonly [name: string, answer: (reply: object) => unknown, told: string][] = [
  ["nothing", () => undefined, "returned undefined in place of a reply"],
  ["null", () => null, "returned null in place of a reply"],
  ["a text", () => "fine", "returned string in place of a reply"],
  ["a reply without a payload", ({ ...reply }) => ({ ...reply, payload: undefined }), "without a Payload"],
  ["a value in place of the payload", (reply) => ({ ...reply, payload: { value: task } }), "without a Payload"],
  [
    "a copy of the payload",
    (reply) => ({ payload: { ...(reply as { payload: object }).payload } }),
    "without a Payload",
  ],
  ["a payload of nothing", () => ({ payload: new Payload(undefined) }), "whose payload is made of undefined"],
  ["a payload of a text", () => ({ payload: new Payload("fine") }), "whose payload is made of string"],
  // An async function returned this promise. No code awaits it, so a rejection would end the process.
  ["a payload of a promise", () => ({ payload: new Payload(rejected()) }), "whose payload is made of a promise"],
  ["extensions that are not a list", (reply) => ({ ...reply, extensions: "urn:x" }), "whose extensions are not a list"],
  ["generations that are not a map", (reply) => ({ ...reply, generations: [1] }), "whose generations are not a Map"],
];

/** Counts unhandled rejections from now on. */
function unhandledRejections(): () => Promise<number> {
  let count = 0;
  const note = (): void => void (count += 1);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  return async () => {
    await new Promise((resolve) => setTimeout(resolve));
    return count;
  };
}

describe("an interceptor that does not return a reply", () => {
  test.each(replies)("%s: an InternalError that names it only to the operator", async (_, answer, told) => {
    const logger = new LinesLogger();
    const service = intercept(new ScriptedService(), [none, answering(answer), none]);
    const handler = serveAlone(service, { logger });
    const unhandled = unhandledRejections();
    const { json, status: http } = await post(handler, rpc("GetTask", { id: "t1" }));
    expect(await unhandled()).toBe(0);
    expect([http, json.error]).toEqual([200, { code: -32603, message: "Internal error" }]);
    const [line, ...more] = logger.lines;
    expect(more).toEqual([]);
    expect(line).toMatchObject({ level: "error", message: "A request failed" });
    expect(String(line?.fields?.["cause"])).toBe(
      `TypeError: interceptors[1] (meddler) ${told.startsWith("returned") ? told : `returned a reply ${told}`}, for GetTask`,
    );
  });
});

const stream = (interceptor: Interceptor, service = new ScriptedService()) =>
  intercept(service, [none, interceptor, none]).stream("SubscribeToTask", { id: "t1" }, context);

describe("an interceptor that does not return a stream", () => {
  test.each<[string, (reply: object) => unknown, string]>([
    ["nothing", () => undefined, "returned undefined in place of a stream"],
    ["a reply", () => ({ payload: new Payload(task) }), "returned a stream whose batches are not an async iterable"],
    ["a list", () => ({ batches: [[]] }), "returned a stream whose batches are not an async iterable"],
    ["other extensions", (reply) => ({ ...reply, extensions: 1 }), "returned a stream whose extensions are not a list"],
  ])("%s: an InternalError that names it only to the operator", async (_, answer, told) => {
    const error = await stream(answering(answer)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "InternalError", message: "Internal error" });
    expect(String((error as Error).cause)).toBe(`TypeError: interceptors[1] (meddler) ${told}, for SubscribeToTask`);
  });

  const item: StreamItem = { payload: new Payload<StreamResponse>({ task }) };
  test.each<[string, unknown, string]>([
    ["nothing in place of a batch", undefined, "gave undefined in place of a batch of items"],
    ["an item in place of a batch", item, "gave object in place of a batch of items"],
    ["nothing in place of an item", [item, null], "gave null in place of an item"],
    ["an event in place of an item", [{ task }], "gave an item without a Payload"],
    [
      "an item whose payload is nothing",
      [{ payload: new Payload(undefined) }],
      "gave an item whose payload is made of undefined",
    ],
    ["an item whose seq is a text", [{ ...item, seq: "1" }], "gave an item whose seq is not an integer"],
    [
      "an item whose generation is a fraction",
      [{ ...item, generation: 0.5 }],
      "gave an item whose generation is not an integer",
    ],
  ])("%s: earlier events are delivered, then an InternalError ends the stream", async (_, batch, told) => {
    const service = new ScriptedService();
    const { batches: given } = await stream(
      answering((reply) => ({ ...reply, batches: wrong(reply as { batches: Feed }, [[item], batch]) })),
      service,
    );
    const seen: unknown[] = [];
    const read = async (): Promise<void> => {
      for await (const each of given) seen.push(each);
    };
    const error = await read().catch((thrown: unknown) => thrown);
    expect(seen).toEqual([[item]]);
    expect(error).toMatchObject({ code: "InternalError", message: "Internal error" });
    expect(String((error as Error).cause)).toBe(`TypeError: interceptors[1] (meddler) ${told}, for SubscribeToTask`);
    // The service learns that its caller has stopped reading.
    expect(service.feed.returned).toBe(1);
  });

  /** Yields the invalid batches, then ends the service's stream. */
  async function* wrong({ batches: inner }: { batches: Feed }, all: readonly unknown[]): AsyncGenerator<unknown> {
    try {
      yield* all;
    } finally {
      await inner[Symbol.asyncIterator]().return?.();
    }
  }

  test.each<[string, unknown]>([
    ["gives no result", { next: () => 1 }],
    ["has no next", {}],
    ["is nothing", null],
  ])("an iterator that %s: an InternalError, whose cause names the interceptor", async (_, iterator) => {
    const { batches: given } = await stream(
      answering((reply) => ({ ...reply, batches: { [Symbol.asyncIterator]: () => iterator } })),
    );
    const told = "interceptors[1] (meddler) gave a stream that is not an async iterable, for SubscribeToTask";
    const cause = expect.objectContaining({ message: told });
    await expect(given[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "InternalError", cause });
  });

  test("an iterator that cannot be closed either: the cause is its first error", async () => {
    const iterator = { next: async () => ({ done: false, value: 7 }), return: rejected };
    const { batches: given } = await stream(
      answering((reply) => ({ ...reply, batches: { [Symbol.asyncIterator]: () => iterator } })),
    );
    const cause = expect.objectContaining({ message: expect.stringContaining("gave number in place of a batch") });
    await expect(given[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "InternalError", cause });
  });

  test("an async change of items: an InternalError, without an unhandled rejection", async () => {
    const unhandled = unhandledRejections();
    const { batches: given } = await stream(
      answering((reply) => ({ ...reply, batches: wrong(reply as never, [[rejected()]]) })),
    );
    const cause = expect.objectContaining({ message: expect.stringContaining("gave a promise in place of an item") });
    await expect(given[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "InternalError", cause });
    expect(await unhandled()).toBe(0);
  });

  test("a batch that a filter emptied is skipped: readers never see it", async () => {
    const { batches: given } = await stream(
      answering((reply) => ({ ...reply, batches: wrong(reply as never, [[], [item], []]) })),
    );
    const seen: unknown[] = [];
    for await (const each of given) seen.push(each);
    expect(seen).toEqual([[item]]);
  });
});

describe("a stream that interceptors pass on", () => {
  test("is the service's own stream, unwrapped", async () => {
    const service = new ScriptedService();
    const reply = await stream(
      answering((each) => ({ ...each })),
      service,
    );
    expect(reply.batches).toBe(service.feed);
  });

  test("is closed through an interceptor that changes it", async () => {
    const service = new ScriptedService();
    const { batches: given } = await stream(
      (next) => ({
        call: (...asked) => next.call(...asked),
        async stream(...asked) {
          const reply = await next.stream(...asked);
          const source = reply.batches[Symbol.asyncIterator]();
          return { ...reply, batches: { [Symbol.asyncIterator]: () => source } };
        },
      }),
      service,
    );
    const reader = given[Symbol.asyncIterator]();
    service.feed.push(status("TASK_STATE_WORKING", 2));
    await reader.next();
    await reader.return?.();
    expect(service.feed.returned).toBe(1);
  });
});

/** An interceptor's changes to a response reach only the caller. */
test("a direct answer is frozen: an interceptor that changes it fails, and a repeated send gets it unchanged", async () => {
  const { service } = harness((turn) => turn.reply("Hello"));
  const vandal: Interceptor = (next) => ({
    stream: (...asked) => next.stream(...asked),
    async call(...asked) {
      const reply = await next.call(...asked);
      const { message: answer } = reply.payload.value as { message: { parts: { text: string }[] } };
      for (const part of answer.parts) part.text = "changed";
      return reply;
    },
  });
  const request = { message: { ...message, messageId: "once" } };
  await expect(intercept(service, [vandal]).call("SendMessage", request, context)).rejects.toThrow(TypeError);
  const again = await service.call("SendMessage", request, context);
  expect(again.payload.value.message?.parts).toEqual([{ text: "Hello" }]);
});

test("an interceptor gets values parsed from text, however the service made them", async () => {
  const seen: unknown[] = [];
  const look: Interceptor = (next) => ({
    stream: (...asked) => next.stream(...asked),
    async call(...asked) {
      const reply = await next.call(...asked);
      seen.push(reply.payload instanceof TextPayload, Object.isFrozen(reply.payload.value));
      return reply;
    },
  });
  await intercept(new ScriptedService(), [look]).call("GetTask", { id: "t1" }, context);
  expect(seen).toEqual([true, true]);
});

test("a spread context stays complete, and its signal is created lazily", async () => {
  const controller = new AbortController();
  let made = 0;
  /** A context as a server creates it, in which `signal` is a getter of the class. */
  class Lazy implements CallContext {
    readonly principal = anonymous;
    readonly version = "1.0";
    readonly extensions: readonly string[] = [];
    get signal(): AbortSignal {
      made += 1;
      return controller.signal;
    }
    reserve(): Promise<void> {
      return Promise.resolve();
    }
  }
  const service = new ScriptedService();
  await intercept(service, [none]).call("GetTask", { id: "t1" }, new Lazy());
  expect(made).toBe(0);
  const spreading: Interceptor = (next) => ({
    call: (operation, request, each) => next.call(operation, request, { ...each, trace: "t" }),
    stream: (operation, request, each) => next.stream(operation, request, { ...each }),
  });
  await intercept(service, [spreading, spreading]).call("GetTask", { id: "t1" }, new Lazy());
  expect(service.last.context).toMatchObject({ version: "1.0", trace: "t", signal: controller.signal });
  expect(service.last.context.reserve).toBeTypeOf("function");
});
