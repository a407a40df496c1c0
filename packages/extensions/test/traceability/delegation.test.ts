import { describe, expect, test, vi } from "vitest";
import type { Client } from "@parley/a2a/internal/client/index";
import { traceability, traceStep } from "../../src/traceability/index.ts";
import { defineAgent } from "@parley/server/internal/agent/index";
import type { Agent } from "@parley/a2a/internal/protocol/index";
import { agentOf, asking, names, rates, serving } from "./support.ts";

describe("agents that call agents", () => {
  const planner = (client: Client, more: object = {}): Agent =>
    agentOf(
      async function* (turn) {
        const { text } = yield* turn.delegate(client, turn.text);
        yield turn.completed(text);
      },
      { name: "Planner", ...more },
    );

  test("a delegation is a step that includes the other agent's trace", async () => {
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
    // Only this call reached the other agent.
    expect(JSON.stringify((await other.client.listTasks()).tasks[0]?.metadata)).toContain("get_rate");
  });

  test("through several agents, traces are nested", async () => {
    const last = await serving(rates);
    const between = await serving(planner(last.client, { name: "Between" }), { clock: last.clock });
    const first = await serving(planner(between.client), { clock: last.clock });
    const answer = await (await asking(first)).sendMessage("USD");
    const [step] = answer.ext(traceability)?.trace?.steps ?? [];
    const [inner] = step?.responseTrace?.steps ?? [];
    expect([step?.name, inner?.name, names(inner?.responseTrace)]).toEqual(["Between", "Rates", ["get_rate"]]);
  });

  test("an agent without the extension does not get the request, and its step has no trace", async () => {
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

  test("other agents get the request only if this one did", async () => {
    const other = await serving(rates);
    const under = await serving(planner(other.client), { clock: other.clock });
    await under.client.sendMessage("USD");
    expect(JSON.stringify((await other.client.listTasks()).tasks)).not.toContain("trace");
  });

  test("the other agent's failure is in the step, with its trace", async () => {
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

  test("another agent's question ends a step, and its answer is the next one", async () => {
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

  test("a delegation that ended before a crash keeps its trace, and is not repeated", async () => {
    const other = await serving(rates);
    let hold: (() => void) | undefined;
    const waiting = agentOf(
      async function* (turn) {
        const { text } = yield* turn.delegate(other.client, turn.text);
        if (turn.attempt === 1) await new Promise<void>((resolve) => (hold = resolve));
        yield turn.completed(text);
      },
      { name: "Planner", resumable: true },
    );
    const under = await serving(waiting, { clock: other.clock });
    const client = await asking(under);
    const configuration = { returnImmediately: true };
    const { task } = await client.sendMessage({ message: "USD", configuration });
    await vi.waitFor(() => expect(hold).toBeDefined());
    await under.crash();
    await under.restart();
    hold?.();
    const { steps = [] } = (await client.waitFor(task?.id ?? "")).ext(traceability)?.trace ?? {};
    expect(steps).toMatchObject([{ name: "Rates", endTime: expect.any(String) as string }]);
    expect([steps[0]?.error, names(steps[0]?.responseTrace)]).toEqual([undefined, ["get_rate"]]);
  });
});
