import { describe, expect, test } from "vitest";
import type { WebhookReceiverOptions } from "../../src/receiver/port.ts";
import { webhookReceiver } from "../../src/webhooks.ts";
import { receive, secret, status, textLogger, url } from "./support.ts";

/* Tests mistakes of receiver authors. The error or the log must suggest a fix. */

const event = status("TASK_STATE_WORKING");

describe("invalid options are rejected by name, before a delivery comes", () => {
  test.each<[string, object, string]>([
    ["no accept", { accept: undefined }, "accept must name the trusted senders"],
    ["no url", { url: undefined }, "url must be an absolute URL"],
    ["a client that was not awaited", { client: Promise.resolve() }, "client must be a client. connect() returns"],
    ["a memory that was not awaited", { memory: Promise.resolve() }, "memory must be a memory. sqliteWebhookMemory()"],
    ["an onEvent that is not a function", { onEvent: "log" }, "onEvent must be a function"],
    ["a negative tolerance", { tolerance: -1 }, "tolerance must be a number of milliseconds, at least 0"],
    ["a tolerance that is not a number", { tolerance: NaN }, "tolerance must be a number of milliseconds, at least 0"],
  ])("%s", (_name, wrong, said) => {
    const options = { url, accept: { secret }, ...wrong } as WebhookReceiverOptions;
    expect(() => webhookReceiver(options)).toThrow(`Invalid receiver options: ${said}`);
  });
});

test("a webhook at another path is rejected; the log names the path, the answer does not", async () => {
  const { logger, text } = textLogger();
  const response = await receive({ logger }).send(event, { path: "/elsewhere" });
  expect(response.status).toBe(404);
  expect(await response.text()).not.toContain("proxy");
  expect(text()).toContain(`The path of this receiver is ${new URL(url).pathname}. If a proxy changes the path`);
});

test("a key set that cannot be read is named in the log, not in the answer", async () => {
  const { logger, text } = textLogger();
  const keySet = "https://agents.example.com/.well-known/jwks.json";
  const down = (): Promise<Response> => Promise.reject(new Error("down"));
  const response = await receive({ logger, accept: { keySet }, fetch: down }).send(event);
  expect(response.status).toBe(503);
  expect(await response.text()).not.toContain(keySet);
  expect(text()).toContain(`${keySet} cannot be read`);
});

test("if a framework has read the body, the sender retries, and the log says where to mount the receiver", async () => {
  const { logger, text } = textLogger();
  const { receiver } = receive({ logger });
  const headers = { "content-type": "application/a2a+json" };
  const request = new Request(url, { method: "POST", headers, body: JSON.stringify(event) });
  await request.json();
  expect((await receiver.fetch(request)).status).toBe(500);
  expect(text()).toContain("A parser has read the body before this handler. Mount the handler before parsers");
});
