import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { defineAgent, memoryStore, serve, text, type AgentDescription, type ServeOptions } from "@parley/node";
import { consoleTable } from "../docs/console-table.ts";
import { fits, flaws, inspecting, loaded, open, say, shot, show } from "./console-page.ts";

/* Tests forms, authorizations, keyboard shortcuts, session files and the card in the console, in a real browser. */

const Trip = {
  type: "object",
  properties: {
    city: { type: "string", title: "City", description: "Where it goes", minLength: 2 },
    day: { type: "string", format: "date" },
    seats: { type: "integer", minimum: 1, maximum: 9, default: 1 },
    class: { type: "string", enum: ["First", "Second"] },
    quiet: { type: "boolean" },
    note: { type: "string" },
  },
  required: ["city", "day", "class", "quiet"],
};

/** Markdown that makes a lexer run for minutes or overflow the stack. */
const bombs = [
  ">".repeat(50_000),
  "- ".repeat(40_000),
  "*a **a ".repeat(14_000),
  "_a __".repeat(19_000),
  `${"a.".repeat(49_000)}@`,
  "*a **a\n\n".repeat(10_000),
  "[".repeat(99_000),
];

/** Returns an agent that asks for a form or an authorization if the message says so. */
const asking = (card: Partial<AgentDescription> = {}) =>
  defineAgent({
    name: "Trips",
    description: "Books trips.",
    version: "1.0.0",
    defaultInputModes: ["text/plain", "application/json"],
    skills: [{ id: "book", name: "Book", description: "Books a trip.", tags: ["trip"], examples: ["Book a trip"] }],
    ...card,
    async *onMessage(turn) {
      const data = turn.message.parts.find((part) => part.data !== undefined)?.data;
      if (turn.text === "form") {
        const parts = [text("Where to?"), { data: Trip, mediaType: "application/schema+json" }];
        return void (yield turn.inputRequired(parts));
      }
      if (turn.text === "bombs") return void (yield turn.artifact({ parts: bombs.map((bomb) => text(bomb)) }));
      if (turn.text === "pay") {
        yield* turn.authorize({ form: "approval", reason: "Pay 20 EUR to ACME?", inMessage: true });
        return void (yield turn.artifact({ parts: [text("It was paid.")] }));
      }
      yield turn.artifact({ parts: [text(`I heard ${data === undefined ? turn.text : JSON.stringify(data)}`)] });
    },
  });

async function serving(options: ServeOptions = {}, card: Partial<AgentDescription> = {}): Promise<string> {
  const common = { port: 0, store: memoryStore(), logger: false, signals: false, console: true } as const;
  const server = await serve(asking(card), { ...common, ...options });
  onTestFinished(() => server.close({ grace: 0 }));
  return `${server.url}/console/`;
}

async function fillTrip(page: Page): Promise<void> {
  await page.waitForSelector("form[aria-label=Form]");
  await page.getByLabel("City").fill("B");
  await page.getByLabel("class").selectOption("Second");
  await page.getByLabel("quiet").selectOption("yes");
  await page.click("text=Send form");
  await page.waitForSelector("text=It must have at least 2 characters");
  await page.waitForSelector("text=It is required");
  expect(await flaws(page)).toEqual([]);
  expect(await fits(page)).toBe(true);
  await page.getByLabel("City").fill("Basel");
  await page.getByLabel("day").fill("2026-12-01");
  await page.click("text=Send form");
}

const filled = `text=I heard {"city":"Basel","day":"2026-12-01","seats":1,"class":"Second","quiet":true}`;

describe("a question from an agent", () => {
  test.each([
    ["Talk", 1200, "light"],
    ["Inbox", 380, "dark"],
  ] as const)("is shown as a form with validated fields, made from its schema: %s", async (screen, width, theme) => {
    const { page, noise } = await open(await serving(), { width, theme });
    await say(page, "form");
    await page.waitForSelector("text=input required");
    if (screen === "Inbox") {
      await show(page, "Inbox");
      await page.click(".list li a");
    }
    await fillTrip(page);
    await page.waitForSelector(filled);
    await shot(page, `Form ${screen} ${width} ${theme}`);
    expect(noise).toEqual([]);
  });

  test("can be an authorization with a link, which is answered in a message if the agent accepts that", async () => {
    const { page } = await open(await serving());
    await say(page, "pay");
    await page.waitForSelector("section[aria-label=Authorization] >> text=approval");
    expect(await page.locator("section[aria-label=Authorization] a").getAttribute("href")).toContain(
      "http://127.0.0.1:",
    );
    expect(await flaws(page)).toEqual([]);
    await shot(page, "Authorization");
    await page.click("text=Approve");
    await page.waitForSelector("text=It was paid.");
  });
});

describe("the keyboard", () => {
  test("reaches every action through the palette, and shows the shortcuts", async () => {
    const { page } = await open(await serving());
    await page.locator("nav.screens a").first().waitFor();
    await page.keyboard.press("Control+k");
    await page.waitForSelector("dialog [role=option]");
    expect(await flaws(page)).toEqual([]);
    await page.keyboard.type("new conv");
    await page.keyboard.press("Enter");
    // Typed text goes to the focused element.
    await page.waitForSelector(".pane:nth-child(2) textarea:focus");
    await page.keyboard.type("hello");
    await page.keyboard.press("Enter");
    await page.waitForSelector("text=I heard hello");
    await page.keyboard.press("Control+k");
    await page.waitForSelector("dialog [role=option]");
    await page.keyboard.type("show wire");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".list li a");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.keyboard.press("?");
    await page.waitForSelector("dialog >> text=g t");
    expect(await flaws(page)).toEqual([]);
    await shot(page, "Keys");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.keyboard.press("g");
    await page.keyboard.press("k");
    await page.waitForSelector("nav.screens a[aria-current=page] >> text=Tasks");
    // The shortcut works even while the screen's code is loading.
    await page.keyboard.press("/");
    await page.waitForSelector("input[type=search]:focus");
    await page.keyboard.type("no such task");
    await page.waitForSelector("text=There are no tasks.");
  });
});

test("the documentation has a row for every palette action, with its command if there is one", async () => {
  const store = memoryStore();
  const server = await serve(
    [
      { agent: asking(), path: "/trips", id: "trips" },
      { agent: asking({ name: "Stays" }), path: "/stays", id: "stays" },
    ],
    { port: 0, store, logger: false, signals: false, operators: true },
  );
  onTestFinished(() => server.close({ grace: 0 }));
  const { page } = await open(await inspecting([`${server.url}/trips`, "--operators", `${server.url}/ops`]));
  await page.click("text=Connect to an agent");
  await page.fill("input[name=url]", `${server.url}/stays`);
  await page.click("button >> text=Connect");
  await page.waitForSelector("nav.screens >> text=Operate");
  await expect.poll(() => page.locator(".agents li").count()).toBe(2);
  await page.keyboard.press("Escape");
  await page.locator("nav.screens a").first().focus();
  await page.keyboard.press("Control+k");
  await page.waitForSelector("dialog [role=option]");
  const names = await page
    .locator("dialog [role=option]")
    .evaluateAll((found) => found.map((one) => one.firstChild?.textContent ?? ""));
  const actions = new Set(names.map((name) => name.replaceAll(/Trips|Stays/g, "AGENT")));
  for (const name of ["Talk to AGENT beside AGENT", "Sign in to AGENT", "Show Operate"])
    expect(actions).toContain(name);
  const documented = new Set(consoleTable().flatMap(({ action }) => action.split(", ")));
  expect([...actions].filter((name) => !documented.has(name))).toEqual([]);
});

describe("a session as a file", () => {
  async function chosen(page: Page, path: string): Promise<void> {
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.keyboard.press("o")]);
    await chooser.setFiles(path);
  }

  test("is saved, opened elsewhere, and read-only there", async () => {
    const folder = await mkdtemp(join(tmpdir(), "parley-session-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const { page } = await open(await serving());
    await say(page, "hello");
    await page.waitForSelector("text=I heard hello");
    await show(page, "Card");
    await loaded(page);
    const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("s")]);
    const path = join(folder, "session.json");
    await download.saveAs(path);

    const other = await open(await serving({}, { name: "Another" }));
    await show(other.page, "Card");
    await loaded(other.page);
    await chosen(other.page, path);
    await other.page.waitForSelector("text=Nothing is sent.");
    await other.page.waitForSelector("text=I heard hello");
    expect(await other.page.locator("textarea").count()).toBe(0);
    await show(other.page, "Wire");
    await other.page.click(".list li a >> text=SendStreamingMessage");
    await expect.poll(() => other.page.locator(".detail").textContent()).toContain("I heard hello");
    expect(await other.page.locator("text=Edit and resend").isDisabled()).toBe(true);
    expect(await flaws(other.page)).toEqual([]);
    expect(other.noise).toEqual([]);

    const saved = readFileSync(path, "utf8");
    const bad: readonly (readonly [content: string, why: string])[] = [
      [saved.slice(0, -100), "not valid JSON"],
      [`{"parley":"other"}`, "not a session of the Parley console"],
      [saved.replace(`"version":1,`, `"version":2,`), "version 2; this console reads 1"],
      [saved.replace(`"kind":"request"`, `"kind":"__proto__"`), "a record of the wire is incomplete"],
      [saved.replace(/"parts":\[/, `"parts":[7,`), "an entry of a conversation is incomplete"],
      [" ".repeat((64 << 20) + 1), "the maximum is 67108864"],
    ];
    for (const [content, why] of bad) {
      writeFileSync(path, content);
      await chosen(other.page, path);
      await other.page.waitForSelector(`.opened >> text=${why}`);
    }
  });
});

describe("the wire", () => {
  test("can be filtered by operation and status, pinned, and copied as code", async () => {
    const { page } = await open(await serving());
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await say(page, "hello");
    await page.waitForSelector("text=I heard hello");
    await show(page, "Tasks");
    await page.waitForSelector(".list li a");
    await show(page, "Wire");
    await page.selectOption("select[aria-label=Operation]", "SendStreamingMessage");
    await expect.poll(() => page.locator(".list li").count()).toBe(1);
    await page.selectOption("select[aria-label=Status]", "failed");
    await page.waitForSelector("text=No requests.");
    await page.selectOption("select[aria-label=Status]", "ok");
    await page.click(".list li a");
    await page.click("button >> text=Pin");
    await page.selectOption("select[aria-label=Operation]", "");
    expect(await page.locator(".list li").first().textContent()).toContain("★ POST SendStreamingMessage");
    await page.click("text=Copy as TypeScript");
    const code = await page.evaluate<string>("navigator.clipboard.readText()");
    expect(code).toContain(`for await (const event of client.sendStreamingMessage(`);
    expect(code).toContain(`"text": "hello"`);
    expect(await flaws(page)).toEqual([]);
  });
});

test("markdown that would block a lexer for minutes is shown as text, and the page stays responsive", async () => {
  const { page, noise } = await open(await serving());
  await say(page, "bombs");
  await page.waitForSelector("text=completed");
  await say(page, "hello");
  await page.waitForSelector("text=I heard hello");
  expect(noise).toEqual([]);
});

test("the card shows what changed since the last visit", async () => {
  const { page } = await open(await serving());
  await show(page, "Card");
  await page.waitForSelector("text=This is the first visit.");
  await page.evaluate(`(() => {
    const [name] = Object.keys(localStorage);
    localStorage.setItem(name, localStorage.getItem(name).replace("Books trips.", "Sold trips."));
  })()`);
  await page.reload();
  await page.waitForSelector(`text=- description: "Sold trips."`);
  await page.waitForSelector(`text=+ description: "Books trips."`);
  expect(await flaws(page)).toEqual([]);
});
