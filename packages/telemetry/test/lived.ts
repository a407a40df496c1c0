import { onTestFinished } from "vitest";
import { A2AError } from "@parley/a2a/internal/model/index";
import { connect } from "@parley/a2a/internal/client/index";
import { observationOf, observeRequests, type Observer } from "@parley/a2a/internal/protocol/index";
import { createHandler } from "@parley/server/internal/handler";
import { memoryStore, type Store } from "@parley/server/internal/store/index";
import { bound } from "../../server/test/engine/support.ts";
import { agentOf } from "./support.ts";

export const url = "http://localhost:4000";

/** The store, with metrics of a pool of connections. */
function withPool(store: Store): Store {
  return { ...bound(store), connections: () => ({ total: 5, idle: 2, waiting: 1 }) };
}

/** Everything that has a metric happens once. */
export async function lived(observer: Observer, routes: Parameters<typeof createHandler>[1]["routes"] = []) {
  const agent = agentOf("Toy", async function* (turn) {
    if (turn.text === "throw") throw new Error("the agent is broken");
    await turn.step("book", async () => undefined);
    yield turn.artifact({ parts: [{ text: "done" }] });
  });
  const handler = createHandler(agent, { publicUrl: url, store: withPool(memoryStore()), observer, routes });
  onTestFinished(() => handler.close());
  const fetch = (to: string, init?: RequestInit): Promise<Response> => handler.fetch(new Request(to, init));
  const client = await connect(url, { fetch, binding: "JSONRPC", interceptors: [observeRequests(observer)] });
  for await (const event of client.sendStreamingMessage("work"))
    if (event.message !== undefined) throw new Error("No task");
  await client.sendMessage("throw");
  await client.getTask("unknown").catch(() => undefined);
  const about = { agent: "/", taskId: "t", contextId: "c" };
  observer.lease?.({ ...about, change: "lost" });
  const error = new A2AError("Unavailable");
  observer.retry?.({ operation: "GetTask", attempt: 1, elapsed: 0, delay: 0, error });
  const delegation = observer.delegation?.({ ...about, name: "Other", url: undefined });
  observationOf(delegation).end?.();
  const webhook = { configId: "c", origin: "https://example.com", seq: 1, attempt: 1, trace: undefined };
  const delivery = observer.delivery?.({ ...about, ...webhook });
  if (typeof delivery === "function") delivery({ status: 503, error });
  else delivery?.end?.({ status: 503, error });
  return { fetch, handler };
}

/** The samples of a text in the format of Prometheus. Throws for other lines. */
export function samples(text: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const line of text.trimEnd().split("\n")) {
    if (/^# (?:HELP [a-z_0-9]+ .+|TYPE [a-z_0-9]+ (?:counter|gauge|histogram))$/.test(line)) continue;
    const label = '[a-z_0-9]+="(?:[^"\\\\\\n]|\\\\[\\\\n"])*"';
    const parts = new RegExp(`^([a-z_0-9]+(?:\\{${label}(?:,${label})*\\})?) (-?[0-9.e+-]+)$`).exec(line);
    if (parts === null) throw new Error(`Not a sample: ${line}`);
    found.set(parts[1] ?? "", Number(parts[2]));
  }
  return found;
}
