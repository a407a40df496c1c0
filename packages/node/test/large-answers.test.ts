import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineAgent, memoryStore, type Task } from "@parley/server";
import type { ListTasksResponse } from "@parley/a2a/model";
import { serve, type Server } from "../src/index.ts";

const megabyte = "ö".repeat(1 << 20);
const agent = defineAgent({
  name: "Large",
  description: "Makes artifacts of three megabytes",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    for (const name of ["a", "b", "c"]) yield turn.artifact({ name, parts: [{ text: `${name}${megabyte}` }] });
  },
});

let server: Server;
beforeAll(async () => {
  server = await serve(agent, { port: 0, signals: false, logger: false, store: memoryStore() });
});
afterAll(() => server.close({ grace: 0 }));

interface Answer {
  readonly length: string | null;
  readonly body: unknown;
}

async function ask(version: string, path: string, call?: object): Promise<Answer> {
  const answer = await fetch(`${server.url}${path}`, {
    headers: { "a2a-version": version, "content-type": "application/json" },
    ...(call && { method: "POST", body: JSON.stringify({ jsonrpc: "2.0", id: "ö", ...call }) }),
  });
  expect(answer.status).toBe(200);
  return { length: answer.headers.get("content-length"), body: await answer.json() };
}

/** Tests that large responses are written in pieces, which the server does not join into one text. */
describe("an answer with a large task", () => {
  it("is sent in pieces over each binding, with the same content on all of them", async () => {
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "Go" }] };
    const sent = await ask("1.0", "/", { method: "SendMessage", params: { message } });
    const { task } = (sent.body as { result: { task: Task } }).result;
    expect(task.artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(["a", "b", "c"].map((name) => name + megabyte));

    const got = await ask("1.0", "/", { method: "GetTask", params: { id: task.id } });
    expect(got.body).toEqual({ jsonrpc: "2.0", id: "ö", result: task });
    const rest = await ask("1.0", `/tasks/${task.id}`);
    expect(rest.body).toEqual(task);
    const listed = await ask("1.0", "/tasks?includeArtifacts=true");
    expect((listed.body as ListTasksResponse).tasks).toEqual([{ ...task }]);
    expect((listed.body as ListTasksResponse).totalSize).toBe(1);
    // The responses have no content length, because the server did not count the bytes in advance.
    expect([sent, got, rest, listed].map(({ length }) => length)).toEqual([null, null, null, null]);

    // If a protocol version requires a conversion of the text, the server sends the text as a whole.
    const draft = await ask("1.1", "/", { method: "GetTask", params: { id: task.id } });
    const own = { generation: expect.any(String) as string, timeline: expect.any(Array) as unknown[] };
    expect((draft.body as { result: object }).result).toEqual({ ...task, ...own });
    const old = await ask("0.3", "/", { method: "tasks/get", params: { id: task.id } });
    expect(
      (old.body as { result: { artifacts: { parts: { text: string }[] }[] } }).result.artifacts[2]?.parts[0]?.text,
    ).toBe(`c${megabyte}`);
  });

  it("is complete if the task is small", async () => {
    const { length } = await ask("1.0", "/tasks?pageSize=1");
    expect(Number(length)).toBeGreaterThan(100);
  });
});
