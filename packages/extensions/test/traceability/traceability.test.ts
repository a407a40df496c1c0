import { describe, expect, test } from "vitest";
import {
  traceability,
  traceabilityExtension,
  traceabilityUri,
  traceStep,
  type ResponseTrace,
} from "../../src/traceability/index.ts";
import { defineAgent } from "@parley/server/internal/agent/index";
import type { Agent } from "@parley/a2a/internal/protocol/index";
import type { StreamResponse, Task } from "@parley/a2a/internal/model/index";
import { agentOf, asking, names, rates, serving } from "./support.ts";

/* The specification: a2aproject/a2a-samples, extensions/traceability/v1/spec.md. */

const key = "github.com/a2aproject/a2a-samples/extensions/traceability/v1/traceability";

/** An agent with these options of the extension. */
function tracing(own: typeof traceability): Agent {
  return defineAgent({
    name: "Rates",
    description: "Knows rates",
    version: "1.0.0",
    skills: [],
    extensions: [own],
    async *onMessage(turn) {
      await traceStep(turn.ext(own), { name: "get_rate" }, () => undefined);
      yield turn.completed("0.859");
    },
  });
}

describe("the trace of a response", () => {
  test("arrives with the end of the task, in the metadata of its message and of the status update", async () => {
    const under = await serving(rates);
    const client = await asking(under);
    const events: StreamResponse[] = [];
    let trace: ResponseTrace | undefined;
    for await (const event of client.sendStreamingMessage("USD")) {
      events.push(event);
      trace ??= event.ext(traceability)?.trace;
    }
    expect(trace?.steps).toMatchObject([{ callType: "TOOL", name: "get_rate", parameters: { base: "USD" } }]);
    const { status, metadata } = events.at(-1)?.statusUpdate ?? {};
    expect(status?.message?.metadata?.[key]).toEqual(metadata?.[key]);
    expect(metadata?.[key]).toMatchObject({ trace_id: trace?.traceId });
    // And nowhere else.
    expect(JSON.stringify(events.slice(0, -1))).not.toContain(key);
    // Later readers of the task find it there.
    const [task] = (await client.listTasks()).tasks;
    expect(task?.ext(traceability)?.trace).toEqual(trace);
    expect(task?.metadata?.[key]).toEqual(metadata?.[key]);
    expect(under.problems).toEqual([]);
  });

  test("arrives with a direct reply", async () => {
    const agent = agentOf(async (turn) => {
      const rate = await traceStep(turn.ext(traceability), { name: "get_rate" }, () => "0.859");
      return turn.reply(rate);
    });
    const answer = await (await asking(await serving(agent))).sendMessage("USD");
    expect(names(answer.ext(traceability)?.trace)).toEqual(["get_rate"]);
  });

  test("arrives if the agent returns without a final event, or throws", async () => {
    const agent = agentOf(async function* (turn) {
      yield turn.working();
      await traceStep(turn.ext(traceability), { name: turn.text }, () => {
        if (turn.text === "fails") throw new RangeError("secret-of-ada-0123456789");
      });
    });
    const client = await asking(await serving(agent));
    const done = await client.sendMessage("ends");
    expect([done.task?.status.state, names(done.ext(traceability)?.trace)]).toEqual(["TASK_STATE_COMPLETED", ["ends"]]);
    const failed = await client.sendMessage("fails");
    expect(failed.task?.status.state).toBe("TASK_STATE_FAILED");
    expect(failed.ext(traceability)?.trace?.steps).toMatchObject([{ name: "fails", error: "RangeError" }]);
  });

  test("belongs to one turn: a question and its answer have separate traces", async () => {
    const agent = agentOf(async function* (turn) {
      await traceStep(turn.ext(traceability), { name: `turn ${turn.number}` }, () => undefined);
      yield turn.number === 1 ? turn.inputRequired("And?") : turn.completed("Done");
    });
    const conversation = (await asking(await serving(agent))).conversation();
    const first = (await conversation.send("USD")).ext(traceability)?.trace;
    const second = (await conversation.send("EUR")).ext(traceability)?.trace;
    expect([names(first), names(second)]).toEqual([["turn 1"], ["turn 2"]]);
    expect(first?.traceId).not.toBe(second?.traceId);
  });

  test("is not recorded without activation, and the agent works the same (A2A 1.0 §4.6)", async () => {
    const { client } = await serving(rates);
    const { task } = await client.sendMessage("USD");
    expect(task?.status.message?.parts[0]?.text).toBe("0.859");
    expect(JSON.stringify(task)).not.toContain("trace");
  });

  test("has the shape and the place that the options choose", async () => {
    const own = traceabilityExtension({ shape: "specification", places: ["message"] });
    const answer = await (await asking(await serving(tracing(own)))).sendMessage("USD");
    const { metadata } = answer.task?.status.message ?? {};
    expect(metadata?.[key]).toMatchObject({ steps: [{ step_action: { tool_invocation: { tool_name: "get_rate" } } }] });
    expect(answer.task?.metadata).toBeUndefined();
    expect(names(answer.ext(traceability)?.trace)).toEqual(["get_rate"]);
  });

  test("is only for callers that `allow` accepts", async () => {
    const own = traceabilityExtension({ allow: ({ principal }) => principal.subject === "ada" });
    const under = await serving(tracing(own));
    const bob = await (await under.connect({ extensions: [traceabilityUri] })).sendMessage("USD");
    expect(JSON.stringify(bob)).not.toContain("get_rate");
    const ada = await (await under.as("ada")).sendMessage("USD", { extensions: [traceabilityUri] });
    expect(JSON.stringify(ada)).toContain("get_rate");
  });
});

describe("a resumed run", () => {
  test("has the steps of the lost attempt, too; repeated steps appear twice", async () => {
    let hold: (() => void) | undefined;
    const agent = agentOf(
      async function* (turn) {
        const trace = turn.ext(traceability);
        if (turn.checkpoint === undefined) {
          await traceStep(trace, { name: "first" }, () => undefined);
          yield [turn.working("first", { keep: true }), turn.saveCheckpoint(1)];
        }
        await traceStep(trace, { name: "second" }, () => undefined);
        trace?.begin({ name: "open" });
        yield turn.working("second", { keep: true });
        if (turn.attempt === 1) await new Promise<void>((resolve) => (hold = resolve));
        yield turn.completed("done");
      },
      { resumable: true },
    );
    const under = await serving(agent);
    const client = await asking(under);
    let id = "";
    for await (const event of client.sendStreamingMessage("USD")) {
      id = event.statusUpdate?.taskId ?? id;
      if (event.statusUpdate?.status.message?.parts[0]?.text === "second") break;
    }
    await under.crash();
    await under.restart();
    hold?.();
    const task = await client.waitFor(id);
    const { steps = [] } = task.ext(traceability)?.trace ?? {};
    expect(steps.map(({ name, attributes, error }) => [name, attributes?.["attempt"], error])).toEqual([
      ["first", undefined, undefined],
      ["second", undefined, undefined],
      ["open", undefined, "The run was interrupted"],
      ["second", "2", undefined],
      ["open", "2", undefined],
    ]);
    // Repeated events are in the task once.
    const said = task.history?.flatMap(({ role, parts }) => (role === "ROLE_AGENT" ? [parts[0]?.text] : []));
    expect(said).toEqual(["first", "second", "done"]);
  });
});

test("an invalid trace is absent for the client, and the task is unchanged", async () => {
  const agent = defineAgent({
    name: "Liar",
    description: "Says anything",
    version: "1.0.0",
    skills: [],
    capabilities: { extensions: [{ uri: traceabilityUri }] },
    async *onMessage(turn) {
      yield turn.artifact({ parts: [{ text: '{"trace_id": 5' }], metadata: { [key]: { steps: "many" } } });
      yield turn.working("x", { metadata: { [key]: null } });
    },
  });
  const under = await serving(agent);
  const { task } = (await (await asking(under)).sendMessage("x")) as { task: Task };
  const read = (await asking(under)).ext(traceability).read(task);
  expect([task.status.state, read?.trace]).toEqual(["TASK_STATE_COMPLETED", undefined]);
});
