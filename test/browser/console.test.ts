import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { defineAgent, memoryStore, serve, text, type AgentDescription, type ServeOptions } from "@parley/node";
import { bearer } from "@parley/a2a/auth";
import { drawnInFrame, fits, flaws, inspecting, loaded, open, say, shot, show } from "./console-page.ts";

/* Tests the console of `parley inspect` in a real browser. Saves screenshots of every screen in the folder CONSOLE_SHOTS. */

const root = join(import.meta.dirname, "..", "..");
/** Serves an agent that streams its answer, and asks for a city if the message says so. */
async function serving(card: Partial<AgentDescription> = {}, options: ServeOptions = {}): Promise<string> {
  const agent = defineAgent({
    name: "Weather",
    description: "Knows the weather.",
    version: "1.0.0",
    skills: [{ id: "rain", name: "Rain", description: "Will it rain?", tags: ["rain"], examples: ["Will it rain?"] }],
    ...card,
    async *onMessage(turn) {
      if (turn.text === "ask me") return void (yield turn.inputRequired("Which city?"));
      if (turn.text === "wait") yield turn.working("Waiting");
      if (turn.text === "wait") await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      if (turn.text === "hostile") return void (yield turn.artifact({ parts: hostileParts }));
      const count = Number(/^count to (\d+)$/.exec(turn.text)?.[1] ?? 3);
      for (let n = 1; n <= count; n++) {
        const part = [text(`**${n}** `)];
        yield n === 1
          ? turn.artifact({ artifactId: "numbers", parts: part, open: count > 1 })
          : turn.append("numbers", part, { last: n === count });
      }
    },
  });
  const server = await serve(agent, { port: 0, store: memoryStore(), logger: false, signals: false, ...options });
  onTestFinished(() => server.close({ grace: 0 }));
  return server.url;
}

describe("every screen", () => {
  test.each([
    [1200, "light"],
    [1200, "dark"],
    [380, "light"],
    [380, "dark"],
  ] as const)("fits, has no axe violations, and requests only its own origin: %i pixels, %s", async (width, theme) => {
    const { page, noise } = await open(await inspecting([await serving()]), { width, theme });
    await page.click("text=Will it rain?");
    await page.waitForSelector("text=completed");
    await say(page, "ask me");
    await page.waitForSelector("text=Which city?");
    for (const screen of ["Talk", "Tasks", "Inbox", "Timeline", "Wire", "Card"]) {
      await show(page, screen);
      await page.waitForSelector(`nav.screens a[aria-current=page] >> text="${screen}"`);
      const item = page.locator(".list li a, .rows .row").first();
      if (["Tasks", "Inbox", "Timeline", "Wire"].includes(screen)) await item.click();
      if (screen === "Card") await page.waitForSelector("text=Checks");
      await loaded(page);
      expect([screen, await flaws(page)]).toEqual([screen, []]);
      expect([screen, await fits(page)]).toEqual([screen, true]);
      await shot(page, `${screen}-${width}-${theme}`);
    }
    expect(noise).toEqual([]);
  });
});

describe("a conversation", () => {
  test("streams an answer, answers a question, and shows both in one context", async () => {
    const { page } = await open(await inspecting([await serving()]));
    await say(page, "ask me");
    await page.waitForSelector("text=input required");
    await say(page, "count to 5");
    await page.waitForSelector("text=completed");
    expect(await page.locator("article.reply strong").allTextContents()).toEqual(["1", "2", "3", "4", "5"]);
    await show(page, "Tasks");
    await page.waitForSelector(".list li");
    expect(await page.locator(".list li").count()).toBe(1);
  });

  test("cancels a running task", async () => {
    const { page } = await open(await inspecting([await serving()]));
    await say(page, "wait");
    await page.waitForSelector("text=working");
    await page.click("text=Cancel");
    await page.waitForSelector("text=canceled");
  });

  test("answers a question in the inbox, which is then empty", async () => {
    const { page } = await open(await inspecting([await serving()]));
    await say(page, "ask me");
    await page.waitForSelector("text=Which city?");
    await show(page, "Inbox");
    await page.click(".list li a");
    await page.fill("textarea[aria-label=Answer]", "Oslo");
    await page.click("button >> text=Answer");
    await page.waitForSelector(".detail >> text=completed");
    await page.waitForSelector("text=No task waits for you.");
  });

  test("can be shown next to another one with the same agent", async () => {
    const { page } = await open(await inspecting([await serving()]));
    await page.click("button:text-is('New')");
    await expect.poll(() => page.locator(".pane").count()).toBe(2);
    await page.locator("textarea[aria-label=Message]").nth(1).fill("count to 2");
    await page.locator("textarea[aria-label=Message]").nth(1).press("Enter");
    await page.waitForSelector(".pane:nth-child(2) >> text=completed");
    expect(await page.locator(".pane:nth-child(1) article").count()).toBe(0);
  });
});

describe("the wire log", () => {
  test("has requests and events with their bytes, and masks secrets that the user typed", async () => {
    const secret = "s3cret-of-the-user";
    const agent = await serving({}, { authenticator: bearer({ [secret]: { subject: "ada" } }) });
    const url = await inspecting();
    const { page } = await open(url);
    const seen: Promise<string>[] = [];
    page.on("response", (response) => {
      if (!response.url().includes("/api/wire")) seen.push(response.text().catch(() => ""));
    });
    await page.fill("input[name=url]", agent);
    await page.click("text=Options");
    await page.fill("textarea[name=headers]", `Authorization: Bearer ${secret}`);
    await page.click("button >> text=Connect");
    await page.waitForSelector("text=Will it rain?");
    await say(page, "count to 2");
    await page.waitForSelector("text=completed");
    await show(page, "Wire");
    await page.click(".list li a >> text=SendStreamingMessage");
    const detail = page.locator(".detail");
    await expect.poll(() => detail.textContent()).toContain("artifactUpdate");
    const shown = (await detail.textContent()) ?? "";
    expect(shown).toContain("Bearer •••");
    expect(shown + (await Promise.all(seen)).join("")).not.toContain(secret);
  });

  test("resends a request with the user's changes and the agent's credentials", async () => {
    const agent = await serving({}, { authenticator: bearer({ "s3cret-of-the-user": { subject: "ada" } }) });
    const { page } = await open(await inspecting([agent, "--token", "s3cret-of-the-user"]));
    await say(page, "count to 2");
    await page.waitForSelector("text=completed");
    await show(page, "Wire");
    await page.click(".list li a >> text=SendStreamingMessage");
    await page.click("text=Edit and resend");
    const body = page.locator(".resend textarea").nth(1);
    const changed = (await body.inputValue())
      .replace("count to 2", "count to 4")
      .replace(/"messageId":"[^"]*"/, `"messageId":"again-1"`);
    await body.fill(changed);
    await page.click(".resend button");
    await expect.poll(() => page.locator(".list li", { hasText: "SendStreamingMessage" }).count()).toBe(2);
    await page.locator(".list li a").first().click();
    await expect.poll(() => page.locator(".detail").textContent()).toContain("**4** ");
  });

  test("never sends a masked secret, and names the one to fill in", async () => {
    const { page } = await open(await inspecting([await serving()]));
    await say(page, "hello");
    await page.waitForSelector("text=completed");
    await show(page, "Wire");
    await page.click(".list li a >> text=SendStreamingMessage");
    await page.click("text=Edit and resend");
    const url = page.locator(".resend input[type=url]");
    await url.fill(`${await url.inputValue()}?access_token=s3cret&x=1`);
    await page.click(".resend button");
    const sent = page.locator(".list li", { hasText: "SendStreamingMessage" });
    await expect.poll(() => sent.count()).toBe(2);
    await page.locator(".list li a", { hasText: "SendStreamingMessage" }).first().click();
    await expect.poll(() => url.inputValue()).toMatch(/\?access_token=•••&x=1$/);
    await page.click(".resend button");
    await page.waitForSelector(".resend .problem >> text=Replace ••• by the value of access_token");
    expect(await sent.count()).toBe(2);
    await url.fill((await url.inputValue()).replace("•••", "s3cret"));
    await page.click(".resend button");
    await expect.poll(() => sent.count()).toBe(3);
  });
});

test("a link with an invalid escape opens the page", async () => {
  const { page, noise } = await open(`${await serving({}, { console: true })}/console/#/talk/%`);
  await page.waitForSelector("nav.screens >> text=Talk");
  expect(noise).toEqual([]);
});

test("screens have a heading while nothing is selected", async () => {
  const { page } = await open(await inspecting([await serving()]));
  for (const screen of ["Tasks", "Inbox", "Wire"]) {
    await show(page, screen);
    await page.waitForSelector("text=/Choose a (task|request)/");
    await loaded(page);
    expect([screen, await flaws(page)]).toEqual([screen, []]);
  }
});

/** Hostile content. No part of it may run or be loaded. */
const payload =
  `<script>document.title="pwned"</script><img src="https://evil.example/x.png" onerror="alert(1)">` +
  `<svg onload=alert(1)>[click](javascript:alert(1)) ![pixel](https://evil.example/y.png) <a href="javascript:alert(1)">x</a>`;
const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>`;
const hostileParts = [
  text(payload),
  { raw: Buffer.from(svg).toString("base64"), mediaType: "image/svg+xml", filename: `"><script>alert(1)</script>.svg` },
  { raw: Buffer.from("<script>alert(1)</script>").toString("base64"), mediaType: "text/html", filename: "page.html" },
  { url: "javascript:alert(1)", filename: "link" },
  { url: "https://evil.example/file", filename: "file" },
  { data: { [payload]: payload } },
];

test("shows a hostile agent as text: no script runs, and nothing is loaded", async () => {
  const card = {
    name: payload,
    description: payload,
    provider: { organization: payload, url: "javascript:alert(1)" },
    skills: [{ id: "x", name: payload, description: payload, tags: [payload], examples: [payload, "hostile"] }],
  };
  const { page, noise } = await open(await inspecting([await serving(card)]));
  await say(page, "hostile");
  await page.waitForSelector("text=completed");
  for (const screen of ["Talk", "Tasks", "Timeline", "Wire", "Card"]) {
    await show(page, screen);
    await loaded(page);
    expect(
      await page.evaluate("document.querySelectorAll('body script:not([src]), iframe, object, embed').length"),
    ).toBe(0);
    const schemes = await page.evaluate<string[]>("[...document.links].map(({ protocol }) => protocol)");
    expect(schemes.filter((scheme) => !["http:", "https:", "blob:"].includes(scheme))).toEqual([]);
    expect(await page.evaluate("[...document.images].filter(({ src }) => !src.startsWith('blob:')).length")).toBe(0);
  }
  expect(noise).toEqual([]);
  expect(await page.title()).not.toBe("pwned");
});

describe("without the token of the launch", () => {
  test("neither the API nor the agents answer, and the page explains what to do", async () => {
    const url = new URL(await inspecting([await serving()]));
    const card = "agents/a1/.well-known/agent-card.json";
    const paths = ["console/api/session", "console/api/wire", "agents/a1/tasks", card];
    for (const path of paths) {
      expect((await fetch(new URL(path, url.origin))).status).toBe(401);
    }
    const post = {
      method: "POST",
      body: `{"url":"http://127.0.0.1:1"}`,
      headers: { "content-type": "application/json" },
    };
    for (const path of ["console/api/agents", "console/api/wire", "agents/a1"]) {
      expect((await fetch(new URL(path, url.origin), post)).status).toBe(401);
    }
    const { page } = await open(`${url.origin}/console/`, { ready: "p.problem" });
    await page.waitForSelector("text=open the URL that parley inspect printed");
  });

  test("a page of another origin or another local host name gets nothing", async () => {
    const url = new URL(await inspecting());
    const token = new URLSearchParams(url.hash.slice(1)).get("token") ?? "";
    const headers = { "x-parley-console": token, "content-type": "application/json" };
    const other = { method: "POST", body: "{}", headers: { ...headers, origin: "https://evil.example" } };
    expect((await fetch(new URL("console/api/agents", url.origin), other)).status).toBe(403);
    const { request } = await import("node:http");
    const rebound = request(new URL("console/api/session", url.origin), {
      headers: { ...headers, host: "evil.example" },
    });
    rebound.end();
    const [answer] = (await once(rebound, "response")) as [{ readonly statusCode: number }];
    expect(answer.statusCode).toBeGreaterThanOrEqual(400);
  });
});

describe("its size", () => {
  const folder = join(root, "packages", "console", "dist", "app");
  const sizeOf = (name: string): number => gzipSync(readFileSync(join(folder, name))).length;

  test("is at most 60 kB before the timeline is opened, and 120 kB in all, gzipped", async () => {
    const { page } = await open(await inspecting([await serving()]));
    const loaded = await page.evaluate<string[]>(
      "performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => name.includes('/assets/'))",
    );
    const first = ["index.html", ...loaded.map((name) => `assets/${name.split("/").at(-1) ?? ""}`)];
    expect(first.reduce((sum, name) => sum + sizeOf(name), 0)).toBeLessThan(60_000);
    const all = ["index.html", ...readdirSync(join(folder, "assets")).map((name) => `assets/${name}`)];
    expect(all.reduce((sum, name) => sum + sizeOf(name), 0)).toBeLessThan(120_000);
  });
});

test("a timeline of 100,000 events has few elements, and draws each pixel once", async () => {
  const { page } = await open(await inspecting([await serving()]));
  await say(page, "count to 100000");
  await page.waitForSelector("text=completed", { timeout: 120_000 });
  await show(page, "Timeline");
  await page.waitForSelector("canvas");
  expect(await drawnInFrame(page)).toBeLessThan(6 * 1200);
  expect(await page.locator("*").count()).toBeLessThan(1_000);
  await page.locator(".rows").press("End");
  await expect.poll(() => page.locator(".row[aria-selected=true]").count()).toBe(1);
  const frames = await page.evaluate<number>(`new Promise((resolve) => {
    const canvas = document.querySelector("canvas");
    let frames = 0;
    const began = performance.now();
    const next = () => {
      canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: frames % 40 < 20 ? -20 : 20, bubbles: true, cancelable: true }));
      if (++frames < 120) requestAnimationFrame(next);
      else resolve(frames / ((performance.now() - began) / 1000));
    };
    requestAnimationFrame(next);
  })`);
  console.log(`A timeline of 100,000 events: ${frames.toFixed(0)} frames a second while it is zoomed`);
});
