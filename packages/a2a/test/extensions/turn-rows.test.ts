import { describe, expect, test } from "vitest";
import { turnRows } from "@parley/server/internal/engine/run/task-rows";
import { memoryStore } from "@parley/server/internal/store/index";
import type { ExtensionTurn } from "../../src/protocol/index.ts";
import { fakeClock } from "@parley/testing";
import { harness } from "../../../server/test/engine/support.ts";

const uri = "https://example.com/extensions/toy/v1";

function host() {
  const clock = fakeClock();
  const store = memoryStore();
  const phase = () => ({ fence: 1, makeTask() {}, flush: () => Promise.resolve(), keep: () => Promise.resolve() });
  return {
    clock,
    rowsOf: (taskId: string, owner: string, turn = 1, feature = uri) =>
      turnRows(feature, { store, clock, task: { agent: "agent", owner, taskId }, turn, phase }),
  };
}

describe("names that an extension claims for a turn", () => {
  test("belong to one turn among the tasks of all owners; a run that resumes the turn still has them", async () => {
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

  test("are claimed once, even if many turns claim one at the same time", async () => {
    const { clock, rowsOf } = host();
    const wanted = Array.from({ length: 20 }, (_, at) =>
      rowsOf(`task ${at}`, "ada").claim("nonce", clock.now() + 1000),
    );
    expect((await Promise.all(wanted)).filter(Boolean)).toEqual([true]);
  });

  test("can be claimed again after they expire, and not before", async () => {
    const { clock, rowsOf } = host();
    expect(await rowsOf("one", "ada").claim("nonce", clock.now() + 1000)).toBe(true);
    clock.advance(999);
    expect(await rowsOf("two", "ada").claim("nonce", clock.now() + 1000)).toBe(false);
    clock.advance(1);
    expect(await rowsOf("two", "ada").claim("nonce", clock.now() + 1000)).toBe(true);
  });

  test("are claimed for a stored task, because nothing else could use them after a crash", async () => {
    const store = memoryStore();
    const owner = '[null,"anonymous"]';
    const tasks: boolean[] = [];
    const append = store.append.bind(store);
    store.append = async (items) => {
      if (items.some((item) => item.effects?.some(({ effect }) => effect === "once") && !("task" in item))) {
        const [id = ""] = taskIds;
        tasks.push((await store.head({ agent: "agent", owner }, id)) !== undefined);
      }
      return append(items);
    };
    const taskIds: string[] = [];
    const claims: boolean[] = [];
    const claiming = {
      uri,
      onTurnStart(turn: ExtensionTurn) {
        taskIds.push(turn.taskId);
        turn.waitFor(turn.rows.claim("nonce", turn.clock.now() + 60_000).then((own) => claims.push(own)));
      },
    };
    const made = harness((turn) => turn.reply("done"), { store, extensions: [claiming], dedupe: false });
    const active = { extensions: [uri] };
    const task = await made.send("first", active);
    expect([task.id, task.status.state, claims, tasks]).toEqual([taskIds[0], "TASK_STATE_COMPLETED", [true], [true]]);
    // If a turn cannot claim the name, it may still reply directly.
    expect((await made.ask("second", active)).message?.parts[0]?.text).toBe("done");
    expect([claims, tasks.length]).toEqual([[true, false], 1]);
  });
});
