import { TaskView, type Artifact, type Part, type StreamResponse, type Task } from "@parley/a2a";
import { generationOf, message } from "@parley/a2a/model";
import { describe, expect, it, vi } from "vitest";
import { as, events, extension, interfaces, reach, serving, services, type Interface } from "./served.ts";

/**
 * Tests the behaviour of an A2A server (A2A 1.0 §3) over real connections, for each binding, version and store. The tests at the end cover
 * differences between versions and bindings.
 */

const former = ({ version }: Interface): boolean => version === "0.3";
const draft = ({ version }: Interface): boolean => version === "1.1";
/** Returns whether an interface can list tasks. JSON-RPC and gRPC of 0.3 have no method for this. */
const lists = (chosen: Interface): boolean => !former(chosen) || chosen.binding === "HTTP+JSON";
const not =
  (is: (chosen: Interface) => boolean) =>
  (chosen: Interface): boolean =>
    !is(chosen);

/** Returns the error for a wrong field. 0.3 JSON-RPC names the field only in the message, because the 0.3 SDKs fail if an error has details. */
const wrong = (chosen: Interface, field: string): object => ({
  code: "InvalidParams",
  fields: former(chosen) && chosen.binding === "JSONRPC" ? [] : [{ field }],
});

/** Returns a task without the members that only `GetTask` of the 1.1 draft returns (§3.2.8). */
function undrafted(task: Task & { readonly timeline?: unknown }): Task {
  const { timeline: _, artifacts, ...rest } = task;
  const spanless = artifacts?.map(
    ({ startGeneration: __, endGeneration: ___, ...artifact }: Artifact & SpanMembers) => artifact,
  );
  return spanless === undefined ? rest : { ...rest, artifacts: spanless };
}

interface SpanMembers {
  readonly startGeneration?: unknown;
  readonly endGeneration?: unknown;
}

describe.each(services)("on %s", (store) => {
  const url = serving(store);

  describe.each(interfaces)("over $binding $version", (chosen) => {
    const { binding } = chosen;
    const at = reach(url, chosen);
    const { context, open } = at;

    it("answers a message with a message, and one with a task (§3.1.1)", async () => {
      expect((await at.client.sendMessage("hello")).message?.parts).toEqual([{ text: "Hello" }]);
      const { task } = await at.client.sendMessage("stream 3");
      expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
      expect(task?.artifacts?.[0]?.parts).toEqual([{ text: "012" }]);
      expect(undrafted(await at.client.getTask(task?.id ?? ""))).toEqual(task);
    });

    it("streams a task from its creation to its end (§3.1.2)", async () => {
      const stream = at.client.sendStreamingMessage("stream 50");
      const all = await events(stream);
      expect(all[0]?.task?.status.state).toBe("TASK_STATE_SUBMITTED");
      expect(all.filter(({ artifactUpdate }) => artifactUpdate !== undefined)).toHaveLength(50);
      expect(all.at(-1)?.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
      // The stream has the task, the state working, fifty chunks, and the state completed, without a gap. gRPC carries no event numbers.
      expect(stream.seq).toBe(binding === "GRPC" ? undefined : 53);
    });

    it("merges adjacent texts of an artifact into one part, and streams them as they were yielded (§4.1.7)", async () => {
      const chunks = ["0", "1", "2", "3"].map((text) => [{ text }]);
      const merged = [{ text: "0123" }];
      const contextId = crypto.randomUUID();
      const chunksOf = (all: readonly StreamResponse[]): unknown[] =>
        all.flatMap(({ artifactUpdate }) => (artifactUpdate === undefined ? [] : [artifactUpdate.artifact.parts]));

      const stream = at.client.sendStreamingMessage({ parts: [{ text: "wait 4" }], contextId });
      const seen: StreamResponse[] = [];
      while (chunksOf(seen).length < 4) seen.push((await stream.next()).value as StreamResponse);
      expect(chunksOf(seen)).toEqual(chunks);
      const id = seen[0]?.task?.id ?? "";
      const partsOf = ({ artifacts }: Pick<Task, "artifacts">): unknown => artifacts?.map(({ parts }) => parts);
      expect(partsOf(await at.client.getTask({ id, historyLength: 0 }))).toEqual([merged]);
      if (lists(chosen)) {
        const [listed, bare] = await Promise.all(
          [true, false].map((includeArtifacts) => at.client.listTasks({ contextId, includeArtifacts })),
        );
        expect(listed?.tasks.map(partsOf)).toEqual([[merged]]);
        expect(bare?.tasks.map(partsOf)).toEqual([undefined]);
      }
      const second = at.client.subscribeToTask(id);
      const first = (await second.next()).value as StreamResponse;
      expect(partsOf(first.task as Task)).toEqual([merged]);
      expect(partsOf(await at.client.cancelTask(id))).toEqual([merged]);
      // The reader starts with the stored task, whose texts are merged. Later chunks are appended to that text.
      const view = new TaskView();
      for (const event of [first, ...(await events(second))]) view.apply(event);
      expect(partsOf(view.task as Task)).toEqual([merged]);
      await stream.close();
      if (binding !== "GRPC")
        expect(chunksOf(await events(at.client.subscribeToTask(id, { after: 1 })))).toEqual(chunks);
    });

    it("continues a stream after any event, even after the task ended", async () => {
      const all = await events(at.client.sendStreamingMessage("stream 20"));
      const id = all[0]?.task?.id ?? "";
      const rest = await events(at.client.subscribeToTask(id, { after: 10 }));
      expect(rest).toEqual(all.slice(10));
    });

    it("asks for input, and continues with the answer in the same task and context (§3.4.3)", async () => {
      const conversation = at.client.conversation();
      const asked = await conversation.send("ask");
      expect(asked.task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
      const { task } = await conversation.send("stream 2");
      expect(task).toMatchObject({ id: asked.task?.id, contextId: asked.task?.contextId });
      expect(task?.history?.map(({ parts }) => parts[0]?.text)).toEqual(["ask", "Which one?", "stream 2"]);
    });

    it("cancels a task at once, and sends the event to its readers (§3.1.5)", async () => {
      const stream = at.client.sendStreamingMessage("wait 2");
      const seen: StreamResponse[] = [];
      for await (const event of stream) {
        seen.push(event);
        if (event.artifactUpdate?.artifact.parts[0]?.text === "1") {
          const canceled = await at.client.cancelTask(seen[0]?.task?.id ?? "");
          expect(canceled.status.state).toBe("TASK_STATE_CANCELED");
        }
      }
      expect(seen.at(-1)?.statusUpdate?.status.state).toBe("TASK_STATE_CANCELED");
      await expect(at.client.cancelTask(seen[0]?.task?.id ?? "")).rejects.toMatchObject({ code: "TaskNotCancelable" });
    });

    it("continues a task whose caller has stopped waiting (§3.2.2)", async () => {
      const taskId = (await at.client.sendMessage("ask")).task?.id ?? "";
      const leaving = new AbortController();
      const asked = { message: message("wait 1", { taskId }) };
      const gaveUp = at.client.sendMessage(asked, { signal: leaving.signal }).catch(() => "gave up");
      await vi.waitFor(async () => expect((await at.client.getTask(taskId)).artifacts).toHaveLength(1));
      leaving.abort();
      expect(await gaveUp).toBe("gave up");
      expect((await at.client.getTask(taskId)).status.state).toBe("TASK_STATE_WORKING");
      // The repeated message waits for the same response.
      const back = at.client.sendMessage(asked);
      expect((await at.client.cancelTask(taskId)).status.state).toBe("TASK_STATE_CANCELED");
      expect((await back).task?.status.state).toBe("TASK_STATE_CANCELED");
    });

    it("answers many sends with returnImmediately, and serves its card, while all their agents work (§3.2.2)", async () => {
      const configuration = { returnImmediately: true };
      // The versions of a binding differ only in the form of messages, not in capacity, so the test sends fewer messages in 0.3.
      const many = chosen.version === "1.0" ? 100 : 20;
      const sends = Array.from({ length: many }, () => at.client.sendMessage({ message: "wait 1", configuration }));
      const found = await open();
      expect(found.card).toEqual(at.client.card);
      const ids = new Set((await Promise.all(sends)).map(({ task }) => task?.id ?? ""));
      expect(ids.size).toBe(many);
      const canceled = await Promise.all([...ids].map((id) => at.client.cancelTask(id)));
      expect(new Set(canceled.map(({ status }) => status.state))).toEqual(new Set(["TASK_STATE_CANCELED"]));
    });

    it("answers a repeated send with the task of the first", async () => {
      const request = { message: message("stream 2") };
      const [first, second] = await Promise.all([at.client.sendMessage(request), at.client.sendMessage(request)]);
      expect(second).toEqual(first);
      const other = { message: { ...message("hello"), messageId: request.message.messageId } };
      // Many clients number their messages from 1, so different content with the same id is a new message.
      expect((await at.client.sendMessage(other)).message?.parts).toEqual([{ text: "Hello" }]);
    });

    it("hides the data of one caller from another (§13.1)", async () => {
      const bob = await open(as("bob"));
      const { task } = await at.client.sendMessage("stream 1");
      const id = task?.id ?? "";
      await expect(bob.getTask(id)).rejects.toMatchObject({ code: "TaskNotFound" });
      await expect(bob.cancelTask(id)).rejects.toMatchObject({ code: "TaskNotFound" });
      await expect(bob.service.stream("SubscribeToTask", { id }, context)).rejects.toMatchObject({
        code: "TaskNotFound",
      });
      await expect(bob.sendMessage({ message: message("hello", { taskId: id }) })).rejects.toMatchObject({
        code: "TaskNotFound",
      });
      const stranger = await open({ headers: { Authorization: "Bearer nobody" } });
      await expect(stranger.getTask(id)).rejects.toMatchObject({ code: "Unauthenticated" });
    });

    it("reports errors with the same code and fields on each binding (§5.4)", async () => {
      await expect(at.client.getTask("nobody")).rejects.toMatchObject({ code: "TaskNotFound" });
      const asking = (await at.client.sendMessage("ask")).task?.id ?? "";
      const elsewhere = message("more", { taskId: asking, contextId: "another" });
      await expect(at.client.sendMessage({ message: elsewhere })).rejects.toMatchObject(
        wrong(chosen, "message.contextId"),
      );
      const { task } = await at.client.sendMessage("stream 1");
      await expect(
        at.client.sendMessage({ message: message("more", { taskId: task?.id ?? "" }) }),
      ).rejects.toMatchObject({
        code: "UnsupportedOperation",
      });
      const failed = (await at.client.sendMessage("throw")).task;
      expect(failed?.status.state).toBe("TASK_STATE_FAILED");
      expect(JSON.stringify(failed)).not.toContain("secret");
    });

    it("rejects operations that its card does not declare (§3.3.4)", async () => {
      const taskId = (await at.client.sendMessage("stream 1")).task?.id ?? "";
      const none = { code: "PushNotificationNotSupported" };
      const hook = { taskId, id: "hook" };
      const { service } = at.client;
      const made = { ...hook, url: "https://example.com/hook" };
      await expect(service.call("CreateTaskPushNotificationConfig", made, context)).rejects.toMatchObject(none);
      await expect(service.call("GetTaskPushNotificationConfig", hook, context)).rejects.toMatchObject(none);
      await expect(service.call("ListTaskPushNotificationConfigs", { taskId }, context)).rejects.toMatchObject(none);
      await expect(service.call("DeleteTaskPushNotificationConfig", hook, context)).rejects.toMatchObject(none);
      // 0.3 has one error code for a missing card, whether or not the agent declares an extended card.
      await expect(service.call("GetExtendedAgentCard", {}, context)).rejects.toMatchObject({
        code: former(chosen) ? "ExtendedAgentCardNotConfigured" : "UnsupportedOperation",
      });
    });

    it("returns as much history as requested (§3.2.4)", async () => {
      const conversation = at.client.conversation();
      for (const words of ["ask", "ask"]) await conversation.send(words);
      const { task } = await conversation.send("stream 1");
      const id = task?.id ?? "";
      const history = async (historyLength?: number): Promise<readonly unknown[] | undefined> => {
        const request = historyLength === undefined ? { id } : { id, historyLength };
        return (await at.client.getTask(request)).history?.map(({ parts }) => parts[0]?.text);
      };
      const all = ["ask", "Which one?", "ask", "Which one?", "stream 1"];
      expect(await history()).toEqual(all);
      expect(await history(2)).toEqual(all.slice(-2));
      expect(await history(100)).toEqual(all);
      // In the 0.3 proto, the value 0 equals an absent value.
      expect(await history(0)).toEqual(former(chosen) && binding !== "JSONRPC" ? all : undefined);
      await expect(history(-1)).rejects.toMatchObject({ code: "InvalidParams", fields: [{ field: "historyLength" }] });
    });

    it("reports the extensions that it activated (§3.2.6)", async () => {
      const asked = { ...context, extensions: [extension, "https://example.com/extensions/unknown"] };
      const request = { message: message("hello") };
      expect((await at.client.service.call("SendMessage", request, asked)).extensions).toEqual([extension]);
      const stream = await at.client.service.stream("SendStreamingMessage", { message: message("stream 1") }, asked);
      expect(stream.extensions).toEqual([extension]);
      await stream.batches[Symbol.asyncIterator]().return?.();
    });

    it("keeps all parts of a message", async () => {
      const parts: readonly Part[] = [
        { text: "stream 1", metadata: { lang: "en" } },
        { raw: "AAEC", filename: "a.bin", mediaType: "application/octet-stream" },
        { url: "https://example.com/a.txt", filename: "a.txt", mediaType: "text/plain" },
        { data: { list: [1, "two", null] }, metadata: { n: 1 } },
        { data: [1, "two", null] },
      ];
      const { task } = await at.client.sendMessage({ parts, metadata: { trace: "x" } });
      const [kept] = (await at.client.getTask(task?.id ?? "")).history ?? [];
      expect(kept).toMatchObject({ role: "ROLE_USER", metadata: { trace: "x" } });
      expect(kept?.parts).toEqual(parts);
    });
  });

  describe.each(interfaces.filter(former))("over $binding $version, by the rules of 0.3", (chosen) => {
    const at = reach(url, chosen);

    it("answers a subscription to a finished task with the task (0.3 §7.9)", async () => {
      const { task } = await at.client.sendMessage("stream 1");
      const { client: watching, told } = await at.spied();
      expect(await events(watching.subscribeToTask(task?.id ?? ""))).toEqual([{ task }]);
      expect(told).toEqual(["opened"]);
    });

    it("ends a subscription with a final event if the task asks for input, and the client subscribes again", async () => {
      const { states, told } = await at.askedTwice();
      expect(states.at(-1)).toBe("TASK_STATE_CANCELED");
      expect(told).toEqual(["opened", "opened"]);
    });
  });

  describe.each(interfaces.filter(not(former)))("over $binding $version, by the rules of 1.0", (chosen) => {
    const at = reach(url, chosen);

    it("rejects a subscription to a finished task (§3.1.6), and the client yields the final state", async () => {
      const { task } = await at.client.sendMessage("stream 1");
      const { client: watching, told } = await at.spied();
      const [first, ...more] = await events(watching.subscribeToTask(task?.id ?? ""));
      expect([undrafted(first?.task as Task), more]).toEqual([task, []]);
      expect(told).toEqual(["UnsupportedOperation"]);
    });

    it("keeps a subscription open if the task asks for input", async () => {
      const { states, told } = await at.askedTwice();
      expect(states.at(-1)).toBe("TASK_STATE_CANCELED");
      expect(told).toEqual(["opened"]);
    });
  });

  describe.each(interfaces.filter(draft))("over $binding $version, by the rules of the draft of 1.1", (chosen) => {
    const at = reach(url, chosen);

    it("counts the generations of a task (1.1 §3.2.7)", async () => {
      const all = await events(at.client.sendStreamingMessage("stream 3"));
      expect(all.map(generationOf)).toEqual(all.map((_, at) => at + 1));
      expect(generationOf(await at.client.getTask(all[0]?.task?.id ?? ""))).toBe(all.length);
    });

    it("waits for a generation that the caller does not have (1.1 §3.1.3)", async () => {
      const stream = at.client.sendStreamingMessage("wait 1");
      const id = (await stream.next()).value?.task?.id ?? "";
      let seen = 1;
      while (seen < 3) seen = generationOf((await stream.next()).value as StreamResponse) ?? 0;
      expect(generationOf(await at.client.getTask({ id, currentGeneration: 1 }))).toBe(3);
      const waiting = at.client.getTask({ id, currentGeneration: 3 });
      await at.client.cancelTask(id);
      expect(generationOf(await waiting)).toBe(4);
    });

    it("accepts a message only if the task has the expected generation (1.1 §3.2.2)", async () => {
      const task = (await at.client.sendMessage("ask")).task as Task;
      const send = (ifGenerationMatch: number) =>
        at.client.sendMessage({
          message: message("stream 1", { taskId: task.id }),
          configuration: { ifGenerationMatch },
        });
      const known = generationOf(task) ?? 0;
      await expect(send(known + 1)).rejects.toMatchObject({ code: "TaskGenerationMismatch" });
      expect((await send(known)).task?.status.state).toBe("TASK_STATE_COMPLETED");
    });
  });

  describe.each(interfaces.filter(not(draft)))("over $binding $version, which is not the draft of 1.1", (chosen) => {
    const at = reach(url, chosen);

    it("has no generations, and ignores the members of the draft", async () => {
      const all = await events(at.client.sendStreamingMessage("stream 3"));
      expect(all.map(generationOf)).toEqual(all.map(() => undefined));
      const id = all[0]?.task?.id ?? "";
      expect(generationOf(await at.client.getTask({ id, currentGeneration: 100 }))).toBeUndefined();
    });
  });

  describe.each(interfaces.filter(lists))("over $binding $version, which has a list of tasks", (chosen) => {
    const at = reach(url, chosen);

    it("lists the tasks of its caller, page by page, newest first (§3.1.4)", async () => {
      const contextId = crypto.randomUUID();
      const made: string[] = [];
      for (let n = 0; n < 5; n += 1) {
        made.push((await at.client.sendMessage({ message: message("stream 1", { contextId }) })).task?.id ?? "");
      }
      const listed: string[] = [];
      for await (const task of at.client.tasks({ contextId, pageSize: 2 })) listed.push(task.id);
      expect(new Set(listed)).toEqual(new Set(made));
      expect(listed).toHaveLength(5);
      expect((await at.client.listTasks({ contextId, pageSize: 1 })).totalSize).toBe(5);
      expect((await at.client.listTasks({ contextId, status: "TASK_STATE_FAILED" })).tasks).toEqual([]);
      await expect(at.client.listTasks({ pageToken: "made-up" })).rejects.toMatchObject({
        code: "InvalidParams",
        fields: [{ field: "pageToken" }],
      });
      expect((await (await at.open(as("bob"))).listTasks()).totalSize).toBe(0);
    });
  });

  describe.each(interfaces.filter(not(lists)))("over $binding $version, which has no list of tasks", (chosen) => {
    const at = reach(url, chosen);

    it("rejects listing tasks", async () => {
      await expect(at.client.listTasks()).rejects.toMatchObject({ code: "UnsupportedOperation" });
    });
  });
});
