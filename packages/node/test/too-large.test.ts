import { once } from "node:events";
import type { AddressInfo } from "node:net";
import express from "express";
import { afterEach, describe, expect, it } from "vitest";
import { A2AError, file } from "@parley/a2a/model";
import { createHandler, memoryStore } from "@parley/server";
import { expressMount } from "../src/express.ts";
import { connect, serve, type Server } from "../src/index.ts";
import { echoAgent } from "./support/agents.ts";

/* If a file is too large, the error names the server options that raise the limit. */

const running: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close({ grace: 0 })));
});

const video = file(new Uint8Array(1_000_000), { filename: "video.mp4", mediaType: "text/plain" });

const options = ["limits.bodyBytes", "blobs"];

/** Returns the error from sending the file. */
async function errorAt(url: string, binding: string): Promise<A2AError> {
  const client = await connect(url, { binding });
  const error: unknown = await client.sendMessage([video]).catch((thrown: unknown) => thrown);
  if (!(error instanceof A2AError)) throw new Error("The message was accepted");
  return error;
}

describe("a message beyond limits.bodyBytes", () => {
  it.each(["JSONRPC", "HTTP+JSON", "GRPC"])("names the limit and the options over %s", async (binding) => {
    const server = await serve(echoAgent(), {
      port: 0,
      grpc: true,
      signals: false,
      logger: false,
      store: memoryStore(),
      limits: { bodyBytes: 1_000_000 },
    });
    running.push(server);
    const error = await errorAt(server.url, binding);
    expect(error.code).toBe("RequestTooLarge");
    expect(error.message).toContain("larger than 1000000 bytes");
    for (const option of options) expect(error.message).toContain(option);
  });

  it("has 10 MiB by default", async () => {
    const server = await serve(echoAgent(), { port: 0, signals: false, logger: false, store: memoryStore() });
    running.push(server);
    const large = { ...video, raw: "A".repeat(10 << 20) };
    const error: unknown = await (await connect(server.url)).sendMessage([large]).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "RequestTooLarge", message: expect.stringContaining("10485760 bytes") });
  });

  it("names them if a framework has parsed the body", async () => {
    const handler = createHandler(echoAgent(), {
      publicUrl: "http://127.0.0.1",
      store: memoryStore(),
      limits: { bodyBytes: 1_000 },
    });
    const body = { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { text: "a".repeat(2_000) } };
    const server = express().use(express.json(), expressMount(handler)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const headers = { "content-type": "application/json" };
    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    expect(answer.status).toBe(413);
    const text = await answer.text();
    for (const option of options) expect(text).toContain(option);
    await new Promise((resolve) => server.close(resolve));
    await handler.close();
  });
});
