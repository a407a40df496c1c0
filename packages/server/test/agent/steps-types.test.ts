import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { defineAgent } from "../../src/agent/index.ts";
import type { JsonValue } from "@parley/a2a/internal/model/index";
import type { StepCall, Turn, TurnSignal } from "@parley/a2a/internal/protocol/index";

interface Booking {
  readonly number: number;
  readonly note?: string;
}
declare const booking: Booking;
declare const aMap: Map<string, number>;

/** Calls that are only compiled, never executed. */
async function* uses(turn: Turn) {
  expectTypeOf(await turn.step("a", () => booking)).toEqualTypeOf<Booking>();
  expectTypeOf(await turn.step("b", () => Promise.resolve([1, 2]))).toEqualTypeOf<number[]>();
  expectTypeOf(await turn.step("c", async () => {})).toBeVoid();
  expectTypeOf(await turn.step("d", () => null, { scope: "task", retry: { attempts: 3 } })).toBeNull();
  await turn.step("e", (call) => {
    expectTypeOf(call).toEqualTypeOf<StepCall>();
    expectTypeOf(call.key).toBeString();
    expectTypeOf(call.signal).toEqualTypeOf<TurnSignal>();
  });
  // @ts-expect-error A Date is not JSON.
  await turn.step("f", () => new Date());
  // @ts-expect-error A map is not JSON, even in a promise.
  await turn.step("g", () => Promise.resolve(aMap));
  // @ts-expect-error Steps have no such scope.
  await turn.step("h", () => 1, { scope: "context" });
  expectTypeOf(yield* turn.sleep(1000)).toBeVoid();
  yield* turn.sleep(new Date());
  // @ts-expect-error A time cannot be a string.
  yield* turn.sleep("tomorrow");
  expectTypeOf(yield* turn.waitFor("a")).toEqualTypeOf<JsonValue>();
  expectTypeOf(yield* turn.waitFor("a", { timeout: 1 })).toEqualTypeOf<JsonValue | undefined>();
  const schema = z.object({ by: z.string() });
  expectTypeOf(yield* turn.waitFor("a", { schema })).toEqualTypeOf<{ by: string }>();
  expectTypeOf(yield* turn.waitFor("a", { schema, timeout: 1 })).toEqualTypeOf<{ by: string } | undefined>();
  const [word, , late] = yield* turn.all([turn.waitFor("word"), turn.sleep(1), turn.waitFor("b", { timeout: 1 })]);
  expectTypeOf(word).toEqualTypeOf<JsonValue>();
  expectTypeOf(late).toEqualTypeOf<JsonValue | undefined>();
}

test("steps and waits have the types of their results, and reject what is not JSON", () => {
  expect(defineAgent({ name: "a", description: "a", version: "1", skills: [], onMessage: uses }).name).toBe("a");
});
