import { describe, expect, test, vi } from "vitest";
import { memoryStore } from "../../src/store/index.ts";
import { text, type StreamResponse } from "@parley/a2a/internal/model/index";
import type { DelegateClient } from "@parley/a2a/internal/protocol/index";
import { agentOf, gate, serving } from "./support.ts";

/* Tests delegations to agents that misbehave, and to agents that change. */

const isGone = { lease: { isGone: () => true } };

/** Returns a client of an agent that sends these events. */
function sending(events: readonly StreamResponse[]): DelegateClient {
  const refuses = (): Promise<never> => Promise.reject(new Error("It cannot"));
  return {
    card: { name: "Odd", capabilities: { streaming: true }, supportedInterfaces: [] },
    async *sendStreamingMessage() {
      yield* events;
    },
    sendMessage: refuses,
    subscribeToTask: () =>
      sending(events).sendStreamingMessage({ message: { messageId: "", role: "ROLE_USER", parts: [] } }),
    getTask: refuses,
    listTasks: refuses,
    cancelTask: refuses,
  };
}

function status(state: "WORKING" | "COMPLETED", messageId: string, taskId = "t", contextId = "c"): StreamResponse {
  const message = { messageId, role: "ROLE_AGENT" as const, parts: [text(state)] };
  return { statusUpdate: { taskId, contextId, status: { state: `TASK_STATE_${state}`, message } } };
}

function artifact(artifactId: string): StreamResponse {
  return {
    artifactUpdate: { taskId: "t", contextId: "c", artifact: { artifactId, parts: [text("x")] }, lastChunk: true },
  };
}

async function answerTo(client: DelegateClient) {
  const agent = agentOf(async function* (turn) {
    yield* turn.delegate(client, turn.text);
  });
  const { task } = await (await serving(agent).client()).sendMessage("Go");
  return task;
}

describe("the ids of another agent", () => {
  test("may be long if they can be stored", async () => {
    const many = Array.from({ length: 150 }, (_, at) => artifact(`${"i".repeat(250)}${at}`));
    const long = status("WORKING", "m".repeat(40_000));
    const task = await answerTo(sending([long, ...many, status("COMPLETED", "end")]));
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task?.artifacts).toHaveLength(150);
  });

  test.each([
    ["task", "t".repeat(40_000), "c"],
    ["context", "t", "c".repeat(40_000)],
  ])("fail the delegation if they are too long: %s", async (_, taskId, contextId) => {
    const task = await answerTo(sending([status("WORKING", "1", taskId, contextId)]));
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
    expect(task?.status.message?.parts[0]?.text).toBe("Odd could not do its part (InvalidResponse).");
  });
});

describe("after a restart, a delegation", () => {
  /**
   * Runs consecutive processes, each of which delegates to all of its agents. The first process dies while the other agent works, or
   * later.
   */
  async function restarted(
    lives: readonly [readonly DelegateClient[], readonly DelegateClient[]],
    moment: "in" | "after",
  ) {
    let life = 0;
    const wait = gate();
    const store = memoryStore();
    const agent = agentOf(
      async function* (turn) {
        const clients = lives[life] ?? [];
        const asked = yield* turn.all(clients.map((client) => turn.delegate(client, turn.text)));
        if (life === 0) {
          wait.open();
          await new Promise(() => {});
        }
        yield turn.completed(asked.map((each) => each.text).join(" and "));
      },
      { resumable: true },
    );
    const client = await serving(agent, { store }).client();
    const { task } = await client.sendMessage({ message: "Go", configuration: { returnImmediately: true } });
    const id = task?.id ?? "";
    if (moment === "after") await wait.opened;
    else await vi.waitFor(async () => expect((await client.getTask(id)).artifacts).toHaveLength(lives[0].length));
    life = 1;
    const second = await serving(agent, { store, ...isGone }).client();
    return () => second.waitFor(id);
  }

  /** Creates an agent that counts its messages, and works until `wait` opens. */
  function worker(name: string) {
    const wait = gate();
    const got: string[] = [];
    const served = serving(
      agentOf(
        async function* (turn) {
          got.push(turn.text);
          yield turn.artifact({ parts: [text(name)] });
          await wait.opened;
        },
        { name: "Worker" },
      ),
    );
    return { served, wait, got };
  }

  function at(client: DelegateClient, url: string): DelegateClient {
    const supportedInterfaces = [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
    return new Proxy(client, {
      get(target, name) {
        if (name === "card") return { ...target.card, supportedInterfaces };
        const member: unknown = Reflect.get(target, name, target);
        return typeof member === "function" ? (member.bind(target) as unknown) : member;
      },
    });
  }

  test.each(["in", "after"] as const)(
    "sends nothing twice if the agent has another address: %s its work",
    async (moment) => {
      const { served, wait, got } = worker("done");
      const client = await served.client();
      if (moment === "after") wait.open();
      const over = await restarted([[client], [at(client, "https://elsewhere.example.com")]], moment);
      wait.open();
      expect((await over()).status.message?.parts[0]?.text).toBe("done");
      expect(got).toEqual(["Go"]);
    },
  );

  test("distinguishes agents with the same name and message", async () => {
    const [one, two] = [worker("one"), worker("two")];
    const clients = [await one.served.client(), await two.served.client()];
    two.wait.open();
    const over = await restarted([clients, clients.toReversed()], "in");
    one.wait.open();
    expect((await over()).status.message?.parts[0]?.text).toBe("two and one");
    expect([one.got, two.got]).toEqual([["Go"], ["Go"]]);
  });

  test("finds each of two with the same message if the agent has another address", async () => {
    const { served, wait, got } = worker("done");
    const client = await served.client();
    const other = at(client, "https://elsewhere.example.com");
    const over = await restarted(
      [
        [client, client],
        [other, other],
      ],
      "in",
    );
    wait.open();
    expect((await over()).status.message?.parts[0]?.text).toBe("done and done");
    expect(got).toEqual(["Go", "Go"]);
  });
});
