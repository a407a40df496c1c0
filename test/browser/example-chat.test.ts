import { memoryStore, serve } from "@parley/node";
import { expect, onTestFinished, test } from "vitest";
import { createAgent } from "../../examples/chat/agent.ts";
import { mountPages } from "../../examples/chat/pages.ts";
import { flaws, open } from "./console-page.ts";

/* Tests the pages of examples/chat, at the origin of their agent. */

const routes = await mountPages(["@parley/source"]);
const whole =
  "Day 1 in Oslo: walk along the water. Day 2 in Oslo: see the museums. Day 3 in Oslo: take a boat to the islands.";

test.each(["use-chat", "hooks"])(
  "%s: asks, streams, and shows the whole answer after a reload in the middle",
  async (name) => {
    const server = await serve(createAgent(30), { port: 0, logger: false, store: memoryStore(), routes });
    onTestFinished(() => server.close());
    const { page } = await open(`${server.url}/${name}`, { ready: "h1" });
    const answers = () => page.locator("article[aria-label=assistant] p").allInnerTexts();
    const say = async (text: string) => {
      await page.fill("[aria-label=Message]", text);
      await page.keyboard.press("Enter");
    };
    await say("Plan a trip");
    await expect.poll(answers).toEqual(["Which city?"]);
    await page.locator("main[data-status=ready]").waitFor();
    expect(await flaws(page)).toEqual([]);
    await say("Oslo");
    await expect.poll(async () => (await answers()).at(-1)).toContain("Day 1");
    await page.reload();
    await expect.poll(async () => (await answers()).join("|")).toContain(whole);
    expect((await answers()).join("|").split(whole)).toHaveLength(2);
  },
);
