import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { allOf, anyOf, apiKey, basic, bearer, hashPassword, type Authenticator } from "@parley/a2a/auth";
import type { Server } from "@parley/node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import scripted from "./fixtures/agent.ts";
import { parleyHere } from "./support/in-process.ts";
import type { Finished } from "./support/parley.ts";
import { startServer } from "./support/server.ts";

/** Logins to servers that check each call. */

const key = "key-s3cret-0123456789";
const token = "token-s3cret-0123456789";

/** A key in a header with a custom name. */
const keyAs = (name: string): Authenticator =>
  apiKey({ [key]: { subject: `${name}-ada` } }, { name, header: `x-${name}` });

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-login-"));
});
afterEach(() => rm(folder, { recursive: true }));

/** Runs a command of a user with separate logins. */
async function run(args: readonly string[], stdin = ""): Promise<Finished> {
  const finished = await parleyHere(args, { env: { XDG_CONFIG_HOME: folder }, stdin });
  const shown = finished.out + finished.err;
  expect(shown).not.toContain(key);
  expect(shown).not.toContain(token);
  return finished;
}

const stored = (): Promise<string[]> => readdir(join(folder, "parley", "logins")).catch(() => []);

describe("parley login", () => {
  let server: Server;
  let url = "";
  beforeAll(async () => {
    server = await startServer(scripted, {
      authenticator: anyOf(keyAs("key"), bearer({ [token]: { subject: "bob" } })),
    });
    url = server.url;
  });
  afterAll(() => server.close({ grace: 0 }));

  test("authenticates every later command for this agent, until logout", async () => {
    expect(await run(["send", url, "whoami"])).toMatchObject({ code: 1, out: "" });
    const login = await run(["login", url], `${key}\n`);
    expect(login).toMatchObject({ code: 0, out: "" });
    expect(login.err).toMatch(
      new RegExp(`^Logged in to ${url}\\. Stored the secret in ${folder}/.*\\.json, which only you can read\\.\n$`),
    );
    for (const binding of ["JSONRPC", "HTTP+JSON", "GRPC"]) {
      expect(await run(["send", url, "whoami", "--binding", binding])).toMatchObject({ code: 0, out: "key-ada\n" });
    }
    expect(await run(["tasks", url])).toMatchObject({ code: 0 });
    expect((await run(["whoami"])).out).toMatch(new RegExp(`^AGENT .*\n${url} +key +API key .* +file +20`));
    expect(await run(["logout", url])).toMatchObject({ code: 0, err: `Logged out of ${url} (key).\n` });
    expect(await stored()).toEqual([]);
    const refused = await run(["send", url, "whoami"]);
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toContain(`parley login ${url}, or pass --token`);
  });

  test("does not store credentials that the agent rejects", async () => {
    const { code, err } = await run(["login", url], "wrong\n");
    expect(code).toBe(1);
    expect(err).toContain("parley: the agent rejected the credentials: ");
    expect(await stored()).toEqual([]);
  });

  test("takes a scheme of the user's choice, and a token for it", async () => {
    await run(["login", url, "--scheme", "bearer"], `${token}\n`);
    expect((await run(["send", url, "whoami"])).out).toBe("bob\n");
    const { logins } = JSON.parse((await run(["whoami", url, "--json"])).out) as { logins: unknown[] };
    expect(logins).toMatchObject([{ url, scheme: "bearer", kind: "bearer", secretsIn: "file" }]);
  });

  test("stores one login for each scheme of an agent, and the card chooses", async () => {
    await run(["login", url, "--with-token"], `${token}\n`);
    await run(["login", url], `${key}\n`);
    expect((await run(["send", url, "whoami"])).out).toBe("key-ada\n");
    expect(await stored()).toHaveLength(2);
    expect((await run(["logout", "--all"])).err.split("\n")).toHaveLength(3);
    expect(await run(["whoami"])).toEqual({ code: 0, out: "", err: "You are not logged in.\n" });
  });

  test("yields to a token of the command line", async () => {
    await run(["login", url], `${key}\n`);
    const other = await parleyHere(["send", url, "whoami", "--token", token], { env: { XDG_CONFIG_HOME: folder } });
    expect(other.out).toBe("bob\n");
  });

  test("is used by the conformance tests", async () => {
    await run(["login", url], `${key}\n`);
    const { out } = await run(["conform", url, "--behaviors", "none", "--filter", "*LIST-001*", "--json"]);
    expect(out).not.toContain("Unauthenticated");
  });

  test.each([
    ["nothing on standard input", "", [], /^parley: no answer to "API key for http.*"\n$/m],
    ["a key that no header can carry", "grüße\n", [], /printable ASCII characters without spaces/],
    [
      "a scheme that the card does not have",
      "x\n",
      ["--scheme", "nope"],
      /has no scheme nope; it has key \(API key in header x-key\), bearer/,
    ],
  ])("rejects %s", async (_, stdin, more, said) => {
    const { code, err } = await run(["login", url, ...more], stdin);
    expect(code).toBe(2);
    expect(err).toMatch(said);
    expect(await stored()).toEqual([]);
  });

  test("rejects an address where others could read the secret in transit", async () => {
    const { code, err } = await run(["login", "http://agent.example"], `${key}\n`);
    expect({ code, err }).toEqual({
      code: 2,
      err: "parley: http://agent.example must be https: anyone on the network could read your secret\n",
    });
  });
});

test("an agent that requires two schemes at once gets both", async () => {
  const server = await startServer(scripted, { authenticator: allOf(keyAs("one"), keyAs("two")) });
  try {
    expect(await run(["login", server.url], `${key}\n${key}\n`)).toMatchObject({ code: 0 });
    expect(await run(["send", server.url, "whoami"])).toMatchObject({ code: 0, out: "one-ada\n" });
    expect(await stored()).toHaveLength(2);
  } finally {
    await server.close({ grace: 0 });
  }
});

test("HTTP Basic asks for a name and a password", async () => {
  const password = "pass-s3cret-0123456789";
  const users = { ada: { password: await hashPassword(password, { iterations: 1000 }) } };
  const server = await startServer(scripted, { authenticator: basic(users) });
  try {
    expect(await run(["login", server.url], `ada\n${password}\n`)).toMatchObject({ code: 0 });
    expect(await run(["send", server.url, "whoami"])).toMatchObject({ code: 0, out: "ada\n" });
    expect((await run(["whoami"])).out).toMatch(/ HTTP Basic +ada +file /);
    expect(await run(["login", server.url, "--username", "ada"], `${password}\r\n`)).toMatchObject({ code: 0 });
    expect((await run(["login", server.url, "--username", "a:b"], `${password}\n`)).err).toContain(
      "must not contain a colon",
    );
  } finally {
    await server.close({ grace: 0 });
  }
});

describe("a stored secret", () => {
  const closing: (() => void)[] = [];
  afterEach(() => {
    for (const close of closing.splice(0)) close();
  });

  /** No tasks, whatever the call is. */
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { id } = JSON.parse(await new Response(Readable.toWeb(request) as ReadableStream).text()) as { id: string };
    const result = { tasks: [], nextPageToken: "", pageSize: 0, totalSize: 0 };
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  }

  /** A server that records the received headers. */
  async function recording(card: (url: string) => object): Promise<{ url: string; seen: IncomingHttpHeaders[] }> {
    const seen: IncomingHttpHeaders[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers);
      response.setHeader("content-type", "application/json");
      const url = `http://${request.headers.host ?? ""}`;
      if (request.method === "GET") response.end(JSON.stringify(card(url)));
      else if (!JSON.stringify(request.headers).includes(key)) response.writeHead(401).end();
      else void answer(request, response);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    closing.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
  }

  const cardOf = (interfaces: readonly string[], scheme: object = { location: "header", name: "x-key" }): object => ({
    name: "Recorder",
    description: "",
    version: "1.0.0",
    supportedInterfaces: interfaces.map((url) => ({ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" })),
    capabilities: {},
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: [],
    securitySchemes: { key: { apiKeySecurityScheme: scheme } },
    securityRequirements: [{ schemes: { key: { list: [] } } }],
  });
  const got = (seen: readonly IncomingHttpHeaders[]): boolean => JSON.stringify(seen).includes(key);

  test("goes to no other agent, whatever its card says", async () => {
    const own = await recording((url) => cardOf([url]));
    const other = await recording((url) => cardOf([url]));
    expect(await run(["login", own.url], `${key}\n`)).toMatchObject({ code: 0 });
    expect(got(own.seen)).toBe(true);
    await run(["send", other.url, "hi"]);
    expect(got(other.seen)).toBe(false);
  });

  test("goes to another address of the card only if the user named it at login", async () => {
    const api = await recording((url) => cardOf([url]));
    const own = await recording(() => cardOf([api.url]));
    const { err } = await run(["login", own.url], `${key}\n`);
    expect(got(api.seen)).toBe(false);
    expect(err).toContain(`To send them, pass --credential-origin ${api.url}`);
    expect(await stored()).toEqual([]);
    await run(["send", own.url, "hi"]);
    expect(got(api.seen)).toBe(false);
    await run(["login", own.url, "--credential-origin", api.url], `${key}\n`);
    await run(["send", own.url, "hi"]);
    expect(got(api.seen)).toBe(true);
  });

  test("is not in the output of a command, and only its file has it", async () => {
    const own = await recording((url) => cardOf([url]));
    await run(["login", own.url], `${key}\n`);
    const [name = ""] = await stored();
    expect(JSON.parse(await readFile(join(folder, "parley", "logins", name), "utf8"))).toMatchObject({
      url: own.url,
      secrets: { secret: key },
    });
    await run(["send", own.url, "hi", "--verbose"]);
    await run(["card", own.url, "--json"]);
    await run(["whoami", "--json"]);
  });

  test("is not requested by a card without a supported scheme", async () => {
    const open = await recording((url) => ({ ...cardOf([url]), securitySchemes: {}, securityRequirements: [] }));
    expect(await run(["login", open.url], `${key}\n`)).toMatchObject({
      code: 1,
      err: "parley: the card of Recorder requires no credentials\n",
    });
    const mtls = await recording((url) => ({ ...cardOf([url]), securitySchemes: { key: { mtlsSecurityScheme: {} } } }));
    const { code, err } = await run(["login", mtls.url], `${key}\n`);
    expect(code).toBe(1);
    expect(err).toContain("no supported security scheme in the card of Recorder: key (mutual TLS)");
  });
});
