import { describe, expect, test } from "vitest";
import type { Phase } from "../../src/engine/run/phase.ts";
import { turnRows } from "../../src/engine/run/turn-rows.ts";
import { memoryStore } from "../../src/index.ts";
import { fakeClock } from "../../src/testing/index.ts";

const uri = "https://example.com/extensions/toy/v1";

function host() {
  const clock = fakeClock();
  const store = memoryStore();
  const phase = (): Phase => {
    throw new Error("not needed");
  };
  return {
    clock,
    rowsOf: (taskId: string, owner: string, turn = 1, feature = uri) =>
      turnRows(feature, { store, clock, task: { agent: "agent", owner, taskId }, turn, phase }),
  };
}

describe("names that an extension claims for a turn", () => {
  test("belong to one turn, whoever owns its task, and a run that resumes the turn has them still", async () => {
    const { clock, rowsOf } = host();
    const until = clock.now() + 1000;
    expect(await rowsOf("one", "ada").claim("nonce", until)).toBe(true);
    expect(await rowsOf("one", "ada").claim("nonce", until)).toBe(true);
    expect(await rowsOf("one", "ada", 2).claim("nonce", until)).toBe(false);
    expect(await rowsOf("two", "ada").claim("nonce", until)).toBe(false);
    expect(await rowsOf("three", "bob").claim("nonce", until)).toBe(false);
    expect(await rowsOf("two", "ada").claim("another", until)).toBe(true);
    expect(await rowsOf("two", "ada", 1, "https://example.com/other").claim("nonce", until)).toBe(true);
  });

  test("are shared by the versions of an extension that say so", async () => {
    const { clock, rowsOf } = host();
    const until = clock.now() + 1000;
    expect(await rowsOf("one", "ada").claim("nonce", until)).toBe(true);
    const later = rowsOf("two", "ada", 1, "https://example.com/extensions/toy/v2");
    expect(await later.claim("nonce", until, uri)).toBe(false);
    expect(await later.claim("nonce", until)).toBe(true);
  });

  test("are claimed once, also where many turns want one at the same time", async () => {
    const { clock, rowsOf } = host();
    const wanted = Array.from({ length: 20 }, (_, at) =>
      rowsOf(`task ${at}`, "ada").claim("nonce", clock.now() + 1000),
    );
    expect((await Promise.all(wanted)).filter(Boolean)).toEqual([true]);
  });

  test("may be taken again after their time, and not before", async () => {
    const { clock, rowsOf } = host();
    expect(await rowsOf("one", "ada").claim("nonce", clock.now() + 1000)).toBe(true);
    clock.advance(999);
    expect(await rowsOf("two", "ada").claim("nonce", clock.now() + 1000)).toBe(false);
    clock.advance(1);
    expect(await rowsOf("two", "ada").claim("nonce", clock.now() + 1000)).toBe(true);
  });
});
