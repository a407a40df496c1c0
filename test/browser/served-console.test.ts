import { describe, expect, onTestFinished, test } from "vitest";
import { anyOf, apiKey, basic, bearer, hashPassword } from "@parley/a2a/auth";
import { defineAgent, memoryStore, serve, text, type ServeOptions, type Server } from "@parley/node";
import type { AgentMount } from "@parley/server";
import { flaws, loaded, open, say, shot, show } from "./console-page.ts";

/* Tests the console of `serve(agent, { console: true })` in a real browser. */

const named = (name: string) =>
  defineAgent({
    name,
    description: `Is called ${name}.`,
    version: "1.0.0",
    skills: [{ id: "echo", name: "Echo", description: "Says it again.", tags: ["echo"], examples: ["Hello"] }],
    async *onMessage(turn) {
      yield turn.artifact({ parts: [text(`${name} heard ${turn.text}`)] });
    },
  });

async function serving(options: ServeOptions = {}, mounts?: readonly AgentMount[]): Promise<Server> {
  const common = { port: 0, store: memoryStore(), logger: false, signals: false, console: true } as const;
  const server = await serve(mounts ?? named("Alice"), { ...common, ...options });
  onTestFinished(() => server.close({ grace: 0 }));
  return server;
}

const secret = "s3cret-of-ada";
const user = { subject: "ada" };
const hash = await hashPassword(secret);

test("the agent's page links to the console, which talks to the agent and records the wire in the browser", async () => {
  const server = await serving();
  const { page, noise } = await open(`${server.url}/`, { ready: "text=Talk to this agent" });
  await page.click("text=Talk to this agent");
  await say(page, "one");
  await page.waitForSelector("text=Alice heard one");
  await show(page, "Tasks");
  await loaded(page);
  await show(page, "Wire");
  await page.click(".list li a >> text=SendStreamingMessage");
  await expect.poll(() => page.locator(".detail").textContent()).toContain("Alice heard one");
  await page.click("text=Edit and resend");
  const body = page.locator(".resend textarea").nth(1);
  const again = (await body.inputValue()).replace("one", "two").replace(/"messageId":"[^"]*"/, `"messageId":"again"`);
  await body.fill(again);
  await page.click(".resend button");
  await expect.poll(() => page.locator(".list li a >> text=SendStreamingMessage").count()).toBe(2);
  await page.locator(".list li a").first().click();
  await expect.poll(() => page.locator(".detail").textContent()).toContain("Alice heard two");
  expect(noise).toEqual([]);
});

test("shows the currently mounted agents", async () => {
  const server = await serving({}, [
    { agent: named("Alice"), path: "/alice" },
    { agent: named("Bob"), path: "/bob" },
  ]);
  server.mounts.add({ agent: named("Carol"), path: "/carol" });
  await server.mounts.remove("/alice");
  const { page } = await open(`${server.url}/console/`);
  expect(await page.locator(".agents li span[dir]").allTextContents()).toEqual(["Bob", "Carol"]);
  await page.click("text=Carol");
  await say(page, "hello");
  await page.waitForSelector("text=Carol heard hello");
});

describe("behind an authenticator", () => {
  test.each([
    ["a bearer token", "Bearer token", bearer({ [secret]: user })],
    ["an API key", "API key (x-my-key)", apiKey({ [secret]: user }, { header: "x-my-key" })],
    ["a password", "User and password", basic({ ada: { password: hash } })],
  ])("asks for %s, and uses it for its own data and the agents", async (_, scheme, authenticator) => {
    const other = bearer({ "another-token-of-eve": { subject: "eve" } }, { name: "other" });
    const server = await serving({ authenticator: anyOf(authenticator, other) });
    expect((await fetch(`${server.url}/console/api/session`)).status).toBe(401);
    const { page } = await open(`${server.url}/console/`, { ready: "form.connect" });
    if ((await page.locator("select[name=way] option").count()) > 1)
      await page.selectOption("select[name=way]", scheme);
    expect(await flaws(page)).toEqual([]);
    await shot(page, `Sign in - ${scheme}`);
    if (scheme.startsWith("User")) await page.fill("input[name=user]", "ada");
    await page.fill("input[name=secret]", "not the secret");
    await page.click("button >> text=Sign in");
    await page.waitForSelector("text=does not accept these credentials");
    await page.fill("input[name=secret]", secret);
    await page.click("button >> text=Sign in");
    await page.waitForSelector("nav.screens");
    await say(page, "hello");
    await page.waitForSelector("text=Alice heard hello");
    await show(page, "Wire");
    await page.click(".list li a >> text=SendStreamingMessage");
    const shown = (await page.locator(".detail").textContent()) ?? "";
    expect(shown).toContain("•••");
    expect(shown).not.toContain(secret);
    await page.reload();
    await page.waitForSelector("nav.screens");
  });
});
