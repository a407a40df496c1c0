import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, test } from "vitest";
import type { Observation, Observer } from "@parley/a2a/internal/protocol/index";
import { observerContract, type ObserverUnderTest, type Runner } from "../src/index.ts";

/** The contract of observers passes for an empty observer, and for one that opens spans like a tracer. */

const runner: Runner = { describe, it: test, expect };

/** Opens a span around each call, turn and request. A span has its parent's trace, and is active in the observed code. */
function tracer(): ObserverUnderTest {
  const storage = new AsyncLocalStorage<string>();
  const random = (bytes: number): string => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex");
  const open = ({ trace }: { readonly trace: string | undefined }): Observation => {
    const parent = trace ?? storage.getStore();
    const span = `00-${parent?.split("-")[1] ?? random(16)}-${random(8)}-01`;
    return { trace: span, run: (work) => storage.run(span, work), end() {} };
  };
  const observer: Observer = { call: open, turn: open, request: open, gauges: () => () => {} };
  return { observer, active: () => storage.getStore() };
}

describe("an observer without a member", () => {
  observerContract(runner, { open: () => ({ observer: {} }) });
});

describe("an observer that traces", () => {
  observerContract(runner, { open: tracer });
});
