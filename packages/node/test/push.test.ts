import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { defineAgent, memoryStore, type Agent } from "@parley/server";
import type { Logger } from "@parley/a2a/protocol";
import type { AgentInterface } from "@parley/a2a/model";
import { sqliteStore } from "@parley/sql/sqlite";
import { connect, nodeDialer, serve, type ServeOptions, type Server } from "../src/index.ts";
import { certificateFor } from "./support/certificate.ts";

/** Tests a real server's webhooks over every binding and version, from registration to delivery. */

const closers: (() => unknown)[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const close of closers.splice(0).toReversed()) await close();
});

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "parley-push-"));
  closers.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const key = Buffer.alloc(32, 1).toString("base64");

/** Creates an agent that asks a question first, and ends with the second message. */
function asking(capabilities: Agent["capabilities"] = {}): Agent {
  return defineAgent({
    name: "Asking",
    description: "Asks back.",
    version: "1.0.0",
    skills: [],
    capabilities,
    async *onMessage(turn) {
      if (turn.task === undefined) yield turn.inputRequired("Which city?");
      else yield turn.completed("Thank you");
    },
  });
}

async function start(options: ServeOptions = {}, agent = asking()): Promise<Server> {
  const common = { port: 0, grpc: true, signals: false, store: memoryStore(), logger: false } as const;
  const server = await serve(agent, { ...common, ...options });
  closers.push(() => server.close({ grace: 0 }));
  return server;
}

interface Line {
  readonly level: string;
  readonly message: string;
}

function recordingLogger(): { readonly logger: Logger; readonly lines: readonly Line[] } {
  const lines: Line[] = [];
  const write = (level: string) => (message: string) => void lines.push({ level, message });
  return {
    logger: { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") },
    lines,
  };
}

interface Hook {
  readonly url: string;
  /** The authorization and the token of each request, in order. */
  readonly seen: readonly string[];
}

async function hook(): Promise<Hook> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    const { authorization, "x-a2a-notification-token": token } = request.headers;
    seen.push(`${authorization} ${String(token)}`);
    request.resume().on("end", () => response.end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, seen };
}

const nameOf = ({ protocolBinding, protocolVersion }: AgentInterface): string =>
  `${protocolBinding} ${protocolVersion}`;

const faces = ["JSONRPC 1.0", "HTTP+JSON 1.0", "GRPC 1.0", "JSONRPC 0.3", "HTTP+JSON 0.3", "GRPC 0.3"];

async function clientOf(server: Server, face: string): Promise<Awaited<ReturnType<typeof connect>>> {
  const card = server.agents[0]?.card;
  if (card === undefined) throw new Error("The server has no agent");
  expect(card.supportedInterfaces.map(nameOf).toSorted()).toEqual(faces.toSorted());
  const supportedInterfaces = card.supportedInterfaces.filter((each) => nameOf(each) === face);
  return connect({ ...card, supportedInterfaces });
}

describe("webhooks over each binding and version (A2A 1.0 §3.1.7 to §3.1.10, 0.3 §7.5 to §7.8)", () => {
  it.each(faces)("%s: are created, read, listed and deleted", async (face) => {
    const client = await clientOf(await start({ push: true }), face);
    const { task } = await client.sendMessage("hello");
    const taskId = task?.id ?? "";
    const { url } = await hook();
    const authentication = { scheme: "Bearer", credentials: "secret-credentials" };
    const made = await client.createTaskPushNotificationConfig({ taskId, url, token: "secret-token", authentication });
    const { id = "" } = made;
    expect(id).not.toBe("");
    const shown = { id, taskId, url, authentication: { scheme: "Bearer" } };
    expect(made).toEqual(shown);
    expect(await client.getTaskPushNotificationConfig({ taskId, id })).toEqual(shown);
    await client.createTaskPushNotificationConfig({ taskId, id: "second", url });
    const { configs } = await client.listTaskPushNotificationConfigs({ taskId });
    expect(configs).toEqual([shown, { id: "second", taskId, url }]);
    for (const each of [id, id]) await client.deleteTaskPushNotificationConfig({ taskId, id: each });
    await expect(client.getTaskPushNotificationConfig({ taskId, id })).rejects.toMatchObject({ code: "TaskNotFound" });
    expect((await client.listTaskPushNotificationConfigs({ taskId })).configs).toHaveLength(1);
  });

  it.each(faces)("%s: arrive with a message, and get the events of its task with their secrets", async (face) => {
    const client = await clientOf(await start({ push: true }), face);
    const { url, seen } = await hook();
    const authentication = { scheme: "Bearer", credentials: "c" };
    const config = { url, token: "t", authentication };
    const { task } = await client.sendMessage({
      message: "hello",
      configuration: { taskPushNotificationConfig: config },
    });
    await vi.waitFor(() => expect(seen.length).toBeGreaterThan(0));
    await client.sendMessage({ parts: [{ text: "Oslo" }], taskId: task?.id ?? "" });
    await vi.waitFor(() => expect(seen.length).toBeGreaterThan(1));
    expect(new Set(seen)).toEqual(new Set(["Bearer c t"]));
  });

  it.each(faces)("%s: bad input gets InvalidParams, someone else's task TaskNotFound", async (face) => {
    const client = await clientOf(await start({ push: true }), face);
    const { task } = await client.sendMessage("hello");
    const taskId = task?.id ?? "";
    const refused = client.createTaskPushNotificationConfig({ taskId, url: "http://10.0.0.1/" });
    await expect(refused).rejects.toMatchObject({ code: "InvalidParams", message: expect.stringContaining("url") });
    const missing = client.createTaskPushNotificationConfig({ taskId: "other", url: "https://hooks.example.org/" });
    await expect(missing).rejects.toMatchObject({ code: "TaskNotFound" });
  });

  it.each(faces)("%s: are rejected if the server has no push, also within a message (§3.3.4)", async (face) => {
    const server = await start();
    const client = await clientOf(server, face);
    // Changes the card, because otherwise the client itself would reject the call.
    Object.assign(client.card.capabilities, { pushNotifications: true });
    const config = { taskId: "t", url: "https://hooks.example.org/" };
    const code = { code: "PushNotificationNotSupported" };
    await expect(client.createTaskPushNotificationConfig(config)).rejects.toMatchObject(code);
    await expect(client.listTaskPushNotificationConfigs(config)).rejects.toMatchObject(code);
    const configuration = { taskPushNotificationConfig: { url: config.url } };
    await expect(client.sendMessage({ message: "hello", configuration })).rejects.toMatchObject(code);
  });

  it("0.3 reads the newest config if the request names none (0.3 §7.6)", async () => {
    const server = await start({ push: true });
    const client = await clientOf(server, "JSONRPC 0.3");
    const { task } = await client.sendMessage("hello");
    const taskId = task?.id ?? "";
    for (const id of ["z", "a"])
      await client.createTaskPushNotificationConfig({ taskId, id, url: `${server.url}/${id}` });
    const body = { jsonrpc: "2.0", id: 1, method: "tasks/pushNotificationConfig/get", params: { id: taskId } };
    const headers = { "content-type": "application/json" };
    const response = await fetch(server.url, { method: "POST", headers, body: JSON.stringify(body) });
    expect(await response.json()).toMatchObject({
      result: { taskId, pushNotificationConfig: { id: "a", url: `${server.url}/a` } },
    });
  });
});

describe("webhooks in SQLite", () => {
  it("get their events with their secrets from the next process, even after the key was replaced", async () => {
    const folder = await temporaryFolder();
    const path = join(folder, "parley.db");
    const open = async (...keys: readonly string[]): Promise<Server> => {
      const store = await sqliteStore({ path });
      closers.push(() => store.close());
      return start({ store, push: { keys } });
    };
    const { url, seen } = await hook();
    const first = await open(key);
    const client = await clientOf(first, "JSONRPC 1.0");
    const config = { url, token: "t", authentication: { scheme: "Basic", credentials: "c" } };
    const { task } = await client.sendMessage("hello");
    const taskId = task?.id ?? "";
    await client.createTaskPushNotificationConfig({ taskId, ...config });
    expect(seen).toEqual([]);
    for (const close of closers.splice(-2).toReversed()) await close();

    const second = await open(Buffer.alloc(32, 2).toString("base64"), key);
    await (await clientOf(second, "JSONRPC 1.0")).sendMessage({ parts: [{ text: "Oslo" }], taskId });
    await vi.waitFor(() => expect(new Set(seen)).toEqual(new Set(["Basic c t"])));
  });

  it("have no secret in the file in clear", async () => {
    const folder = await temporaryFolder();
    const store = await sqliteStore({ path: join(folder, "parley.db") });
    const client = await clientOf(await start({ store, push: { keys: [key] } }), "JSONRPC 1.0");
    const { url } = await hook();
    const authentication = { scheme: "Bearer", credentials: "the-credentials" };
    const taskPushNotificationConfig = { url, token: "the-token", authentication };
    await client.sendMessage({ message: "hello", configuration: { taskPushNotificationConfig } });
    for (const close of closers.splice(-2)) await close();
    await store.close();
    const files = await readdir(folder);
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      const content = (await readFile(join(folder, file))).toString("latin1");
      expect(content).not.toMatch(/the-token|the-credentials/);
    }
  });
});

describe("the card", () => {
  it("declares pushNotifications if push is on, unless the agent has none", async () => {
    const cards = [
      await start(),
      await start({ push: false }),
      await start({ push: true }),
      await start({ push: true }, asking({ pushNotifications: false })),
    ].map(({ agents }) => agents[0]?.card.capabilities.pushNotifications);
    expect(cards).toEqual([undefined, undefined, true, false]);
  });
});

describe("the keys of push", () => {
  it("are generated for the process on a loopback address, with a warning", async () => {
    const { logger, lines } = recordingLogger();
    await start({ push: true, logger });
    expect(lines).toContainEqual(
      expect.objectContaining({ level: "warn", message: expect.stringContaining("push.keys") }),
    );
  });

  it("come from the environment, without a warning", async () => {
    vi.stubEnv("PARLEY_KEYS", ` ${key} , ${Buffer.alloc(32, 2).toString("base64")},`);
    const { logger, lines } = recordingLogger();
    const server = await start({ push: true, logger });
    expect(lines.filter(({ level }) => level === "warn")).toEqual([]);
    const { keys } = (await (await fetch(`${server.url}/.well-known/jwks.json`)).json()) as { keys: unknown[] };
    expect(keys).toHaveLength(2);
  });

  it("are required on other addresses, whatever publicUrl says", async () => {
    const open = { host: "0.0.0.0", insecure: true, push: true } as const;
    for (const publicUrl of ["http://localhost:4000", "https://agents.example.com"]) {
      await expect(start({ ...open, publicUrl })).rejects.toThrow("PARLEY_KEYS");
    }
    vi.stubEnv("PARLEY_KEYS", key);
    await start({ ...open, publicUrl: "https://agents.example.com" });
  });

  it("are required if a proxy makes the server public", async () => {
    const proxied = start({ push: true, publicUrl: "https://agents.example.com" });
    await expect(proxied).rejects.toMatchObject({ code: "InvalidParams", fields: [{ field: "push.keys" }] });
  });

  it.each(["short", "c2hvcnQ=", `${key}A`])("that are invalid are rejected and not shown (%#)", async (wrong) => {
    const server = start({ push: { keys: [key, wrong] } });
    const error = await server.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code: "InvalidParams", fields: [{ field: "push.keys[1]" }] });
    expect(String(error)).not.toContain(wrong);
  });
});

describe("the addresses of webhooks", () => {
  it("on this machine are rejected by a server that others reach", async () => {
    const options = { host: "0.0.0.0", insecure: true, publicUrl: "http://localhost:4000", push: { keys: [key] } };
    const server = await start(options);
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }] };
    for (const host of ["127.0.0.1", "localhost", "[::1]"]) {
      const configuration = { taskPushNotificationConfig: { url: `http://${host}:${server.port}/` } };
      const response = await fetch(`http://127.0.0.1:${server.port}/message:send`, {
        method: "POST",
        headers: { "content-type": "application/json", "a2a-version": "1.0" },
        body: JSON.stringify({ message, configuration }),
      });
      expect(response.status).toBe(400);
      expect(await response.text()).toContain("configuration.taskPushNotificationConfig.url");
    }
  });
});

describe("a config with MutualTLS", () => {
  it("is called with the server's client certificate, which other receivers do not get", async () => {
    const [receiver, sender] = [await certificateFor("hooks.example"), await certificateFor("sender.example")];
    const seen: unknown[] = [];
    const tls = createTlsServer({ ...receiver, ca: sender.cert, requestCert: true, rejectUnauthorized: false });
    tls.on("request", (request, response) => {
      const subject = (request.socket as TLSSocket).getPeerCertificate().subject;
      seen.push([request.url, subject?.CN]);
      request.resume().on("end", () => response.writeHead(204).end());
    });
    await new Promise<void>((resolve) => tls.listen(0, "127.0.0.1", resolve));
    closers.push(() => {
      tls.closeAllConnections();
      tls.close();
    });
    const resolve = () => Promise.resolve([{ address: "127.0.0.1", family: 4 } as const]);
    const server = await start({
      push: {
        dialer: nodeDialer({ resolve, tls: { ca: receiver.cert } }),
        mutualTls: nodeDialer({ resolve, tls: { ca: receiver.cert, ...sender } }),
      },
    });
    const client = await connect(server.url);
    const { task } = await client.sendMessage("Weather?");
    const taskId = task?.id ?? "";
    const url = `https://hooks.example:${(tls.address() as AddressInfo).port}`;
    await client.createTaskPushNotificationConfig({
      taskId,
      url: `${url}/mutual`,
      authentication: { scheme: "MutualTLS" },
    });
    await client.createTaskPushNotificationConfig({ taskId, url: `${url}/other` });
    await client.sendMessage({ message: { taskId, parts: [{ text: "Berlin" }] } });
    await vi.waitFor(() => {
      const all = new Set(seen.map((each) => JSON.stringify(each)));
      expect([...all].sort()).toEqual(['["/mutual","sender.example"]', '["/other",null]']);
    }, 20_000);
  });
});
