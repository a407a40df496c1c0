import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { defineAgent, memoryStore, serve, type AgentDescription, type Server } from "@parley/node";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";

/* Tests the HTML pages of agents in a real browser: whatever a card contains, no script runs and nothing is loaded. */

const places = [
  process.env["CHROMIUM_PATH"],
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

let browser: Browser;
beforeAll(async () => {
  const executablePath = places.find((place) => place !== undefined && existsSync(place));
  if (executablePath === undefined)
    throw new Error("No Chromium here: install one, or name its program in CHROMIUM_PATH");
  browser = await chromium.launch({
    executablePath,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
  });
}, 120_000);
afterAll(() => browser.close());

async function serving(...cards: readonly Partial<AgentDescription>[]): Promise<Server> {
  const agents = cards.map((card, at) => ({
    agent: defineAgent({
      name: "Oracle",
      description: "Knows.",
      version: "1",
      skills: [],
      ...card,
      onMessage: (turn) => turn.reply("It is certain."),
    }),
    ...(at > 0 && { path: `/agent-${at}` }),
  }));
  const server = await serve(agents, { port: 0, store: memoryStore(), logger: false, signals: false });
  onTestFinished(() => server.close({ grace: 0 }));
  return server;
}

/** Opens a page. Records the page's other requests and errors. */
async function open(url: string, width: number, colorScheme: "light" | "dark" = "light") {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  onTestFinished(() => page.close());
  const noise: string[] = [];
  page.on("request", (request) => {
    // A browser requests an icon automatically.
    if (!request.isNavigationRequest() && !request.url().endsWith("/favicon.ico")) noise.push(request.url());
  });
  page.on("console", (message) => {
    if (!message.text().includes("404")) noise.push(message.text());
  });
  page.on("dialog", (dialog) => noise.push(dialog.message()));
  await page.goto(url);
  return { page, noise };
}

const fits = (page: Page): Promise<boolean> =>
  page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth");

const colors = (page: Page): Promise<string> => page.evaluate("getComputedStyle(document.body).backgroundColor");

const hostile =
  `</title></style><script>document.title = "pwned"</script><img src="https://evil.example/x.png" onerror="alert(1)">` +
  `<style>*{display:none}</style>\u202egpj.exe\u0007" onmouseover="alert(1)' --><svg onload=alert(1)>`;

describe("the page of an agent", () => {
  test.each([1200, 320])("fits into %i pixels, light and dark, with its own stylesheet", async (width) => {
    const server = await serving({ description: `${"Long ".repeat(100)}${"w".repeat(500)}` });
    const light = await open(server.url, width);
    const dark = await open(server.url, width, "dark");
    for (const { page, noise } of [light, dark]) {
      expect(await page.textContent("h1")).toBe("Oracle");
      expect(await fits(page)).toBe(true);
      expect(await page.evaluate("getComputedStyle(document.querySelector('pre')).overflowX")).toBe("auto");
      expect(noise).toEqual([]);
    }
    expect([await colors(light.page), await colors(dark.page)]).toEqual(["rgb(255, 255, 255)", "rgb(22, 22, 24)"]);
  });

  test("shows hostile texts as text: no script, image, style or script link", async () => {
    const server = await serving(
      {},
      {
        name: hostile,
        description: hostile,
        version: hostile,
        provider: { organization: hostile, url: "javascript:alert(1)" },
        documentationUrl: "javascript:alert(document.domain)//https://",
        iconUrl: "https://evil.example/icon.png",
        skills: [{ id: hostile, name: hostile, description: hostile, tags: [hostile], examples: [hostile] }],
      },
    );
    const { page, noise } = await open(`${server.url}/agent-1`, 800);
    expect(await page.title()).toContain('<script>document.title = "pwned"</script>');
    expect(
      await page.evaluate("document.querySelectorAll('script, img, svg, body style, [onerror], [onload]').length"),
    ).toBe(0);
    const links = await page.evaluate<string[]>("[...document.links].map(({ protocol }) => protocol)");
    expect(new Set(links)).toEqual(new Set(["http:"]));
    const text = (await page.textContent("body")) ?? "";
    expect(text).toContain("<U+202E>gpj.exe\u2407");
    expect(text).not.toContain("\u202e");
    await page.mouse.move(100, 100);
    expect(noise).toEqual([]);
    expect(await fits(page)).toBe(true);
  });

  test("shows a command that works when copied", async () => {
    const server = await serving({});
    const { page } = await open(server.url, 800);
    const command = (await page.textContent("pre >> nth=0")) ?? "";
    const { stdout } = await promisify(execFile)("sh", ["-c", command]);
    expect(JSON.parse(stdout)).toMatchObject({ message: { parts: [{ text: "It is certain." }] } });
  });

  test("links to its card", async () => {
    const server = await serving({});
    const { page } = await open(server.url, 800);
    await page.click("a:has-text('agent-card.json')");
    await page.waitForURL("**/.well-known/agent-card.json");
    expect(await page.textContent("body")).toContain('"name":"Oracle"');
  });
});
