import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { defineAgent, memoryStore, MessageRefused, text, type Agent, type AgentDefinition } from "@parley/server";
import { apiKey } from "@parley/a2a/auth";
import { connect, type Client, type ConnectOptions } from "@parley/a2a";
import { agentGateway, agp, delegationPart, gatewayAgent, intentPart } from "@parley/extensions/agp";
import { idempotentSends } from "@parley/a2a/extensions";
import type { AgentCard, Task } from "@parley/a2a/model";
import { serve, type ServeOptions } from "@parley/node";
import { wasRefused } from "@parley/server/internal/agent/delegate/calls";
import { describe, expect, onTestFinished, test } from "vitest";

/* If a gateway's cheapest route fails (AGP §3, §5), the gateway tries the next route, and no work is done twice. */

const described = { description: "Does its work.", version: "1.0.0", skills: [], defaultInputModes: ["*/*"] };

/** Creates an agent that counts its calls. */
function squad(name: string, onMessage?: AgentDefinition["onMessage"]) {
  const counted = { turns: 0 };
  const agent = defineAgent({
    ...described,
    name,
    async *onMessage(turn) {
      counted.turns += 1;
      if (onMessage === undefined) yield turn.artifact({ parts: [text(`done by ${name}`)] });
      else yield* (onMessage as (given: unknown) => AsyncGenerator<never, void, void>)(turn);
    },
  });
  return { agent, counted };
}

async function served(agent: Agent, options: Partial<ServeOptions> = {}) {
  const server = await serve(agent, { port: 0, signals: false, store: memoryStore(), logger: false, ...options });
  onTestFinished(() => server.close({ grace: 0 }));
  return server;
}

/** Makes a client give up early, so that the gateway tries the next route. */
const soon: ConnectOptions = { retry: { budget: 500 }, reconnect: { budget: 2_000 } };

const clientOf = async (agent: Agent, options: Partial<ServeOptions> = {}): Promise<Client> =>
  connect((await served(agent, options)).url, soon);

/** Creates a gateway with routes to these clients. The first route is the cheapest. */
async function gatewayTo(...clients: readonly (Client | undefined)[]) {
  const routes = clients.map((_, at) => ({ capability: "work", version: "1", cost: at, policy: {}, path: `p${at}` }));
  const agent = gatewayAgent({
    gateway: agentGateway({ name: "G", routes }),
    agentAt: (path) => clients[Number(path.slice(1))],
  });
  const client = await connect((await served(agent)).url, { extensions: [agp()] });
  const intent = { target_capability: "work", payload: {} };
  const ask = async (...parts: Parameters<typeof client.sendMessage>): Promise<Task | undefined> =>
    (await client.sendMessage(...parts)).task;
  return {
    client,
    send: () => ask({ message: { parts: [intentPart(intent)] } }),
    delegate: () =>
      ask({
        message: { parts: [delegationPart({ meta_task: "m", origin_squad: "s", sub_intents: [intent, intent] })] },
      }),
  };
}

const textOf = (task: Task | undefined) => task?.artifacts?.[0]?.parts[0]?.text;

/** Returns a client of an agent whose server has closed. */
async function away(): Promise<{ readonly client: Client; back(agent: Agent): Promise<void> }> {
  const server = await served(squad("Away").agent);
  const client = await connect(server.url, soon);
  const { port } = new URL(server.url);
  await server.close({ grace: 0 });
  return { client, back: async (agent) => void (await served(agent, { port: Number(port) })) };
}

/** Returns a client of an agent that breaks connections according to `behave`. `promises`: its card declares that messages may be sent twice. */
async function broken(
  behave: (server: Server, request: number) => number | undefined,
  promises = false,
): Promise<{ readonly client: Client; requests(): number }> {
  let requests = 0;
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      requests += 1;
      const status = behave(server, requests);
      if (status === undefined) request.socket.destroy();
      else response.writeHead(status).end();
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const card: AgentCard = {
    ...described,
    name: "Broken",
    capabilities: promises ? { extensions: [{ uri: idempotentSends.uri }] } : {},
    defaultOutputModes: ["*/*"],
    supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  };
  return { client: await connect(card, soon), requests: () => requests };
}

describe("the next route is tried", () => {
  test("if the agent of the cheapest route is unavailable, which gets no intent when it is back", async () => {
    const first = squad("First");
    const second = squad("Second");
    const gone = await away();
    const { send } = await gatewayTo(gone.client, await clientOf(second.agent));
    expect(textOf(await send())).toBe("done by Second");
    await gone.back(first.agent);
    expect(textOf(await send())).toBe("done by First");
    expect([first.counted.turns, second.counted.turns]).toEqual([1, 1]);
  });

  test("if no agent is at its path", async () => {
    const { send } = await gatewayTo(undefined, undefined, await clientOf(squad("Third").agent));
    expect(textOf(await send())).toBe("done by Third");
  });

  const refusing: readonly (readonly [name: string, agent: Agent, options: Partial<ServeOptions>])[] = [
    [
      "cannot use the message",
      squad("Picky", async function* (turn) {
        if (turn.number > 1) yield turn.working("Again");
        throw new MessageRefused([{ field: "message.parts", description: "are not for me" }]);
      }).agent,
      {},
    ],
    [
      "rejects its task at once",
      squad("Busy", async function* (turn) {
        yield turn.rejected("I have enough to do.");
      }).agent,
      {},
    ],
    [
      "does not know the gateway",
      squad("Closed").agent,
      { authenticator: apiKey({ "key-of-ada-0123456789": { subject: "ada" } }) },
    ],
    [
      "is a gateway without a route",
      gatewayAgent({ gateway: agentGateway({ name: "H" }), agentAt: () => undefined }),
      {},
    ],
  ];
  test.each(refusing)("if it %s", async (_, agent, options) => {
    const server = await served(agent, options);
    const first = await connect(server.url, agent.name === "H" ? { extensions: [agp()] } : {});
    const second = squad("Second");
    const { send } = await gatewayTo(first, await clientOf(second.agent));
    expect(textOf(await send())).toBe("done by Second");
    expect(second.counted.turns).toBe(1);
  });

  test("for each part of a delegation", async () => {
    const second = squad("Second");
    const { delegate } = await gatewayTo((await away()).client, await clientOf(second.agent));
    const task = await delegate();
    expect(task?.artifacts?.find(({ name }) => name === "delegation")?.parts[0]?.data).toEqual({ work: "SUCCESS" });
    expect(second.counted.turns).toBe(2);
  });

  test("at most three times, then the task fails", async () => {
    const last = squad("Last");
    const gone = await away();
    const { send } = await gatewayTo(undefined, undefined, undefined, gone.client, await clientOf(last.agent));
    const task = await send();
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
    expect(task?.status.message?.parts[0]?.text).toMatch(/^Away could not do its part/);
    expect(last.counted.turns).toBe(0);
  });
});

test("a client reports that a message may have arrived, if its answer was lost before the agent became unavailable", async () => {
  const lost = await broken((server) => void server.close(), true);
  const error: unknown = await lost.client.sendMessage("Work").catch((thrown: unknown) => thrown);
  expect(lost.requests()).toBe(1);
  expect(wasRefused(error)).toBe(false);
  const never: unknown = await lost.client.sendMessage("Work").catch((thrown: unknown) => thrown);
  expect(wasRefused(never)).toBe(true);
});

describe("no second route is tried if the first agent may have the intent", () => {
  test.each([
    ["the connection ends without an answer", () => undefined],
    ["it is not available, and nobody says whether it was before", () => 503],
    ["it fails inside", () => 500],
  ])("if %s", async (_, behave) => {
    const first = await broken(behave);
    const second = squad("Second");
    const { send } = await gatewayTo(first.client, await clientOf(second.agent));
    expect((await send())?.status.state).toBe("TASK_STATE_FAILED");
    expect(first.requests()).toBeGreaterThan(0);
    expect(second.counted.turns).toBe(0);
  });

  test.each<[string, NonNullable<AgentDefinition["onMessage"]>]>([
    [
      "fails",
      async function* (turn) {
        yield turn.failed("It is broken.");
      },
    ],
    [
      "throws before its first event",
      async function* (turn) {
        if (turn.number > 1) yield turn.working("Again");
        throw new Error("It is broken");
      },
    ],
    [
      "rejects after it has worked",
      async function* (turn) {
        yield turn.artifact({ parts: [text("half")] });
        yield turn.rejected("No.");
      },
    ],
  ])("if it %s", async (_, onMessage) => {
    const second = squad("Second");
    const { send } = await gatewayTo(await clientOf(squad("First", onMessage).agent), await clientOf(second.agent));
    expect((await send())?.status.state).toBe("TASK_STATE_FAILED");
    expect(second.counted.turns).toBe(0);
  });
});
