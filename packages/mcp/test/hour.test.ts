import { expect, test } from "vitest";
import { mcpServer, type McpBridge } from "../src/index.ts";
import { bridged, clientOfVersion1, handleIn, officialClient, textsOf } from "./agent.ts";

type Call = (name: string, args: Record<string, string>, signal: AbortSignal) => Promise<Parameters<typeof textsOf>[0]>;

const clients: Readonly<Record<string, (bridge: McpBridge) => Promise<Call>>> = {
  "version 1, 2025-11-25": async (bridge) => {
    const client = await clientOfVersion1(bridge);
    return async (name, args, signal) =>
      (await client.callTool({ name, arguments: args }, undefined, { signal })) as Parameters<typeof textsOf>[0];
  },
  "version 2, 2025-11-25": async (bridge) => {
    const client = await officialClient(bridge, "2025-11-25");
    return (name, args, signal) => client.callTool({ name, arguments: args }, { signal });
  },
  "version 2, 2026-07-28": async (bridge) => {
    const client = await officialClient(bridge, "2026-07-28");
    return (name, args, signal) => client.callTool({ name, arguments: args }, { signal });
  },
};

test.each(Object.keys(clients))(
  "completes a one-hour task through a client with a timeout of 60 s (%s)",
  async (name) => {
    const { agent } = await bridged();
    const { clock } = agent;
    let waiting = 0;
    const after = (ms: number, run: () => void): (() => void) => {
      if (ms === 50_000) waiting += 1;
      return clock.after(ms, run);
    };
    const bridge = await mcpServer(agent.client, {
      clock: { now: () => clock.now(), elapsed: () => clock.elapsed(), after },
    });
    const call = await clients[name]?.(bridge);
    let text = "";
    let taskId = "";
    let calls = 0;
    for (; !text.includes("Task completed."); calls += 1) {
      const limit = new AbortController();
      const stop = clock.after(60_000, () => limit.abort());
      const result =
        calls === 0 ? call?.("do_it", { message: "hour" }, limit.signal) : call?.("get_task", { taskId }, limit.signal);
      await expect.poll(() => waiting, { interval: 2 }).toBe(calls + 1);
      await clock.advance(50_000);
      const answer = await result;
      stop();
      text = textsOf(answer ?? { content: [] });
      taskId = handleIn(answer ?? { content: [] });
    }
    expect(text).toContain("42");
    // The agent may start its hour during the first call.
    expect(calls).toBeGreaterThanOrEqual(72);
    expect(calls).toBeLessThan(80);
    await bridge.close();
  },
);
