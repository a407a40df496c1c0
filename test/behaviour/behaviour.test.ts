import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bearer, defineAgent, memoryStore, message, text, type Store, type StreamResponse } from "@parley/a2a";
import { connect, type Client } from "@parley/a2a/client";
import { serve, type Server } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** One suite of what an A2A server does (1.0 §3), through real HTTP, for every binding and every store. */

const agent = defineAgent({
  name: "Behaviour",
  description: "Does what its message says",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    const [what, count = "3"] = turn.text.split(" ");
    if (what === "hello") return turn.reply("Hello");
    if (what === "throw") throw new Error("the connection string is secret");
    if (what === "ask") return yield turn.inputRequired("Which one?");
    yield turn.working("begun");
    yield { kind: "artifact", artifact: { artifactId: "a", parts: [text("0")] } };
    for (let n = 1; n < Number(count); n += 1) yield turn.append("a", [text(String(n))]);
    if (what === "wait") await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    return undefined;
  },
});

const stores: Record<string, (folder: string) => Store | Promise<Store>> = {
  memory: () => memoryStore(),
  SQLite: (folder) => sqliteStore({ path: join(folder, "tasks.db") }),
};

const authenticator = bearer({ "ada-token": { subject: "ada" }, "bob-token": { subject: "bob" } });
const as = (name: string) => ({ headers: { Authorization: `Bearer ${name}-token` } });

describe.each(Object.keys(stores))("on %s", (store) => {
  let folder: string;
  let server: Server;
  let opened: Store;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "parley-behaviour-"));
    opened = await (stores[store] ?? memoryStore)(folder);
    server = await serve(agent, { port: 0, signals: false, store: opened, authenticator });
  });
  afterAll(async () => {
    await server.close({ grace: 0 });
    await opened.close();
    await rm(folder, { recursive: true });
  });

  describe.each(["JSONRPC", "HTTP+JSON"] as const)("over %s", (binding) => {
    let client: Client;
    beforeAll(async () => {
      client = await connect(server.url, { binding, ...as("ada") });
    });
    const events = async (stream: AsyncIterable<StreamResponse>): Promise<StreamResponse[]> => {
      const all: StreamResponse[] = [];
      for await (const event of stream) all.push(event);
      return all;
    };

    it("answers a message with a message, and one with a task (§3.1.1)", async () => {
      expect((await client.sendMessage("hello")).message?.parts).toEqual([{ text: "Hello" }]);
      const { task } = await client.sendMessage("stream 3");
      expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
      expect(task?.artifacts?.[0]?.parts).toEqual([{ text: "0" }, { text: "1" }, { text: "2" }]);
      expect(await client.getTask(task?.id ?? "")).toEqual(task);
    });

    it("streams a task from its making to its end (§3.1.2)", async () => {
      const stream = client.sendStreamingMessage("stream 50");
      const all = await events(stream);
      expect(all[0]?.task?.status.state).toBe("TASK_STATE_SUBMITTED");
      expect(all.filter(({ artifactUpdate }) => artifactUpdate !== undefined)).toHaveLength(50);
      expect(all.at(-1)?.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
      // Without a break: the Task, working, fifty pieces, completed.
      expect(stream.seq).toBe(53);
    });

    it("goes on after any event that was seen, although the task has ended (D4)", async () => {
      const all = await events(client.sendStreamingMessage("stream 20"));
      const id = all[0]?.task?.id ?? "";
      const rest = await events(client.subscribeToTask(id, { after: 10 }));
      expect(rest).toEqual(all.slice(10));
    });

    it("asks, and goes on with the answer in the same task and context (§3.4.3)", async () => {
      const conversation = client.conversation();
      const asked = await conversation.send("ask");
      expect(asked.task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
      const { task } = await conversation.send("stream 2");
      expect(task).toMatchObject({ id: asked.task?.id, contextId: asked.task?.contextId });
      expect(task?.history?.map(({ parts }) => parts[0]?.text)).toEqual(["ask", "Which one?", "stream 2"]);
    });

    it("cancels at once, and tells those who watch (§3.1.5)", async () => {
      const stream = client.sendStreamingMessage("wait 2");
      const seen: StreamResponse[] = [];
      for await (const event of stream) {
        seen.push(event);
        if (event.artifactUpdate?.artifact.parts[0]?.text === "1") {
          const canceled = await client.cancelTask(seen[0]?.task?.id ?? "");
          expect(canceled.status.state).toBe("TASK_STATE_CANCELED");
        }
      }
      expect(seen.at(-1)?.statusUpdate?.status.state).toBe("TASK_STATE_CANCELED");
      await expect(client.cancelTask(seen[0]?.task?.id ?? "")).rejects.toMatchObject({ code: "TaskNotCancelable" });
    });

    it("answers a burst of sends that do not wait, and its card, while all their agents work (§3.2.2)", async () => {
      const configuration = { returnImmediately: true };
      const sends = Array.from({ length: 100 }, () => client.sendMessage({ message: "wait 1", configuration }));
      const found = await connect(server.url, { binding, ...as("ada") });
      expect(found.card).toEqual(client.card);
      const ids = new Set((await Promise.all(sends)).map(({ task }) => task?.id ?? ""));
      expect(ids.size).toBe(100);
      const canceled = await Promise.all([...ids].map((id) => client.cancelTask(id)));
      expect(new Set(canceled.map(({ status }) => status.state))).toEqual(new Set(["TASK_STATE_CANCELED"]));
    });

    it("joins a repeated send to the first (D8)", async () => {
      const request = { message: message("stream 2") };
      const [first, second] = await Promise.all([client.sendMessage(request), client.sendMessage(request)]);
      expect(second).toEqual(first);
      const other = { message: { ...message("hello"), messageId: request.message.messageId } };
      await expect(client.sendMessage(other)).rejects.toMatchObject({
        code: "InvalidParams",
        fields: [{ field: "message.messageId" }],
      });
    });

    it("lists what is its caller's, page by page, newest first (§3.1.4)", async () => {
      const contextId = crypto.randomUUID();
      const made: string[] = [];
      for (let n = 0; n < 5; n += 1) {
        made.push((await client.sendMessage({ message: message("stream 1", { contextId }) })).task?.id ?? "");
      }
      const listed: string[] = [];
      for await (const task of client.tasks({ contextId, pageSize: 2 })) listed.push(task.id);
      expect(new Set(listed)).toEqual(new Set(made));
      expect(listed).toHaveLength(5);
      expect((await client.listTasks({ contextId, pageSize: 1 })).totalSize).toBe(5);
    });

    it("hides everything of one caller from another (D7, §13.1)", async () => {
      const bob = await connect(server.url, { binding, ...as("bob") });
      const { task } = await client.sendMessage("stream 1");
      const id = task?.id ?? "";
      const hidden = { code: "TaskNotFound" };
      await expect(bob.getTask(id)).rejects.toMatchObject(hidden);
      await expect(bob.cancelTask(id)).rejects.toMatchObject(hidden);
      await expect(
        bob.service.stream("SubscribeToTask", { id }, { principal: { subject: "" }, version: "1.0", extensions: [] }),
      ).rejects.toMatchObject(hidden);
      await expect(bob.sendMessage({ message: message("hello", { taskId: id }) })).rejects.toMatchObject(hidden);
      expect((await bob.listTasks()).totalSize).toBe(0);
      const stranger = await connect(client.card, { binding, headers: { Authorization: "Bearer nobody" } });
      await expect(stranger.getTask(id)).rejects.toMatchObject({ code: "Unauthenticated" });
    });

    it("says what is wrong in the same words on every binding (§5.4)", async () => {
      await expect(client.getTask("nobody")).rejects.toMatchObject({ code: "TaskNotFound" });
      await expect(client.listTasks({ pageToken: "made-up" })).rejects.toMatchObject({
        code: "InvalidParams",
        fields: [{ field: "pageToken" }],
      });
      const { task } = await client.sendMessage("stream 1");
      await expect(client.sendMessage({ message: message("more", { taskId: task?.id ?? "" }) })).rejects.toMatchObject({
        code: "UnsupportedOperation",
      });
      const url = "https://example.com/hook";
      await expect(client.createTaskPushNotificationConfig({ taskId: task?.id ?? "", url })).rejects.toMatchObject({
        code: "PushNotificationNotSupported",
      });
      await expect(client.getExtendedAgentCard()).rejects.toMatchObject({ code: "UnsupportedOperation" });
      const failed = (await client.sendMessage("throw")).task;
      expect(failed?.status.state).toBe("TASK_STATE_FAILED");
      expect(JSON.stringify(failed)).not.toContain("secret");
    });
  });
});
