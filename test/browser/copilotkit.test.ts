import { data, text } from "@parley/node";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { gate } from "../../packages/frameworks/test/gate.ts";
import { open, shot } from "./console-page.ts";
import { pagesOf, pageWith, say, type PageFiles } from "./front-end.ts";

/** A page with the stock chat of CopilotKit and `A2AAgent`, against an agent. CopilotKit brings a version of AG-UI before 1.0. */

let files: PageFiles;
beforeAll(async () => {
  files = await pagesOf("copilotkit", "first");
}, 600_000);

const opened = (url: string): ReturnType<typeof open> => open(url, { ready: "textarea" });

const answers = (page: Page): Promise<string[]> =>
  page.locator('[data-testid="copilot-assistant-message"]').allInnerTexts();
const questions = (page: Page): Promise<string[]> => page.locator('[data-testid="copilot-user-message"]').allInnerTexts();

/** CopilotKit itself asks its makers for news and fonts, which a test has no way to. */
const ours = (line: string): boolean => !/^https:|Failed to load resource/.test(line);

describe("CopilotKit", () => {
  test("shows artifacts as they stream, and a reload in the middle loses and doubles no character", async () => {
    const words = Array.from({ length: 400 }, (_, at) => `word ${at}, `);
    const [half, rest] = [gate(), gate()];
    const url = await pageWith(files, "copilotkit", async function* (turn) {
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

  test("answers a question, and approves calls of tools", async () => {
    const approvals = ["pay", "book"].map((toolName, at) => ({
      approvalId: `a${at}`,
      toolCallId: `t${at}`,
      toolName,
      input: { euros: at },
      digest: `d${at}`,
    }));
    const url = await pageWith(files, "copilotkit", async function* (turn) {
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

  test("needs a provider and a chat, and reads a thread when the page opens", async () => {
    const url = await pageWith(files, "first", async function* (turn) {
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

  test("stops the agent, and shows why a task failed", async () => {
    const stopped = gate();
    const url = await pageWith(files, "copilotkit", async function* (turn) {
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
