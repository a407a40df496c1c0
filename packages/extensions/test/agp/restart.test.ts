import { describe, expect, onTestFinished, test } from "vitest";
import { agentGateway, agp, gatewayAgent, intentPart } from "../../src/agp/index.ts";
import { defineAgent } from "@parley/server/internal/agent/index";
import type { DelegateClient } from "@parley/a2a/internal/protocol/index";
import { testAgent } from "@parley/testing";

const squad = defineAgent({
  name: "Engineering",
  description: "Provisions machines",
  version: "1.0.0",
  skills: [],
  defaultInputModes: ["*/*"],
  async *onMessage(turn) {
    if (turn.number === 1) return yield turn.inputRequired("How large?");
    yield turn.artifact({ name: "machine", parts: [{ text: `a ${turn.text} machine` }] });
  },
});

describe("a gateway agent whose process dies during a question", () => {
  test("continues with its chosen route, although its new table is empty", async () => {
    const engineering = await testAgent(squad);
    onTestFinished(() => engineering.close());
    const agentAt = (path: string): DelegateClient | undefined =>
      path === "Engineering/vm" ? engineering.client : undefined;
    const routes = [{ capability: "vm", version: "1.0", policy: {}, path: "Engineering/vm" }];
    const gateway = await testAgent(gatewayAgent({ gateway: agentGateway({ name: "G", routes }), agentAt }));
    onTestFinished(() => gateway.close());
    const conversation = (await gateway.connect({ extensions: [agp()] })).conversation();
    const asked = await conversation.send({ parts: [intentPart({ target_capability: "vm", payload: {} })] });
    expect(asked.task?.status.message?.parts[0]?.text).toBe("How large?");
    await gateway.crash();
    await gateway.restart(gatewayAgent({ gateway: agentGateway({ name: "G" }), agentAt }));
    const done = await conversation.send("small");
    expect(done.task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(done.task?.artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(["a small machine"]);
    expect((await engineering.client.listTasks({})).tasks).toHaveLength(1);
  });
});
