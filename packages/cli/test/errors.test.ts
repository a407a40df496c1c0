import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { A2AError } from "@parley/server";
import { explain } from "../src/errors.ts";
import { run } from "../src/program.ts";
import { recordedIo } from "./support/io.ts";

let server: Server | undefined;
afterEach(async () => {
  server?.closeAllConnections();
  if (server !== undefined) await new Promise((resolve) => server?.close(resolve));
  server = undefined;
});

/** A third-party server with one answer to everything. */
async function stranger(listener: RequestListener): Promise<string> {
  server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function card(url: string, ...more: string[]): Promise<{ code: number; out: string; err: string }> {
  const { io, out, err } = recordedIo();
  const code = await run(["card", url, ...more], io);
  return { code, out: out(), err: err() };
}

describe("failures are explained in plain words", () => {
  test("connection refused", async () => {
    const url = await stranger(() => {});
    await new Promise((resolve) => server?.close(resolve));
    const { code, out, err } = await card(url);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    const [waiting, gaveUp, ...others] = err.split("\n");
    expect(waiting).toBe(`parley: cannot reach ${url}: connection refused; retrying`);
    expect(gaveUp?.replace(/\d+ attempts in [\d.]+ s/, "…")).toBe(
      `parley: cannot reach ${url}: connection refused (gave up after …)`,
    );
    expect(others).toEqual([""]);
  });

  test("no such host", async () => {
    const url = "http://no-such-host.invalid";
    const { code, err } = await card(url);
    expect(code).toBe(1);
    expect(err).toMatch(
      /^parley: cannot reach http:\/\/no-such-host\.invalid: (?:unknown host|host name lookup failed); retrying\n/,
    );
  });

  test("https if there is no TLS", async () => {
    const url = (await stranger((_request, response) => response.end())).replace("http:", "https:");
    expect(await card(url)).toMatchObject({ code: 1, err: expect.stringContaining("try http://") as string });
  });

  test("a port that fetch does not call", async () => {
    const { code, err } = await card("http://127.0.0.1:6000");
    expect(code).toBe(1);
    expect(err).toBe(
      "parley: cannot reach http://127.0.0.1:6000: browsers and fetch() block this port; serve the agent on another one\n",
    );
  });

  test("a binding that the card does not have is not the agent's fault", async () => {
    const url = await stranger((request, response) => {
      const supportedInterfaces = [
        { url: `http://${request.headers.host ?? ""}`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      ];
      const listed = { name: "x", description: "x", version: "1", skills: [], capabilities: {}, supportedInterfaces };
      const modes = { defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"] };
      response.setHeader("content-type", "application/json").end(JSON.stringify({ ...listed, ...modes }));
    });
    const { io, err } = recordedIo();
    expect(await run(["send", url, "hi", "--binding", "HTTP+JSON"], io)).toBe(1);
    expect(err()).toMatch(
      /^parley: The card of "x" has no interface to use \(asked for: HTTP\+JSON\): JSONRPC 1\.0 at .* was not asked for\n$/,
    );
  });

  test("the connection breaks", async () => {
    const url = await stranger((request) => request.socket.destroy());
    const { code, err } = await card(url);
    expect(code).toBe(1);
    expect(err).toMatch(/^parley: (?:cannot reach|the connection to) /);
  });

  test.each([
    ["a page", "text/html", "<html><h1>Welcome</h1></html>"],
    ["no JSON", "application/json", "{"],
    ["something else as JSON", "application/json", '{"hello":"world"}'],
    ["a card without interfaces", "application/json", '{"name":"x","supportedInterfaces":[]}'],
  ])("%s instead of a card", async (_, type, body) => {
    const url = await stranger((_request, response) => response.setHeader("content-type", type).end(body));
    const { code, out, err } = await card(url);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(new RegExp(`^parley: ${url} does not follow the A2A protocol: `));
  });

  test("an untrusted page cannot control the terminal", async () => {
    const url = await stranger((_request, response) =>
      response.setHeader("content-type", "text/plain").end("\u001b[2J\u001b]0;owned\u0007"),
    );
    const { err } = await card(url);
    expect(err).not.toContain("\u001b");
  });

  test("401 names the option that helps", async () => {
    const url = await stranger((_request, response) => response.writeHead(401, { "www-authenticate": "Bearer" }).end());
    const { code, err } = await card(url);
    expect(code).toBe(1);
    expect(err).toContain("pass --token TOKEN or set PARLEY_TOKEN");
  });

  test("--verbose shows the cause", async () => {
    const url = await stranger(() => {});
    await new Promise((resolve) => server?.close(resolve));
    const { err } = await card(url, "--verbose");
    expect(err).toContain(`cannot reach ${url}: connection refused (gave up after `);
    expect(err).toContain("caused by: ");
    expect(err).toContain("ECONNREFUSED");
  });
});

describe("an agent whose card has the URL of another server", () => {
  const cardNaming = (...urls: readonly string[]): RequestListener => {
    const supportedInterfaces = urls.map((url) => ({ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }));
    const text = JSON.stringify({
      name: "Echo",
      description: "",
      version: "1.0.0",
      supportedInterfaces,
      capabilities: {},
      defaultInputModes: [],
      defaultOutputModes: [],
      skills: [],
    });
    return (_request, response) => response.setHeader("content-type", "application/json").end(text);
  };

  async function sending(url: string, ...more: string[]): Promise<string> {
    const { io, err } = recordedIo();
    expect(await run(["send", url, "hi", ...more], io)).toBe(1);
    return err();
  }

  test("is not blamed itself: each address that was tried is named, with its error, and the card's", async () => {
    const gone = await stranger(() => {});
    await new Promise((resolve) => server?.close(resolve));
    const url = await stranger(cardNaming(`${gone}/a`, `${gone}/b`));
    const [waiting, first, ...lines] = (await sending(url)).trimEnd().split("\n");
    expect(waiting).toMatch(/; retrying$/);
    expect(first).toBe(`parley: No interface of the card "Echo" at ${url}/.well-known/agent-card.json works:`);
    expect(lines).toEqual(
      ["a", "b"].map((path) => expect.stringMatching(`^  JSONRPC 1.0 at ${gone}/${path}: .*ECONNREFUSED`)),
    );
  });

  test("is distinguished from one that got no token, and the option that sends it is named", async () => {
    const asked: (string | undefined)[] = [];
    const other = createServer((request, response) => {
      asked.push(request.headers.authorization);
      response.writeHead(401).end();
    }).listen(0, "127.0.0.1");
    try {
      await once(other, "listening");
      const api = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
      const url = await stranger(cardNaming(api));
      expect(await sending(url, "--token", "secret")).toContain(`To send them, pass --credential-origin ${api}`);
      expect(await sending(url, "--token", "secret", "--credential-origin", api)).toContain("pass --token TOKEN");
      expect(asked).toEqual([undefined, "Bearer secret"]);
    } finally {
      other.closeAllConnections();
      other.close();
    }
  });
});

test("an agent's explanation of rejected credentials is shown, and an agent without any asks for some", () => {
  const url = "https://agents.example.com";
  const login = `parley login ${url}, or pass --token TOKEN or set PARLEY_TOKEN`;
  const told = (message?: string): string => explain(new A2AError("Unauthenticated", message), { url });
  expect(told()).toBe(`${url} requires credentials (401): ${login}`);
  expect(told("The token has expired")).toBe(`${url} rejected the credentials: The token has expired (401): ${login}`);
  expect(told("\u001b[2JNo")).not.toContain("\u001b");
});

test("fields that an agent rejects are named", () => {
  const fields = [{ field: "message.parts", description: "must not be empty" }];
  expect(explain(new A2AError("InvalidParams", "Invalid parameters", { fields }))).toBe(
    "Invalid parameters (InvalidParams)\n  message.parts: must not be empty",
  );
});
