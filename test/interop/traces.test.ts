import { connect, defineAgent, memoryStore, serve, type Client } from "@parley/node";
import { observeRequests } from "@parley/a2a/protocol";
import { telemetry } from "@parley/telemetry";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { registered, Spans } from "../../packages/telemetry/test/support.ts";
import { describePeer, startServer, type PeerProgram, type RunningServer } from "./peer.ts";
import type { BindingName } from "./steps.ts";
import { startJsServer } from "./traces-js.ts";

/**
 * One message goes through our agent to agents on the official SDKs of three languages. Each answers with the `traceparent` that it
 * received. None of these SDKs propagates it, so our agent behind the JavaScript agent starts a new trace.
 */

registered();

const python: PeerProgram = { name: "Python SDK 1.3.0", environment: "python1", program: "server_v1.py" };
const go: PeerProgram = { name: "Go SDK 2.3.1", environment: "go", program: "server-v2" };

const bindings: readonly BindingName[] = ["JSONRPC", "HTTP+JSON", "GRPC"];

/** The kind and name of each span, indented below its parent. */
const golden = [
  "CLIENT SendMessage",
  "  SERVER SendMessage",
  "    INTERNAL invoke_agent Guide",
  "      CLIENT invoke_agent Go 2",
  "        CLIENT SendStreamingMessage",
  "      CLIENT invoke_agent JavaScript",
  "        CLIENT SendStreamingMessage",
  "      CLIENT invoke_agent Python 1",
  "        CLIENT SendStreamingMessage",
];
const goldenBehind = ["SERVER SendMessage", "  INTERNAL invoke_agent Behind"];

type ReadableSpan = Spans["finished"][number];

const kinds = ["INTERNAL", "SERVER", "CLIENT"];

/** The spans of a trace as a tree, with siblings sorted by name. */
function treeOf(spans: readonly ReadableSpan[]): readonly string[] {
  const below = (parent: string | undefined, depth: number): readonly string[] =>
    spans
      .filter(({ parentSpanContext }) => parentSpanContext?.spanId === parent)
      .sort((one, other) => one.name.localeCompare(other.name))
      .flatMap((span) => [
        `${"  ".repeat(depth)}${kinds[span.kind] ?? ""} ${span.name}`,
        ...below(span.spanContext().spanId, depth + 1),
      ]);
  return below(undefined, 0);
}

const traceOf = (span: ReadableSpan): string => span.spanContext().traceId;
const traceparentOf = (span: ReadableSpan | undefined): string =>
  `00-${span?.spanContext().traceId ?? ""}-${span?.spanContext().spanId ?? ""}-01`;

/** Serves our agents, and sends a message to the guide. */
async function traced(urls: readonly string[], binding: BindingName, spans: Spans): Promise<Map<string, string>> {
  const observer = telemetry({ tracerProvider: spans.provider });
  const options = { observer, interceptors: [observeRequests(observer)] };
  const peers: readonly Client[] = await Promise.all(urls.map((url) => connect(url, { binding, ...options })));
  const received = new Map<string, string>();
  const about = { description: "Traced", version: "1.0.0", skills: [] };
  const guide = defineAgent({
    name: "Guide",
    ...about,
    async *onMessage(turn) {
      for (const peer of peers) {
        const { text } = yield* turn.delegate(peer, "traceparent", { artifacts: false });
        received.set(peer.card.name, text);
      }
    },
  });
  const server = await serve(guide, { port: 0, signals: false, logger: false, store: memoryStore(), observer });
  try {
    const client = await connect(server.url, options);
    const { task } = await client.sendMessage("Go");
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    return received;
  } finally {
    await server.close();
  }
}

describePeer(python, () =>
  describePeer(go, () => {
    const spans = new Spans();
    const running: RunningServer[] = [];
    beforeAll(async () => {
      const behind = await serve(
        defineAgent({
          name: "Behind",
          description: "Traced",
          version: "1.0.0",
          skills: [],
          onMessage: (turn) => turn.reply("Hello"),
        }),
        {
          port: 0,
          signals: false,
          logger: false,
          store: memoryStore(),
          observer: telemetry({ tracerProvider: spans.provider }),
        },
      );
      running.push({ url: behind.url, stop: () => behind.close() });
      running.push(await startServer(python), await startServer(go), await startJsServer(behind.url));
    });
    afterAll(async () => {
      for (const each of running.reverse()) await each.stop();
    });

    test.each(bindings)(
      "over %s, each of the three agents receives the traceparent of its request",
      async (binding) => {
        spans.exporter.reset();
        const received = await traced(
          running.slice(1).map(({ url }) => url),
          binding,
          spans,
        );
        await vi.waitFor(() => expect(spans.finished).toHaveLength(golden.length + goldenBehind.length));
        const [root] = spans.finished.filter(
          ({ kind, name, parentSpanContext }) =>
            kinds[kind] === "CLIENT" && name === "SendMessage" && parentSpanContext === undefined,
        );
        const trace = root === undefined ? "" : traceOf(root);
        const within = spans.finished.filter((span) => traceOf(span) === trace);
        const others = spans.finished.filter((span) => traceOf(span) !== trace);
        expect(treeOf(within)).toEqual(golden);
        expect(treeOf(others)).toEqual(goldenBehind);
        for (const name of ["Python 1", "Go 2", "JavaScript"]) {
          const delegation = within.find((span) => span.name === `invoke_agent ${name}`);
          const request = within.find(
            ({ parentSpanContext }) => parentSpanContext?.spanId === delegation?.spanContext().spanId,
          );
          expect([name, received.get(name)]).toEqual([name, traceparentOf(request)]);
        }
      },
    );
  }),
);
