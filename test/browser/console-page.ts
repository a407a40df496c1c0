import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";

/* Helpers for the console's browser tests. */

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const shots = process.env["CONSOLE_SHOTS"];

let browser: Browser;
beforeAll(async () => {
  const places = [process.env["CHROMIUM_PATH"], "/usr/bin/chromium", "/usr/bin/chromium-browser"];
  const executablePath = places.find((place) => place !== undefined && existsSync(place));
  if (executablePath === undefined)
    throw new Error("No Chromium here: install one, or name its program in CHROMIUM_PATH");
  browser = await chromium.launch({ executablePath, args: ["--headless", "--no-sandbox", "--disable-gpu"] });
  if (shots !== undefined) mkdirSync(shots, { recursive: true });
}, 120_000);
afterAll(() => browser.close());

const program = join(import.meta.dirname, "..", "..", "packages", "cli", "dist", "main.js");

/** Starts a `parley` command without a keychain. The command ends with the test. */
export function parley(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): ChildProcessByStdio<Writable, Readable, null> {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, PARLEY_KEYCHAIN: "off", ...env },
  });
  onTestFinished(async () => {
    child.kill();
    if (child.exitCode === null) await once(child, "exit");
  });
  return child;
}

/** Runs `parley inspect`. Returns the URL that the command prints. */
export async function inspecting(args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const child = parley(["inspect", ...args, "--no-open", "--json"], env);
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return (JSON.parse(line) as { readonly url: string }).url;
}

interface OpenInit {
  readonly width?: number;
  readonly theme?: "light" | "dark";
  readonly ready?: string;
  /** Called with the page before it loads. */
  readonly prepare?: (page: Page) => Promise<void>;
}

interface Opened {
  readonly page: Page;
  /** Errors of the page, and requests to other origins. */
  readonly noise: readonly string[];
}

/** Opens a page of the console. `ready`: a selector that matches once the page has loaded. */
export async function open(
  url: string,
  { width = 1200, theme: colorScheme = "light", ready = "nav.screens", prepare }: OpenInit = {},
): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme });
  onTestFinished(() => context.close());
  // Uses the same timeout as for any condition, so that tests do not fail on a busy machine.
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const noise: string[] = [];
  const own = new URL(url).origin;
  page.on("console", (message) => message.type() === "error" && noise.push(message.text()));
  page.on("pageerror", (error) => noise.push(error.message));
  page.on("dialog", (dialog) => noise.push(dialog.message()));
  page.on("popup", (popup) => noise.push(popup.url()));
  page.on("request", (request) => {
    if (!request.url().startsWith(own) && !request.url().startsWith("blob:")) noise.push(request.url());
  });
  await prepare?.(page);
  await page.goto(url);
  await page.waitForSelector(ready);
  return { page, noise };
}

export async function say(page: Page, message: string): Promise<void> {
  await page.fill("textarea[aria-label=Message]", message);
  await page.keyboard.press("Enter");
}

export const show = (page: Page, screen: string): Promise<void> => page.click(`nav.screens >> text="${screen}"`);

/** Saves a screenshot in the folder CONSOLE_SHOTS. */
export async function shot(page: Page, name: string): Promise<void> {
  if (shots !== undefined) await page.screenshot({ path: join(shots, `${name}.png`) });
}

/** Waits until a screen has loaded its code and data. */
export async function loaded(page: Page): Promise<void> {
  await expect.poll(() => page.evaluate("document.body.innerText.includes('Loading')")).toBe(false);
}

interface AxeResult {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

/** Returns the violations of WCAG 2.2 level AA that axe finds. */
export async function flaws(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe);
  const { violations } = await page.evaluate<AxeResult>(
    `axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })`,
  );
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

export const fits = (page: Page): Promise<boolean> =>
  page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth");

/** Counts the rectangles that the timeline draws in one frame. A frame starts with the lines of the axis. */
export const drawnInFrame = (page: Page): Promise<number> =>
  page.evaluate<number>(`new Promise((resolve) => {
    const fill = CanvasRenderingContext2D.prototype.fillRect;
    let count = 0;
    CanvasRenderingContext2D.prototype.fillRect = function (...rest) {
      if (count++ === 0) queueMicrotask(() => resolve(count));
      return fill.apply(this, rest);
    };
    document.querySelector("canvas").dispatchEvent(new WheelEvent("wheel", { deltaY: -10, bubbles: true, cancelable: true }));
  })`);
