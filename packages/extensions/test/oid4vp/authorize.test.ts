import { describe, expect, test } from "vitest";
import type { Client } from "@parley/a2a/internal/client/index";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import { text, type StreamResponse, type Task } from "@parley/a2a/internal/model/index";
import type { Agent } from "@parley/a2a/internal/protocol/index";
import {
  oid4vp,
  oid4vpUri,
  presentWith,
  readOid4vpRequest,
  type Oid4vpRequest,
  type PresentationInit,
  type PresentationRequest,
} from "../../src/oid4vp/index.ts";
import { fakeClock } from "@parley/testing";
import { serving, type Served } from "../../../server/test/intask/support.ts";

/** A verifier, which creates requests and posts their outcome. */
class Verifier {
  readonly made: { readonly request: Oid4vpRequest; readonly callbackUrl: string }[] = [];

  request = (callbackUrl: string): Oid4vpRequest => {
    const client = `verifier-${this.made.length + 1}`;
    const request = { client_id: client, request_uri: `https://verifier.example/${client}?client_id=${client}` };
    this.made.push({ request, callbackUrl });
    return request;
  };

  /** The wallet's answer was checked: the verifier notifies the agent. */
  async tells({ fetch }: Pick<Served, "fetch">, outcome: object, at = -1): Promise<number> {
    const { callbackUrl = "" } = this.made.at(at) ?? {};
    const headers = { "content-type": "application/json" };
    return (await fetch(callbackUrl, { method: "POST", headers, body: JSON.stringify(outcome) })).status;
  }
}

function university(init: PresentationInit<unknown>, calls: { count: number } = { count: 0 }): Agent {
  return defineAgent({
    name: "University",
    description: "Enrols",
    version: "1",
    skills: [],
    extensions: [oid4vp],
    async *onMessage(turn) {
      calls.count += 1;
      const presentations = turn.ext(oid4vp);
      if (presentations === undefined) {
        yield turn.reply("Ask with OID4VP.");
        return;
      }
      const outcome = yield* presentations.authorize(init);
      yield turn.artifact({ parts: [text(`Enrolled ${JSON.stringify(outcome)}`)] });
    },
  });
}

const active = { extensions: [oid4vpUri] };

/** Begins a task, and waits until it asks. */
async function begun(client: Client): Promise<Task> {
  const { task } = await client.sendMessage({ message: "Enrol me", configuration: { returnImmediately: true } });
  return client.waitFor(task?.id ?? "", {
    until: ({ status }) => status.state !== "TASK_STATE_SUBMITTED" && status.state !== "TASK_STATE_WORKING",
  });
}

describe("an agent asks for a presentation (extension v1)", () => {
  test("with its card and the metadata of an AUTH_REQUIRED message, as in the specification", async () => {
    const verifier = new Verifier();
    const served = serving(university({ reason: "Your diploma, please", request: verifier.request }));
    const client = await served.client("ada", active);
    const declared = client.card.capabilities.extensions?.find(({ uri }) => uri === oid4vpUri);
    expect(declared).toMatchObject({ params: { oid4vpVersions: ["1.0"] } });
    expect(declared?.required ?? false).toBe(false);
    const { status } = await begun(client);
    expect(status).toMatchObject({
      state: "TASK_STATE_AUTH_REQUIRED",
      message: {
        role: "ROLE_AGENT",
        parts: [{ text: "Your diploma, please" }],
        metadata: { [oid4vpUri]: { authorizationRequest: verifier.made[0]?.request } },
        extensions: [oid4vpUri],
      },
    });
    // Anyone with the callback can answer, so only the verifier may have it.
    expect(JSON.stringify(status)).not.toContain("well-known");
    expect(readOid4vpRequest(status.message)).toEqual(verifier.made[0]?.request);
  });

  test("continues with the verifier's outcome, and the stream stays open", async () => {
    const verifier = new Verifier();
    const served = serving(university({ reason: "Your diploma", request: verifier.request }));
    const states: unknown[] = [];
    for await (const event of (await served.client("ada", active)).sendStreamingMessage("Enrol me")) {
      const { task, statusUpdate, artifactUpdate } = event;
      states.push((task?.status ?? statusUpdate?.status)?.state ?? artifactUpdate?.artifact.parts[0]?.text);
      if (statusUpdate?.status.state === "TASK_STATE_AUTH_REQUIRED") {
        expect(await verifier.tells(served, { credential: { degree: "bachelor" } })).toBe(200);
      }
    }
    expect(states.slice(-4)).toEqual([
      "TASK_STATE_AUTH_REQUIRED",
      "TASK_STATE_WORKING",
      'Enrolled {"degree":"bachelor"}',
      "TASK_STATE_COMPLETED",
    ]);
    expect(await verifier.tells(served, { credential: true })).toBe(410);
  });

  test("does nothing if the caller did not activate the extension", async () => {
    const served = serving(university({ reason: "Your diploma", request: () => ({ client_id: "x" }) }));
    expect((await (await served.client()).sendMessage("hi")).message?.parts).toEqual([{ text: "Ask with OID4VP." }]);
  });

  test("fails the task if the verifier refuses, or posts an unusable outcome", async () => {
    for (const outcome of [{ denied: true }, { credential: { degree: 1 } }]) {
      const verifier = new Verifier();
      const schema = {
        "~standard": { version: 1, vendor: "test", validate: () => ({ issues: [{ message: "no degree" }] }) },
      } as const;
      const served = serving(university({ reason: "Your diploma", request: verifier.request, outcome: schema }));
      const client = await served.client("ada", active);
      const { id } = await begun(client);
      expect(await verifier.tells(served, outcome)).toBe(200);
      const task = await client.waitFor(id, { until: ({ status }) => status.state === "TASK_STATE_FAILED" });
      expect(task.status.message?.parts[0]?.text).toBe("The authorization was refused.");
    }
  });

  test("fails the task at the timeout", async () => {
    const clock = fakeClock();
    const verifier = new Verifier();
    const agent = university({ reason: "Your diploma", request: verifier.request, lifetime: 60_000 });
    const served = serving(agent, { clock });
    const client = await served.client("ada", active);
    const { id } = await begun(client);
    clock.advance(60_001);
    const task = await client.waitFor(id, { until: ({ status }) => status.state === "TASK_STATE_FAILED" });
    expect(task.status.message?.parts[0]?.text).toBe("The authorization was not given in time.");
    expect(await verifier.tells(served, { credential: true })).toBe(410);
  });

  test("asks once across restarts, and another process gets the outcome", async () => {
    const verifier = new Verifier();
    const calls = { count: 0 };
    const store = memoryStore();
    const agent = university({ reason: "Your diploma", request: verifier.request }, calls);
    const first = serving(agent, { store });
    const { id, status } = await begun(await first.client("ada", active));
    await first.handler.close();
    const second = serving(agent, { store });
    const client = await second.client("ada", active);
    expect((await client.getTask(id)).status.message?.metadata).toEqual(status.message?.metadata);
    expect(await verifier.tells(second, { credential: "ok" })).toBe(200);
    const task = await client.waitFor(id, { until: (each) => each.status.state === "TASK_STATE_COMPLETED" });
    expect(task.artifacts?.[0]?.parts[0]?.text).toBe('Enrolled "ok"');
    expect(calls.count).toBe(2);
    expect(verifier.made).toHaveLength(1);
    expect(await store.features({ agent: "/" }, id, oid4vpUri)).toEqual([]);
  });

  test("does not show its own mistakes to a wallet", async () => {
    const wrong: readonly Oid4vpRequest[] = [
      { client_id: "a" },
      { client_id: "a", request_uri: "https://b.example", request: {} },
      { client_id: "a", request_uri: "/relative" },
      { client_id: "a", request: { client_id: "b" } },
      { client_id: "a", request: { big: "x".repeat(17_000) } },
    ];
    for (const request of wrong) {
      const served = serving(university({ reason: "Your diploma", request: () => request }));
      const { task } = await (await served.client("ada", active)).sendMessage("hi");
      expect(task?.status.state).toBe("TASK_STATE_FAILED");
      expect(task?.status.message?.metadata).toBe(undefined);
      expect(served.log.join()).toContain("authorize(): request() must return a client_id");
    }
  });
});

describe("a client with a wallet", () => {
  async function presented(served: Served, present: (request: PresentationRequest) => void | Promise<void>) {
    const events: StreamResponse[] = [];
    const client = await served.client("ada", active);
    for await (const event of presentWith(client, { present }, "Enrol me")) events.push(event);
    return events;
  }

  test("gives it each request once, and passes events through", async () => {
    const verifier = new Verifier();
    const served = serving(university({ reason: "Your diploma", request: verifier.request }));
    const asked: PresentationRequest[] = [];
    const events = await presented(served, async (request) => {
      asked.push(request);
      await verifier.tells(served, { credential: "ok" });
    });
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({ authorizationRequest: verifier.made[0]?.request, reason: "Your diploma" });
    expect(events.at(-1)?.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(asked[0]?.taskId).toBe(events.at(-1)?.statusUpdate?.taskId);
    expect(asked[0]?.signal.aborted).toBe(true);
  });

  test("cancels the task if the wallet refuses", async () => {
    const served = serving(university({ reason: "Your diploma", request: new Verifier().request }));
    let taskId = "";
    const presenting = presented(served, (request) => {
      taskId = request.taskId;
      return Promise.reject(new Error("Not this one"));
    });
    await expect(presenting).rejects.toThrow("Not this one");
    expect((await (await served.client()).getTask(taskId)).status.state).toBe("TASK_STATE_CANCELED");
  });
});

describe("an agent in the middle (A2A 1.0 §7.6.2)", () => {
  test("relays the request unchanged, and never sees a credential", async () => {
    const verifier = new Verifier();
    const below = serving(university({ reason: "Your diploma", request: verifier.request }));
    const clientBelow = await below.client("ada", active);
    const middle = defineAgent({
      name: "Travel desk",
      description: "Asks others",
      version: "1",
      skills: [],
      extensions: [oid4vp],
      async *onMessage(turn) {
        const { text: said } = yield* turn.delegate(clientBelow, turn.text);
        yield turn.completed(said);
      },
    });
    const client = await serving(middle).client("bob", active);
    const asked: PresentationRequest[] = [];
    const wallet = {
      async present(request: PresentationRequest) {
        asked.push(request);
        await verifier.tells(below, { credential: "secret-of-ada" });
      },
    };
    let last: StreamResponse | undefined;
    let all = "";
    for await (const event of presentWith(client, wallet, "Enrol me")) {
      last = event;
      all += JSON.stringify(event);
    }
    expect(asked.map(({ authorizationRequest }) => authorizationRequest)).toEqual([verifier.made[0]?.request]);
    expect(last?.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(all).not.toContain(verifier.made[0]?.callbackUrl);
  });
});
