import { describe, expect, it } from "vitest";
import { mebi } from "./harness/bodies.ts";
import { clients } from "./harness/clients.ts";
import { grpcAnswer } from "./harness/grpc.ts";
import { behindCard, cardAt, hostile, oddHeads } from "./harness/hostile.ts";

/* A server attacks a client. */

const start = clients();
const servers = hostile();

describe("a client", () => {
  it("reads an error page of 4 MB of `<` without a delay", async () => {
    const client = await start();
    const url = await servers.http(
      behindCard((_request, response) => {
        response.writeHead(500, { "content-type": "text/html" });
        response.end("<".repeat(4 * mebi));
      }),
    );
    await client.withstands(async (other) => {
      expect(await client.call("send", url)).toMatchObject({ error: expect.any(String) });
      expect(await client.call("stream", url)).toMatchObject({ error: expect.any(String) });
      await other.answers(3);
    });
  });

  it("ends a stream with an event of short lines that never ends", async () => {
    const client = await start();
    const url = await servers.http(
      behindCard((_request, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        const lines = "data:\n".repeat(20_000);
        const go = (): void => {
          while (!response.destroyed && response.write(lines));
        };
        response.on("drain", go);
        go();
      }),
    );
    await client.withstands(async (other) => {
      expect(await client.call("stream", url)).toMatchObject({ error: "InvalidResponse" });
      await other.answers(3);
    });
  });

  it("receives no more of a gRPC stream than it reads: 300 messages of 4 MB wait at the server", async () => {
    const client = await start();
    const parts = [{ text: "a".repeat(4 * mebi) }];
    const event = { artifactUpdate: { taskId: "t", contextId: "c", artifact: { artifactId: "a", parts } } };
    const message = grpcAnswer("SendStreamingMessage", event);
    const task = { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } };
    const grpc = await servers.http2((stream) => {
      stream.respond({ ":status": 200, "content-type": "application/grpc" });
      stream.write(grpcAnswer("SendStreamingMessage", { task }));
      let sent = 0;
      const go = (): void => {
        while (!stream.destroyed && sent++ < 300 && stream.write(message));
      };
      stream.on("drain", go);
      go();
    });
    const card = cardAt(grpc.replace("http://", ""), "GRPC");
    const url = await servers.http((_request, response) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(card));
    });
    await client.withstands(async (other) => {
      expect(await client.call("dawdle", url, { binding: "GRPC" })).toEqual({ result: "an event" });
      await other.answers(20);
      await client.leave();
    });
  });
});

describe("a client that gets a card", () => {
  const withCard = (card: string): Promise<string> =>
    servers.http((_request, response) => {
      response.setHeader("content-type", "application/json");
      response.end(card);
    });

  it("with 300,000 interfaces answers with an error", async () => {
    const client = await start();
    const card = cardAt("http://127.0.0.1:1/");
    const [one] = card.supportedInterfaces;
    const url = await withCard(
      JSON.stringify({ ...card, supportedInterfaces: Array.from({ length: 300_000 }, () => one) }),
    );
    await client.withstands(async (other) => {
      expect(await client.call("send", url)).toMatchObject({ error: expect.any(String) });
      await other.answers(3);
    });
  });

  it("that points or redirects to another server sends no credentials there", async () => {
    const client = await start();
    const seen: (string | undefined)[] = [];
    const elsewhere = await servers.http((request, response) => {
      seen.push(request.headers.authorization);
      behindCard((_request, answer) => void answer.writeHead(404).end())(request, response);
    });
    const leading = await withCard(JSON.stringify(cardAt(`${elsewhere}/`)));
    const redirecting = await servers.http((request, response) => {
      response.writeHead(302, { location: `${elsewhere}${request.url}` }).end();
    });
    await client.withstands(async () => {
      for (const url of [leading, redirecting]) {
        const outcome = await client.call("send", url, { headers: { authorization: "Bearer secret" } });
        expect(outcome).toMatchObject({ error: expect.any(String) });
      }
      expect(seen.length).toBeGreaterThan(0);
      expect(seen.filter((header) => header !== undefined)).toEqual([]);
    });
  });

  it.each([
    [
      "params of an extension",
      (deep: string) => `{"extensions":[{"uri":"https://e.example/","params":{"a":${deep}}}]}`,
    ],
    ["an unknown member", (deep: string) => `{"unknown":${deep}}`],
  ])("with 5,000 levels in %s answers with an error", async (_name, capabilities) => {
    const client = await start();
    const deep = "[".repeat(5_000) + "]".repeat(5_000);
    const card = JSON.stringify(cardAt("http://127.0.0.1:1/")).replace('{"streaming":true}', capabilities(deep));
    const url = await withCard(card);
    await client.withstands(async () => {
      expect(await client.call("send", url)).toMatchObject({ error: expect.any(String) });
    });
  });
});

describe("a client ends a call with a protocol error if a server sends", () => {
  it("an invalid status line or headers, or none", async () => {
    const client = await start();
    const sources = await Promise.all(oddHeads.map(async ([name, talk]) => [name, await servers.raw(talk)] as const));
    await client.withstands(async () => {
      for (const [name, url] of sources) {
        const outcome = await client.call("send", url, { timeout: 1_000 });
        expect({ name, outcome }).toEqual({
          name,
          outcome: { error: expect.any(String), message: expect.any(String) },
        });
      }
    });
  });

  it("a card slowly, one byte at a time", async () => {
    const client = await start();
    const url = await servers.http((_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const drip = setInterval(() => response.write(" "), 20);
      response.on("close", () => clearInterval(drip));
    });
    await client.withstands(async () => {
      expect(await client.call("send", url, { timeout: 1_000 })).toMatchObject({ error: "Timeout" });
    });
  });

  it("an answer slowly, one byte at a time", async () => {
    const client = await start();
    const url = await servers.http(
      behindCard((_request, response) => {
        response.writeHead(200, { "content-type": "application/json" });
        const drip = setInterval(() => response.write(" "), 20);
        response.on("close", () => clearInterval(drip));
      }),
    );
    await client.withstands(async () => {
      expect(await client.call("send", url, { timeout: 1_000 })).toMatchObject({ error: "Timeout" });
    });
  });
});
