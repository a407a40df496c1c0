import { build } from "esbuild";
import { join } from "node:path";
import { data, defineAgent, serve, text } from "@parley/node";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { gate } from "../../packages/frameworks/test/gate.ts";
import { flaws, open, shot } from "./console-page.ts";

/** Tests a page with the stock `useChat()` of ai 7 and `A2AChatTransport`, against an agent. */

let script = "";
beforeAll(async () => {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "..", "..", "packages", "frameworks", "test", "page", "main.tsx")],
    bundle: true,
    format: "esm",
    platform: "browser",
    jsx: "automatic",
    conditions: ["@parley/source"],
    define: { "process.env.NODE_ENV": '"development"' },
    write: false,
  });
  script = outputFiles[0]?.text ?? "";
}, 60_000);

const html =
  '<!doctype html><html lang="en"><title>Chat</title><meta charset="utf-8"><link rel="icon" href="data:,"><body><script type="module" src="/page.js"></script></html>';

async function chatWith(onMessage: Parameters<typeof defineAgent>[0]["onMessage"]): Promise<string> {
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
      if (pathname === "/chat") return new Response(html, { headers: { "content-type": "text/html" } });
      if (pathname === "/page.js") return new Response(script, { headers: { "content-type": "text/javascript" } });
      return undefined;
    },
  });
  onTestFinished(() => server.close());
  return `${new URL(server.url).origin}/chat#${crypto.randomUUID()}`;
}

const opened = (url: string): ReturnType<typeof open> => open(url, { ready: "h1" });

async function say(page: Page, message: string): Promise<void> {
  await page.fill("[aria-label=Message]", message);
  await page.keyboard.press("Enter");
}

const answers = (page: Page): Promise<string[]> => page.locator("article.assistant").allInnerTexts();

describe("useChat()", () => {
  test("shows artifacts as they stream, and a reload in the middle neither loses nor duplicates a character", async () => {
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
    await say(page, "Count");
    await half.opened;
    await expect.poll(async () => (await answers(page)).join("")).toContain("word 100");
    await page.reload();
    await page.waitForSelector("h1");
    await expect.poll(async () => (await answers(page)).join("")).toContain("word 199");
    expect(await page.locator("article.user").allInnerTexts()).toEqual(["Count"]);
    await shot(page, "useChat after a reload");
    rest.open();
    await page.waitForSelector('[data-status="ready"] article.assistant code');
    expect(await page.locator("article.assistant .text").allTextContents()).toEqual([words.join("")]);
    expect(await page.locator("article.assistant code").allTextContents()).toEqual(['{"words":400}']);
    await page.reload();
    await page.waitForSelector("article.assistant code");
    expect(await page.locator("article.assistant .text").allTextContents()).toEqual([words.join("")]);
    expect(await flaws(page)).toEqual([]);
    expect(noise).toEqual([]);
  });

  test("answers a question, and approves a tool call", async () => {
    const approvals = [{ approvalId: "a1", toolCallId: "t1", toolName: "pay", input: { euros: 5 }, digest: "d" }];
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
    await shot(page, "useChat with an approval");
    await page.click("text=Approve");
    await page.waitForSelector('text=Paid: [{"approvalId":"a1","approved":true,"digest":"d"}]');
    expect(await page.locator("article").allInnerTexts()).toEqual([
      "Pay",
      "For whom?",
      "Ada",
      'pay: approval-respondedPaid: [{"approvalId":"a1","approved":true,"digest":"d"}]',
    ]);
    await page.reload();
    await page.waitForSelector("text=Paid:");
    expect((await page.locator("article").allInnerTexts()).join("\n").match(/approval-responded|Paid/g)).toEqual([
      "approval-responded",
      "Paid",
    ]);
    expect(noise).toEqual([]);
  });

  test("stops the agent, and shows why a task failed", async () => {
    const stopped = gate();
    const url = await chatWith(async function* (turn) {
      if (turn.text === "fail") return yield turn.failed("The station is closed");
      yield turn.working("Looking");
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      stopped.open();
    });
    const { page, noise } = await opened(url);
    await say(page, "wait");
    await page.waitForSelector("text=Looking");
    await page.click("text=Stop");
    await stopped.opened;
    await say(page, "fail");
    await page.waitForSelector("[role=alert] >> text=The station is closed");
    expect(noise).toEqual([]);
  });
});
