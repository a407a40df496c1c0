import * as fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type Client,
  collect,
  connect,
  type ConnectOptions,
  type FetchLike,
  TaskView,
} from "../../src/client/index.ts";
import type { A2AError } from "../../src/model/index.ts";
import { createHandler, type Handler } from "@parley/server/internal/handler";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import type { Turn } from "../../src/protocol/index.ts";
import { endless, errorOf, glance, glances, until } from "./support.ts";

const publicUrl = "https://agents.example/one";

/** Obeys the message: `7` sends seven chunks, `ask` asks, `hold` waits for a cancel. Any other message gets a direct reply. */
const agent = defineAgent({
  name: "Counter",
  description: "Counts.",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn: Turn) {
    const count = Number(turn.text);
    if (turn.text === "ask") yield turn.inputRequired("How far?");
    else if (turn.text === "hold") {
      yield turn.working("Holding");
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    } else if (Number.isNaN(count)) yield turn.reply(`You said ${turn.text}`);
    else {
      for (let at = 1; at <= count; at++) {
        const artifact = { artifactId: "numbers", parts: [{ text: String(at) }] };
        yield { kind: "artifact", artifact, append: at > 1, lastChunk: at === count };
        if (at % 3 === 0) await turn.flush();
      }
    }
  },
});

function host(): Handler {
  const handler = createHandler(agent, { publicUrl, store: memoryStore() });
  onTestFinished(() => handler.close({ grace: 0 }));
  return handler;
}

function fetchOf(handler: Handler): FetchLike {
  return (url, init) => handler.fetch(new Request(url, init));
}

/** Returns a `fetch` that accepts only events for a stream, like the Go and .NET clients. */
function eventsAlone(fetch: FetchLike): FetchLike {
  return (url, init) => {
    const streams = init.headers?.["accept"]?.includes("text/event-stream") === true;
    return fetch(url, streams ? { ...init, headers: { ...init.headers, accept: "text/event-stream" } } : init);
  };
}

/** Returns a `fetch` that breaks the first event streams, each after one of these numbers of bytes. */
function breaking(fetch: FetchLike, cuts: readonly number[]): FetchLike {
  const left = [...cuts];
  return async (url, init) => {
    const response = await fetch(url, init);
    const { body } = response;
    if (body === null || !response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
    let room = left.shift() ?? Infinity;
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        controller.enqueue(chunk.subarray(0, room));
        room -= chunk.byteLength;
        if (room <= 0) controller.error(new TypeError("terminated"));
      },
    });
    return new Response(body.pipeThrough(cut), response);
  };
}

async function drain(events: AsyncIterable<unknown>): Promise<void> {
  for await (const event of events) void event;
}

describe.each(["JSONRPC", "HTTP+JSON"])("our own server over %s", (binding) => {
  function client(handler: Handler, options: ConnectOptions = {}) {
    return connect(publicUrl, { binding, fetch: fetchOf(handler), ...endless, ...options });
  }

  test("a stream shows every event once and in order, wherever the network cuts it", async () => {
    const handler = host();
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 30 }),
        fc.array(fc.integer({ min: 0, max: 1_500 }), { maxLength: 6 }),
        async (count, cuts) => {
          const stranger = await client(handler, { fetch: breaking(fetchOf(handler), cuts) });
          const stream = stranger.sendStreamingMessage(String(count));
          const view = new TaskView();
          const places: (number | undefined)[] = [];
          const seen: string[] = [];
          for await (const event of stream) {
            view.apply(event);
            seen.push(glance(event));
            places.push(stream.seq);
          }
          const numbers = Array.from({ length: count }, (_, at) => String(at + 1));
          expect(view.task?.artifacts?.[0]?.parts).toEqual([{ text: numbers.join("") }]);
          // The task occurs only once, so the stream was not restarted.
          expect(seen.filter((one) => one.startsWith("task "))).toHaveLength(1);
          expect(seen.at(-1)).toMatch(/COMPLETED$/);
          expect(new Set(places).size).toBe(places.length);
          expect(places).toEqual([...places].sort((a, b) => Number(a) - Number(b)));
        },
      ),
      { numRuns: 60 },
    );
  });

  test("a send whose answer is lost is repeated and deduplicated: one task, one run", async () => {
    const handler = host();
    let lost = 0;
    const losing: FetchLike = async (url, init) => {
      const response = await fetchOf(handler)(url, init);
      if (init.method !== "POST" || lost >= 2) return response;
      lost++;
      await response.body?.cancel();
      throw new TypeError("terminated");
    };
    const stranger = await client(handler, { fetch: losing });
    const { task } = await stranger.sendMessage("3");
    expect(lost).toBe(2);
    expect(task?.artifacts?.[0]?.parts).toEqual([{ text: "123" }]);
    const again = await client(handler);
    expect((await again.listTasks()).totalSize).toBe(1);
  });

  test("a stream that was left continues after the last event, even when the task is finished", async () => {
    const handler = host();
    const first = await client(handler);
    const stream = first.sendStreamingMessage("9");
    let taskId = "";
    let kept: number | undefined;
    for await (const event of stream) {
      taskId = event.task?.id ?? taskId;
      kept = stream.seq;
      if (glance(event) === "4") break;
    }
    await first.waitFor(taskId);
    const rest = await glances(first.subscribeToTask(taskId, { after: kept as number }));
    expect(rest.filter((one) => /^\d+$/.test(one))).toEqual(["5", "6", "7", "8", "9"]);
    expect(rest.at(-1)).toBe("COMPLETED");
    expect(await glances(first.subscribeToTask(taskId))).toEqual(["task COMPLETED"]);
  });

  test("a stream error is the same as an event and as JSON", async () => {
    const handler = host();
    const plain = await client(handler);
    const strict = await client(handler, { fetch: eventsAlone(fetchOf(handler)) });
    const { task } = await plain.sendMessage("2");
    const calls: readonly ((from: Client) => AsyncIterable<unknown>)[] = [
      (from) => from.subscribeToTask("nobody"),
      (from) => from.sendStreamingMessage({ parts: [{ text: "2" }], taskId: task?.id as string }),
      (from) => from.sendStreamingMessage({ parts: [] }),
      (from) =>
        from.sendStreamingMessage([{ text: "2" }, { url: "https://example.com/a.mp4", mediaType: "video/mp4" }]),
    ];
    const codes: unknown[] = [];
    for (const call of calls) {
      const [expected, error] = (await Promise.all([plain, strict].map((from) => errorOf(drain(call(from)))))) as [
        A2AError,
        A2AError,
      ];
      codes.push(error.code);
      expect(error).toMatchObject({ message: expected.message, code: expected.code });
      expect([error.fields, error.metadata, error.details]).toEqual([
        expected.fields,
        expected.metadata,
        expected.details,
      ]);
    }
    expect(codes).toEqual(["TaskNotFound", "UnsupportedOperation", "InvalidParams", "ContentTypeNotSupported"]);
  });

  test("the events of a stream describe the task", async () => {
    const stranger = await client(host());
    const { task } = await collect(stranger.sendStreamingMessage("12"));
    const whole = await stranger.getTask(task?.id as string);
    expect(task?.artifacts).toEqual(whole.artifacts);
    expect(task?.status).toEqual(whole.status);
  });

  test("a conversation answers a question, and gets direct messages", async () => {
    const conversation = (await client(host())).conversation();
    const { task } = await conversation.send("ask");
    expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    const { task: counted } = await conversation.send("2");
    expect(counted).toMatchObject({
      id: task?.id,
      contextId: task?.contextId,
      status: { state: "TASK_STATE_COMPLETED" },
    });
    const { message } = await conversation.send("thanks");
    expect(message).toMatchObject({ contextId: task?.contextId, parts: [{ text: "You said thanks" }] });
  });

  test("the text of an answer to a question begins after the earlier text of the task", async () => {
    const dinner = defineAgent({
      name: "Cook",
      description: "Cooks",
      version: "1.0.0",
      skills: [],
      async *onMessage(turn: Turn) {
        const menu = { artifactId: "menu", parts: [{ text: "soup" }], open: true };
        if (turn.text === "dinner") yield [turn.artifact(menu), turn.inputRequired("For how many?")];
        else yield turn.append("menu", [{ text: ` for ${turn.text}` }], { last: true });
      },
    });
    const handler = createHandler(dinner, { publicUrl, store: memoryStore() });
    onTestFinished(() => handler.close({ grace: 0 }));
    const conversation = (await connect(publicUrl, { ...endless, fetch: fetchOf(handler) })).conversation();
    const texts: string[] = [];
    for (const message of ["dinner", "four"]) {
      let all = "";
      for await (const { text, reset } of conversation.stream(message).text()) all += reset ? `<${text}>` : text;
      texts.push(all);
    }
    expect(texts).toEqual(["soup\nFor how many?", " for four"]);
  });

  test("a waiting reader sees a cancel by another caller", async () => {
    const handler = host();
    const [reader, other] = [await client(handler), await client(handler)];
    const { task } = await reader.sendMessage({ message: "hold", configuration: { returnImmediately: true } });
    const id = task?.id as string;
    const waiting = reader.waitFor(id);
    const seen = glances(reader.subscribeToTask(id));
    expect((await other.cancelTask(id)).status.state).toBe("TASK_STATE_CANCELED");
    expect((await waiting).status.state).toBe("TASK_STATE_CANCELED");
    expect((await seen).at(-1)).toMatch(/CANCELED$/);
    expect(await errorOf(other.cancelTask(id))).toMatchObject({ code: "TaskNotCancelable" });
  });

  test("an abort ends the stream at the server", async () => {
    const handler = host();
    let closed = false;
    const watching: FetchLike = async (url, init) => {
      init.signal.addEventListener("abort", () => (closed = true));
      return fetchOf(handler)(url, init);
    };
    const stranger = await client(handler, { fetch: watching });
    const controller = new AbortController();
    const stream = stranger.sendStreamingMessage("hold", { signal: controller.signal });
    const seen = errorOf(
      (async () => {
        for await (const event of stream) if (glance(event) === "WORKING") controller.abort();
      })(),
    );
    expect(await seen).toMatchObject({ code: "Aborted" });
    await until(() => closed);
  });

  test("errors name their fields", async () => {
    const stranger = await client(host());
    expect(await errorOf(stranger.sendMessage({ parts: [] }))).toMatchObject({
      code: "InvalidParams",
      fields: [{ field: "message.parts" }],
    });
    expect(await errorOf(stranger.listTasks({ pageSize: 0 }))).toMatchObject({
      code: "InvalidParams",
      fields: [{ field: "pageSize" }],
    });
    expect(await errorOf(stranger.getTask("none"))).toMatchObject({ code: "TaskNotFound" });
  });

  test("the card is requested once, then only revalidated", async () => {
    const handler = host();
    const asked: number[] = [];
    const watching: FetchLike = async (url, init) => {
      const response = await fetchOf(handler)(url, init);
      if (url.endsWith("agent-card.json")) asked.push(response.status);
      return response;
    };
    const cardCache = new Map();
    let now = Date.now();
    const clock = { now: () => now, elapsed: () => now, after: () => () => undefined };
    for (let round = 0; round < 2; round++) await client(handler, { fetch: watching, cardCache, clock });
    expect(asked).toEqual([200]);
    now += 3_600_000;
    await client(handler, { fetch: watching, cardCache, clock });
    expect(asked).toEqual([200, 304]);
  });
});
