import { afterEach, beforeEach, expect, test } from "vitest";
import type { AnyExtension, Extension, ExtensionTurn } from "../../src/protocol/index.ts";
import { agentOf, serving } from "../../../server/test/delegate/support.ts";
import { eventually, harness, type Harness, type OnMessage } from "../../../server/test/engine/support.ts";

/*
 * If a hook is an async function by mistake, it returns a promise where none is allowed. The server logs the rejection of that promise. An unhandled
 * rejection would end the process, and with it all other tasks.
 */

const uri = "urn:example:promises";
const unhandled: unknown[] = [];
const collect = (reason: unknown): void => void unhandled.push(reason);

beforeEach(() => {
  unhandled.length = 0;
  process.on("unhandledRejection", collect);
});
afterEach(() => {
  process.off("unhandledRejection", collect);
});

/** Waits for one turn of the event loop, after which Node reports unhandled rejections. */
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const agent: OnMessage = async function* (turn) {
  yield turn.artifact({ parts: [{ text: "done" }] });
};

async function sent(...extensions: readonly AnyExtension[]): Promise<readonly [Harness, string, unknown]> {
  const made = harness(agent, { extensions });
  const { status, metadata } = await made.send("go", { extensions: extensions.map((each) => each.uri) });
  await nextTurn();
  return [made, status.state, metadata];
}

const warnings = (made: Harness): unknown[] =>
  made.log.filter(({ level }) => level === "warn").map(({ extension, hook }) => [extension, hook]);

test.each<[string, () => Promise<unknown>]>([
  ["rejects", () => Promise.reject(new Error("no"))],
  ["gives metadata", () => Promise.resolve({ "urn:added": true })],
])("onFinish that %s later adds nothing, and is logged", async (_, onFinish) => {
  const [made, state, metadata] = await sent({ uri, onFinish: onFinish as never });
  expect([state, metadata]).toEqual(["TASK_STATE_COMPLETED", undefined]);
  expect(warnings(made)).toEqual([[uri, "onFinish"]]);
  expect(unhandled).toEqual([]);
});

test("onTurnStart may return a promise, which the agent gets; its rejection is logged", async () => {
  const onTurnStart: Extension["onTurnStart"] = () => Promise.reject(new Error("no"));
  const [made, state] = await sent({ uri, onTurnStart });
  expect(state).toBe("TASK_STATE_COMPLETED");
  expect(warnings(made)).toEqual([[uri, "onTurnStart"]]);
  expect(unhandled).toEqual([]);
});

test("a promise that the agent would await, but another extension failed the task", async () => {
  const waiting: AnyExtension = {
    uri,
    onTurnStart: (turn: ExtensionTurn) => turn.waitFor(Promise.reject(new Error("no"))),
  };
  const failing: AnyExtension = {
    uri: "urn:example:failing",
    onTurnStart() {
      throw new Error("no");
    },
  };
  const [, state] = await sent(waiting, failing);
  expect(state).toBe("TASK_STATE_FAILED");
  expect(unhandled).toEqual([]);
});

test("a promise that nothing awaits after the turn has begun", async () => {
  let ended = false;
  const [, state] = await sent({
    uri,
    onTurnEnd(turn: ExtensionTurn) {
      turn.waitFor(Promise.reject(new Error("no")));
      ended = true;
    },
  });
  await eventually(() => ended);
  await nextTurn();
  expect([state, unhandled]).toEqual(["TASK_STATE_COMPLETED", []]);
});

test.each<[string, NonNullable<Extension["onDelegate"]>]>([
  ["onDelegate that rejects", () => Promise.reject(new Error("no")) as never],
  ["a watch that rejects", () => ({ onEnd: () => Promise.reject(new Error("no")) as never })],
])("%s: the delegation continues, and it is logged", async (_, onDelegate) => {
  const other = serving(agentOf(async (turn) => turn.reply("done")));
  const client = await other.client();
  const first = serving(
    agentOf(async function* (turn) {
      yield turn.completed((yield* turn.delegate(client, "go")).text);
    }),
    { extensions: [{ uri, onDelegate }] },
  );
  const { task } = await (await first.client({ extensions: [uri] })).sendMessage("go");
  await nextTurn();
  expect(task?.status.message?.parts[0]?.text).toBe("done");
  expect(first.log.filter((line) => line.startsWith("warn"))).toEqual([
    expect.stringMatching(/^warn Extension hook .*"hook":"onDelegate"/),
  ]);
  expect(unhandled).toEqual([]);
});
