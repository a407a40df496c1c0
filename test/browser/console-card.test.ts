import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { defineAgent, memoryStore, serve, text, type ServeOptions, type Server } from "@parley/node";
import { cardKeySet, makeCardKey, type PrivateCardKey } from "@parley/a2a/cards";
import type { AgentMount } from "@parley/server";
import { fits, flaws, inspecting, loaded, open, say, shot, show } from "./console-page.ts";

/* Checks in a real browser that the card screen explains signatures, and that agents that share a path are distinguishable. */

const named = (name: string) =>
  defineAgent({
    name,
    description: `Is called ${name}.`,
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      yield turn.artifact({ parts: [text(`${name} heard ${turn.text}`)] });
    },
  });

async function serving(options: ServeOptions, mounts?: readonly AgentMount[]): Promise<Server> {
  const common = { port: 0, store: memoryStore(), logger: false, signals: false } as const;
  const server = await serve(mounts ?? named("Alice"), { ...common, ...options });
  onTestFinished(() => server.close({ grace: 0 }));
  return server;
}

const key = await makeCardKey();

/** Returns the public keys of a signer. `more`: additional members of the key. */
async function keysOf(signer: PrivateCardKey, more: object = {}): Promise<string> {
  const { keys } = await cardKeySet([signer]);
  return JSON.stringify({ keys: keys.map((each) => ({ ...each, ...more })) });
}

/** Serves an agent whose card is modified in transit. */
async function tampered(agent: string): Promise<string> {
  const server = createServer((request, response) => {
    void (async () => {
      const answer = await fetch(new URL(request.url ?? "/", agent));
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
      response.end((await answer.text()).replace("Is called Alice.", "Is called Mallory."));
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const explained: readonly (readonly [keys: string, outcome: string])[] = [
  [await keysOf(key), "verified A key that you trust signed the card, and the card is unchanged since."],
  [await keysOf(await makeCardKey()), "unknown key No key that you trust made this signature"],
  [
    await keysOf(key, { exp: 1_000 }),
    "outdated key The key is no longer valid, so the card must be signed again (the key has expired).",
  ],
  [await keysOf(key, { revoked: { reason: "lost" } }), "(the key is revoked)."],
];

describe("the signatures of a card are explained", () => {
  test.each([
    ["server", 1200, "light"],
    ["server", 380, "dark"],
    ["inspect", 1200, "dark"],
    ["inspect", 380, "light"],
  ] as const)("in mode %s, at %i pixels, %s", async (mode, width, theme) => {
    const server = await serving({ console: true, signCards: { keys: [key] } });
    const url = mode === "server" ? `${server.url}/console/` : await inspecting([server.url]);
    const { page, noise } = await open(url, { width, theme });
    await show(page, "Card");
    await loaded(page);
    await page.waitForSelector(".signatures >> text=unknown key");
    expect(await page.textContent(".signatures")).toContain("which does not make it trusted");
    for (const [keys, outcome] of explained) {
      await page.fill(".resend textarea", keys);
      await page.click("text=Verify");
      await expect.poll(() => page.locator(".signatures li").first().innerText()).toContain(outcome);
      expect([outcome, await flaws(page)]).toEqual([outcome, []]);
    }
    expect(await fits(page)).toBe(true);
    await shot(page, `Signatures ${mode} ${width} ${theme}`);
    await page.fill(".resend textarea", "{}");
    await page.click("text=Verify");
    await page.waitForSelector("[role=alert] >> text=Keys must be");
    expect(noise).toEqual([]);
  });

  test("of a card that was modified in transit", async () => {
    const server = await serving({ signCards: { keys: [key] } });
    const { page } = await open(await inspecting([await tampered(server.url)]));
    await show(page, "Card");
    await page.waitForSelector("text=Is called Mallory.");
    await page.waitForSelector(".signatures >> text=unknown key");
    await page.fill(".resend textarea", await keysOf(key));
    await page.click("text=Verify");
    await page.waitForSelector(".signatures >> text=the card was changed, or the signature is forged");
    await shot(page, "Signatures tampered");
  });

  test("of an unsigned card", async () => {
    const server = await serving({ console: true });
    const { page } = await open(`${server.url}/console/`);
    await show(page, "Card");
    await page.waitForSelector("text=The card is not signed. Only the URL that it came from tells who wrote it");
  });
});

test("agents that share a path are distinguished by tenant", async () => {
  const mounts = ["east", "west"].map((tenant) => ({ agent: named("Alice"), path: "/agents", tenant }));
  const server = await serving({ console: true, signCards: { keys: [key] } }, mounts);
  const { page, noise } = await open(`${server.url}/console/`);
  const links = page.locator(".agents li a");
  expect(await links.count()).toBe(2);
  for (const [at, tenant] of ["east", "west"].entries()) {
    await links.nth(at).click();
    await show(page, "Talk");
    await say(page, tenant);
    await page.waitForSelector(`text=Alice heard ${tenant}`);
    await show(page, "Tasks");
    await page.waitForSelector(".list li a");
    expect(await page.locator(".list li").count()).toBe(1);
    await show(page, "Wire");
    await page.click(".list li a >> text=SendStreamingMessage");
    await expect.poll(() => page.textContent(".detail")).toContain(`"tenant": "${tenant}"`);
    await show(page, "Card");
    await page.waitForSelector(`dd >> text=${tenant}`);
    await page.waitForSelector(".signatures li");
    expect(await links.nth(at).innerText()).toContain(`· ${tenant}`);
  }
  expect(await flaws(page)).toEqual([]);
  await shot(page, "Tenants");
  expect(noise).toEqual([]);
});
