import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { AgentCard } from "@parley/server";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openPublished, type Published } from "../release/published.ts";
import {
  adkForJavaScript,
  adkForPython,
  crewai,
  goCommand,
  javaScriptSdk,
  mastra,
  pythonSdk,
  strands,
} from "./callers.ts";
import { describePeer, runClient, runCommand } from "./peer.ts";

/*
 * A first project, created from the packed packages as in the README, and served by `npm start` without any options of the agent or the
 * clients, except for a free port.
 */

let published: Published | undefined;
let url = "";
beforeAll(async () => {
  published = await openPublished();
  const { home } = published;
  await published.shell("npm exec --yes --package=@parley/cli -- parley init my-agent", home);
  await published.shell("npm install --no-audit --no-fund", join(home, "my-agent"));
  url = await published.serving("npm start -- --port 0", join(home, "my-agent"), /is ready at (\S+)\n/);
});
afterAll(() => published?.close());

it("documents the origin that its card has, because clients may require the same origin", async () => {
  const folder = join(published?.home ?? "", "my-agent");
  const named = new URL(url);
  named.port = "4000";
  expect(await readFile(join(folder, "README.md"), "utf8")).toContain(`serves agent.ts on ${named.origin},`);
  expect(await readFile(join(folder, "package.json"), "utf8")).toContain(`"parley send ${named.origin}"`);
  const card = (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as AgentCard;
  expect(new Set(card.supportedInterfaces.map((each) => new URL(each.url).origin))).toEqual(new Set([url]));
});

const rolled = /\d+ \+ \d+ = \d+/;

for (const caller of [adkForPython, crewai, adkForJavaScript, mastra, strands, pythonSdk, javaScriptSdk]) {
  describePeer(caller, () => {
    it("rolls the dice, and asks which", async () => {
      const conversations = { roll: ["roll 2d6"], ask: ["roll", "2d6"] };
      const said = await runClient(caller, [url, JSON.stringify(conversations)]);
      for (const way of caller.ways) {
        expect(said.get(`roll.0${way}`)?.result).toMatch(rolled);
        expect(said.get(`ask.0${way}`)?.result).toBe("Which dice? For example 2d6.");
        expect(said.get(`ask.1${way}`)?.result).toMatch(rolled);
      }
    });
  });
}

describePeer(goCommand, () => {
  it.each([{ way: [] }, { way: ["--stream"] }])("rolls the dice, and asks which: $way", async ({ way }) => {
    const send = async (...args: readonly string[]): Promise<string> => {
      const { code, printed } = await runCommand(goCommand, ["send", url, ...way, ...args]);
      expect(code).toBe(0);
      return printed;
    };
    expect(await send("roll 2d6")).toMatch(rolled);
    const asked = await send("roll");
    expect(asked).toContain("Which dice? For example 2d6.");
    const [, task = ""] = /^Task: +(\S+)$/m.exec(asked) ?? [];
    expect(await send("--task", task, "2d6")).toMatch(rolled);
  });
});
