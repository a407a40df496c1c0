import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { oauth2, openIdConnect, type OAuth2Flows } from "@parley/a2a/auth";
import type { Server } from "@parley/node";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { approveDevice } from "../../../test/identity/credentials.ts";
import { browse } from "../../../test/identity/logins.ts";
import { providerSecret } from "../../../test/identity/provider-clients.ts";
import { startProvider, type ProviderOptions, type TestProvider } from "../../../test/identity/provider.ts";
import { run } from "../src/program.ts";
import scripted from "./fixtures/agent.ts";
import { recordedIo } from "./support/io.ts";
import { start } from "./support/parley.ts";
import { startServer } from "./support/server.ts";

/** `parley login` by OAuth, at a real OpenID provider. A program takes the user's place in the browser. */

let folder = "";
let provider: TestProvider;
let server: Server;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-oauth-"));
});
afterEach(async () => {
  await server.close({ grace: 0 });
  await provider.close();
  await rm(folder, { recursive: true });
});

const scopes = { chat: "Talk to the agent" };

/** An agent whose card has these flows. */
async function agentWith(flows: readonly (keyof OAuth2Flows)[], options: ProviderOptions = {}): Promise<void> {
  provider = await startProvider(options);
  const { issuer } = provider;
  const all: OAuth2Flows = {
    authorizationCode: { authorizationUrl: `${issuer}/auth`, tokenUrl: `${issuer}/token`, scopes, pkceRequired: true },
    deviceCode: { deviceAuthorizationUrl: `${issuer}/device/auth`, tokenUrl: `${issuer}/token`, scopes },
    clientCredentials: { tokenUrl: `${issuer}/token`, scopes },
  };
  const chosen = Object.fromEntries(Object.entries(all).filter(([name]) => flows.includes(name as keyof OAuth2Flows)));
  const authenticator = oauth2({
    issuer,
    scopes: ["chat"],
    flows: chosen,
    metadataUrl: `${issuer}/.well-known/openid-configuration`,
    dpop: {},
  });
  server = await startServer(scripted, { authenticator });
}

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command of a user whose browser logs in automatically. */
async function parley(args: readonly string[], stdin = ""): Promise<Ran> {
  const env = { XDG_CONFIG_HOME: folder, PARLEY_KEYCHAIN: "off" };
  let opened = Promise.resolve<unknown>(undefined);
  const { io, out, err } = recordedIo({ env, stdin, openPage: (url) => (opened = visit(url)) });
  const code = await run(args, io);
  await opened;
  const ran = { code, out: out(), err: err() };
  const [secret = "nothing"] = await tokens();
  expect(ran.out + ran.err).not.toContain(secret);
  expect(ran.out + ran.err).not.toContain(providerSecret);
  return ran;
}

async function visit(url: string): Promise<void> {
  await fetch(await browse(url, new URL(url).searchParams.get("redirect_uri") ?? ""));
}

/** The stored tokens: access tokens and refresh tokens. */
async function tokens(): Promise<readonly string[]> {
  const at = join(folder, "parley", "logins");
  const names = await readdir(at).catch(() => []);
  const found: string[] = [];
  for (const name of names) {
    const { secrets } = JSON.parse(await readFile(join(at, name), "utf8")) as { secrets: { tokens?: string } };
    const all = Object.values(JSON.parse(secrets.tokens ?? "{}") as Record<string, Record<string, string>>);
    for (const { accessToken, refreshToken } of all) {
      found.push(...[accessToken, refreshToken].filter((token) => token !== undefined));
    }
  }
  return found;
}

const whoami = (): Promise<Ran> => parley(["send", server.url, "whoami"]);

describe("a login in the browser", () => {
  test("makes later commands calls of the user", async () => {
    await agentWith(["authorizationCode"]);
    const { code, out, err } = await parley(["login", server.url, "--client-id", "native"]);
    expect({ code, out }).toEqual({ code: 0, out: "" });
    expect(err).toContain(`Opening a page to log in. If it does not open, visit:\n  ${provider.issuer}/auth?`);
    expect(err).toContain(`Logged in to ${server.url} as ada at ${provider.issuer}.`);
    for (const binding of ["JSONRPC", "HTTP+JSON", "GRPC"]) {
      expect(await parley(["send", server.url, "whoami", "--binding", binding])).toMatchObject({
        code: 0,
        out: "ada\n",
      });
    }
    const { out: listed } = await parley(["whoami"]);
    expect(listed).toContain(`OAuth 2  ada at ${provider.issuer}`);
    await parley(["logout", server.url]);
    expect(await whoami()).toMatchObject({ code: 1, out: "" });
  });

  test.each([
    [{ name: "Ada Lovelace", email: "ada@example.com" }, "Ada Lovelace <ada@example.com>"],
    [{ name: "Ada \u001b[2JLovelace" }, "Ada ␛[2JLovelace"],
    [{ email: "ada@example.com" }, "ada@example.com"],
  ])("shows who has logged in: %j", async (claims, user) => {
    await agentWith(["authorizationCode"], { claims });
    const { err } = await parley(["login", server.url, "--client-id", "native"]);
    expect(err).toContain(`Logged in to ${server.url} as ${user} at ${provider.issuer}.`);
    const { out: listed } = await parley(["whoami"]);
    expect(listed).toContain(`OAuth 2  ${user} at ${provider.issuer}`);
    expect(listed).not.toContain("native");
    const { out: json } = await parley(["whoami", server.url, "--json"]);
    expect(JSON.parse(json)).toMatchObject({ logins: [{ account: `${user} at ${provider.issuer}` }] });
  });

  test("shows no user if the server reports none, and never the client instead", async () => {
    const clients: ProviderOptions["clients"] = [
      {
        client_id: "simple",
        application_type: "native",
        token_endpoint_auth_method: "none",
        redirect_uris: ["http://127.0.0.1/callback"],
        grant_types: ["authorization_code"],
        response_types: ["code"],
        // Without the scope openid, it does not learn who the user is.
        scope: "chat",
      },
    ];
    await agentWith(["authorizationCode"], { clients });
    const { code, err } = await parley(["login", server.url, "--client-id", "simple"]);
    expect(code).toBe(0);
    expect(err).toContain(`Logged in to ${server.url} as unknown user at ${provider.issuer}.`);
    expect(await whoami()).toMatchObject({ code: 0, out: "ada\n" });
  });

  test("is found by OpenID Connect discovery as well", async () => {
    provider = await startProvider();
    server = await startServer(scripted, {
      authenticator: openIdConnect({ issuer: provider.issuer, scopes: ["chat"] }),
    });
    expect(await parley(["login", server.url], "native\n")).toMatchObject({ code: 0 });
    expect(await whoami()).toMatchObject({ code: 0, out: "ada\n" });
  });

  test("is rejected if the user declines, and nothing is stored", async () => {
    await agentWith(["authorizationCode"]);
    const env = { XDG_CONFIG_HOME: folder, PARLEY_KEYCHAIN: "off" };
    const { io, err } = recordedIo({
      env,
      openPage: async (url) => {
        const { searchParams } = new URL(url);
        const back = new URL(searchParams.get("redirect_uri") ?? "");
        back.searchParams.set("error", "access_denied");
        back.searchParams.set("error_description", "\u001b[2Jno");
        back.searchParams.set("iss", provider.issuer);
        back.searchParams.set("state", searchParams.get("state") ?? "");
        await fetch(back);
      },
    });
    expect(await run(["login", server.url, "--client-id", "native"], io)).toBe(1);
    expect(err()).toContain("parley: login failed: ");
    expect(err()).not.toContain("\u001b");
    expect(await tokens()).toEqual([]);
  });

  test("is canceled by Ctrl-C", async () => {
    await agentWith(["authorizationCode"]);
    const { io, interrupt } = recordedIo({ env: { XDG_CONFIG_HOME: folder }, openPage: () => interrupt("SIGINT") });
    expect(await run(["login", server.url, "--client-id", "native"], io)).toBe(130);
  });

  test("opens the system browser", async () => {
    await agentWith(["authorizationCode"]);
    const bin = join(folder, "bin");
    await mkdir(bin);
    const opened = join(folder, "opened");
    for (const name of ["xdg-open", "open"]) {
      await writeFile(
        join(bin, name),
        `#!/bin/sh\nprintf '%s' "$1" > '${opened}.new' && mv '${opened}.new' '${opened}'\n`,
      );
      await chmod(join(bin, name), 0o755);
    }
    const env = { XDG_CONFIG_HOME: folder, PATH: `${bin}:${process.env["PATH"] ?? ""}` };
    const running = start(["login", server.url, "--client-id", "native"], { env });
    const [, printed = ""] = await running.until("err", /visit:\n {2}(\S+)\n/);
    await expect.poll(() => readFile(opened, "utf8").catch(() => "")).toBe(printed);
    await visit(printed);
    expect(await running.done).toMatchObject({ code: 0 });
  });
});

describe("a login with a code", () => {
  test("shows where to enter it, and waits until that is done", async () => {
    await agentWith(["authorizationCode", "deviceCode"]);
    const env = { XDG_CONFIG_HOME: folder, PARLEY_KEYCHAIN: "off" };
    const { io, err } = recordedIo({ env });
    const stderr = {
      ...io.stderr,
      write(text: string) {
        io.stderr.write(text);
        const [, page] = /Or open (\S+)/.exec(text) ?? [];
        if (page !== undefined) void approveDevice(page);
      },
    };
    const args = ["login", server.url, "--client-id", "native", "--flow", "device"];
    expect(await run(args, { ...io, stderr })).toBe(0);
    expect(err()).toMatch(new RegExp(`^Open ${provider.issuer}/device and enter the code [A-Z-]+\n`));
    expect(err()).toContain(`Logged in to ${server.url} as ada at ${provider.issuer}.`);
    expect(await whoami()).toMatchObject({ code: 0, out: "ada\n" });
  });
});

describe("a login with the secret of a client", () => {
  test("stores the secret, and gets new tokens with it", async () => {
    await agentWith(["clientCredentials"], { lifetime: 1 });
    expect(await parley(["login", server.url, "--client-id", "service"], `${providerSecret}\n`)).toMatchObject({
      code: 0,
      err: expect.stringContaining(`as service at ${provider.issuer}.`),
    });
    const [first] = await tokens();
    await expect.poll(async () => ((await whoami()).out === "service\n" ? (await tokens())[0] : first)).not.toBe(first);
  });

  test("a wrong secret is rejected, and not stored", async () => {
    await agentWith(["clientCredentials"]);
    const { code, err } = await parley(["login", server.url, "--client-id", "service"], "wrong\n");
    expect(code).toBe(1);
    expect(err).toContain("login failed: ");
    expect(await readdir(join(folder, "parley", "logins")).catch(() => [])).toEqual([]);
  });
});

describe("a stored login", () => {
  test("is renewed by its refresh token, once for all commands that run at the same time", async () => {
    await agentWith(["authorizationCode"], { lifetime: 1 });
    const scope = ["--scope", "offline_access"];
    expect(await parley(["login", server.url, "--client-id", "native", ...scope])).toMatchObject({ code: 0 });
    const [first, refresh] = await tokens();
    expect(refresh).toBeDefined();
    await expect.poll(async () => ((await whoami()).code === 0 ? (await tokens())[0] : first)).not.toBe(first);
    // A token with a lifetime of a second expires at once: all of them must renew it.
    const all = await Promise.all(Array.from({ length: 4 }, whoami));
    expect(all.map(({ out }) => out)).toEqual(["ada\n", "ada\n", "ada\n", "ada\n"]);
  });

  test("is bound to its key with --dpop", async () => {
    await agentWith(["authorizationCode"]);
    expect(await parley(["login", server.url, "--client-id", "native", "--dpop"])).toMatchObject({ code: 0 });
    expect(await whoami()).toMatchObject({ code: 0, out: "ada\n" });
    const [token = ""] = await tokens();
    const stolen = await parley(["send", server.url, "whoami", "--token", token]).catch(() => undefined);
    expect(stolen?.out ?? "").toBe("");
  });

  test("sends no secret to another server that the card names later", async () => {
    await agentWith(["clientCredentials"], { lifetime: 1 });
    await parley(["login", server.url, "--client-id", "service"], `${providerSecret}\n`);
    const at = join(folder, "parley", "logins");
    const [name = ""] = await readdir(at);
    const login = JSON.parse(await readFile(join(at, name), "utf8")) as { settings: { endpoints: string } };
    // As if the card had been this one at login: the card that is served now names another server.
    const { issuer } = provider;
    login.settings.endpoints = login.settings.endpoints.replaceAll(issuer, "http://127.0.0.1:1");
    await writeFile(join(at, name), JSON.stringify(login));
    const before = provider.requests.get("/token");
    expect(await whoami()).toMatchObject({ code: 1, out: "" });
    expect(provider.requests.get("/token")).toBe(before);
  });
});
