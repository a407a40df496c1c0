import { build, type Plugin } from "esbuild";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { A2AAgent } from "@parley/frameworks/ag-ui";
import { data, defineAgent, serve, text } from "@parley/node";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { gate } from "../../packages/frameworks/test/gate.ts";
import { install } from "../../scripts/ready.mjs";
import { open, shot } from "./console-page.ts";

/* Tests pages with CopilotKit and `A2AAgent`, and with assistant-ui. These front ends are large, so this file installs them in test/ui. */

const folder = join(import.meta.dirname, "..", "ui");
const modules = join(folder, "node_modules");

/** The files of a page, by name. */
type PageFiles = ReadonlyMap<string, Uint8Array<ArrayBuffer>>;

const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "ag-ui.md"), "utf8");
const snippets = [...page.matchAll(/^```jsx\n(.*?)^```$/gms)].map(([, code = ""]) => code);

/** Loads the code blocks of docs/ag-ui.md as modules: `ag-ui.md:0` is the first. The agent is at the page's origin, and the hash is the thread id. */
const documented: Plugin = {
  name: "docs",
  setup(builder) {
    builder.onResolve({ filter: /^ag-ui\.md:/ }, ({ path }) => ({ path, namespace: "docs" }));
    builder.onLoad({ filter: /.*/, namespace: "docs" }, ({ path }) => ({
      contents: (snippets[Number(path.split(":")[1])] ?? "")
        .replace('"https://agents.example.com/travel"', "location.origin")
        .replace('"trip-7"', "location.hash.slice(1)"),
      loader: "jsx",
      resolveDir: folder,
    }));
  },
};

/** @param names - Files of test/ui, without extension. */
async function pagesOf(names: readonly string[]): Promise<PageFiles> {
  await install(folder, ["--ignore-scripts"]);
  const { outputFiles } = await build({
    entryPoints: names.map((name) => join(folder, `${name}.jsx`)),
    plugins: [documented],
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "browser",
    jsx: "automatic",
    conditions: ["@parley/source"],
    // Makes the adapter use the page's version of this package.
    alias: { "@ag-ui/client": join(modules, "@ag-ui/client/dist/index.mjs"), rxjs: join(modules, "rxjs") },
    define: { "process.env.NODE_ENV": '"development"' },
    loader: { ".ttf": "empty", ".woff": "empty", ".woff2": "empty" },
    outdir: "out",
    write: false,
  });
  return new Map(outputFiles.map(({ path, contents }) => [basename(path), new Uint8Array(contents)]));
}

let files: PageFiles;
beforeAll(async () => {
  files = await pagesOf(["assistant-ui", "copilotkit", "first"]);
}, 600_000);

const html = (name: string): string =>
  `<!doctype html><html lang="en"><title>Chat</title><meta charset="utf-8"><link rel="icon" href="data:,"><link rel="stylesheet" href="/page/${name}.css"><body style="margin: 0"><script type="module" src="/page/${name}.js"></script></html>`;

/** Serves a page and an agent at one origin. Returns the page's URL, whose hash is the id of a new thread. */
async function pageWith(name: string, onMessage: Parameters<typeof defineAgent>[0]["onMessage"]): Promise<string> {
  const agent = defineAgent({
    name: "Talker",
    description: "Talks.",
    version: "1.0.0",
    skills: [],
    // The page sends approvals as data.
    defaultInputModes: ["text/plain", "application/json"],
    onMessage,
  });
  const server = await serve(agent, {
    port: 0,
    logger: false,
    routes: (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/chat") return new Response(html(name), { headers: { "content-type": "text/html" } });
      if (!pathname.startsWith("/page/")) return undefined;
      const type = pathname.endsWith("css") ? "text/css" : "text/javascript";
      return new Response(files.get(basename(pathname)), { headers: { "content-type": type } });
    },
  });
  onTestFinished(() => server.close());
  return `${new URL(server.url).origin}/chat#${crypto.randomUUID()}`;
}

async function say(page: Page, message: string): Promise<void> {
  await page.fill("textarea", message);
  await page.keyboard.press("Enter");
}

const opened = (url: string): ReturnType<typeof open> => open(url, { ready: "textarea" });

const answers = (page: Page): Promise<string[]> =>
  page.locator('[data-testid="copilot-assistant-message"]').allInnerTexts();
const questions = (page: Page): Promise<string[]> =>
  page.locator('[data-testid="copilot-user-message"]').allInnerTexts();

/** Returns whether a line concerns this page: CopilotKit's own requests for news and fonts, which fail in tests, do not. */
const ours = (line: string): boolean => !/^https:|Failed to load resource/.test(line);

const said = (page: Page): Promise<string[]> => page.locator("[role=article]").allInnerTexts();

describe("CopilotKit", () => {
  test("shows artifacts as they stream, and a reload in the middle neither loses nor duplicates a character", async () => {
    const words = Array.from({ length: 400 }, (_, at) => `word ${at}, `);
    const [half, rest] = [gate(), gate()];
    const url = await pageWith("copilotkit", async function* (turn) {
      yield turn.working("Looking");
      yield* turn.stream(
        (async function* () {
          for (const [at, word] of words.entries()) {
            if (at === 200) {
              half.open();
              await rest.opened;
            }
            yield word;
          }
        })(),
      );
      yield turn.artifact({ name: "Table", parts: [data({ words: words.length })] });
    });
    const { page, noise } = await opened(url);
    await shot(page, "CopilotKit empty");
    await say(page, "Count");
    await half.opened;
    await expect.poll(async () => (await answers(page)).join("")).toContain("word 100");
    await page.reload();
    await page.waitForSelector("textarea");
    await expect.poll(async () => (await answers(page)).join("")).toContain("word 199");
    expect(await questions(page)).toEqual(["Count"]);
    await shot(page, "CopilotKit after a reload");
    rest.open();
    await page.waitForSelector("[aria-label=data]");
    await shot(page, "CopilotKit at the end");
    expect((await answers(page)).map((each) => each.trim())).toEqual([words.join("").trim()]);
    expect(await page.locator("[aria-label=data]").allInnerTexts()).toEqual(['{"words":400}']);
    await page.reload();
    await page.waitForSelector("[aria-label=data]");
    expect((await answers(page)).map((each) => each.trim())).toEqual([words.join("").trim()]);
    expect(noise.filter(ours)).toEqual([]);
  });

  test("answers a question, and approves tool calls", async () => {
    const approvals = ["pay", "book"].map((toolName, at) => ({
      approvalId: `a${at}`,
      toolCallId: `t${at}`,
      toolName,
      input: { euros: at },
      digest: `d${at}`,
    }));
    const url = await pageWith("copilotkit", async function* (turn) {
      if (turn.number === 1) return yield turn.inputRequired("For whom?");
      if (turn.number === 2) return yield turn.inputRequired([text(`Pay ${turn.text}?`), data({ approvals })]);
      yield turn.completed(`Paid: ${JSON.stringify(turn.message.parts.map((part) => part.data))}`);
    });
    const { page, noise } = await opened(url);
    await say(page, "Pay");
    await page.waitForSelector("text=For whom?");
    await say(page, "Ada");
    await page.waitForSelector("fieldset >> text=pay");
    await page.reload();
    await page.waitForSelector("fieldset >> text=pay");
    await shot(page, "CopilotKit with an approval");
    await page.click("fieldset:has-text('pay') >> text=Approve");
    await page.click("fieldset:has-text('book') >> text=Deny");
    await page.waitForSelector("text=Paid:");
    await shot(page, "CopilotKit after an approval");
    const decisions =
      '[{"approvalId":"a0","approved":true,"digest":"d0"},{"approvalId":"a1","approved":false,"digest":"d1"}]';
    expect(await answers(page)).toEqual(["For whom?", "Pay Ada?", `Paid: ${decisions}`]);
    expect(await questions(page)).toEqual(["Pay", "Ada"]);
    expect(noise.filter(ours)).toEqual([]);
  });

  test("needs only a provider and a chat, and reads a thread when the page opens", async () => {
    const url = await pageWith("first", async function* (turn) {
      yield turn.completed(`You said ${turn.text}`);
    });
    const { page, noise } = await opened(url);
    await say(page, "Hello");
    await page.waitForSelector("text=You said Hello");
    await page.reload();
    await page.waitForSelector("text=You said Hello");
    expect([await questions(page), await answers(page)]).toEqual([["Hello"], ["You said Hello"]]);
    expect(noise.filter(ours)).toEqual([]);
  });

  test("uses a version of AG-UI for which the events are valid", async () => {
    const url = await pageWith("first", async function* (turn) {
      if (turn.text === "fail") yield turn.failed("The station is closed");
      yield turn.working("Looking");
      yield turn.artifact({ artifactId: "a", parts: [text("It rains"), data(null)] });
      yield turn.artifact({ artifactId: "a", parts: [text("It snows")] });
      yield turn.inputRequired([text("Which?"), data({ type: "object" }, { mediaType: "application/schema+json" })]);
    });
    const { EventSchemas } = (await import(pathToFileURL(join(modules, "@ag-ui/core/dist/index.mjs")).href)) as {
      readonly EventSchemas: { parse(event: unknown): unknown };
    };
    const agent = new A2AAgent({ agent: new URL(url).origin });
    const events: unknown[] = [];
    agent.subscribe({ onEvent: ({ event }) => void events.push(EventSchemas.parse(event)) });
    for (const content of ["Weather?", "snow", "fail"]) {
      agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
      await agent.runAgent();
    }
    await agent.connectAgent();
    expect(new Set(events.map((event) => (event as { readonly type: string }).type))).toEqual(
      new Set([
        "RUN_STARTED",
        "ACTIVITY_SNAPSHOT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "MESSAGES_SNAPSHOT",
        "RUN_FINISHED",
        "RUN_ERROR",
      ]),
    );
  });

  test("stops the agent, and shows why a task failed", async () => {
    const stopped = gate();
    const url = await pageWith("copilotkit", async function* (turn) {
      if (turn.text === "fail") return yield turn.failed("The station is closed");
      yield turn.artifact({ parts: [text("Looking")] });
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      stopped.open();
    });
    const { page, noise } = await opened(url);
    await say(page, "wait");
    await page.waitForSelector("text=Looking");
    await page.click('[data-testid="copilot-send-button"]');
    await stopped.opened;
    await say(page, "fail");
    await page.waitForSelector("[role=alert] >> text=The station is closed");
    await shot(page, "CopilotKit failed");
    expect(noise.filter(ours)).toEqual([]);
  });
});

describe("assistant-ui", () => {
  test("shows artifacts as they stream, and answers a question in the same task", async () => {
    const [half, rest] = [gate(), gate()];
    const url = await pageWith("assistant-ui", async function* (turn) {
      if (turn.number === 1) {
        yield* turn.stream(
          (async function* () {
            yield "Two ";
            half.open();
            await rest.opened;
            yield "trains";
          })(),
        );
        return yield turn.inputRequired("Which one?");
      }
      yield turn.artifact({ parts: [data({ train: turn.text })] });
      yield turn.completed(`${turn.number}: booked`);
    });
    const { page, noise } = await opened(url);
    await say(page, "A train");
    await half.opened;
    await page.waitForSelector("[aria-label=artifact] >> text=Two");
    rest.open();
    await page.waitForSelector("text=Which one?");
    expect(await page.locator("[aria-label=artifact]").allInnerTexts()).toEqual(["Two trains"]);
    await shot(page, "assistant-ui with a question");
    await say(page, "IC 5");
    await page.waitForSelector("text=2: booked");
    expect(await page.locator("[aria-label=artifact]").allInnerTexts()).toContain('{"train":"IC 5"}');
    expect(await said(page)).toEqual(["A train", "Which one?", "IC 5", "2: booked"]);
    expect(noise).toEqual([]);
  });

  test("cancels a task, and shows why one failed", async () => {
    const canceled = gate();
    const url = await pageWith("assistant-ui", async function* (turn) {
      if (turn.text === "fail") return yield turn.failed("The station is closed");
      yield turn.artifact({ parts: [text("Looking")] });
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      canceled.open();
    });
    const { page, noise } = await opened(url);
    await say(page, "wait");
    await page.waitForSelector("text=Looking");
    const [answer] = await Promise.all([page.waitForResponse(/:cancel$/), page.click("text=Stop")]);
    expect(await answer.json()).toMatchObject({ status: { state: "TASK_STATE_CANCELED" } });
    await canceled.opened;
    await say(page, "fail");
    await page.waitForSelector("[role=article] >> text=The station is closed");
    await shot(page, "assistant-ui failed");
    expect(noise).toEqual([]);
  });
});
