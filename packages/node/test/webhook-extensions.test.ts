import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { defineAgent } from "@parley/server";
import { defineExtension } from "@parley/a2a/extensions";
import { sqliteStore } from "@parley/sql/sqlite";
import { serve, type Server } from "../src/index.ts";

/** Each webhook has the extensions of the request that registered it (A2A 1.0 §4.6), in headers and bodies, even after a restart. */

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

const key = Buffer.alloc(32, 1).toString("base64");
const greeting = "urn:example:greeting";
const plain = "urn:example:plain";

/** Stamps deliveries, which are statuses in 1.0 and tasks in 0.3. */
const greets = defineExtension({
  uri: greeting,
  onDeliver(event) {
    const { task, statusUpdate } = event;
    if (task !== undefined) return { task: { ...task, metadata: { ...task.metadata, hello: "reader" } } };
    if (statusUpdate === undefined) return event;
    return { statusUpdate: { ...statusUpdate, metadata: { ...statusUpdate.metadata, hello: "reader" } } };
  },
});

interface Hook {
  readonly url: string;
  readonly seen: readonly { readonly path: string; readonly headers: IncomingHttpHeaders; readonly text: string }[];
}

async function hook(): Promise<Hook> {
  const seen: { path: string; headers: IncomingHttpHeaders; text: string }[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    request.on("end", () => {
      seen.push({ path: request.url ?? "", headers: request.headers, text });
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(
    () => new Promise((resolve) => server.close(resolve)),
    () => server.closeAllConnections(),
  );
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, seen };
}

async function start(path: string, withExtensions = true): Promise<Server> {
  const agent = defineAgent({
    name: "Asking",
    description: "Asks back, three times.",
    version: "1.0.0",
    skills: [],
    ...(withExtensions && { extensions: [greets, { uri: plain }] }),
    async *onMessage(turn) {
      if (turn.number < 3) yield turn.inputRequired(`Question ${turn.number}`);
      else yield turn.completed("Thank you");
    },
  });
  const store = await sqliteStore({ path });
  const server = await serve(agent, { port: 0, signals: false, logger: false, push: { keys: [key] }, store });
  const close = async (): Promise<void> => {
    await server.close({ grace: 0 });
    await store.close();
  };
  closers.push(close);
  return { ...server, close };
}

/** Makes a call over JSON-RPC. */
async function call(
  server: Server,
  method: string,
  params: object,
  headers: Record<string, string>,
): Promise<{ readonly task: { readonly id: string }; readonly active: string | null }> {
  const response = await fetch(server.url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { result, error } = (await response.json()) as {
    result: { task?: { id: string }; id: string };
    error?: unknown;
  };
  expect(error).toBeUndefined();
  return {
    task: result.task ?? result,
    active: response.headers.get("a2a-extensions") ?? response.headers.get("x-a2a-extensions"),
  };
}

const message = (more: object = {}) => ({
  messageId: crypto.randomUUID(),
  role: "ROLE_USER",
  parts: [{ text: "hi" }],
  ...more,
});

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "parley-push-extensions-"));
  closers.push(() => rm(made, { recursive: true, force: true }));
  return join(made, "a.db");
}

/** Returns the header of the delivery of a text, and whether the extension changed its body. */
async function delivered(seen: Hook["seen"], path: string, text: string): Promise<readonly unknown[]> {
  const find = () => seen.find((each) => each.path === path && each.text.includes(text));
  await vi.waitFor(() => expect(find()).toBeDefined());
  const found = find();
  return [found?.headers["a2a-extensions"], found?.text.includes('"hello":"reader"')];
}

test("of 1.0: with the message or later, after a restart, if the agent still has the extensions", async () => {
  const { url, seen } = await hook();
  const file = await folder();
  let server = await start(file);
  const v1 = { "a2a-version": "1.0" };
  const asking = { ...v1, "a2a-extensions": `urn:unknown, ${plain},${greeting}` };
  const sent = await call(
    server,
    "SendMessage",
    { message: message(), configuration: { taskPushNotificationConfig: { id: "with", url: `${url}with` } } },
    asking,
  );
  expect(sent.active).toBe(`${greeting}, ${plain}`);
  const taskId = sent.task.id;
  await call(
    server,
    "CreateTaskPushNotificationConfig",
    { id: "later", taskId, url: `${url}later` },
    { ...v1, "a2a-extensions": plain },
  );
  await call(server, "CreateTaskPushNotificationConfig", { id: "none", taskId, url: `${url}none` }, v1);
  expect(await delivered(seen, "/with", "Question 1")).toEqual([`${greeting}, ${plain}`, true]);
  await server.close();

  // The next message does not request the extensions, but a webhook has the extensions of the request that registered it.
  server = await start(file);
  await call(server, "SendMessage", { message: message({ taskId }) }, v1);
  expect(await delivered(seen, "/with", "Question 2")).toEqual([`${greeting}, ${plain}`, true]);
  expect(await delivered(seen, "/later", "Question 2")).toEqual([plain, false]);
  expect(await delivered(seen, "/none", "Question 2")).toEqual([undefined, false]);
  await server.close();

  server = await start(file, false);
  await call(server, "SendMessage", { message: message({ taskId }) }, v1);
  expect(await delivered(seen, "/with", "Thank you")).toEqual([undefined, false]);
});

test("of 0.3, under the header name of 0.3", async () => {
  const { url, seen } = await hook();
  const server = await start(await folder());
  const params = {
    message: { kind: "message", messageId: "m", role: "user", parts: [{ kind: "text", text: "hi" }] },
    configuration: { blocking: true, pushNotificationConfig: { url } },
  };
  const { active } = await call(server, "message/send", params, { "x-a2a-extensions": greeting });
  expect(active).toBe(greeting);
  await vi.waitFor(() => expect(seen.length).toBeGreaterThan(0));
  expect(seen[0]?.headers["x-a2a-extensions"]).toBe(greeting);
  expect(seen[0]?.headers["a2a-extensions"]).toBeUndefined();
  expect(JSON.parse(seen[0]?.text ?? "")).toMatchObject({ kind: "task", metadata: { hello: "reader" } });
});
