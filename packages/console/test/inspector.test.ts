import { A2AError, type Client } from "@parley/a2a/internal/client/index";
import type { Interceptor } from "@parley/a2a/internal/protocol/index";
import { describe, expect, it } from "vitest";
import { openInspector, type InspectorLogins, type InspectorOptions, type WireRecord } from "../src/index.ts";
import { recordingCalls, recordingFetch } from "../src/recording.ts";
import { WireLog } from "../src/wire-log.ts";

/* The memory and connections of a console stay within limits, whatever its user and the agents do. */

const mounts = { add: () => {}, replace: () => {}, remove: async () => {} };
const never: InspectorOptions["open"] = () => new Promise<Client>(() => {});

function endless(piece: string): Response {
  const bytes = new TextEncoder().encode(piece);
  return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(bytes) }));
}

/** The current records of a log. */
async function recordsOf(log: WireLog, count: number): Promise<readonly WireRecord[]> {
  const reader = log.lines(0, new AbortController().signal).getReader();
  const records: WireRecord[] = [];
  while (records.length < count) {
    const { value } = await reader.read();
    records.push(JSON.parse(new TextDecoder().decode(value)) as WireRecord);
  }
  return records;
}

describe("an inspector", () => {
  it("opens at most 64 agents, those that do not answer included", async () => {
    let opened = 0;
    const open: InspectorOptions["open"] = (url, given) => {
      opened++;
      return never(url, given);
    };
    const inspector = openInspector({ open, mounts });
    const refused = Array.from({ length: 10_000 }, () => inspector.connect({ url: "http://127.0.0.1:1" }))
      .slice(64)
      .map((attempt) => attempt.catch((thrown: unknown) => thrown));
    for (const thrown of await Promise.all(refused)) expect(thrown).toMatchObject({ code: "TooManyRequests" });
    expect(opened).toBe(64);
  });

  it("has room again for an agent that could not be opened", async () => {
    const open: InspectorOptions["open"] = () => Promise.reject(new A2AError("ConnectionFailed", "nobody there"));
    const inspector = openInspector({ open, mounts });
    for (let n = 0; n < 100; n++) {
      await expect(inspector.connect({ url: "http://127.0.0.1:1" })).rejects.toThrow("nobody there");
    }
  });
});

describe("a login", () => {
  const card = { name: "Toy", description: "", version: "1", skills: [], capabilities: {}, supportedInterfaces: [] };
  const chosen = { protocolBinding: "JSONRPC", protocolVersion: "1.0" };
  const page = { openPage: async () => {}, showCode: () => {} };
  const way = { name: "oauth", kind: "oauth2", scopes: [], flows: ["browser"] } as const;
  const entered = [{ name: "oauth", clientId: "native" }];

  function inspecting() {
    const begun: AbortSignal[] = [];
    const logIn: InspectorLogins["logIn"] = (_url, _entered, signal) => {
      begun.push(signal);
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
    };
    const logins = { of: async () => ({ ways: [[way]], logins: [] }), logIn, logOut: async () => {} };
    const open = async () => Object.create({ card, service: {}, chosen }) as Client;
    return { inspector: openInspector({ open, mounts, logins }), begun };
  }

  it.each(["another login", "its page", "the end of the agent"])("is aborted by %s", async (by) => {
    const { inspector, begun } = inspecting();
    const { id } = await inspector.connect({ url: "https://toy.example" });
    const gone = new AbortController();
    const first = inspector.logIn(id, entered, page, gone.signal).catch((thrown: unknown) => thrown);
    const later = by === "another login" ? inspector.logIn(id, entered, page, gone.signal) : undefined;
    later?.catch(() => {});
    if (by === "its page") gone.abort();
    if (by === "the end of the agent") await inspector.disconnect(id);
    expect(await first).toMatchObject({ message: "aborted" });
    expect(begun.map(({ aborted }) => aborted)).toEqual(by === "another login" ? [true, false] : [true]);
  });

  it("is refused if the credentials were set when connecting", async () => {
    const { inspector, begun } = inspecting();
    const { id, signIn: none } = await inspector.connect({
      url: "https://toy.example",
      headers: { Authorization: "x" },
    });
    expect(none).toBeUndefined();
    await expect(inspector.logIn(id, entered, page, new AbortController().signal)).rejects.toThrow(
      "set when connecting",
    );
    await expect(inspector.logOut(id)).rejects.toThrow("set when connecting");
    expect(begun).toEqual([]);
  });
});

describe("the log of the wire", () => {
  it("has the newest records within its limit for a reader who has stalled", async () => {
    const log = new WireLog(1 << 20);
    const signal = new AbortController().signal;
    const reader = log.lines(0, signal).getReader();
    const text = "x".repeat(10_000);
    for (let n = 0; n < 20_000; n++) log.add({ kind: "piece", exchange: 1, body: { bytes: text.length, text } });
    const { value } = await reader.read();
    const first = JSON.parse(new TextDecoder().decode(value)) as WireRecord;
    expect(first.n).toBeGreaterThan(20_000 - (1 << 20) / 10_000);
  });

  it("contains no secret of a URL or header, even if the card does not name it", async () => {
    const log = new WireLog();
    const headers = { "api-key": "secret-of-azure", "X-Goog-Api-Key": "secret-of-google", "a2a-version": "1.0" };
    const init = { method: "GET", headers, signal: new AbortController().signal, redirect: "manual" as const };
    const fetch = recordingFetch(
      log,
      "a1",
      async () => new Response(null, { status: 204 }),
      () => ({ parameters: new Set(["own"]) }),
    );
    const secrets = "own=secret-of-1&key=secret-of-2&access_token=secret-of-3&api_key=secret-of-4&Token=secret-of-5";
    await fetch(`https://me:secret-of-me@agent.example/tasks?pageToken=next&${secrets}`, init);
    const [request] = await recordsOf(log, 1);
    expect(JSON.stringify(request)).not.toContain("secret-of-");
    const url = new URL(request?.kind === "request" ? request.url : "");
    expect([...url.searchParams]).toEqual([
      ["pageToken", "next"],
      ...["own", "key", "access_token", "api_key", "Token"].map((name) => [name, "•••"]),
    ]);
    expect(request).toMatchObject({ headers: expect.arrayContaining([["a2a-version", "1.0"]]) as unknown });
  });

  it("records the end of a gRPC stream that its reader left", async () => {
    const log = new WireLog();
    async function* endless() {
      for (;;) yield [{ payload: { json: "{}" } }];
    }
    const next = Object.create({ stream: async () => ({ batches: endless() }) }) as Parameters<Interceptor>[0];
    const { stream } = recordingCalls(log, "a1", () => ({ url: "grpc://agent.example" }))(next);
    const { batches } = await stream("SendStreamingMessage", Object.create(null), Object.create(null));
    const reader = batches[Symbol.asyncIterator]();
    await reader.next();
    await reader.return?.();
    expect((await recordsOf(log, 3)).map(({ kind }) => kind)).toEqual(["request", "piece", "end"]);
  });

  it("keeps 1 MiB of an endless body, and counts its bytes", async () => {
    const log = new WireLog();
    const init = { method: "GET", headers: {}, signal: new AbortController().signal, redirect: "manual" as const };
    const fetch = recordingFetch(
      log,
      "a1",
      async () => endless("x".repeat(1 << 16)),
      () => ({}),
    );
    const reader = (await fetch("http://agent.example/", init)).body?.getReader();
    for (let n = 0; n < 200; n++) await reader?.read();
    await reader?.cancel();
    const piece = (await recordsOf(log, 3)).at(-1);
    expect(piece).toMatchObject({ kind: "piece", body: { bytes: 200 << 16 } });
    expect(JSON.stringify(piece).length).toBeLessThan((1 << 20) + 1000);
  });

  it.each([["\n\n"], ["\r\n\r\n"], ["\r\r"]])("has each event of a stream, however it is cut: %j", async (end) => {
    const stream = `data: one${end}data: two${end}data: rest`;
    for (let size = 1; size < stream.length; size++) {
      const bytes = new TextEncoder().encode(stream);
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.slice(at * size, (at + 1) * size),
      );
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          for (const piece of pieces) controller.enqueue(piece);
          controller.close();
        },
      });
      const own = new WireLog();
      const response = new Response(body, { headers: { "content-type": "text/event-stream" } });
      const init = { method: "GET", headers: {}, signal: new AbortController().signal, redirect: "manual" as const };
      await (
        await recordingFetch(
          own,
          "a1",
          async () => response,
          () => ({}),
        )("http://agent.example/", init)
      ).text();
      const texts = (await recordsOf(own, 6)).flatMap((record) => (record.kind === "piece" ? [record.body.text] : []));
      expect(texts).toEqual([`data: one${end}`, `data: two${end}`, "data: rest"]);
    }
  });
});
