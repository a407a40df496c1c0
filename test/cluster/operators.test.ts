import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { connect } from "@parley/a2a";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../postgres/database.ts";

import { ready, useServers } from "./servers.ts";

/** An operator sends a request to one node, and all nodes follow the order. Real processes run on PostgreSQL (docs/decisions/operators.md). */

const start = useServers();
const database = useDatabase();
let folder = "";
beforeEach(async () => (folder = await mkdtemp(join(tmpdir(), "parley-operators-"))));
afterEach(() => rm(folder, { recursive: true }));

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>> & {
    readonly why?: { readonly kind: string; readonly node?: string };
    readonly nodes?: readonly {
      readonly name: string;
      readonly self: boolean;
      readonly draining: boolean;
      readonly gone?: true;
      readonly agents?: readonly string[];
    }[];
    readonly task?: { readonly state: string };
  };
}

/** Starts a node with the operators' API. */
async function startNode() {
  const program = start({ database: database().url, operators: true });
  const { url } = await ready(program);
  const client = await connect(url);
  const ops = async (path: string, body?: object): Promise<Answer> => {
    const posted = body && {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    };
    const response = await fetch(`${url}/ops/v1${path}`, posted);
    return { status: response.status, body: (await response.json()) as Answer["body"] };
  };
  const why = async (taskId: string) =>
    (await ops(`/why?${new URLSearchParams({ agent: "/", taskId }).toString()}`)).body.why;
  /** Begins a task that works until the file `until` exists. */
  const begin = async (): Promise<{ readonly id: string; readonly until: string }> => {
    const until = join(folder, crypto.randomUUID());
    const text = JSON.stringify({ pause: 20, until });
    const { task } = await client.sendMessage({ message: text, configuration: { returnImmediately: true } });
    return { id: task?.id ?? "", until };
  };
  const stateOf = async (id: string) => (await client.getTask(id)).status.state;
  const { nodes = [] } = (await ops("/nodes")).body;
  const name = nodes.find(({ self }) => self)?.name ?? "";
  const end = async (): Promise<void> => {
    program.child.kill("SIGTERM");
    await program.ended;
  };
  return { ops, why, begin, stateOf, name, url, end };
}

describe("an operator at one node", () => {
  test("sees where a task of another node runs, and cancels it there", async () => {
    const [one, two] = await Promise.all([startNode(), startNode()]);
    const { id } = await one.begin();
    await vi.waitFor(async () => expect(await two.why(id)).toMatchObject({ kind: "running", node: one.name }));
    const held = await two.ops(`/tasks?node=${one.name}`);
    expect(held.body["tasks"]).toMatchObject([{ taskId: id }]);
    const canceled = await two.ops("/acts/cancel", { agent: "/", taskId: id, reason: "runs away" });
    expect(canceled).toMatchObject({ status: 200, body: { task: { state: "TASK_STATE_CANCELED" } } });
    expect(await one.stateOf(id)).toBe("TASK_STATE_CANCELED");
    // The run on the other node has also ended. Without the order, that run would stay busy forever.
    await vi.waitFor(async () => expect((await one.ops(`/tasks?node=${one.name}`)).body["tasks"]).toEqual([]));
  });

  test("pauses an agent on every node, and lets it go on", async () => {
    const [one, two] = await Promise.all([startNode(), startNode()]);
    expect((await one.ops("/acts/pause", { agent: "/", reason: "incident" })).status).toBe(200);
    await vi.waitFor(async () => {
      const { id } = await two.begin();
      expect(await two.stateOf(id)).toBe("TASK_STATE_SUBMITTED");
      expect(await one.why(id)).toMatchObject({ kind: "agentPaused" });
    });
    const [first, second] = await Promise.all([one.begin(), two.begin()]);
    for (const { id } of [first, second]) expect(await two.why(id)).toMatchObject({ kind: "agentPaused" });
    expect((await two.ops("/acts/unpause", { agent: "/" })).status).toBe(200);
    await Promise.all([first, second].map(({ until }) => writeFile(until, "")));
    for (const { id } of [first, second]) {
      await vi.waitFor(async () => expect(await one.stateOf(id)).toBe("TASK_STATE_COMPLETED"));
    }
  });

  test("drains another node: it begins nothing, and what is sent to it runs elsewhere", async () => {
    const [one, two] = await Promise.all([startNode(), startNode()]);
    const before = await one.begin();
    await vi.waitFor(async () => expect(await two.why(before.id)).toMatchObject({ kind: "running", node: one.name }));
    expect((await two.ops("/acts/drain", { node: one.name, reason: "new kernel" })).status).toBe(200);
    await vi.waitFor(async () => expect((await fetch(`${one.url}/readyz`)).status).toBe(503));
    const after = await one.begin();
    await vi.waitFor(async () => expect(await two.why(after.id)).toMatchObject({ kind: "running", node: two.name }));
    expect(await two.why(before.id)).toMatchObject({ kind: "running", node: one.name });
    await Promise.all([before, after].map(({ until }) => writeFile(until, "")));
    for (const { id } of [before, after]) {
      await vi.waitFor(async () => expect(await one.stateOf(id)).toBe("TASK_STATE_COMPLETED"));
    }
    expect((await two.ops("/acts/undrain", { node: one.name })).status).toBe(200);
    await vi.waitFor(async () => expect((await fetch(`${one.url}/readyz`)).status).toBe(200));
  });

  test("sees which agents each node runs, that none runs an agent, and that a node which drained is gone", async () => {
    const [one, two] = await Promise.all([startNode(), startNode()]);
    const nodes = async () => (await one.ops("/nodes")).body.nodes ?? [];
    const node = async (name: string) => (await nodes()).find((each) => each.name === name);
    for (const { name } of [one, two]) {
      await vi.waitFor(async () => expect(await node(name)).toMatchObject({ agents: ["/"], draining: false }));
    }
    const store = await postgresStore({ database: database().url });
    const json = JSON.stringify({ id: "t", contextId: "c", status: { state: "TASK_STATE_SUBMITTED" }, history: [] });
    const record = { kind: "task", json, state: "TASK_STATE_SUBMITTED", time: 1, actor: "user" } as const;
    const task = { agent: "/gone", owner: "o", taskId: "t" };
    await store.append([{ task, create: { contextId: "c" }, records: [{ ...record, turn: 1, attempt: 1 }] }]);
    await store.close();
    const { body } = await one.ops("/why?agent=%2Fgone&taskId=t");
    const text = "No node serves agent /gone: start a server that does";
    expect(body.why).toMatchObject({ kind: "agentNotServed", text });
    expect(await one.ops("/acts/drain", { node: "no such" })).toMatchObject({ status: 409 });
    expect((await one.ops("/acts/drain", { node: two.name })).status).toBe(200);
    await two.end();
    await vi.waitFor(async () => expect(await node(two.name)).toMatchObject({ gone: true, draining: true }));
    expect((await one.ops("/acts/undrain", { node: two.name })).status).toBe(200);
    expect(await node(two.name)).toMatchObject({ gone: true, draining: false });
  });
});
