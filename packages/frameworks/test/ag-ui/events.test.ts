import { AbstractAgent, EventType, type BaseEvent, type Message } from "@ag-ui/client";
import type { JsonValue, Part, StreamResponse, TaskState } from "@parley/a2a/model";
import fc from "fast-check";
import { from, type Observable } from "rxjs";
import { afterEach, expect, test, vi } from "vitest";
import { RunEvents } from "../../src/ag-ui/events.ts";

/** Random agent events, converted by the adapter and read by the AG-UI client library. */

// The library warns about unknown members, and fails for other violations.
const warn = vi.spyOn(console, "warn");
afterEach(() => {
  if (warn.mock.calls.length > 0) throw new Error(`AG-UI warns: ${JSON.stringify(warn.mock.calls)}`);
});

/** Runs that replay given events. */
class Replay extends AbstractAgent {
  readonly #events: readonly StreamResponse[];

  constructor(events: readonly StreamResponse[]) {
    super({ threadId: "thread" });
    this.#events = events;
  }

  run(): Observable<BaseEvent> {
    const ids = { threadId: this.threadId, runId: "run" };
    const events: BaseEvent[] = [{ type: EventType.RUN_STARTED, ...ids }];
    const init = { answerId: "answer", maxFileBytes: 4, known: {}, messages: this.messages };
    const answer = new RunEvents(init, (event) => events.push(event));
    for (const event of this.#events) answer.apply(event);
    answer.finish();
    return from([...events, { type: EventType.RUN_FINISHED, ...ids }]);
  }
}

const textsOf = (messages: readonly Message[]): string[] =>
  messages.flatMap(({ role, content }) => (role === "assistant" && typeof content === "string" ? [content] : []));

const ids = { taskId: "t", contextId: "c" };
/** Includes lone surrogates. */
const piece = fc.string({ unit: fc.constantFrom("a", "b", "\n", "é", "\ud83d", "\ude00"), maxLength: 6 });
const artifactId = fc.constantFrom("a", "b", "");

test("the page has the texts of the final task, whatever was replaced, even if the run is repeated", async () => {
  const update = fc.record({ artifactId, text: piece, append: fc.boolean(), other: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(update, { maxLength: 30 }), async (given) => {
      const events = given.map(({ artifactId: id, text, append, other }): StreamResponse => {
        const parts = [{ text }, ...(other ? [{ data: { text } }] : [])];
        return { artifactUpdate: { ...ids, artifact: { artifactId: id, parts }, append } };
      });
      const texts = new Map<string, string>();
      for (const { artifactId: id, text, append } of given) texts.set(id, append ? (texts.get(id) ?? "") + text : text);
      const expected = [...texts.values()].filter((each) => each !== "").toSorted();
      const agent = new Replay([...events, { statusUpdate: { ...ids, status: { state: "TASK_STATE_COMPLETED" } } }]);
      for (let run = 0; run < 2; run += 1) {
        await agent.runAgent();
        expect(textsOf(agent.messages).toSorted()).toEqual(expected);
        expect(new Set(agent.messages.map(({ id }) => id)).size).toBe(agent.messages.length);
      }
    }),
    { numRuns: 100 },
  );
});

test("a message differs from an artifact with the same id, and the run ignores events of another task", async () => {
  const of = (taskId: string, text: string): StreamResponse => ({
    artifactUpdate: { taskId, contextId: "c", artifact: { artifactId: "1", parts: [{ text }] }, append: true },
  });
  const message = { messageId: "1", role: "ROLE_AGENT", parts: [{ text: "Done" }] } as const;
  const done = { state: "TASK_STATE_COMPLETED", message } as const;
  const failed = { statusUpdate: { taskId: "other", contextId: "c", status: { state: "TASK_STATE_FAILED" } } } as const;
  const agent = new Replay([
    of("t", "Two "),
    of("other", "no"),
    failed,
    of("t", "trains"),
    { statusUpdate: { ...ids, status: done } },
  ]);
  await agent.runAgent();
  expect(textsOf(agent.messages)).toEqual(["Two trains", "Done"]);
});

test("invalid events still make valid runs", async () => {
  const state = fc.constantFrom<TaskState>(
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_AUTH_REQUIRED",
    "TASK_STATE_FAILED",
    "TASK_STATE_COMPLETED",
  );
  const json = fc.jsonValue({ maxDepth: 2 }).map((value) => value as JsonValue);
  const mediaType = fc.constantFrom("application/schema+json", "image/png", "text/html,<script>");
  const part: fc.Arbitrary<Part> = fc.oneof(
    piece.map((text) => ({ text })),
    fc.record({ data: json }),
    fc.record({ data: json, mediaType }),
    fc.record({ data: fc.record({ approvals: fc.array(json) }) }),
    fc.record({ raw: fc.constantFrom("", "AAAA", "AAAAAAAAAAAA"), mediaType }),
    fc.record({ url: fc.constantFrom("javascript:x", "https://example.com/", "%") }),
  );
  const parts = fc.array(part, { maxLength: 4 });
  const message = fc.record({
    messageId: artifactId,
    role: fc.constantFrom("ROLE_AGENT" as const, "ROLE_USER" as const),
    parts,
  });
  const status = fc.record({ state, message }, { requiredKeys: ["state"] });
  const artifact = fc.record({ artifactId, parts });
  const event: fc.Arbitrary<StreamResponse> = fc.oneof(
    status.map((each) => ({ statusUpdate: { ...ids, status: each } })),
    fc
      .record({ artifact, append: fc.boolean(), lastChunk: fc.boolean() })
      .map((each) => ({ artifactUpdate: { ...ids, ...each } })),
    message.map((each) => ({ message: each })),
    fc
      .record({ artifacts: fc.array(artifact), status })
      .map((each) => ({ task: { id: "t", contextId: "c", ...each } })),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 20 }), async (events) => {
      const agent = new Replay(events);
      await agent.runAgent();
      await agent.runAgent();
    }),
    { numRuns: 60 },
  );
});
