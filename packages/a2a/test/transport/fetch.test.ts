import { describe, expect, test } from "vitest";
import { silentLogger, type LogFields } from "../../src/base/index.ts";
import { toFetch } from "../../src/transport/server/fetch.ts";
import type { Sink, UniversalHandler, UniversalRequest } from "../../src/protocol/index.ts";
import { rpc, ScriptedService, serveAlone, settled, status, task } from "./support.ts";

const url = "https://agents.example/";
const json = { "content-type": "application/json" };

/** Passes the universal form of a `Request` to `use`. */
function seen(init: Request, use: (request: UniversalRequest) => unknown): Promise<Response> {
  return toFetch(async (request) => {
    await use(request);
    return { status: 204, headers: {} };
  })(init);
}

describe("requests", () => {
  test.each([
    ["https://a.example/x/y?q=1", "/x/y?q=1"],
    ["https://a.example", "/"],
    ["https://a.example/a%2Fb?x=%20#frag", "/a%2Fb?x=%20"],
    ["http://user@[::1]:80/x", "/x"],
  ])("%s is %s", async (from, to) => {
    await seen(new Request(from.replace("user@", "")), (request) => expect(request.url).toBe(to));
  });

  test("have headers by name, repeated ones joined", async () => {
    const headers = new Headers({ "A2A-Extensions": "urn:a" });
    headers.append("A2A-Extensions", "urn:b");
    await seen(new Request(url, { headers }), (request) => {
      expect(request.header("a2a-extensions")).toBe("urn:a, urn:b");
      expect(request.header("authorization")).toBeUndefined();
    });
  });

  test("take the host from their URL without a Host header, as over HTTP/2 (RFC 9113 §8.3.1)", async () => {
    await seen(new Request("https://evil.example:8443/x"), (request) =>
      expect(request.header("host")).toBe("evil.example:8443"),
    );
    const named = new Request("https://10.0.0.1/x", { headers: { host: "agents.example" } });
    await seen(named, (request) => expect(request.header("host")).toBe("agents.example"));
  });

  test("have a body up to the limit, in any pieces", async () => {
    const bytes = new TextEncoder().encode("grün ✓ 🎱");
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
    const init = { method: "POST", body, duplex: "half" } as RequestInit;
    await seen(new Request(url, init), async (request) => expect(await request.text(bytes.length)).toBe("grün ✓ 🎱"));
    await seen(new Request(url), async (request) => expect(await request.text(10)).toBe(""));
  });

  test("drop a byte order mark", async () => {
    const body = Uint8Array.of(0xef, 0xbb, 0xbf, 0x7b, 0x7d);
    await seen(new Request(url, { method: "POST", body }), async (request) =>
      expect(await request.text(10)).toBe("{}"),
    );
  });

  test("stop reading a body beyond the limit", async () => {
    let pulled = 0;
    let canceled = false;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled++;
        controller.enqueue(new Uint8Array(1024));
      },
      cancel() {
        canceled = true;
      },
    });
    await seen(new Request(url, { method: "POST", body, duplex: "half" }), async (request) => {
      await expect(request.text(10_000)).rejects.toMatchObject({ code: "RequestTooLarge" });
    });
    await settled();
    expect(pulled).toBeLessThan(20);
    expect(canceled).toBe(true);
  });

  test("reject a body by its announced length without reading it", async () => {
    const init = { method: "POST", body: "x".repeat(50), headers: { "content-length": "5000" } };
    await seen(new Request(url, init), async (request) => {
      await expect(request.text(1000)).rejects.toMatchObject({ code: "RequestTooLarge" });
    });
  });

  test.each([
    ["in the middle", [0x7b, 0xff, 0x7d]],
    ["cut off", [0x7b, 0xc3]],
  ])("are rejected if they are not UTF-8 (%s)", async (_, bytes) => {
    await seen(new Request(url, { method: "POST", body: Uint8Array.from(bytes) }), async (request) => {
      await expect(request.text(100)).rejects.toMatchObject({ code: "ParseError" });
    });
  });

  test("reject a body that breaks off", async () => {
    const body = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new Error("reset")) });
    await seen(new Request(url, { method: "POST", body, duplex: "half" }), async (request) => {
      await expect(request.text(100)).rejects.toMatchObject({ code: "InvalidRequest" });
    });
  });

  test("report that the client disconnected", async () => {
    const leaving = new AbortController();
    await seen(new Request(url, { signal: leaving.signal }), (request) => {
      const { signal } = request;
      expect(signal.aborted).toBe(false);
      leaving.abort();
      expect(signal.aborted).toBe(true);
    });
    await seen(new Request(url, { signal: leaving.signal }), (request) => expect(request.signal.aborted).toBe(true));
  });
});

describe("answers", () => {
  test("have status and headers, with or without a body", async () => {
    const fetch = toFetch(serveAlone(new ScriptedService()));
    const good = await fetch(new Request(url, { method: "POST", headers: json, body: rpc("GetTask", { id: "t1" }) }));
    expect(good.status).toBe(200);
    expect(good.headers.get("content-type")).toBe("application/json");
    expect(await good.json()).toMatchObject({ result: task });
    const card = await fetch(new Request(`${url}.well-known/agent-card.json`));
    const again = await fetch(
      new Request(card.url || `${url}.well-known/agent-card.json`, {
        headers: { "if-none-match": card.headers.get("etag") ?? "" },
      }),
    );
    expect([again.status, await again.text()]).toEqual([304, ""]);
    const notification = await fetch(
      new Request(url, { method: "POST", headers: json, body: '{"jsonrpc":"2.0","method":"ListTasks"}' }),
    );
    expect([notification.status, await notification.text()]).toEqual([204, ""]);
  });

  test("to HEAD have only headers", async () => {
    const fetch = toFetch(serveAlone(new ScriptedService()));
    const head = await fetch(new Request(`${url}.well-known/agent-card.json`, { method: "HEAD" }));
    expect([head.status, head.body]).toEqual([200, null]);
    expect(head.headers.get("etag")).not.toBeNull();
  });

  /** Opens a stream. Returns the response, and the sink to which the test writes. */
  async function openSink() {
    let give: (sink: Sink) => void;
    let end: (error?: Error) => void = () => undefined;
    const got = new Promise<Sink>((resolve) => (give = resolve));
    const handler: UniversalHandler = () => ({
      status: 200,
      headers: {},
      body: (sink) => {
        give(sink);
        return new Promise((resolve, reject) => (end = (error) => (error === undefined ? resolve() : reject(error))));
      },
    });
    const leaving = new AbortController();
    const response = await toFetch(handler)(new Request(url, { signal: leaving.signal }));
    return { response, sink: await got, end: (error?: Error) => end(error), leaving };
  }

  test("are streamed as they are written, and end with their writer", async () => {
    const { response, sink, end } = await openSink();
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect(sink.write("grün")).toBe(true);
    expect((await reader.read()).value).toBe("grün");
    sink.write("✓");
    end();
    expect((await reader.read()).value).toBe("✓");
    expect((await reader.read()).done).toBe(true);
  });

  test("make the writer wait while nobody reads, until there is room again", async () => {
    const { response, sink, end } = await openSink();
    let room = true;
    let writes = 0;
    while (room && writes < 10_000) {
      room = sink.write("x".repeat(1024));
      writes++;
    }
    expect(writes).toBeLessThan(100);
    let ready = false;
    const waiting = sink.ready().then(() => (ready = true));
    await settled();
    expect(ready).toBe(false);
    const reader = response.body!.getReader();
    while (!ready) await reader.read();
    await waiting;
    end();
  });

  test.each([
    ["cancels the body", "cancel"],
    ["aborts the request", "abort"],
  ])("tell the writer that the client disconnected when it %s", async (_, how) => {
    const { response, sink, leaving, end } = await openSink();
    let left = 0;
    sink.onClose(() => left++);
    while (sink.write("x".repeat(4096)));
    const waiting = sink.ready();
    if (how === "cancel") await response.body!.cancel();
    else leaving.abort();
    await waiting;
    expect([left, sink.closed, sink.write("more")]).toEqual([1, true, false]);
    sink.onClose(() => left++);
    expect(left).toBe(2);
    end();
  });

  test("are aborted when the writer fails", async () => {
    const { response, end } = await openSink();
    end(new Error("broken"));
    await expect(response.text()).rejects.toThrow("broken");
  });

  test.each<[string, UniversalHandler]>([
    ["rejects", () => Promise.reject(new Error("secret"))],
    [
      "throws",
      () => {
        throw new Error("secret");
      },
    ],
    ["gives a status that HTTP does not have", () => ({ status: 99, headers: {} })],
    ["gives a header that HTTP cannot carry", () => ({ status: 200, headers: { "x-a": "a\r\nb: secret" } })],
  ])("are logged and answered with 500 if a custom binding %s", async (_, handler) => {
    const logged: [string, unknown][] = [];
    const logger = {
      ...silentLogger,
      error: (text: string, fields?: LogFields) => void logged.push([text, fields?.["url"]]),
    };
    const response = await toFetch(handler, undefined, logger)(new Request(`${url}x`));
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("secret");
    expect(logged).toEqual([["Failed to answer request", "/x"]]);
  });

  test("abort the signal of the request when their reader leaves", async () => {
    let signal: AbortSignal | undefined;
    const response = await toFetch((request) => {
      signal = request.signal;
      return { status: 200, headers: {}, body: () => new Promise(() => undefined) };
    })(new Request(url));
    await response.body!.cancel();
    expect(signal?.aborted).toBe(true);
  });

  test("stream events from end to end", async () => {
    const service = new ScriptedService();
    const fetch = toFetch(serveAlone(service));
    const response = await fetch(new Request(`${url}tasks/t1:subscribe`));
    service.feed.push(status("TASK_STATE_WORKING", 2));
    service.feed.push(status("TASK_STATE_COMPLETED", 3));
    service.feed.end();
    const text = await response.text();
    expect(text.split("\n\n").filter((event) => event.startsWith("id: "))).toHaveLength(2);
  });

  test("close the source when a reader leaves during a stream", async () => {
    const service = new ScriptedService();
    const response = await toFetch(serveAlone(service))(new Request(`${url}tasks/t1:subscribe`));
    const reader = response.body!.getReader();
    await reader.read();
    await reader.cancel();
    expect(service.feed.returned).toBe(1);
  });
});
