import { data, defineAgent, memoryStore, text, type Agent, type AgentDefinition } from "@parley/server";
import { apiKey } from "@parley/a2a/auth";
import { connect, type Client } from "@parley/a2a";
import {
  agentGateway,
  agp,
  agpErrors,
  agpUri,
  delegationPart,
  gatewayAgent,
  gatewayPeer,
  intentPart,
  type AgentGateway,
  type AgentGatewayOptions,
  type GatewayAgentOptions,
  type IntentPayload,
} from "@parley/extensions/agp";
import type { Part, SendMessageResponse } from "@parley/a2a/model";
import { serve, type ServeOptions } from "@parley/node";
import { grpcBinding } from "@parley/grpc/client";
import { describe, expect, onTestFinished, test } from "vitest";

const described = { description: "Does its work.", version: "1.0.0", skills: [], defaultInputModes: ["*/*"] };

const agentOf = (name: string, onMessage: AgentDefinition["onMessage"]): Agent =>
  defineAgent({ ...described, name, onMessage });

async function served(agent: Agent, options: Partial<ServeOptions> = {}) {
  const server = await serve(agent, {
    port: 0,
    grpc: true,
    signals: false,
    store: memoryStore(),
    logger: false,
    ...options,
  });
  onTestFinished(() => server.close({ grace: 0 }));
  return server;
}

/** Provisions a machine. The agent asks for the size, and returns the machine as an artifact. */
const provisioner = agentOf("Provisioner", async function* (turn) {
  if (turn.number === 1) return yield turn.inputRequired("How large?");
  yield turn.artifact({ name: "machine", parts: [text(`a ${turn.text} machine`)] });
  yield turn.completed("Provisioned");
});

const answerer = agentOf("Answerer", (turn) => {
  const [part] = turn.message.parts as readonly { readonly data?: Partial<IntentPayload> }[];
  return turn.reply(`Answered ${JSON.stringify(part?.data?.payload)}`);
});

const intent = (target_capability: string, more: Partial<IntentPayload> = {}): IntentPayload => ({
  target_capability,
  payload: { n: 1 },
  ...more,
});

const say = (...parts: Part[]) => ({ messageId: crypto.randomUUID(), role: "ROLE_USER" as const, parts });

/** Serves a gateway, and connects a client to it. */
async function gatewayWith(
  agents: Readonly<Record<string, Agent>>,
  more: {
    gateway?: Partial<AgentGatewayOptions>;
    agent?: Partial<GatewayAgentOptions>;
    serve?: Partial<ServeOptions>;
  } = {},
) {
  const clients = new Map<string, Client>();
  for (const [path, agent] of Object.entries(agents)) clients.set(path, await connect((await served(agent)).url));
  const gateway = agentGateway({ name: "Corporate", ...more.gateway });
  const agent = gatewayAgent({ gateway, agentAt: (path) => clients.get(path), ...more.agent });
  const server = await served(agent, more.serve);
  return { gateway, server, client: () => connect(server.url, { extensions: [agp()] }) };
}

const route = (capability: string, path: string, cost = 1) => ({
  capability,
  version: "1.0",
  cost,
  policy: { security_level: 3 },
  path,
});

const textOf = ({ message, task }: Pick<SendMessageResponse, "message" | "task">): string | undefined =>
  (message ?? task?.status.message)?.parts[0]?.text;

describe("a gateway agent", () => {
  test("passes an intent on: its question comes up, the answer goes down, and its artifact is passed on", async () => {
    const { client } = await gatewayWith(
      { "Engineering/vm": provisioner, "Vendor/vm": answerer },
      { gateway: { routes: [route("infra:provision", "Vendor/vm", 9), route("infra:provision", "Engineering/vm")] } },
    );
    const conversation = (await client()).conversation();
    const asked = await conversation.send(say(intentPart(intent("infra:provision"))));
    expect(asked.task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(textOf(asked)).toBe("How large?");
    const done = await conversation.send("small");
    expect(done.task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(textOf(done)).toBe("Provisioned");
    expect(done.task?.artifacts?.map(({ name, parts }) => [name, parts[0]?.text])).toEqual([
      ["machine", "a small machine"],
    ]);
  });

  test("keeps its chosen route, even if another one is cheaper when the answer comes", async () => {
    const { gateway, client } = await gatewayWith(
      { "Engineering/vm": provisioner, "Vendor/vm": answerer },
      { gateway: { routes: [route("infra:provision", "Engineering/vm", 5)] } },
    );
    const conversation = (await client()).conversation();
    await conversation.send(say(intentPart(intent("infra:provision"))));
    await gateway.announce({ announcement: route1("infra:provision", 0), path: "Vendor/vm" });
    const done = await conversation.send("small");
    expect(textOf(done)).toBe("Provisioned");
  });

  test("returns a direct reply of the other agent", async () => {
    const { client } = await gatewayWith({ a: answerer }, { gateway: { routes: [route("ask", "a")] } });
    const done = await (await client()).sendMessage(say(intentPart(intent("ask"))));
    expect(textOf(done)).toBe('Answered {"n":1}');
  });

  test("fails if the other agent fails, and if the path has none", async () => {
    const failing = agentOf("Failing", () => {
      throw new Error("The connection string is secret");
    });
    const { client } = await gatewayWith(
      { a: failing },
      { gateway: { routes: [route("fail", "a"), route("gone", "internal/path")] } },
    );
    const own = await client();
    const failed = await own.sendMessage(say(intentPart(intent("fail"))));
    expect(failed.task?.status.state).toBe("TASK_STATE_FAILED");
    const gone = await own.sendMessage(say(intentPart(intent("gone"))));
    expect(gone.task?.status.state).toBe("TASK_STATE_FAILED");
    expect(textOf(gone)).toBe("The agent of this route cannot be reached.");
    expect(textOf(failed)).toMatch(/^Failing/);
    expect(JSON.stringify([failed, gone])).not.toContain("connection string");
  });

  test("splits a delegation, and reports the result of each part", async () => {
    const { client } = await gatewayWith(
      { "Finance/budget": answerer, "HR/onboarding": answerer },
      {
        gateway: {
          routes: [route("budget:authorize", "Finance/budget"), route("onboarding:initiate", "HR/onboarding")],
        },
      },
    );
    const delegation = {
      meta_task: "Executive Project Launch",
      origin_squad: "HR",
      sub_intents: [intent("budget:authorize"), intent("onboarding:initiate"), intent("unknown:capability")],
    };
    const { task } = await (await client()).sendMessage(say(delegationPart(delegation)));
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task?.artifacts?.find(({ name }) => name === "delegation")?.parts[0]?.data).toEqual({
      "budget:authorize": "SUCCESS",
      "onboarding:initiate": "SUCCESS",
      "unknown:capability": "FAILED",
    });
  });

  test("rejects anything but one intent, and callers that did not request the extension", async () => {
    const { client, server } = await gatewayWith({ a: answerer }, { gateway: { routes: [route("ask", "a")] } });
    const own = await client();
    const refusal = async (call: Promise<unknown>) =>
      call.then(
        () => "taken",
        (error: unknown) => (error as { code: string }).code,
      );
    expect(await refusal(own.sendMessage("Do something"))).toBe("InvalidParams");
    const two = say(intentPart(intent("ask")), intentPart(intent("ask")));
    expect(await refusal(own.sendMessage(two))).toBe("InvalidParams");
    const malformed = say({ ...data({ target_capability: "ask" }), mediaType: "application/vnd.agp.intent+json" });
    expect(await refusal(own.sendMessage(malformed))).toBe("InvalidParams");
    const plain = await connect(server.url);
    expect(await refusal(plain.sendMessage(say(intentPart(intent("ask")))))).toBe("InvalidParams");
  });

  test("ignores a path that a client names", async () => {
    const { client } = await gatewayWith(
      { cheap: answerer, secret: agentOf("Secret", (turn) => turn.reply("Nobody should read this")) },
      { gateway: { routes: [route("ask", "cheap")] } },
    );
    const forged = { ...say(intentPart(intent("ask"))), metadata: { [`${agpUri}/paths`]: ["secret"] } };
    expect(textOf(await (await client()).sendMessage(forged))).toBe('Answered {"n":1}');
  });
});

function route1(capability: string, cost: number) {
  return { capability, version: "1.0", cost, policy: { security_level: 3 } };
}

const interfaces = ["JSONRPC", "HTTP+JSON", "GRPC"].flatMap((binding) =>
  ["1.0", "0.3"].map((version) => ({ binding, version })),
);

describe.each(interfaces)("over $binding of $version", ({ binding, version }) => {
  test("returns AGP errors to the caller, and creates no task (AGP §5)", async () => {
    let now = 0;
    const clock = { now: () => now, elapsed: () => now, after: () => () => {} };
    const { gateway, server } = await gatewayWith(
      { a: answerer },
      { gateway: { clock, lifetime: 1, routes: [route("ask", "a")] } },
    );
    await gateway.announce({ announcement: route1("brief", 1), path: "a" });
    now = 1000;
    const client = await connect(server.agents[0]?.card ?? "", {
      binding,
      version,
      retry: false,
      bindings: [grpcBinding()],
      extensions: [agp()],
    });
    const errorOf = async (value: IntentPayload): Promise<unknown> =>
      client.sendMessage(say(intentPart(value))).catch((error: unknown) => error);
    expect(agpErrors.routeNotFound.is(await errorOf(intent("unknown")))).toBe(true);
    const violation = await errorOf(intent("ask", { policy_constraints: { security_level: 9 } }));
    expect(agpErrors.policyViolation.is(violation)).toBe(true);
    expect(agpErrors.tableStale.is(await errorOf(intent("brief")))).toBe(true);
    expect(textOf(await client.sendMessage(say(intentPart(intent("ask")))))).toBe('Answered {"n":1}');
  });

  test("squads announce and withdraw, each within its permissions (AGP §1)", async () => {
    const { server } = await gatewayWith(
      { "Engineering/ask": answerer },
      {
        gateway: { policy: { mayAnnounce: ({ subject }, { path }) => path.startsWith(`${subject}/`) } },
        serve: {
          authenticator: apiKey({
            "key-of-engineering-0123456789": { subject: "Engineering" },
            "key-of-vendor-0123456789": { subject: "Vendor" },
          }),
        },
      },
    );
    const own = agp();
    const as = (key: string) =>
      connect(server.agents[0]?.card ?? "", {
        binding,
        version,
        bindings: [grpcBinding()],
        extensions: [own],
        headers: { "x-api-key": key },
        credentialOrigins: [server.url],
      });
    const engineering = await as("key-of-engineering-0123456789");
    const vendor = await as("key-of-vendor-0123456789");
    const request = { announcement: route1("ask", 1), path: "Engineering/ask" };
    await expect(vendor.ext(own).call("agp/announce", request)).rejects.toMatchObject({ code: "PermissionDenied" });
    expect(await engineering.ext(own).call("agp/announce", request)).toEqual({ accepted: true, expires_in: 300 });
    expect(await vendor.ext(own).call("agp/routes", { capability: "ask" })).toEqual({
      routes: { ask: [{ path: "Engineering/ask", cost: 1, policy: { security_level: 3 } }] },
    });
    expect(textOf(await vendor.sendMessage(say(intentPart(intent("ask")))))).toBe('Answered {"n":1}');
    const gone = { capability: "ask", path: "Engineering/ask" };
    await expect(vendor.ext(own).call("agp/withdraw", gone)).rejects.toMatchObject({ code: "PermissionDenied" });
    expect(await engineering.ext(own).call("agp/withdraw", gone)).toEqual({ withdrawn: true });
    expect(await engineering.ext(own).call("agp/routes", {})).toEqual({ routes: {} });
  });
});

describe("gateways that are peers", () => {
  /** Tests gateways in a chain, each of which forwards intents that it cannot handle to the next gateway. */
  test("pass an intent to each other, and a circle ends with an error", async () => {
    const own = agp();
    const worker = await connect((await served(answerer)).url);
    const clients = new Map<string, Client>([["worker", worker]]);
    const policy = { mayAnnounce: () => true };
    const first = agentGateway({ name: "First", policy });
    const agentAt = (path: string) => clients.get(path);
    const firstServer = await served(gatewayAgent({ gateway: first, agentAt }));
    const toFirst = await connect(firstServer.url, { extensions: [own] });
    const second: AgentGateway = agentGateway({
      name: "Second",
      policy,
      routes: [route("ask", "worker")],
      peers: [gatewayPeer("First", toFirst.ext(own))],
    });
    const secondServer = await served(gatewayAgent({ gateway: second, agentAt }));
    clients.set("Second", await connect(secondServer.url, { extensions: [own] }));
    clients.set("First", toFirst);
    await second.advertise();
    expect((await first.routes()).routes["ask"]).toMatchObject([{ path: "Second", cost: 1 }]);
    expect(textOf(await toFirst.sendMessage(say(intentPart(intent("ask")))))).toBe('Answered {"n":1}');
    // Each gateway has a route to the other gateway.
    await first.announce({ announcement: route1("circle", 1), path: "Second" });
    await second.announce({ announcement: route1("circle", 1), path: "First" });
    const { task } = await toFirst.sendMessage(say(intentPart(intent("circle"))));
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
  });
});
