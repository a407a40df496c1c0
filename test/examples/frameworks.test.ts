import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "@parley/a2a";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { linesOf } from "./lines.ts";
import { official, ours, Program } from "./program.ts";
import { Reader } from "./reader.ts";

/* Compares the guide agents with the same agents on a framework's own A2A support. */

const programs = [
  { with: "Parley", script: ours("mastra"), card: "", knows: true },
  {
    with: "Mastra's own A2A",
    script: official("mastra"),
    card: "/api/.well-known/bursar/agent-card.json",
    knows: false,
  },
] as const;

async function start(script: string): Promise<Program> {
  const program = await Program.in(script);
  onTestFinished(() => program.end());
  return program;
}

describe.each(programs)("the bursar of Mastra with $with", ({ script, card, knows }) => {
  it("asks before it pays", async () => {
    const { url } = await start(script);
    const client = await connect(url + card);
    // Mastra's own card shows the agent's instructions.
    expect(client.card.description).toMatch(knows ? /^Pays invoices/ : /^You are a bursar/);
    const reader = new Reader(client);
    const told: (readonly [string, string | undefined])[] = [];
    for (const text of ["Pay invoice 7", "What for?", "yes", "Pay invoice 8", "no"]) {
      const { state, artifacts } = await reader.send(text);
      told.push([state, Object.values(artifacts).at(-1)]);
    }
    const asked = ["TASK_STATE_INPUT_REQUIRED", undefined];
    const done = "TASK_STATE_COMPLETED";
    const paid = expect.stringMatching(/^Invoice 7 is paid: .*"receipt":1/);
    expect(told).toEqual([asked, asked, [done, paid], asked, [done, "I have paid nothing."]]);
  });

  it(`${knows ? "knows" : "does not know"} its question after its process was killed`, async () => {
    const program = await start(script);
    let id = "";
    for await (const event of (await connect(program.url + card)).sendStreamingMessage("Pay invoice 7"))
      id ||= event.task?.id ?? "";
    await program.kill();
    await program.start();
    const task = (await connect(program.url + card)).getTask(id);
    if (knows) expect((await task).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    else await expect(task).rejects.toMatchObject({ code: "TaskNotFound" });
  });
});

describe("docs/frameworks.md", () => {
  const root = join(import.meta.dirname, "../..");
  const page = readFileSync(join(root, "docs/frameworks.md"), "utf8");

  /** Counts the lines of a Python program, without blank lines, imports, comments and the module description. */
  const linesOfPython = (path: string): number =>
    readFileSync(path, "utf8")
      .replace(/^""".*?"""/s, "")
      .split("\n")
      .filter((line) => !/^\s*(#|import |from |$)/.test(line)).length;

  test("has the lines of each agent with its tools, card and server", () => {
    const rows = [...page.matchAll(/^\| \[[^\]]+\]\(\.\.\/examples\/([\w-]+)\).*\| *(\d+) *\| *(\d+|–) *\|$/gm)];
    const mine = (name: string): string[] =>
      ["agent.ts", "bursar.ts", "main.ts"].map((file) => join(root, "examples", name, file)).filter(existsSync);
    const python = join(root, "test/interop/peers/python/bursar");
    const theirs: Readonly<Record<string, number>> = {
      langgraph: linesOfPython(join(python, "graph.py")) + linesOfPython(join(python, "langgraph.json")),
      mastra: linesOf([join(root, "examples/mastra/bursar.ts"), official("mastra")]),
    };
    const names = ["ai-sdk", "claude", "langgraph", "mastra", "openai-agents"];
    expect(rows.map(([, name, ...lines]) => [name, ...lines])).toEqual(
      names.map((name) => [name, String(linesOf(mine(name))), String(theirs[name] ?? "–")]),
    );
  });
});
