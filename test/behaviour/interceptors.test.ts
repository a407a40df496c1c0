import { A2AError, type Interceptor } from "@parley/server";
import { mapItems, Payload, type AgentService, type CallContext, type OperationName } from "@parley/a2a/protocol";
import type { LogFields } from "@parley/a2a/internal/base/index";
import { afterEach, describe, expect, it } from "vitest";
import { changing, counting } from "./interceptors.ts";
import { as, events, interfaces, reach, serving } from "./served.ts";

/**
 * Interceptors change responses and streams on each binding and version, but not the stored data. The third service of `behaviour.test.ts` has
 * interceptors that change nothing.
 */

/** Each of the agent's responses contains this word, which the redactor must remove. */
const secret = "Hello";

function redacted<T>(value: T): T {
  return JSON.parse(
    JSON.stringify(value).replaceAll(/Hello|"text":"\d+"/g, (found) =>
      found === secret ? "[gone]" : '"text":"[gone]"',
    ),
  ) as T;
}

const redacting: Interceptor = changing({
  reply: (reply) => ({ ...reply, payload: reply.payload.map(redacted) }),
  stream: (reply) => ({
    ...reply,
    batches: mapItems(reply.batches, (item) => ({ ...item, payload: item.payload.map(redacted) })),
  }),
});

const refused = new A2AError("PermissionDenied", "Not on Sundays");

/** Interceptors with bugs. */
const faults = {
  "throws an error of the protocol": (service) => ({
    ...service,
    call: () => Promise.reject(refused),
    stream: () => Promise.reject(refused),
  }),
  "fails at once": (service) => ({
    ...service,
    call() {
      throw new TypeError("the password is hunter2");
    },
    stream() {
      throw new TypeError("the password is hunter2");
    },
  }),
  "answers with nothing": (service) => ({
    ...service,
    call: () => undefined as never,
    stream: () => undefined as never,
  }),
  "answers with a value": (service) => ({
    call: async (...asked) => (await service.call(...asked)).payload.value as never,
    stream: async (...asked) => (await service.stream(...asked)).batches as never,
  }),
  "fails in the middle of a stream": (service) => ({
    call: (...asked) => service.call(...asked).then(() => Promise.reject(new TypeError("the password is hunter2"))),
    async stream(...asked) {
      let events = 0;
      const { batches } = await service.stream(...asked);
      return {
        batches: mapItems(batches, (item) => {
          if ((events += 1) > 2) throw new TypeError("the password is hunter2");
          return item;
        }),
      };
    },
  }),
  "puts something else into a stream": (service) => ({
    call: async (...asked) => ({ ...(await service.call(...asked)), payload: "the password is hunter2" as never }),
    async stream(...asked) {
      const { batches } = await service.stream(...asked);
      return { batches: mapItems(batches, () => ({ task: "the password is hunter2" }) as never) };
    },
  }),
} as const satisfies Readonly<Record<string, (service: AgentService) => AgentService>>;

type Fault = keyof typeof faults;

/** The interceptor that the server uses in the current test. */
let chosen: Interceptor = (next) => next;
const choosing: Interceptor = (next) => ({
  call: (...asked) => chosen(next).call(...asked),
  stream: (...asked) => chosen(next).stream(...asked),
});
afterEach(() => {
  chosen = (next) => next;
});

const lines: { readonly message: string; readonly fields: LogFields }[] = [];
const note = (message: string, fields: LogFields = {}): void => void lines.push({ message, fields });
const logger = { debug() {}, info() {}, warn: note, error: note };

const url = serving("memory", { interceptors: [choosing], logger });

describe.each(interfaces)("over $binding $version", (way) => {
  const at = reach(url, way);

  it("content that a redactor removes from an answer is not sent, and stays in the store", async () => {
    chosen = redacting;
    const sent = await at.client.sendMessage("hello");
    expect(sent.message?.parts).toEqual([{ text: "[gone]" }]);
    const { task } = await at.client.sendMessage("stream 2");
    const texts = [{ text: "[gone]" }, { text: "[gone]" }];
    // A task has merged texts, whereas an event has the texts as the agent yielded them.
    expect(task?.artifacts?.[0]?.parts).toEqual(texts.slice(1));
    const read = await at.client.getTask(task?.id ?? "");
    expect(read).toEqual(task);
    const all = await events(at.client.sendStreamingMessage("stream 2"));
    expect(all.flatMap(({ artifactUpdate }) => artifactUpdate?.artifact.parts ?? [])).toEqual(texts);
    expect(all.at(-1)?.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
    chosen = (next) => next;
    const stored = await at.client.getTask(task?.id ?? "");
    expect(stored.artifacts?.[0]?.parts).toEqual([{ text: "01" }]);
  });

  it("another answer replaces the original, also a message in place of a task", async () => {
    const instead = { message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "Later" }] } } as const;
    chosen = changing({ reply: (reply) => ({ ...reply, payload: new Payload(instead) as never }) });
    const { message, task } = await at.client.sendMessage("stream 2");
    expect([message?.parts, task]).toEqual([[{ text: "Later" }], undefined]);
  });

  it("the interceptor gets each call once, and each event of a stream once", async () => {
    const { interceptor, counts } = counting();
    chosen = interceptor;
    const all = await events(at.client.sendStreamingMessage("stream 5"));
    await at.client.getTask(all[0]?.task?.id ?? "");
    const wanted: readonly (readonly [OperationName | "items", number])[] = [
      ["SendStreamingMessage", 1],
      ["items", all.length],
      ["GetTask", 1],
    ];
    expect(counts).toEqual(new Map(wanted));
  });

  it.each(Object.keys(faults) as Fault[])(
    "an interceptor that %s: the caller gets a safe error, the log the cause, and the task is complete",
    async (fault) => {
      const { task } = await at.client.sendMessage("ask");
      const id = task?.id ?? "";
      lines.length = 0;
      chosen = faults[fault];
      const expected = fault === "throws an error of the protocol" ? "PermissionDenied" : "InternalError";
      const { service } = await at.open({ ...as("ada"), retry: false, reconnect: false });
      const context: CallContext = at.context;
      const told: unknown[] = [];
      const called = await service.call("GetTask", { id }, context).catch((thrown: unknown) => thrown);
      told.push(called);
      const streamed = async (): Promise<void> => {
        const message = {
          messageId: crypto.randomUUID(),
          role: "ROLE_USER",
          taskId: id,
          parts: [{ text: "stream 5" }],
        } as const;
        const { batches } = await service.stream("SendStreamingMessage", { message }, context);
        for await (const batch of batches) for (const { payload } of batch) told.push(payload.json);
      };
      told.push(await streamed().catch((thrown: unknown) => thrown));
      expect([told[0], told.at(-1)]).toEqual([
        expect.objectContaining({ code: expected }),
        expect.objectContaining({ code: expected }),
      ]);
      expect(told.map((each) => (each instanceof Error ? each.message : each)).join()).not.toContain("hunter2");
      if (expected === "InternalError") {
        expect(lines.map(({ message }) => message)).toEqual(["A request failed", "A request failed"]);
        expect(lines.every(({ fields }) => fields["cause"] instanceof TypeError)).toBe(true);
      } else {
        // The server counts rejections, and logs the count once a minute.
        expect(lines.filter(({ message }) => message !== "Refused requests")).toEqual([]);
      }
      chosen = (next) => next;
      // If the message did not reach the service, the task still waits for input.
      const after = await at.client.getTask(id);
      const state = after.status.state;
      if (state === "TASK_STATE_INPUT_REQUIRED") return;
      const end = await at.client.waitFor(id, { until: (each) => each.status.state === "TASK_STATE_COMPLETED" });
      expect(end.artifacts?.[0]?.parts).toEqual([{ text: "01234" }]);
    },
  );
});
