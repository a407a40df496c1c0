import { A2AError, memoryStore, serve } from "@parley/node";
import type { Interceptor, StreamItem } from "@parley/a2a/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import { actsAgent } from "../../../kits/agents/acts.ts";
import { conform, idsOf } from "./support.ts";
import { work } from "./work.ts";

/** Damages the service behind all bindings, to show that gRPC is tested as strictly as HTTP. */
const events =
  (change: (items: StreamItem[]) => readonly StreamItem[]): Interceptor =>
  (next) => ({
    call: (...args) => next.call(...args),
    async stream(...args) {
      const { batches, ...reply } = await next.stream(...args);
      const all: StreamItem[] = [];
      for await (const batch of batches) all.push(...batch);
      const changed = (async function* () {
        yield change(all);
      })();
      return { ...reply, batches: changed };
    },
  });

describe("over gRPC, a server with a single mistake fails", () => {
  test.each<[string, Interceptor, readonly string[]]>([
    [
      "another status for an unknown task",
      (next) => ({
        stream: (...args) => next.stream(...args),
        call: (...args) =>
          next.call(...args).catch((error: unknown) => {
            throw error instanceof A2AError && error.code === "TaskNotFound" ? new A2AError("InternalError") : error;
          }),
      }),
      ["CORE-GET-102", "CORE-CANCEL-104", "CORE-TASK-101", "VER-NEG-102"],
    ],
    ["a stream without its first event", events((items) => items.slice(1)), ["STREAM-FORM-101"]],
    [
      "a stream whose events are out of order",
      // The last event stays last: a client stops reading at the end of the task.
      events((items) => [...items.slice(0, -1).reverse(), ...items.slice(-1)]),
      ["STREAM-FORM-101"],
    ],
    ["a stream that is held until its end", events((items) => items), ["STREAM-LIVE-101"]],
  ])("%s", async (_, interceptor, breaks) => {
    const server = await serve(actsAgent({ work: 1_000, wait: work }), {
      port: 0,
      grpc: true,
      store: memoryStore(),
      signals: false,
      logger: false,
      interceptors: [interceptor],
    });
    onTestFinished(() => server.close({ grace: 0 }));
    const { bindings, report } = await conform(server.url, { bindings: ["GRPC"], stepTimeout: 6_000, filter: breaks });
    expect([...idsOf(bindings["grpc"], "fail")].sort()).toEqual([...breaks].sort());
    expect(report.verdict.result).toBe("broken");
  });
});
