import { build } from "esbuild";
import { basename, join } from "node:path";
import { data, defineAgent, serve, text } from "@parley/node";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { gate } from "../../packages/frameworks/test/gate.ts";
import { install } from "../../scripts/ready.mjs";
import { open, shot } from "./console-page.ts";

/** A page with the stock chat of CopilotKit and `A2AAgent`, against an agent. CopilotKit brings a version of AG-UI before 1.0. */

const folder = join(import.meta.dirname, "..", "ui");
const modules = join(folder, "node_modules");
let files: ReadonlyMap<string, Uint8Array<ArrayBuffer>>;
beforeAll(async () => {
  await install(folder, ["--ignore-scripts"]);
  const { outputFiles } = await build({
    entryPoints: [join(folder, "copilotkit.jsx")],
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "browser",
    jsx: "automatic",
    conditions: ["@parley/source"],
    // The adapter gets the version of the page.
    alias: { "@ag-ui/client": join(modules, "@ag-ui/client/dist/index.mjs"), rxjs: join(modules, "rxjs") },
    define: { "process.env.NODE_ENV": '"development"' },
    loader: { ".ttf": "empty", ".woff": "empty", ".woff2": "empty" },
    outdir: "out",
    write: false,
  });
  files = new Map(outputFiles.map(({ path, contents }) => [basename(path), new Uint8Array(contents)]));
}, 600_000);

const html =
  '<!doctype html><html lang="en"><title>Chat</title><meta charset="utf-8"><link rel="icon" href="data:,"><link rel="stylesheet" href="/page/copilotkit.css"><body style="margin: 0"><script type="module" src="/page/copilotkit.js"></script></html>';

async function chatWith(onMessage: Parameters<typeof defineAgent>[0]["onMessage"]): Promise<string> {
  const agent = defineAgent({
    name: "Talker",
    description: "Talks.",
    version: "1.0.0",
    skills: [],
    // Approvals are sent as data.
    defaultInputModes: ["text/plain", "application/json"],
    onMessage,
  });
  const server = await serve(agent, {
    port: 0,
    logger: false,
    routes: (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/chat") return new Response(html, { headers: { "content-type": "text/html" } });
      const file = pathname.startsWith("/page/") ? files.get(basename(pathname)) : undefined;
      if (file === undefined) return undefined;
      return new Response(file, { headers: { "content-type": pathname.endsWith("css") ? "text/css" : "text/javascript" } });
    },
  });
  onTestFinished(() => server.close());
  return `${new URL(server.url).origin}/chat#${crypto.randomUUID()}`;
}

const opened = (url: string): ReturnType<typeof open> => open(url, { ready: "textarea" });

async function say(page: Page, message: string): Promise<void> {
  await page.fill("textarea", message);
  await page.keyboard.press("Enter");
}

const answers = (page: Page): Promise<string[]> =>
  page.locator('[data-testid="copilot-assistant-message"]').allInnerTexts();
const questions = (page: Page): Promise<string[]> => page.locator('[data-testid="copilot-user-message"]').allInnerTexts();

describe("CopilotKit", () => {
  test("shows artifacts as they stream, and a reload in the middle loses and doubles no character", async () => {
    const words = Array.from({ length: 400 }, (_, at) => `word ${at}, `);
    const [half, rest] = [gate(), gate()];
    const url = await chatWith(async function* (turn) {
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
    console.log(noise);
  });

  test("answers a question, and approves calls of tools", async () => {
    const approvals = ["pay", "book"].map((toolName, at) => ({
      approvalId: `a${at}`,
      toolCallId: `t${at}`,
      toolName,
      input: { euros: at },
      digest: `d${at}`,
    }));
    const url = await chatWith(async function* (turn) {
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
    console.log(await answers(page), await questions(page), noise);
  });

  test("stops the agent, and shows why a task failed", async () => {
    const stopped = gate();
    const url = await chatWith(async function* (turn) {
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
    console.log(noise);
  });
});
