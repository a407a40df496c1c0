import { readFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "@parley/a2a";
import { format } from "oxfmt";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { linesOf } from "./lines.ts";
import { examples, official, ours, Program } from "./program.ts";
import { Reader, type Told } from "./reader.ts";
import { cancels, steps } from "./steps.ts";

const root = join(import.meta.dirname, "../..");

/** What belongs to each agent: its function, its card and its server. What both sides import, such as the model, counts for neither. */
const sources = examples.map((name) => ({
  name,
  ours: [join(root, "examples", name, "agent.ts"), ours(name)],
  official: [official(name)],
}));

async function told(script: string, play: (reader: Reader) => Promise<unknown>): Promise<unknown> {
  // The planner with the official SDK calls the same agents as ours.
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

describe("the lines of the examples", () => {
  test.each(sources)("$name is at most half as long as with the official SDK", async (example) => {
    for (const path of [...example.ours, ...example.official]) {
      const source = readFileSync(path, "utf8");
      expect((await format(path, source, { printWidth: 120 })).code).toBe(source);
    }
    expect(linesOf(example.ours)).toBeLessThanOrEqual(linesOf(example.official) / 2);
  });

  test("are in examples/README.md", () => {
    const page = readFileSync(join(root, "examples/README.md"), "utf8");
    const rows = [...page.matchAll(/^\| \[`([\w-]+)`\]\(\1\) *\| *(\d+) *\| *(\d+) *\|/gm)];
    expect(rows.map(([, name, mine, theirs]) => [name, Number(mine), Number(theirs)])).toEqual(
      sources.map((example) => [example.name, linesOf(example.ours), linesOf(example.official)]),
    );
  });
});
