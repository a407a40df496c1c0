import { describe, expect, it } from "vitest";
import { memoryStore } from "../../src/store/index.ts";
import { gate, harness } from "./support.ts";

/** Tests deletion of all data of an owner (docs/retention.md). */

const ada = { subject: "ada" } as const;
const hers = JSON.stringify([null, "ada"]);

describe("after deleteOwner()", () => {
  it.each(["task", "reply"])(
    "a turn that has not yielded yet restores no deleted data: its first event is a %s",
    async (first) => {
      const store = memoryStore();
      const [began, held] = [gate(), gate()];
      const { ask, send, engine } = harness(
        async function* (turn) {
          if (turn.text === "before") return yield turn.completed("done");
          turn.context.setState({ of: turn.principal.subject });
          began.open();
          await held.opened;
          if (first === "reply") return turn.reply("late");
          yield turn.working("late");
          return yield turn.completed("late");
        },
        { store, conversations: "store" },
      );
      await send("before", ada);
      const bobs = ask("Go", { subject: "bob" }).catch((error: unknown) => error);
      const asked = ask("Go", ada).catch((error: unknown) => error);
      await began.opened;
      expect(await engine.deleteOwner(ada)).toEqual({ tasks: 1, canceled: 0 });
      held.open();
      expect(await asked).toMatchObject({ code: "Unavailable" });
      expect(Object.keys((await bobs) as object)).toEqual([first === "reply" ? "message" : "task"]);
      expect((await store.upkeep?.owners({ limit: 9 }))?.map(({ owner }) => owner)).toEqual([
        JSON.stringify([null, "bob"]),
      ]);
    },
  );

  it("data of agents that this server no longer has is exported, and deleted", async () => {
    const store = memoryStore();
    const { engine, send } = harness(
      async function* (turn) {
        yield turn.working();
      },
      { store },
    );
    await send("Go", ada);
    const time = 1;
    const json = JSON.stringify({ messageId: "m", role: "ROLE_USER", parts: [{ text: "old" }] });
    await store.append([
      {
        context: { agent: "removed", owner: hers, contextId: "c" },
        effects: [
          { effect: "contextState", value: "1" },
          { effect: "contextMessage", json, time },
        ],
      },
    ]);
    const waiting = { id: "w", contextId: "c", status: { state: "TASK_STATE_INPUT_REQUIRED" as const } };
    await store.append([
      {
        task: { agent: "removed", owner: hers, taskId: "w" },
        create: { contextId: "c" },
        records: [
          {
            kind: "task",
            state: waiting.status.state,
            json: JSON.stringify(waiting),
            time,
            actor: "user",
            turn: 1,
            attempt: 1,
          },
        ],
      },
    ]);
    let pieces = "";
    for await (const piece of engine.exportOwner(ada)) pieces += piece;
    const lines = pieces
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { readonly type: string });
    expect(lines[0]).toMatchObject({ agents: ["agent", "removed"] });
    expect(lines.at(-1)).toEqual({ type: "end", tasks: 2, contexts: 2, messages: 1 });
    expect(await engine.deleteOwner(ada)).toEqual({ tasks: 2, canceled: 1 });
    expect(await store.upkeep?.owners({ limit: 9 })).toEqual([]);
  });
});
