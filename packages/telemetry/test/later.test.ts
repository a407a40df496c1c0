import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { connect, serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { createHandler } from "@parley/server/internal/handler";
import type { AgentDefinition } from "@parley/server/internal/agent/index";
import type { Store } from "@parley/server/internal/store/index";
import { bound } from "../../server/test/engine/support.ts";
import { telemetry } from "../src/index.ts";
import { agentOf, registered, Spans } from "./support.ts";

/** Work after the call: the outbox posts to a receiver, and another node takes over a lost run. */

registered();

describe("the webhooks of a server", () => {
  test("are posted in the trace of their call, with their own span as the parent, and retried in a linked trace", async () => {
    const heard: (string | undefined)[] = [];
    const receiver = createServer((request, response) => {
      heard.push(String(request.headers["traceparent"]));
      response.writeHead(heard.length === 1 ? 503 : 204).end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void receiver.close());
    const spans = new Spans();
    const server = await serve(
      agentOf("Toy", async function* (turn) {
        yield turn.artifact({ parts: [{ text: "done" }] });
      }),
      {
        port: 0,
        signals: false,
        logger: false,
        store: await sqliteStore({ path: ":memory:" }),
        push: { retryAfter: [1] },
        observer: telemetry({ tracerProvider: spans.provider }),
      },
    );
    onTestFinished(() => server.close());
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    const configuration = { taskPushNotificationConfig: { url } };
    await (await connect(server.url)).sendMessage({ message: "work", configuration });
    const deliveries = () => spans.finished.filter(({ name }) => name === "webhook delivery");
    await vi.waitFor(() => expect(deliveries().length).toBeGreaterThanOrEqual(2));
    const call = spans.named("SendMessage").spanContext();
    const [first, again] = deliveries();
    for (const [at, span] of [first, again].entries()) {
      const { traceId, spanId } = span?.spanContext() ?? {};
      expect(heard[at]).toBe(`00-${traceId ?? ""}-${spanId ?? ""}-01`);
      expect(span?.links.map(({ context }) => context.traceId)).toEqual([call.traceId]);
    }
    expect(first?.spanContext().traceId).toBe(call.traceId);
    expect(again?.spanContext().traceId).not.toBe(call.traceId);
    expect([first?.attributes, again?.attributes]).toMatchObject([
      { "parley.webhook.attempt": 1, "http.response.status_code": 503, "error.type": "InvalidResponse" },
      { "parley.webhook.attempt": 2, "http.response.status_code": 204 },
    ]);
  });
});

describe("a node that takes over a run", () => {
  test("links its turn, and a stream that is resumed there, to the call that the lost node answered", async () => {
    const store = await sqliteStore({ path: ":memory:" });
    onTestFinished(() => store.close());
    const spans = new Spans();
    let [isAlive, released] = [true, () => {}];
    const open = new Promise<void>((resolve) => (released = resolve));
    const onMessage: AgentDefinition["onMessage"] = async function* (turn) {
      yield turn.working("Begins");
      await open;
      yield turn.artifact({ parts: [{ text: "done" }] });
    };
    // From here on, the first node stores nothing.
    const cut: Store = {
      ...bound(store),
      append: (items) => (isAlive ? store.append(items) : new Promise(() => {})),
    };
    const node = async (holder: string, over: Store) => {
      const publicUrl = "http://localhost:4000";
      const agent = agentOf("Toy", onMessage);
      const handler = createHandler([{ agent: { ...agent, resumable: true }, id: "toy" }], {
        publicUrl,
        store: over,
        lease: { holder, isGone: (other) => other === "lost" },
        observer: telemetry({ tracerProvider: spans.provider }),
      });
      // The lost node would wait forever for its store.
      onTestFinished(() => void handler.close());
      const fetch = (url: string, init: RequestInit): Promise<Response> => handler.fetch(new Request(url, init));
      return connect(publicUrl, { fetch, binding: "JSONRPC" });
    };
    const stream = (await node("lost", cut)).sendStreamingMessage("work");
    const { value } = await stream.next();
    const id = value?.task?.id ?? "";
    await stream.next();
    isAlive = false;
    await stream.return();
    await vi.waitFor(() => expect(spans.finished.map(({ name }) => name)).toContain("SendStreamingMessage"));
    const call = spans.named("SendStreamingMessage").spanContext();

    const second = await node("second", bound(store));
    await vi.waitFor(async () => expect((await store.head({ agent: "toy" }, id))?.run?.attempt).toBe(2));
    const resumed = second.subscribeToTask(id);
    await resumed.next();
    released();
    for await (const { message } of resumed) expect(message).toBeUndefined();
    const relations = (name: string) =>
      spans.finished
        .filter((span) => span.name === name)
        .flatMap(({ links }) => links)
        .map(({ context, attributes }) => [context.spanId, attributes?.["parley.relationship"]]);
    await vi.waitFor(() => {
      expect(relations("invoke_agent Toy")).toEqual([[call.spanId, "resume_origin"]]);
      expect(relations("SubscribeToTask")).toEqual([[call.spanId, "resume_origin"]]);
    });
  });
});
