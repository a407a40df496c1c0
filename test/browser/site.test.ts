import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { chromium, type Browser, type Locator, type Page } from "playwright-core";
import { blocksOf } from "../docs/pages.ts";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

/** Tests the documentation site of `npm run docs` in a browser. Builds the site if it is missing. */

const root = join(import.meta.dirname, "../..");
const dist = join(root, "site/dist");
const types: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
};
const places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

let browser: Browser;
let server: Server;
let origin: string;
let page: Page;
/** Requests to other hosts, and errors of pages. */
let problems: string[];

/** Serves files like a static host, which finds `client.html` for `/client`. */
function serveFiles(): Server {
  return createServer((request, response) => {
    const path = join(dist, decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname));
    const file = [path, `${path}.html`, join(path, "index.html")].find(
      (each) => existsSync(each) && statSync(each).isFile(),
    );
    if (file === undefined) return response.writeHead(404).end();
    response.setHeader("content-type", types[extname(file)] ?? "application/octet-stream");
    return response.end(readFileSync(file));
  });
}

beforeAll(async () => {
  if (!existsSync(join(dist, "index.html")))
    await promisify(execFile)(process.execPath, [join(root, "scripts/docs.mjs")], { maxBuffer: 64 << 20 });
  server = serveFiles().listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const executablePath = process.env["CHROMIUM_PATH"] ?? places.find((place) => existsSync(place));
  if (executablePath === undefined)
    throw new Error("No Chromium here: install one, or name its program in CHROMIUM_PATH");
  browser = await chromium.launch({ executablePath, args: ["--headless", "--no-sandbox", "--disable-gpu"] });
}, 900_000);

afterAll(async () => {
  await browser.close();
  server.close();
});

beforeEach(async () => {
  problems = [];
  page = await browser.newPage();
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("data:")) problems.push(`It asks for ${url}`);
  });
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(message.text());
  });
});

afterEach(async () => {
  await page.close();
  if (problems.length > 0) throw new Error(problems.join("\n"));
});

test.each([
  "/",
  "/start",
  "/errors",
  "/decisions/",
  "/packaged-extensions/x402",
  "/api/",
  "/api/node/functions/defineAgent",
])("%s requests nothing from other hosts, and fits into a narrow window", async (path) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(origin + path, { waitUntil: "networkidle" });
  expect(await page.locator("h1").first().textContent()).not.toBe("");
  const width = await page.evaluate("document.documentElement.scrollWidth");
  expect(width).toBeLessThanOrEqual(390);
});

/** Opens the search. Retries the shortcut, because the page listens only after its scripts have run. */
async function openSearch(): Promise<Locator> {
  const box = page.locator(".VPLocalSearchBox input");
  await expect
    .poll(async () => {
      if (!(await box.isVisible())) await page.keyboard.press("Control+k");
      return box.isVisible();
    })
    .toBe(true);
  return box;
}

test("search finds and opens an option in the reference and a section in a guide", async () => {
  await page.goto(`${origin}/`, { waitUntil: "networkidle" });
  const box = await openSearch();
  await box.fill("stallTimeout");
  const results = page.locator(".VPLocalSearchBox .result");
  await expect.poll(() => results.count()).toBeGreaterThan(0);
  await expect.poll(async () => (await results.allTextContents()).join("\n")).toContain("stallTimeout");

  await box.fill("TaskNotCancelable");
  // The results of the previous query stay until the new results arrive.
  const wanted = results.filter({ hasText: /^#?\s*Errors[\s\S]*TaskNotCancelable/ }).first();
  await wanted.click();
  await expect.poll(() => page.url()).toContain("/errors#tasknotcancelable");
  await page.getByRole("heading", { name: "TaskNotCancelable" }).waitFor();
});

test.each([
  ["cancel task", "/cookbook#cancel-a-task"],
  ["webhook signature", "/push#signatures"],
  ["postgres", "/postgres#postgresql"],
  ["resume after restart", "/agents#resume-after-a-crash"],
  ["api key", "/credentials#credentials-of-a-client"],
  ["upload file", "/files#options"],
  ["retry", "/client#retry-and-reconnect"],
])("search for “%s” ranks the page that explains it first: %s", async (query, found) => {
  await page.goto(`${origin}/`, { waitUntil: "networkidle" });
  await (await openSearch()).fill(query);
  const first = page.locator(".VPLocalSearchBox a.result").first();
  await expect.poll(() => first.getAttribute("href")).toBe(found);
});

test("the home page shows the first programs of the README unchanged", async () => {
  const readme = (await blocksOf("README.md")).map(({ code }) => code.trim());
  await page.goto(`${origin}/`, { waitUntil: "networkidle" });
  const shown = (await page.locator(".vp-doc pre code").allTextContents()).map((code) => code.trim());
  expect(shown.length).toBeGreaterThanOrEqual(3);
  expect(shown).toEqual(readme.slice(0, shown.length));
});

test("the home page leads a newcomer to the first agent, and on to the reference", async () => {
  await page.goto(`${origin}/`, { waitUntil: "networkidle" });
  await page.locator(".VPHero .action a").first().click();
  await page.locator(".VPSidebar").waitFor();
  await page.locator(".VPNavBar").getByRole("link", { name: "API" }).click();
  await page.getByRole("link", { name: "@parley/node", exact: true }).first().click();
  await page.locator(".VPSidebar").getByRole("link", { name: "serve", exact: true }).click();
  await page.getByRole("heading", { name: "serve()" }).waitFor();
});

test("it is dark if the system is, and has a switch", async () => {
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(`${origin}/client`, { waitUntil: "networkidle" });
  const isDark = (): Promise<unknown> => page.evaluate("document.documentElement.classList.contains('dark')");
  expect(await isDark()).toBe(true);
  await page.locator(".VPNavBar .VPSwitchAppearance").first().click();
  await expect.poll(isDark).toBe(false);
});
