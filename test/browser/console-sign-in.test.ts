import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { memoryStore, serve, defineAgent, type ServeOptions } from "@parley/node";
import {
  allOf,
  anyOf,
  apiKey,
  mutualTls,
  oauth2,
  openIdConnect,
  type Authenticator,
  type OAuth2Flows,
} from "@parley/a2a/auth";
import { approveDevice } from "../identity/credentials.ts";
import { providerSecret } from "../identity/provider-clients.ts";
import { startProvider, type TestProvider } from "../identity/provider.ts";
import { fits, flaws, inspecting, open, parley, say, shot, show } from "./console-page.ts";

/* Tests signing in to agents from the console of `parley inspect`, with a real OpenID provider and a real browser. */

async function provided(): Promise<TestProvider> {
  const provider = await startProvider();
  onTestFinished(() => provider.close());
  return provider;
}

/** Serves an agent that reports its authenticated caller. */
async function serving(authenticator: Authenticator, options: ServeOptions = {}): Promise<string> {
  const mirror = defineAgent({
    name: "Mirror",
    description: "Says who calls.",
    version: "1.0.0",
    skills: [],
    onMessage: (turn) => turn.reply(`You are ${turn.principal.subject}`),
  });
  const common = { port: 0, store: memoryStore(), logger: false, signals: false } as const;
  const server = await serve(mirror, { ...common, authenticator, ...options });
  onTestFinished(() => server.close({ grace: 0 }));
  return server.url;
}

const scopes = { chat: "Talk to the agent" };

/** Creates an OAuth authenticator whose card offers one of the flows. */
function byOAuth(
  { issuer }: TestProvider,
  flow: keyof OAuth2Flows = "authorizationCode",
  name = "oauth",
): Authenticator {
  const all: OAuth2Flows = {
    authorizationCode: { authorizationUrl: `${issuer}/auth`, tokenUrl: `${issuer}/token`, scopes, pkceRequired: true },
    deviceCode: { deviceAuthorizationUrl: `${issuer}/device/auth`, tokenUrl: `${issuer}/token`, scopes },
    clientCredentials: { tokenUrl: `${issuer}/token`, scopes },
  };
  const flows = { [flow]: all[flow] };
  const metadataUrl = `${issuer}/.well-known/openid-configuration`;
  return oauth2({ name, issuer, scopes: ["chat"], flows, metadataUrl });
}

/** Creates a home directory that several launches share. */
async function home(): Promise<{ readonly env: NodeJS.ProcessEnv; readonly tokens: () => Promise<readonly string[]> }> {
  const folder = await mkdtemp(join(tmpdir(), "parley-sign-in-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const at = join(folder, "parley", "logins");
  return {
    env: { XDG_CONFIG_HOME: folder },
    async tokens() {
      const names = await readdir(at).catch(() => []);
      const files = await Promise.all(names.map((name) => readFile(join(at, name), "utf8")));
      return files.flatMap((file) => {
        const { secrets } = JSON.parse(file) as { readonly secrets: { readonly tokens?: string } };
        const all = Object.values(JSON.parse(secrets.tokens ?? "{}") as Record<string, { accessToken: string }>);
        return all.map(({ accessToken }) => accessToken);
      });
    },
  };
}

const form = "form[aria-label='Sign in']";

async function signInScreen(page: Page): Promise<void> {
  await page.click("a[aria-label='Sign in to Mirror']");
  await page.waitForSelector(form);
}

/** Starts a login in the browser. Returns the link to the provider. */
async function begun(page: Page): Promise<URL> {
  await page.fill("input[name='0 clientId']", "native");
  await page.click(`${form} button >> text=Sign in`);
  const link = page.locator(`${form} [role=status] a`);
  return new URL((await link.getAttribute("href")) ?? "");
}

/** Returns everything that a console page can read from its server, except for its own files. */
function answersOf(page: Page): Promise<string>[] {
  const seen: Promise<string>[] = [];
  page.on("request", (request) => seen.push(Promise.resolve(request.url() + (request.postData() ?? ""))));
  page.on("response", (response) => {
    const isStream = response.url().includes("/api/wire");
    if (!isStream && !response.url().includes("/assets/")) seen.push(response.text().catch(() => ""));
  });
  return seen;
}

const stored = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }]) + document.documentElement.outerHTML";

test("in a browser: calls are made as the user, the page has neither code nor token, and the next launch needs no login", async () => {
  const provider = await provided();
  const agent = await serving(byOAuth(provider));
  const { env, tokens } = await home();
  const { page, noise } = await open(await inspecting([agent], env));
  const answers = answersOf(page);
  await page.waitForSelector("text=This agent requires credentials.");
  await say(page, "who");
  await page.click(".problem a >> text=Sign in");
  await page.waitForSelector(form);
  const href = (await begun(page)).href;
  expect(href).toMatch(`${provider.issuer}/auth?`);
  const [tab] = await Promise.all([page.context().waitForEvent("page"), page.click(`${form} [role=status] a`)]);
  await tab.waitForSelector("text=You can close this page");
  const code = new URL(tab.url()).searchParams.get("code") ?? "";
  await page.waitForSelector("text=Signed in.");
  await page.waitForSelector(`text=Signed in as ada at ${provider.issuer} with oauth`);
  await shot(page, "Signed in");

  await show(page, "Talk");
  expect(await page.locator("text=This agent requires credentials.").count()).toBe(0);
  await say(page, "who");
  await page.waitForSelector("text=You are ada");
  await show(page, "Wire");
  await page.locator(".list li a >> text=SendStreamingMessage").first().click();
  const detail = page.locator(".detail");
  await expect.poll(() => detail.textContent()).toContain("You are ada");
  expect(await detail.textContent()).toContain("Bearer •••");

  const [token = ""] = await tokens();
  expect(token.length).toBeGreaterThan(100);
  const all = (await Promise.all(answers)).join("") + (await page.evaluate<string>(stored));
  expect(all).toContain("You are ada");
  for (const secret of [token, code]) expect(all).not.toContain(secret);
  // Only the link that the user followed leads to another origin.
  expect(noise.filter((one) => one !== href && !one.startsWith("Failed to load"))).toEqual([tab.url()]);

  const again = await open(await inspecting([agent], env));
  await again.page.waitForSelector("a[aria-label='Signed in to Mirror']");
  await say(again.page, "who");
  await again.page.waitForSelector("text=You are ada");
  const sent = parley(["send", agent, "who"], env);
  expect(await text(sent.stdout)).toBe("You are ada\n");

  await again.page.click("a[aria-label='Signed in to Mirror']");
  await again.page.click("text=Sign out");
  await again.page.waitForSelector("a[aria-label='Sign in to Mirror']");
  expect(await tokens()).toEqual([]);
});

test("a login of `parley login` is used after `Connect again`", async () => {
  const provider = await provided();
  const agent = await serving(openIdConnect({ issuer: provider.issuer, scopes: ["chat"] }));
  const { env } = await home();
  const { page } = await open(await inspecting([agent], env));
  await signInScreen(page);
  const login = parley(["login", agent, "--client-id", "service", "--flow", "client"], env);
  login.stdin.end(`${providerSecret}\n`);
  expect(await once(login, "exit")).toEqual([0, null]);
  await page.click("text=Connect again");
  await page.waitForSelector(`text=Signed in as service at ${provider.issuer}`);
  await show(page, "Talk");
  await say(page, "who");
  await page.waitForSelector("text=You are service");
});

describe("without a browser on this machine", () => {
  test("a device code is shown until it is entered", async () => {
    const agent = await serving(byOAuth(await provided(), "deviceCode"));
    const { page } = await open(await inspecting([agent], (await home()).env));
    await signInScreen(page);
    expect(await page.locator("select[name='0 flow'] option").allTextContents()).toEqual(["with a code on any device"]);
    await page.fill("input[name='0 clientId']", "native");
    await page.click(`${form} button >> text=Sign in`);
    await page.waitForSelector(`${form} .code`);
    expect(await page.textContent(`${form} .code`)).toMatch(/^[A-Z-]{4,}$/);
    await shot(page, "Sign in - code");
    expect(await flaws(page)).toEqual([]);
    await approveDevice((await page.locator(`${form} [role=status] a`).getAttribute("href")) ?? "");
    await page.waitForSelector("text=Signed in.");
    await show(page, "Talk");
    await say(page, "who");
    await page.waitForSelector("text=You are ada");
  });

  test("a program signs in with its secret, and a wrong secret is rejected and not stored", async () => {
    const { issuer } = await provided();
    const agent = await serving(openIdConnect({ issuer, scopes: ["chat"] }));
    const { env, tokens } = await home();
    const { page } = await open(await inspecting([agent], env));
    await signInScreen(page);
    await page.selectOption("select[name='0 flow']", "client");
    await page.fill("input[name='0 clientId']", "service");
    await page.fill("input[name='0 secret']", "wrong");
    await page.click(`${form} button >> text=Sign in`);
    await page.waitForSelector(`${form} >> text=login failed`);
    expect(await tokens()).toEqual([]);
    await page.fill("input[name='0 secret']", providerSecret);
    await page.click(`${form} button >> text=Sign in`);
    await page.waitForSelector("text=Signed in.");
    expect(await page.inputValue("input[name='0 secret']")).toBe("");
    await show(page, "Talk");
    await say(page, "who");
    await page.waitForSelector("text=You are service");
  });
});

test("a login page that is not a URL is shown as text", async () => {
  const agent = await serving(byOAuth(await provided()));
  const { page, noise } = await open(await inspecting([agent], (await home()).env));
  await signInScreen(page);
  await page.evaluate(`{
    const own = window.fetch;
    const event = JSON.stringify({ kind: "page", url: "no <b>URL</b>" }) + "\\n";
    const start = (controller) => controller.enqueue(new TextEncoder().encode(event));
    window.fetch = async (url, init) =>
      String(url).endsWith("/login") ? new Response(new ReadableStream({ start })) : own(url, init);
  }`);
  await page.fill("input[name='0 clientId']", "native");
  await page.click(`${form} button >> text=Sign in`);
  await page.waitForSelector(`${form} [role=status] >> text=Continue at no <b>URL</b>`);
  expect(noise).toEqual([]);
});

describe("a failed login stores nothing, and shows the reason:", () => {
  test.each([
    ["the user declines", { error: "access_denied", error_description: "<b>no</b>" }, "login failed"],
    ["another server answers instead", { code: "stolen", iss: "https://evil.example" }, "login failed"],
    ["the answer does not name the server that sent it", { code: "stolen", iss: "" }, "login failed"],
  ])("%s", async (_, answer, message) => {
    const provider = await provided();
    const agent = await serving(byOAuth(provider));
    const { env, tokens } = await home();
    const { page, noise } = await open(await inspecting([agent], env));
    await signInScreen(page);
    const { searchParams } = await begun(page);
    const back = new URL(searchParams.get("redirect_uri") ?? "");
    const all = { iss: provider.issuer, state: searchParams.get("state") ?? "", ...answer };
    for (const [name, value] of Object.entries(all)) if (value !== "") back.searchParams.set(name, value);
    expect((await fetch(back)).status).toBe(200);
    await page.waitForSelector(`${form} .problem >> text=${message}`);
    expect(await page.locator(`${form} b`).count()).toBe(0);
    expect(await page.textContent(form)).not.toContain("Continue at");
    expect(await flaws(page)).toEqual([]);
    expect(await tokens()).toEqual([]);
    expect(provider.requests.get("/token")).toBeUndefined();
    expect(noise).toEqual([]);
  });

  test("a forged state is ignored, and the user can cancel", async () => {
    const provider = await provided();
    const agent = await serving(byOAuth(provider));
    const { env, tokens } = await home();
    const { page } = await open(await inspecting([agent], env));
    await signInScreen(page);
    const { searchParams } = await begun(page);
    const back = new URL(searchParams.get("redirect_uri") ?? "");
    back.searchParams.set("code", "stolen");
    back.searchParams.set("state", "forged");
    back.searchParams.set("iss", provider.issuer);
    expect((await fetch(back)).status).toBe(404);
    await page.waitForSelector(`${form} >> text=Continue at`);
    await page.click(`${form} >> text=Cancel`);
    await page.waitForSelector("text=The login was canceled");
    await expect
      .poll(() =>
        fetch(back).then(
          ({ status }) => status,
          () => "gone",
        ),
      )
      .toBe("gone");
    expect(await tokens()).toEqual([]);
    expect(provider.requests.get("/token")).toBeUndefined();
  });

  test("the API accepts only the requests of its page", async () => {
    const agent = await serving(byOAuth(await provided()));
    const url = new URL(await inspecting([agent], (await home()).env));
    const at = new URL("console/api/agents/a1/login", url.origin);
    const headers = { "content-type": "application/json" };
    expect((await fetch(at, { method: "POST", body: "[]", headers })).status).toBe(401);
    const own = { ...headers, "x-parley-console": new URLSearchParams(url.hash.slice(1)).get("token") ?? "" };
    const post = async (body: unknown): Promise<Response> =>
      fetch(at, { method: "POST", body: JSON.stringify(body), headers: own });
    for (const body of [{}, [], [7], [{ name: "oauth", flow: "implicit" }], [{ name: 1 }]])
      expect((await post(body)).status).toBe(400);
    for (const body of [[{ name: "other" }], [{ name: "oauth" }, { name: "oauth" }], [{ name: "__proto__" }]])
      expect(await (await post(body)).text()).toContain("no requirement of the card has exactly the schemes");
    expect(await (await post([{ name: "oauth" }])).text()).toContain("needs a client ID or user name");
  });
});

describe("every scheme of a card", () => {
  test.each([
    [1200, "light"],
    [380, "dark"],
  ] as const)("is offered or explained: %i pixels, %s", async (width, theme) => {
    const provider = await provided();
    const key = apiKey({ "secret-of-ada-0123456789": { subject: "ada" } }, { name: "key", header: "x-my-key" });
    const second = byOAuth(provider, "clientCredentials", "second");
    const certificate = mutualTls({ name: "certificate", names: { "DNS:a.example": { subject: "a" } } });
    const agent = await serving(anyOf(byOAuth(provider), allOf(second, key), certificate));
    const { env } = await home();
    const { page, noise } = await open(await inspecting([agent], env), { width, theme });
    await signInScreen(page);
    await page.waitForSelector("text=Client ID");
    await page.click(`${form} summary`);
    const check = async (name: string): Promise<void> => {
      expect([name, await flaws(page)]).toEqual([name, []]);
      expect([name, await fits(page)]).toEqual([name, true]);
      await shot(page, `Sign in - ${name} ${width} ${theme}`);
    };
    await check("OAuth");
    await begun(page);
    await check("page");
    await page.selectOption("select[name=way]", "1");
    await page.waitForSelector("legend >> text=second (OAuth)");
    await page.waitForSelector("legend >> text=key (API key)");
    await check("both");
    await page.selectOption("select[name=way]", "2");
    await page.waitForSelector("text=This scheme requires a client certificate (mutual TLS)");
    expect(await page.locator(`${form} button`).count()).toBe(0);
    await check("certificate");
    expect(noise).toEqual([]);
  });
});
