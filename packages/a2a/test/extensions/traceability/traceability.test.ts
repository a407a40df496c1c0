import { describe, expect, onTestFinished, test } from "vitest";
import {
  traceability,
  traceabilityExtension,
  traceabilityUri,
  traceStep,
  type ResponseTrace,
} from "../../../src/extensions/traceability/index.ts";
import type { Client } from "../../../src/client/index.ts";
import { defineAgent, type Agent, type AgentDefinition } from "../../../src/index.ts";
import type { StreamResponse, Task } from "../../../src/model/index.ts";
import type { Turn } from "../../../src/protocol/index.ts";
import { testAgent, type TestAgent, type TestAgentOptions } from "../../../src/testing/index.ts";

/* The specification: a2aproject/a2a-samples, extensions/traceability/v1/spec.md. */

const key = "github.com/a2aproject/a2a-samples/extensions/traceability/v1/traceability";
const extensions = [traceability] as const;
type OwnTurn = Turn<{ extensions: typeof extensions }>;

function agentOf(onMessage: (turn: OwnTurn) => ReturnType<AgentDefinition["onMessage"]>, more: object = {}): Agent {
  const card = { name: "Rates", description: "Knows rates", version: "1.0.0", skills: [] };
  return defineAgent({ ...card, ...more, extensions, onMessage });
}

async function serving(agent: Agent, options: TestAgentOptions = {}): Promise<TestAgent> {
  const under = await testAgent(agent, options);
  onTestFinished(() => under.close());
  return under;
}

const asking = async (under: TestAgent): Promise<Client<typeof traceability>> =>
  (await under.connect({ extensions: [traceability] } as never)) as never;

const names = (trace: ResponseTrace | undefined): readonly (string | undefined)[] | undefined =>
  trace?.steps.map(({ name }) => name);

/** Uses a tool, then says what it has found. */
const rates = agentOf(async function* (turn) {
  yield turn.working("looking");
  const rate = await traceStep(
    turn.ext(traceability),
    { name: "get_rate", parameters: { base: turn.text } },
    () => "0.859",
  );
  yield turn.completed(rate);
});

describe("the trace of a response", () => {
  test("comes with the end of the task, in the metadata of its message and of the status update", async () => {
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
    // Whoever reads the task later finds it there.
    const [task] = (await client.listTasks()).tasks;
    expect(task?.ext(traceability)?.trace).toEqual(trace);
    expect(task?.metadata?.[key]).toEqual(metadata?.[key]);
    expect(under.problems).toEqual([]);
  });

  test("comes with a direct reply", async () => {
    const agent = agentOf(async (turn) => {
      const rate = await traceStep(turn.ext(traceability), { name: "get_rate" }, () => "0.859");
      return turn.reply(rate);
    });
    const answer = await (await asking(await serving(agent))).sendMessage("USD");
    expect(names(answer.ext(traceability)?.trace)).toEqual(["get_rate"]);
  });

  test("comes where the function of the agent ends without a last word, and where it throws", async () => {
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

  test("is of one turn: a question has its trace, and the answer another one", async () => {
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

  test("is not made for a caller who has not asked, and the agent works as with it (A2A 1.0 §4.6)", async () => {
    const { client } = await serving(rates);
    const { task } = await client.sendMessage("USD");
    expect(task?.status.message?.parts[0]?.text).toBe("0.859");
    expect(JSON.stringify(task)).not.toContain("trace");
  });

  test("is in the shape of the specification, and in one place, where the options say so", async () => {
    const own = traceabilityExtension({ shape: "specification", places: ["message"] });
    const agent = defineAgent({
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
    const answer = await (await asking(await serving(agent))).sendMessage("USD");
    const { metadata } = answer.task?.status.message ?? {};
    expect(metadata?.[key]).toMatchObject({ steps: [{ step_action: { tool_invocation: { tool_name: "get_rate" } } }] });
    expect(answer.task?.metadata).toBeUndefined();
    expect(names(answer.ext(traceability)?.trace)).toEqual(["get_rate"]);
  });

  test("is for those alone whom `allow` lets have it", async () => {
    const own = traceabilityExtension({ allow: ({ principal }) => principal.subject === "ada" });
    const agent = defineAgent({
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
    const under = await serving(agent);
    const bob = await (await under.connect({ extensions: [traceabilityUri] })).sendMessage("USD");
    expect(JSON.stringify(bob)).not.toContain("get_rate");
    const ada = await (await under.as("ada")).sendMessage("USD", { extensions: [traceabilityUri] });
    expect(JSON.stringify(ada)).toContain("get_rate");
  });
});

describe("a run that is resumed after a crash", () => {
  test("has the steps of the lost attempt in its trace, and those that were done again twice", async () => {
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
    // What it repeats is in the task once.
    const said = task.history?.flatMap(({ role, parts }) => (role === "ROLE_AGENT" ? [parts[0]?.text] : []));
    expect(said).toEqual(["first", "second", "done"]);
  });
});

describe("agents that call agents", () => {
  const planner = (client: Client, more: object = {}): Agent =>
    agentOf(
      async function* (turn) {
        const { text } = yield* turn.delegate(client, turn.text);
        yield turn.completed(text);
      },
      { name: "Planner", ...more },
    );

  test("a delegation is a step, the other agent is asked for its trace, and that is a part of the step", async () => {
    const other = await serving(rates);
    const client = await asking(await serving(planner(other.client), { clock: other.clock }));
    const answer = await client.sendMessage("USD");
    const [step] = answer.ext(traceability)?.trace?.steps ?? [];
    expect(step).toMatchObject({
      callType: "AGENT",
      name: "Rates",
      stepType: "agent_call",
      requests: { parts: [{ text: "USD" }] },
    });
    expect(step?.agentUrl).toMatch(/^http/);
    expect(step?.endTime).toBeDefined();
    expect(step?.responseTrace?.steps).toMatchObject([{ name: "get_rate", parameters: { base: "USD" } }]);
    // The other agent was asked by this call alone.
    expect(JSON.stringify((await other.client.listTasks()).tasks[0]?.metadata)).toContain("get_rate");
  });

  test("however many they are: the trace of the last one is in that of the one between", async () => {
    const last = await serving(rates);
    const between = await serving(planner(last.client, { name: "Between" }), { clock: last.clock });
    const first = await serving(planner(between.client), { clock: last.clock });
    const answer = await (await asking(first)).sendMessage("USD");
    const [step] = answer.ext(traceability)?.trace?.steps ?? [];
    const [inner] = step?.responseTrace?.steps ?? [];
    expect([step?.name, inner?.name, names(inner?.responseTrace)]).toEqual(["Between", "Rates", ["get_rate"]]);
  });

  test("an agent that does not declare the extension is not asked for it, and its step has no trace", async () => {
    const silent = defineAgent({
      name: "Silent",
      description: "Says nothing of itself",
      version: "1.0.0",
      skills: [],
      onMessage: (turn) => turn.reply(`extensions: ${turn.extensions.length}`),
    });
    const other = await serving(silent);
    const answer = await (
      await asking(await serving(planner(other.client), { clock: other.clock }))
    ).sendMessage("USD");
    expect(answer.task?.status.message?.parts[0]?.text).toBe("extensions: 0");
    const [step] = answer.ext(traceability)?.trace?.steps ?? [];
    expect([step?.name, step?.responseTrace]).toEqual(["Silent", undefined]);
  });

  test("nobody is asked where this agent was not", async () => {
    const other = await serving(rates);
    const under = await serving(planner(other.client), { clock: other.clock });
    await under.client.sendMessage("USD");
    expect(JSON.stringify((await other.client.listTasks()).tasks)).not.toContain("trace");
  });

  test("the failure of the other agent is in the step, with its trace", async () => {
    const failing = agentOf(async function* (turn) {
      yield turn.working();
      await traceStep(turn.ext(traceability), { name: "breaks" }, () => Promise.reject(new TypeError("x")));
    });
    const other = await serving(failing);
    const answer = await (
      await asking(await serving(planner(other.client), { clock: other.clock }))
    ).sendMessage("USD");
    expect(answer.task?.status.state).toBe("TASK_STATE_FAILED");
    const [step] = answer.ext(traceability)?.trace?.steps ?? [];
    expect(step?.error).toMatch(/^InternalError: Rates could not do its part/);
    expect(step?.responseTrace?.steps).toMatchObject([{ name: "breaks", error: "TypeError" }]);
  });

  test("a question of the other agent ends a step, and its answer is the next one of the same trace", async () => {
    const asks = agentOf(async function* (turn) {
      await traceStep(turn.ext(traceability), { name: `turn ${turn.number}` }, () => undefined);
      yield turn.number === 1 ? turn.inputRequired("Of what?") : turn.completed("0.859");
    });
    const other = await serving(asks);
    const under = await serving(planner(other.client), { clock: other.clock });
    const conversation = (await asking(under)).conversation();
    const question = (await conversation.send("rate")).ext(traceability)?.trace;
    const answer = (await conversation.send("USD")).ext(traceability)?.trace;
    expect(names(question?.steps[0]?.responseTrace)).toEqual(["turn 1"]);
    expect(answer?.traceId).toBe(question?.traceId);
    expect(answer?.steps.map(({ responseTrace }) => names(responseTrace))).toEqual([["turn 1"], ["turn 2"]]);
    const states = answer?.steps.map(({ attributes, error }) => [attributes?.["state"], error]);
    expect(states).toEqual([
      ["TASK_STATE_INPUT_REQUIRED", undefined],
      ["TASK_STATE_COMPLETED", undefined],
    ]);
  });
});

test("what is no trace is none for the client, and the task is what it is", async () => {
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
