import { describe, expect, onTestFinished, test } from "vitest";
import {
  specifiedTimestamp,
  timestamp,
  timestampExtension,
  timestampSpecificationUri,
  timestampUri,
} from "../../src/timestamp/index.ts";
import { defineAgent, type AgentDefinition } from "@parley/server/internal/agent/index";
import type { Agent, AnyExtension } from "@parley/a2a/internal/protocol/index";
import type { JsonObject, Message, StreamResponse, Task } from "@parley/a2a/internal/model/index";
import { testAgent, type TestAgent } from "@parley/testing";

/* The specification: a2aproject/a2a-samples, extensions/timestamp/v1/spec.md. "Samples" are its Python, JS and Go code. */

/** The key in the samples' code, and the key in the specification. */
const key = "github.com/a2aproject/a2a-samples/extensions/timestamp/v1/timestamp";
const specifiedKey = "github.com/a2aproject/a2a-samples/samples/extensions/timestamp/v1/timestamp";

function agentOf(onMessage: AgentDefinition["onMessage"], init: Partial<AgentDefinition> = {}): Agent {
  return defineAgent({ name: "Echo", description: "Echoes", version: "1", skills: [], ...init, onMessage });
}

async function serving(agent: Agent, extensions: readonly AnyExtension[] = [timestamp]): Promise<TestAgent> {
  const under = await testAgent(agent, { extensions });
  onTestFinished(() => under.close());
  return under;
}

/** It works, gives an artifact in two chunks, and is done. */
const echo = agentOf(async function* (turn) {
  yield turn.working("working", { keep: true });
  yield turn.artifact({ artifactId: "echo", parts: [{ text: turn.text }], open: true });
  yield turn.append("echo", [{ text: "!" }], { last: true });
  yield turn.completed("done");
});

async function eventsOf(source: AsyncIterable<StreamResponse>): Promise<StreamResponse[]> {
  const events: StreamResponse[] = [];
  for await (const event of source) events.push(event);
  return events;
}

const stampOf = (of: { readonly metadata?: JsonObject } | undefined): unknown => of?.metadata?.[key];
const asked = { extensions: [timestampUri] };

describe("the server adds timestamps to the agent's output", () => {
  test("status messages and artifacts, with their creation time, on request", async () => {
    const under = await serving(echo);
    const client = await under.connect(asked);
    const now = new Date(under.clock.now()).toISOString();
    const events = await eventsOf(client.sendStreamingMessage("hi"));
    const messages = events.flatMap(({ statusUpdate }) => statusUpdate?.status.message ?? []);
    expect(messages.map(stampOf)).toEqual([now, now]);
    // An added chunk does not create the artifact, which would otherwise have two creation times.
    expect(
      events.flatMap(({ artifactUpdate }) => artifactUpdate ?? []).map(({ artifact }) => stampOf(artifact)),
    ).toEqual([now, undefined]);
  });

  test("direct replies", async () => {
    const under = await serving(agentOf((turn) => turn.reply("no task")));
    const client = await under.connect(asked);
    const { message } = await client.sendMessage("hi");
    expect(stampOf(message)).toBe(new Date(under.clock.now()).toISOString());
  });

  test("so a task has stamps in its artifacts, its status and the agent's messages of its history", async () => {
    const under = await serving(echo);
    const client = await under.connect(asked);
    const { task } = await client.sendMessage("hi");
    const read = await client.getTask(task as Task);
    for (const each of [task, read]) {
      const now = new Date(under.clock.now()).toISOString();
      expect(each?.artifacts?.map(stampOf)).toEqual([now]);
      expect(stampOf(each?.status.message)).toBe(now);
      const history = each?.history?.map((message) => [message.role, stampOf(message)]);
      expect(history).toContainEqual(["ROLE_AGENT", now]);
      // Only the caller knows when it made its message.
      expect(history).toContainEqual(["ROLE_USER", undefined]);
    }
  });

  test("but not for callers who did not activate the extension (A2A 1.0 §4.6)", async () => {
    const under = await serving(echo);
    const client = await under.connect({ extensions: [] });
    expect(JSON.stringify(await eventsOf(client.sendStreamingMessage("hi")))).not.toContain("timestamp/v1");
  });

  test("keeps existing timestamps, under either key", async () => {
    const own = { [key]: "2001-02-03T04:05:06Z" };
    const other = { [specifiedKey]: "2001-02-03T04:05:06.000000007+00:00" };
    const agent = agentOf(async function* (turn) {
      yield turn.artifact({ parts: [{ text: "a" }], metadata: own });
      yield turn.artifact({ parts: [{ text: "b" }], metadata: other });
    });
    const client = await (await serving(agent)).connect(asked);
    const { task } = await client.sendMessage("hi");
    expect(task?.artifacts?.map(({ metadata }) => metadata)).toEqual([own, { ...other, [key]: other[specifiedKey] }]);
  });

  test("gives a status of the server its own time on delivery", async () => {
    const agent = agentOf(async function* (turn) {
      yield turn.working();
      throw new Error("It broke");
    });
    const under = await serving(agent);
    const client = await under.connect(asked);
    const events = await eventsOf(client.sendStreamingMessage("hi"));
    const { status } = events.at(-1)?.statusUpdate ?? {};
    expect([status?.state, stampOf(status?.message)]).toEqual(["TASK_STATE_FAILED", status?.timestamp]);
    const { tasks } = await client.listTasks();
    expect(stampOf(tasks[0]?.status.message)).toBe(status?.timestamp);
  });

  test("leaves out unknown times of content made without the extension", async () => {
    const under = await serving(echo);
    const { task } = await (await under.connect({ extensions: [] })).sendMessage("hi");
    await under.clock.advance(60_000);
    const read = await (await under.connect(asked)).getTask(task as Task);
    expect(stampOf(read.status.message)).toBe(task?.status.timestamp);
    expect(read.artifacts?.map(stampOf)).toEqual([undefined]);
  });

  test("with its own clock, if configured", async () => {
    const fixed = timestampExtension({ now: () => Date.UTC(2023, 10, 14, 22, 13, 20) });
    const client = await (await serving(echo, [fixed])).connect(asked);
    const { task } = await client.sendMessage("hi");
    expect(stampOf(task?.artifacts?.[0])).toBe("2023-11-14T22:13:20.000Z");
  });
});

describe("both spellings of the URI", () => {
  test.each([
    [timestampUri, key],
    [timestampSpecificationUri, specifiedKey],
  ])(
    "a caller who requests %s gets only its key, also for content that was stored with the other key",
    async (uri, written) => {
      const under = await serving(echo, [timestamp, specifiedTimestamp]);
      const client = await under.connect({ extensions: [uri] });
      const { task } = await client.sendMessage("hi");
      expect(Object.keys(task?.artifacts?.[0]?.metadata ?? {})).toEqual([written]);
      const other = await under.connect({
        extensions: [uri === timestampUri ? timestampSpecificationUri : timestampUri],
      });
      const read = await other.getTask(task as Task);
      const { [key]: one, [specifiedKey]: two } = read.artifacts?.[0]?.metadata ?? {};
      expect([one, two]).toEqual([expect.any(String), one]);
    },
  );

  test("a caller of both gets the same time under both keys", async () => {
    const under = await serving(echo, [timestamp, specifiedTimestamp]);
    const client = await under.connect({ extensions: [timestampUri, timestampSpecificationUri] });
    const { task } = await client.sendMessage("hi");
    const { [key]: one, [specifiedKey]: two } = task?.artifacts?.[0]?.metadata ?? {};
    expect([one, two]).toEqual([expect.any(String), one]);
  });

  test("are both on the card, without params and not required", async () => {
    const { client } = await serving(echo, [timestamp, specifiedTimestamp]);
    const description = "Adds timestamps to messages and artifacts.";
    expect(client.card.capabilities.extensions).toEqual(
      expect.arrayContaining([
        { uri: timestampUri, description },
        { uri: timestampSpecificationUri, description },
      ]),
    );
  });
});

describe("a timestamp is not content", () => {
  const messageAt = (at: string): Message => ({
    messageId: "once",
    role: "ROLE_USER",
    parts: [{ text: "hi" }],
    metadata: { [key]: at },
  });

  test("a retry with another timestamp is the same message, and the agent is called once", async () => {
    let calls = 0;
    const agent = agentOf(async function* (turn) {
      calls += 1;
      yield turn.completed();
    });
    const under = await serving(agent);
    const client = await under.connect(asked);
    const first = await client.sendMessage(messageAt("2026-01-31T12:00:00Z"));
    await under.restart();
    const second = await client.sendMessage(messageAt("2026-01-31T12:00:09Z"));
    expect([second.task?.id, calls]).toEqual([first.task?.id, 1]);
    // Without the extension it is metadata like any other.
    const third = await (await under.connect({ extensions: [] })).sendMessage(messageAt("2026-01-31T12:00:10Z"));
    expect([third.task?.id === first.task?.id, calls]).toEqual([false, 2]);
  });

  test("a resumed run repeats its events, and the first timestamps stay", async () => {
    let hold: ((value: unknown) => void) | undefined;
    const agent = agentOf(
      async function* (turn) {
        yield turn.working("begun", { keep: true });
        yield turn.artifact({ artifactId: "a", parts: [{ text: "a" }], metadata: { of: "the agent" } });
        if (turn.attempt === 1) await new Promise((resolve) => (hold = resolve));
        yield turn.artifact({ artifactId: "b", parts: [{ text: "b" }] });
      },
      { resumable: true },
    );
    const under = await serving(agent);
    const client = await under.connect(asked);
    const begun = under.clock.now();
    const events = client.sendStreamingMessage("hi")[Symbol.asyncIterator]();
    let id = "";
    for (let artifact = false; !artifact;) {
      const { value } = (await events.next()) as { value: StreamResponse };
      id = value.task?.id ?? id;
      artifact = value.artifactUpdate !== undefined;
    }
    await under.crash();
    await under.restart();
    hold?.(undefined);
    const task = await client.waitFor(id);
    const [first, second] = task.artifacts ?? [];
    expect(task.artifacts?.length).toBe(2);
    expect(first?.metadata).toEqual({ of: "the agent", [key]: new Date(begun).toISOString() });
    expect(Date.parse(String(stampOf(second)))).toBeGreaterThan(begun);
    // The progress is in the history once.
    const kept = task.history?.filter(({ parts }) => parts[0]?.text === "begun");
    expect(kept?.map(stampOf)).toEqual([new Date(begun).toISOString()]);
  });
});
