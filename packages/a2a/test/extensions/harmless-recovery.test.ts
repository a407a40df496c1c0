import { expect, onTestFinished, test } from "vitest";
import { defineAgent } from "@parley/server/internal/agent/index";
import type { Extension } from "../../src/protocol/index.ts";
import { memoryStore, type Store } from "@parley/server/internal/store/index";
import { callContext, fakeClock, inProcess } from "@parley/testing";
import { bound, eventually, messageOf } from "../../../server/test/engine/support.ts";

/* Tests that a data extension does not fail a task (A2A, topic "Extensions"), even if the task's run is lost in a crash and resumed. */

const uri = "urn:example:notes";
const pieces = 6;

/** Adds a long note to each artifact. */
const notes: Extension = {
  uri,
  kind: "data",
  onAppend: (event) => (event.kind === "artifact" ? { ...event, metadata: { note: "n".repeat(3_000) } } : event),
};

test("a resumed run recognizes repeated events whose additions did not fit into the task", async () => {
  const clock = fakeClock();
  const shared = memoryStore();
  let alive = true;
  const cut: Store = { ...bound(shared), append: (items) => (alive ? shared.append(items) : new Promise(() => {})) };
  const agent = defineAgent({
    name: "test",
    description: "a test",
    version: "1",
    skills: [],
    resumable: true,
    async *onMessage(turn) {
      for (let at = 0; at < pieces; at += 1) {
        yield turn.artifact({ artifactId: `a${at}`, parts: [{ text: "x".repeat(500) }] });
        await turn.flush();
        if (at < pieces - 2 || turn.attempt > 1) continue;
        // Simulates that the process dies.
        alive = false;
        return;
      }
    },
  });
  const node = (store: Store) => {
    const options = { store, clock, lease: { ttl: 3_000 }, limits: { taskBytes: 18_000 }, extensions: [notes] };
    const made = inProcess(agent, options);
    onTestFinished(() => void made.engine.close());
    return made.service;
  };
  const context = callContext({ extensions: [uri] });
  const configuration = { returnImmediately: true };
  const { payload } = await node(cut).call("SendMessage", { message: messageOf("Go"), configuration }, context);
  const id = payload.value.task?.id ?? "";
  await eventually(() => !alive);

  const second = node(shared);
  clock.advance(10_000);
  const get = async () => (await second.call("GetTask", { id }, context)).payload.value;
  await eventually(async () => (await get()).status.state !== "TASK_STATE_WORKING");
  const task = await get();
  expect([task.status.state, task.artifacts?.length]).toEqual(["TASK_STATE_COMPLETED", pieces]);
  const page = await shared.read({ agent: "agent" }, id, { after: 0, limit: 100, kinds: ["artifactUpdate"] });
  expect(page?.records).toHaveLength(pieces);
  // The task had space for some notes, but not for all of them.
  const noted = page?.records.map(({ json }) => json.includes("nnn"));
  expect(new Set(noted)).toEqual(new Set([true, false]));
});
