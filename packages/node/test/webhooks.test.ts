import { createServer, request, type RequestListener, type Server } from "node:http";
import { createServer as createHttp2 } from "node:http2";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { Webhook } from "standardwebhooks";
import { afterEach, describe, expect, it } from "vitest";
import { webhookReceiver, type WebhookReceiver, type WebhookReceiverOptions } from "@parley/a2a/webhooks";
import { expressMount } from "../src/express.ts";
import { fastifyMount } from "../src/fastify.ts";
import { nodeListener } from "../src/http/listener.ts";

/** Tests the receiver on each host. The Standard Webhooks library calls the receiver over a socket. */

const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
/** A spelling that no serializer would reproduce, with a space, an escape, and a number with an exponent. */
const body =
  '{"statusUpdate": {"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"},"metadata":{"\\u00e9":1e0}}}';
const seen: string[] = [];

function receiver(options: Partial<WebhookReceiverOptions> = {}): WebhookReceiver {
  return webhookReceiver({
    url: "https://app.example.com/hooks",
    accept: { secret },
    onEvent: (_event, { taskId, id }) => void seen.push(`${taskId} ${id}`),
    ...options,
  });
}

const closers: (() => unknown)[] = [];
afterEach(async () => {
  seen.length = 0;
  for (const close of closers.splice(0)) await close();
});

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const onNode = (listener: RequestListener): Promise<string> => listen(createServer(listener));

let count = 0;

/** Sends the body as a sender that uses the library does. */
async function post(base: string, contentType = "application/a2a+json", path = "/hooks"): Promise<number> {
  const id = `msg_${(count += 1)}x`;
  const now = new Date();
  const response = await fetch(base + path, {
    method: "POST",
    headers: {
      "content-type": contentType,
      "webhook-id": id,
      "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
      "webhook-signature": new Webhook(secret).sign(id, now, body),
    },
    body,
  });
  await response.body?.cancel();
  return response.status;
}

const hosts: Readonly<Record<string, (given: WebhookReceiver) => Promise<string>>> = {
  "node:http": (given) => onNode(nodeListener(given.handle)),
  Express: (given) => onNode(express().use(expressMount(given))),
  "Express after express.json()": (given) => onNode(express().use(express.json(), expressMount(given))),
  "Express after express.raw() for all types": (given) =>
    onNode(express().use(express.raw({ type: "*/*" }), expressMount(given))),
  async Fastify(given) {
    const app = fastify();
    closers.push(() => app.close());
    await app.register(fastifyMount(given));
    return app.listen({ port: 0, host: "127.0.0.1" });
  },
  Hono: (given) =>
    new Promise((resolve) => {
      const app = new Hono().post("/hooks", (context) => given.fetch(context.req.raw));
      // Other tests in this process need Node's `Response`.
      const own = { overrideGlobalObjects: false, port: 0, hostname: "127.0.0.1" };
      const server = serve({ fetch: app.fetch, ...own }, ({ port }) => {
        resolve(`http://127.0.0.1:${port}`);
      });
      closers.push(() => server.close());
    }),
};

describe.each(Object.entries(hosts))("a receiver behind %s", (_name, host) => {
  it("accepts what the library of Standard Webhooks signed, byte for byte", async () => {
    const base = await host(receiver());
    expect(await post(base)).toBe(204);
    expect(seen).toEqual([`t1 msg_${count}x`]);
  });

  it("leaves other paths to the host", async () => {
    expect(await post(await host(receiver()), "application/a2a+json", "/other")).toBe(404);
  });
});

it("a receiver behind HTTP/2 accepts them too", async () => {
  const server = createHttp2(nodeListener(receiver().handle));
  expect(server).toBeDefined();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { connect } = await import("node:http2");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const now = new Date();
  const stream = session.request({
    ":method": "POST",
    ":path": "/hooks",
    "content-type": "application/a2a+json",
    "webhook-id": "over-h2",
    "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
    "webhook-signature": new Webhook(secret).sign("over-h2", now, body),
  });
  const status = await new Promise<unknown>((resolve, reject) => {
    stream.on("response", (headers) => resolve(headers[":status"])).on("error", reject);
    stream.end(body);
  });
  expect(status).toBe(204);
  expect(seen).toEqual(["t1 over-h2"]);
  session.close();
  await new Promise((resolve) => server.close(resolve));
});

describe("a parser that read the body before the receiver", () => {
  it("is named in the log and answered with 500, because no signature verifies: the sender retries", async () => {
    const lines: string[] = [];
    const keep = (message: string, fields?: object): void => {
      const { cause } = (fields ?? {}) as { readonly cause?: Error };
      lines.push(`${message} ${cause?.message ?? ""}`);
    };
    const logger = { debug: keep, info: keep, warn: keep, error: keep };
    const base = await onNode(express().use(express.json(), expressMount(receiver({ logger }))));
    expect(await post(base, "application/json")).toBe(500);
    expect(lines.join("\n")).toContain("A parser has read the body before the receiver");
  });

  it("does not matter if only a token is required", async () => {
    const given = receiver({ accept: { tokenOnly: true }, token: "s3cret" });
    const base = await onNode(express().use(express.json(), expressMount(given)));
    const headers = { "content-type": "application/json", "x-a2a-notification-token": "s3cret" };
    expect((await fetch(`${base}/hooks`, { method: "POST", headers, body })).status).toBe(204);
  });
});

it("a sender that breaks off in mid-body leaves nothing behind, and the next one is served", async () => {
  const base = await onNode(nodeListener(receiver().handle));
  const broken = request(`${base}/hooks`, {
    method: "POST",
    headers: { "content-type": "application/json", "content-length": "100000" },
  });
  broken.on("error", () => undefined);
  broken.write("{");
  await new Promise<void>((resolve) => broken.on("socket", (socket) => socket.once("connect", resolve)));
  broken.destroy();
  expect(await post(base)).toBe(204);
});
