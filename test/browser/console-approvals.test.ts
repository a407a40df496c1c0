import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { connect, readAuthorization, type Client } from "@parley/a2a";
import { basic, hashPassword } from "@parley/a2a/auth";
import { basicCredential } from "@parley/a2a/credentials";
import { canonicalJson } from "@parley/a2a/cards";
import { defineAgent, memoryStore, serve, text, type ServeOptions, type Server } from "@parley/node";
import { fits, flaws, inspecting, open, say, shot, show } from "./console-page.ts";

/* Tests authorizations in the console: the request, its expiry, and its outcome, as the console learns them from the wire and from this page. */

const member = "urn:parley:extension:in-task-authorization:v1";

const shop = defineAgent({
  name: "Shop",
  description: "Buys.",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    const [, kind, ms = ""] = /^(\w+) ?(-?\d*)$/.exec(turn.text) ?? [];
    if (kind === "expires") {
      // Behaves like an agent that does not end its expired requests.
      const expiresAt = new Date(Date.now() + Number(ms)).toISOString();
      const shown = { id: "r1", form: "approval", url: "https://shop.example/r1", expiresAt, inMessage: true };
      return void (yield turn.authRequired([text("Pay?"), { data: { [member]: shown } }]));
    }
    const form = kind === "secret" ? "secret" : "approval";
    yield* turn.authorize({ form, reason: "Pay 20 EUR to ACME?", inMessage: true });
    yield turn.artifact({ parts: [text("It was paid.")] });
  },
});

async function serving(options: ServeOptions = {}): Promise<Server> {
  const common = { port: 0, store: memoryStore(), logger: false, signals: false } as const;
  const server = await serve(shop, { ...common, ...options });
  onTestFinished(() => server.close({ grace: 0 }));
  return server;
}

const asked = "section[aria-label=Authorization]";

/** Returns the digest that a console shows for the parts of a question. */
function digestOf(parts: unknown): string {
  return `sha256:${createHash("sha256").update(canonicalJson(parts)).digest("hex")}`;
}

async function taskOf(client: Client) {
  const { tasks } = await client.listTasks({});
  return client.getTask(tasks[0]?.id ?? "");
}

async function inInbox(page: Page): Promise<void> {
  await show(page, "Inbox");
  await page.click(".list li a");
  await page.waitForSelector(asked);
}

const password = "secret-of-ada-0123456789";
const hash = await hashPassword(password);

test.each([
  [1200, "light", "Approve", "was approved"],
  [380, "dark", "Deny", "was denied"],
] as const)("shows who answered what, and when: %i pixels, %s, %s", async (width, theme, button, outcome) => {
  const home = await mkdtemp(join(tmpdir(), "parley-approvals-"));
  onTestFinished(() => rm(home, { recursive: true }));
  const server = await serving({ authenticator: basic({ ada: { password: hash } }) });
  const { page, noise } = await open(await inspecting([server.url], { XDG_CONFIG_HOME: home }), { width, theme });
  await page.click("a[aria-label='Sign in to Shop']");
  await page.fill("input[name='0 username']", "ada");
  await page.fill("input[name='0 secret']", password);
  await page.click("form button >> text=Sign in");
  await page.waitForSelector("text=Signed in as ada with");
  await show(page, "Talk");
  await say(page, "pay");
  await page.waitForSelector(asked);
  const client = await connect(server.url, { credentials: [basicCredential("ada", password)] });
  const { status } = await taskOf(client);
  const { id = "", expiresAt = "" } = readAuthorization(status.message) ?? {};
  const digest = digestOf(status.message?.parts);

  await inInbox(page);
  const box = page.locator(asked);
  await expect.poll(() => box.textContent()).toContain(digest);
  const local = await page.evaluate<string>(`new Date("${expiresAt}").toLocaleString([], { timeZoneName: "short" })`);
  expect(await box.textContent()).toContain(`Expires${local}`);
  expect(await box.textContent()).toContain(`Request${id}`);
  expect(await flaws(page)).toEqual([]);
  expect(await fits(page)).toBe(true);
  await shot(page, `Approval ${width} ${theme}`);
  await box.getByText(button).click();
  const decision = page.locator(".detail .decision");
  await expect.poll(() => decision.textContent()).toMatch(new RegExp(`^The approval ${outcome} at .+ as ada\\.`));
  expect(await decision.textContent()).toContain(`Request ${id}, ${digest}`);
  expect(await flaws(page)).toEqual([]);
  await shot(page, `Approval ended ${width} ${theme}`);
  // Other pages learn of the authorization from the wire, which has the question, and the answer without its credential.
  await page.reload();
  await expect.poll(() => page.textContent(".detail")).toContain(`Asked for an authorization: approval, request ${id}`);
  await expect
    .poll(() => page.textContent(".detail"))
    .toContain(button === "Deny" ? `Denied request ${id}` : `Gave a credential for request ${id}, receipt `);
  expect(noise).toEqual([]);
});

test("an answer through the link is shown as someone else's", async () => {
  const server = await serving({ console: true });
  const { page } = await open(`${server.url}/console/`);
  await say(page, "pay");
  await page.waitForSelector(asked);
  const { status } = await taskOf(await connect(server.url));
  const { url = "" } = readAuthorization(status.message) ?? {};
  const headers = { "content-type": "application/json" };
  expect((await fetch(url, { method: "POST", headers, body: `{"credential":true}` })).status).toBe(200);
  await page.waitForSelector("text=It was paid.");
  await expect.poll(() => page.textContent(".decision")).toMatch(/^The approval was answered elsewhere at /);
});

test("an expired request is marked, and cannot be answered", async () => {
  const server = await serving({ console: true });
  const { page } = await open(`${server.url}/console/`);
  await say(page, "expires -1000");
  await page.waitForSelector("text=The request has expired");
  const box = page.locator(asked);
  expect(await box.locator("button, a, input").count()).toBe(0);
  expect(await flaws(page)).toEqual([]);
  await shot(page, "Approval expired");
  await show(page, "Inbox");
  await page.waitForSelector(".list li >> text=auth expired");
  await page.click(".list li a");
  await page.waitForSelector(".detail >> text=The request has expired");
  expect(await page.locator(".list time").first().getAttribute("title")).toMatch(/ \(\d{4}-.*Z\)$/);
  expect(await flaws(page)).toEqual([]);
  await show(page, "Talk");
  // This request expires while the console shows it.
  await page.click("button:text-is('New')");
  const second = page.locator(".pane").nth(1);
  await second.locator("textarea[aria-label=Message]").fill("expires 3000");
  await second.locator("textarea[aria-label=Message]").press("Enter");
  await second.getByRole("button", { name: "Approve" }).waitFor();
  await second.getByText("The request has expired").waitFor();
  expect(await second.locator(`${asked} button, ${asked} a`).count()).toBe(0);
});

test("a submitted secret is not shown", async () => {
  const server = await serving({ console: true });
  const { page } = await open(`${server.url}/console/`);
  await say(page, "secret");
  await page.waitForSelector(`${asked} input[type=password]`);
  await page.fill(`${asked} input[type=password]`, "s3cret-that-was-typed");
  await page.click("text=Send secret");
  await page.waitForSelector("text=It was paid.");
  await expect.poll(() => page.textContent(".decision")).toMatch(/^The secret was given at /);
  expect(await page.evaluate<string>("document.documentElement.outerHTML")).not.toContain("s3cret-that-was-typed");
});
