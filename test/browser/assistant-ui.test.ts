import { data, text } from "@parley/node";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { gate } from "../../packages/frameworks/test/gate.ts";
import { open, shot } from "./console-page.ts";
import { pagesOf, pageWith, say, type PageFiles } from "./front-end.ts";

/** A page with the A2A client of assistant-ui, which speaks REST to the base URL of an agent. */

let files: PageFiles;
beforeAll(async () => {
  files = await pagesOf("assistant-ui");
}, 600_000);

const opened = (url: string): ReturnType<typeof open> => open(url, { ready: "textarea" });
const said = (page: Page): Promise<string[]> => page.locator("[role=article]").allInnerTexts();

test("assistant-ui shows artifacts as they stream, and answers a question in the same task", async () => {
  const [half, rest] = [gate(), gate()];
  const url = await pageWith(files, "assistant-ui", async function* (turn) {
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

test("assistant-ui cancels a task, and shows why one failed", async () => {
  const canceled = gate();
  const url = await pageWith(files, "assistant-ui", async function* (turn) {
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
