import { describe, expect, onTestFinished, test, vi } from "vitest";
import { parseSseStream } from "@a2a-js/sdk";
import { SseParser } from "../../src/transport/client/events.ts";
import { A2AError, type StreamResponse } from "../../src/model/index.ts";
import { Payload, TextPayload } from "../../src/protocol/index.ts";
import {
  ask,
  LinesLogger,
  message,
  open,
  request,
  rpc,
  ScriptedService,
  serveAlone,
  settled,
  status,
  StillClock,
  task,
} from "./support.ts";

const working = status("TASK_STATE_WORKING", 2);
const completed = status("TASK_STATE_COMPLETED", 3);

/** Each binding, with a request for a stream and the form of an error in a stream. */
const streams = [
  [
    "JSON-RPC",
    (headers = {}) => request("POST", "/", { body: rpc("SubscribeToTask", { id: "t1" }, 'r"1'), headers }),
    { before: "", data: { jsonrpc: "2.0", id: 'r"1', error: { code: -32603, message: "Come back later" } } },
  ],
  [
    "REST",
    (headers = {}) => request("POST", "/tasks/t1:subscribe", { headers }),
    { before: "event: error\n", data: { error: { code: 503, status: "UNAVAILABLE", message: "Come back later" } } },
  ],
] as const satisfies readonly (readonly [string, (headers?: Record<string, string>) => unknown, unknown])[];

const dataOf = (text: string): unknown[] =>
  text
    .split("\n\n")
    .flatMap((event) => event.split("\n"))
    .filter((line) => line.startsWith("data: "))
    .map((line) => JSON.parse(line.slice(6)));

/**
 * Returns the data of events as `httpx-sse` reads them. The Python SDKs use this parser. After an `id`, each blank line ends an event, with or
 * without data.
 */
function readAsHttpx(text: string): string[] {
  const events: string[] = [];
  const data: string[] = [];
  let lastId = "";
  for (const line of text.split("\n").slice(0, -1)) {
    if (line.startsWith("id: ")) lastId = line.slice(4);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
    else if (line === "" && (data.length > 0 || lastId !== "")) events.push(data.splice(0).join("\n"));
  }
  return events;
}

describe.each(streams)("a stream on %s", (binding, subscribe, broken) => {
  const withService = (options: Parameters<typeof serveAlone>[1] = {}) => {
    const service = new ScriptedService();
    return { service, handler: serveAlone(service, options) };
  };
  const wrap = (event: unknown) => (binding === "REST" ? event : { jsonrpc: "2.0", id: 'r"1', result: event });

  test("sends headers and a comment as soon as it is accepted, before the first event", async () => {
    const { service, handler } = withService();
    const { head, sink, done } = await open(handler, subscribe());
    expect(head.status).toBe(200);
    expect(head.headers).toEqual({
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    expect(sink.text).toBe(":\n\n");
    service.feed.end();
    await done;
  });

  test("has the HTTP status of an error if the request is rejected", async () => {
    const { service, handler } = withService();
    service.script = () => {
      throw new A2AError("UnsupportedOperation");
    };
    const answer = await ask(handler, subscribe());
    expect(answer.status).toBe(binding === "REST" ? 400 : 200);
    expect(answer.headers["content-type"]).toBe("application/json");
  });

  test("has the seq of an event as its id, and no id for a direct message", async () => {
    const { service, handler } = withService();
    const { sink, done } = await open(handler, subscribe());
    service.feed.push(working);
    service.feed.push({ payload: new Payload({ message: { ...message, role: "ROLE_AGENT" } }) });
    service.feed.end();
    await done;
    const [comment, first, second] = sink.text.split("\n\n");
    expect(comment).toBe(":");
    expect(first).toBe(`id: 2\ndata: ${JSON.stringify(wrap(working.payload.value))}`);
    expect(second).toBe(`data: ${JSON.stringify(wrap({ message: { ...message, role: "ROLE_AGENT" } }))}`);
  });

  test("writes stored JSON unchanged, without parsing it", async () => {
    const { service, handler } = withService();
    const { sink, done } = await open(handler, subscribe());
    const payload = new TextPayload<StreamResponse>('{"task":{"id":"t1" , "x":1}}');
    const parsed = vi.spyOn(TextPayload.prototype, "value", "get");
    onTestFinished(() => parsed.mockRestore());
    service.feed.push({ seq: 9, payload });
    service.feed.end();
    await done;
    // If the server had parsed and serialized this text again, the text would have no spaces.
    expect(sink.text).toContain('{"task":{"id":"t1" , "x":1}}');
    expect(parsed).not.toHaveBeenCalled();
  });

  test("writes a batch in one write", async () => {
    const { service, handler } = withService();
    const { sink, done } = await open(handler, subscribe());
    service.feed.push({ payload: new Payload({ task }) }, working, completed);
    service.feed.end();
    await done;
    expect(sink.writes).toHaveLength(2);
    expect(dataOf(sink.text)).toEqual([{ task }, working.payload.value, completed.payload.value].map(wrap));
  });

  test("waits for a slow client, and reads no further events meanwhile", async () => {
    const { service, handler } = withService();
    const { sink, done } = await open(handler, subscribe());
    sink.full = true;
    service.feed.push(working);
    await settled();
    service.feed.push(completed);
    await settled();
    expect(dataOf(sink.text)).toHaveLength(1);
    sink.drain();
    service.feed.end();
    await done;
    expect(dataOf(sink.text)).toHaveLength(2);
  });

  test("closes the source at once when the reader leaves", async () => {
    const { service, handler } = withService();
    const { sink, done } = await open(handler, subscribe());
    sink.leave();
    expect(service.feed.returned).toBe(1);
    await done;
  });

  test("closes the source if the reader leaves before the stream begins, or while the reader is behind", async () => {
    const { service, handler } = withService();
    const head = await handler(subscribe());
    if (typeof head.body !== "function") throw new Error("No stream");
    const { sink, done } = await open(handler, subscribe());
    sink.full = true;
    service.feed.push(working);
    await settled();
    sink.leave();
    await done;
    await head.body(sink);
    expect(service.feed.returned).toBe(2);
    expect(sink.writes).toHaveLength(2);
  });

  test("sends an error within the stream as a typed error", async () => {
    const logger = new LinesLogger();
    const { service, handler } = withService({ logger });
    const { sink, done } = await open(handler, subscribe());
    service.feed.push(working);
    service.feed.fail(new A2AError("Unavailable", "Come back later", { retryAfter: 2 }));
    await done;
    const last = sink.text.trimEnd().split("\n\n").at(-1) ?? "";
    expect(last.split("data: ")[0]).toBe(broken.before);
    expect(dataOf(last)).toMatchObject([broken.data]);
    expect(logger.lines).toMatchObject([{ level: "warn", fields: { operation: "SubscribeToTask" } }]);
  });

  test("does not send the cause of an error within the stream", async () => {
    const logger = new LinesLogger();
    const { service, handler } = withService({ logger });
    const { sink, done } = await open(handler, subscribe());
    service.feed.fail(new Error("disk /var/lib/secret is gone"));
    await done;
    expect(sink.text).toContain("Internal error");
    expect(sink.text).not.toContain("secret");
    expect(logger.lines).toMatchObject([
      { level: "error", fields: { cause: { message: "disk /var/lib/secret is gone" } } },
    ]);
  });

  test("passes Last-Event-ID to the service; an invalid one is ignored", async () => {
    const { service, handler } = withService();
    for (const [value, after] of [
      ["7", 7],
      ["0", 0],
      ["", undefined],
      ["-1", undefined],
      ["1.5", undefined],
      ["abc", undefined],
      ["9".repeat(30), undefined],
    ] as const) {
      const head = await handler(subscribe({ "last-event-id": value }));
      expect(head.status).toBe(200);
      expect(service.last.context.after).toBe(after);
      expect("after" in service.last.context).toBe(after !== undefined);
    }
  });

  test("lists the activated extensions in its header", async () => {
    const { service, handler } = withService();
    service.extensions = ["urn:x"];
    expect((await handler(subscribe())).headers).toMatchObject({
      "a2a-extensions": "urn:x",
      "content-type": "text/event-stream",
    });
  });

  test("gets keep-alive comments while it is quiet, from one timer for all streams", async () => {
    const clock = new StillClock();
    const { service, handler } = withService({ clock, keepAlive: 15_000 });
    const opened = await Promise.all(Array.from({ length: 40 }, () => open(handler, subscribe())));
    expect(clock.timers).toBe(1);
    clock.advance(15_000);
    for (const { sink } of opened) expect(sink.text.match(/^:/gm)).toHaveLength(2);
    clock.advance(30_000);
    for (const { sink } of opened) expect(sink.text.match(/^:/gm)).toHaveLength(4);
    expect(clock.timers).toBe(1);
    for (const { sink } of opened) sink.leave();
    clock.advance(15_000);
    expect(clock.timers).toBe(0);
    expect(service.feed.returned).toBe(40);
  });

  test("sends comments that no reader takes for an event, even one that dispatches at each blank line", async () => {
    const clock = new StillClock();
    const { service, handler } = withService({ clock, keepAlive: 15_000 });
    const { sink, done } = await open(handler, subscribe());
    service.feed.push(working);
    await settled();
    clock.advance(30_000);
    service.feed.push(completed);
    service.feed.end();
    await done;
    expect(sink.text.match(/^:/gm)).toHaveLength(3);
    const events = [working, completed].map(({ payload }) => JSON.stringify(wrap(payload.value)));
    expect(new SseParser().push(sink.text)).toEqual([
      { id: "2", data: events[0] },
      { id: "3", data: events[1] },
    ]);
    expect(readAsHttpx(sink.text)).toEqual(events);
    const official = [];
    for await (const { data } of parseSseStream(new Response(sink.text))) official.push(data);
    expect(official).toEqual(events);
  });

  test("sends no comments while its client is behind, and sends them again afterwards", async () => {
    const clock = new StillClock();
    const { service, handler } = withService({ clock, keepAlive: 15_000 });
    const { sink, done } = await open(handler, subscribe());
    sink.full = true;
    clock.advance(60_000);
    await settled();
    expect(sink.writes).toHaveLength(2);
    sink.drain();
    await settled();
    clock.advance(15_000);
    expect(sink.writes).toHaveLength(3);
    service.feed.end();
    await done;
    clock.advance(60_000);
    expect(sink.writes).toHaveLength(3);
  });
});

test("Last-Event-ID is ignored for a call without a stream", async () => {
  const service = new ScriptedService();
  await ask(serveAlone(service), request("GET", "/tasks/t1", { headers: { "last-event-id": "3" } }));
  expect(service.last.context.after).toBeUndefined();
});
