import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { defineAgent, memoryStore, serve, text } from "@parley/node";
import { fits, flaws, inspecting, open, shot, show } from "./console-page.ts";

/* Tests two agents side by side in the console, in a real browser. */

const named = (name: string) =>
  defineAgent({
    name,
    description: `Is called ${name}.`,
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      if (turn.text === "wait") yield turn.working("Waiting");
      if (turn.text === "wait") await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      yield turn.artifact({ parts: [text(`${name} heard ${turn.text}`)] });
    },
  });

/** Serves a console with three agents. Returns the console's URL, without a fragment. */
async function serving(): Promise<string> {
  const mounts = ["Alice", "Bob", "Carol"].map((name) => ({ agent: named(name), path: `/${name.toLowerCase()}` }));
  const common = { port: 0, store: memoryStore(), logger: false, signals: false, console: true } as const;
  const server = await serve(mounts, common);
  onTestFinished(() => server.close({ grace: 0 }));
  return `${server.url}/console/`;
}

const pane = (page: Page, name: string) => page.locator(`.pane[aria-label="${name}"]`);

async function sayTo(page: Page, name: string, message: string): Promise<void> {
  await pane(page, name).locator("textarea[aria-label=Message]").fill(message);
  await pane(page, name).locator("textarea[aria-label=Message]").press("Enter");
}

test.each([
  [1200, "light"],
  [380, "dark"],
] as const)("can be chosen, can get the same message, and have a link: %i pixels, %s", async (width, theme) => {
  const { page, noise } = await open(await serving(), { width, theme });
  await page.selectOption("select[aria-label='Agent beside this one']", { label: "beside Carol" });
  await pane(page, "Carol").waitFor();
  expect(new URL(page.url()).hash).toBe("#/talk/%2Falice?beside=%2Fcarol");
  await sayTo(page, "Carol", "one");
  await pane(page, "Carol").getByText("Carol heard one").waitFor();
  expect(await pane(page, "Alice").locator("article").count()).toBe(0);
  await page.getByLabel("Also send to Carol").check();
  await sayTo(page, "Alice", "two");
  await pane(page, "Alice").getByText("Alice heard two").waitFor();
  await pane(page, "Carol").getByText("Carol heard two").waitFor();
  // On a phone, one pane is below the other.
  const [first, second] = await Promise.all(["Alice", "Carol"].map((name) => pane(page, name).boundingBox()));
  if (width === 380) expect(second?.y).toBeGreaterThanOrEqual((first?.y ?? 0) + (first?.height ?? 0));
  else expect(second?.x).toBeGreaterThanOrEqual((first?.x ?? 0) + (first?.width ?? 0));
  expect(await flaws(page)).toEqual([]);
  expect(await fits(page)).toBe(true);
  await shot(page, `Two agents ${width} ${theme}`);
  // Other screens and other tabs keep the link to both agents.
  await show(page, "Tasks");
  await show(page, "Talk");
  await pane(page, "Carol").getByText("Carol heard two").waitFor();
  await page.reload();
  await pane(page, "Carol").waitFor();
  await pane(page, "Alice").waitFor();
  expect(noise).toEqual([]);
});

test("a message to both waits until both can accept it, and each agent has its own conversations", async () => {
  const { page } = await open(`${await serving()}#/talk/%2Falice?beside=%2Fbob`);
  await sayTo(page, "Bob", "wait");
  await pane(page, "Bob").getByText("Cancel").waitFor();
  await page.getByLabel("Also send to Bob").check();
  expect(await pane(page, "Alice").getByText("Send to both").isDisabled()).toBe(true);
  await sayTo(page, "Alice", "early");
  expect(await pane(page, "Alice").locator("article").count()).toBe(0);
  await pane(page, "Bob").getByText("Cancel").click();
  await pane(page, "Bob").getByText("canceled").waitFor();
  await pane(page, "Alice").locator("textarea[aria-label=Message]").press("Enter");
  await pane(page, "Alice").getByText("Alice heard early").waitFor();
  await pane(page, "Bob").getByText("Bob heard early").waitFor();
  await page.keyboard.press("Escape");
  await pane(page, "Bob").getByText("New").click();
  await pane(page, "Bob · 2").waitFor();
  await pane(page, "Bob · 2").getByText("Close").click();
  await pane(page, "Bob").getByText("Close").click();
  await expect.poll(() => page.locator(".pane").count()).toBe(1);
  expect(new URL(page.url()).hash).toBe("#/talk/%2Falice");
});

test("can be chosen in the palette, which omits a removed agent", async () => {
  const base = await serving();
  const agents = ["alice", "bob"].map((name) => new URL(`/${name}`, base).href);
  const { page } = await open(await inspecting([agents[0] ?? ""]));
  await page.click("text=Connect to an agent");
  await page.fill("input[name=url]", agents[1] ?? "");
  await page.click("button >> text=Connect");
  await pane(page, "Bob").waitFor();
  await page.keyboard.press("Control+k");
  await page.waitForSelector("dialog [role=option]");
  await page.keyboard.type("alice beside bob");
  await page.keyboard.press("Enter");
  await pane(page, "Alice").waitFor();
  await page.keyboard.press("n");
  await pane(page, "Bob · 2").locator("textarea:focus").waitFor();
  await page.click("[aria-label='Disconnect Alice']");
  await expect.poll(() => pane(page, "Alice").count()).toBe(0);
  expect(await pane(page, "Bob · 2").count()).toBe(1);
});
