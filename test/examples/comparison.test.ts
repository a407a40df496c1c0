import { readFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "@parley/a2a";
import { memoryStore, serve } from "@parley/node";
import { format } from "oxfmt";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { createAgent, pool } from "../../packages/cli/templates/mcp/agent.ts";
import { scriptedModel } from "../../packages/cli/templates/mcp/model.ts";
import { linesOf } from "./lines.ts";
import { examples, official, ours, Program } from "./program.ts";
import { Reader, type Told } from "./reader.ts";
import { cancels, steps } from "./steps.ts";

const root = join(import.meta.dirname, "../..");

/** The source files of each agent: its function, its card and its server. Code that both sides import, such as the model, is not counted. */
const sources = examples.map((name) => ({
  name,
  ours: [join(root, "examples", name, "agent.ts"), ours(name)],
  official: [official(name)],
}));

async function told(script: string, play: (reader: Reader) => Promise<unknown>): Promise<unknown> {
  // The official SDK's planner calls the same experts as ours.
  const experts = script === official("travel-planner") ? await Program.in(ours("travel-planner")) : undefined;
  const program = await Program.in(script, experts && { EXPERTS: experts.url });
  onTestFinished(async () => {
    await program.end();
    await experts?.end();
  });
  return play(new Reader(await connect(program.url)));
}

describe.each(examples)("%s", (name) => {
  it("answers one client as the same agent with the official SDK does", async () => {
    const play = steps[name];
    const mine = (await told(ours(name), play)) as readonly Told[];
    expect(mine.length).toBeGreaterThan(1);
    expect(await told(official(name), play)).toEqual(mine);
  });

  it("is canceled as the same agent with the official SDK is", async () => {
    const play = cancels[name];
    expect(await told(ours(name), play)).toBe("TASK_STATE_CANCELED");
    expect(await told(official(name), play)).toBe("TASK_STATE_CANCELED");
  });
});

/** The agent that `parley init --with mcp` writes. It contains no server code, because `npm start` serves it. */
const template = join(root, "packages/cli/templates/mcp");
const withMcp = { ours: [join(template, "agent.ts")], official: [join(root, "test/examples/official/mcp.ts")] };

it("an agent with tools of MCP answers as the same agent with the official SDK does", async () => {
  const play = async (reader: Reader): Promise<readonly Told[]> => [
    await reader.send("roll 3d1"),
    await reader.send("roll 101d1"),
    await reader.send("roll"),
  ];
  const server = await serve(createAgent(scriptedModel), { port: 0, logger: false, store: memoryStore() });
  onTestFinished(async () => {
    await server.close();
    await pool.close();
  });
  const mine = await play(new Reader(await connect(server.url)));
  expect(mine[0]).toMatchObject({ state: "TASK_STATE_COMPLETED", artifacts: { answer: "1 + 1 + 1 = 3" } });
  const program = await Program.in(withMcp.official[0] ?? "", { TOOLS: join(template, "tools.ts") });
  onTestFinished(() => program.end());
  expect(await play(new Reader(await connect(program.url)))).toEqual(mine);
});

describe("the lines of the examples", () => {
  test.each([...sources, { name: "mcp", ...withMcp }])(
    "$name is at most half as long as with the official SDK",
    async (example) => {
      for (const path of [...example.ours, ...example.official]) {
        const source = readFileSync(path, "utf8");
        expect((await format(path, source, { printWidth: 120 })).code).toBe(source);
      }
      expect(linesOf(example.ours)).toBeLessThanOrEqual(linesOf(example.official) / 2);
    },
  );

  test("are in docs/mcp.md", () => {
    const page = readFileSync(join(root, "docs/mcp.md"), "utf8");
    const [, mine, theirs] =
      /takes\s(\d+)\slines\.\sWith\sthe\sofficial\sA2A\sand\sMCP\sSDKs\sit\stakes\s(\d+)/.exec(page) ?? [];
    expect([mine, theirs]).toEqual([withMcp.ours, withMcp.official].map((paths) => String(linesOf(paths))));
  });

  test("are in examples/README.md", () => {
    const page = readFileSync(join(root, "examples/README.md"), "utf8");
    const rows = [...page.matchAll(/^\| \[`([\w-]+)`\]\(\1\) *\| *(\d+) *\| *(\d+) *\|/gm)];
    expect(rows.map(([, name, mine, theirs]) => [name, Number(mine), Number(theirs)])).toEqual(
      sources.map((example) => [example.name, linesOf(example.ours), linesOf(example.official)]),
    );
  });
});
