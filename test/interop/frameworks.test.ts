import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describePeer, runClient, runCommand, type PeerProgram, type Said } from "./peer.ts";
import { startProject, type Project } from "./project.ts";

/*
 * What frameworks and tools of others show to a person who talks to an agent of ours: to a project as `parley init` makes it, served
 * without an option. docs/clients.md has the table.
 */

/** What a client says: a text, or a part that the agent does not read. */
type Saying = string | { readonly mediaType: string };

const hello = 0;
const tell = 1;
const fail = 2;
const video = 3;
const conversations: readonly (readonly Saying[])[] = [["hello"], ["tell"], ["fail"], [{ mediaType: "video/mp4" }]];
const story = "The rain came over the hills.";

const projects: { changed?: Project; fresh?: Project } = {};
beforeAll(async () => {
  const pizzeria = join(import.meta.dirname, "pizzeria.ts");
  [projects.changed, projects.fresh] = await Promise.all([startProject(pizzeria), startProject()]);
});
afterAll(() => Promise.all([projects.changed?.stop(), projects.fresh?.stop()]));

const urlOf = (name: keyof typeof projects) => projects[name]?.url ?? "";

/** What was shown for a message: its answer, or its error. */
const shown = (said: ReadonlyMap<string, Said>, step: string) => {
  const { result, text } = said.get(step) ?? {};
  return typeof result === "string" ? result : (text ?? "");
};

interface Framework extends PeerProgram {
  /** What ends the name of a step that asks another way. */
  readonly ways: readonly string[];
  /** Whether it sends parts that are no text. */
  readonly sendsFiles?: boolean;
  /** Steps that show something else, by what it does itself. */
  readonly own?: Readonly<Record<string, string>>;
}

const frameworks: readonly Framework[] = [
  { name: "ADK for JavaScript 2.0.0", environment: "node", program: "adk.mjs", ways: [""], sendsFiles: true },
  {
    name: "Mastra 1.71.0",
    environment: "node",
    program: "mastra.mjs",
    ways: [" stream"],
    // Its streams have artifacts alone, no messages of a status.
    own: { [`${fail}.0 stream`]: "" },
  },
  {
    name: "Strands 1.62.0",
    environment: "strands",
    program: "framework_strands.py",
    ways: [""],
    // Its SDK collects what is streamed as one part for each piece, and it joins parts by line breaks.
    own: { [`${tell}.0`]: story.replaceAll(" ", "\n ") },
  },
  {
    name: "Python SDK 1.3.0",
    environment: "python1",
    program: "helper_v1.py",
    ways: [""],
    sendsFiles: true,
  },
];

describe.each(frameworks)("from $environment", (framework) => {
  describePeer(framework, () => {
    let said: ReadonlyMap<string, Said> = new Map();
    beforeAll(async () => {
      said = await runClient(framework, [urlOf("changed"), JSON.stringify(conversations)]);
      if (process.env["INTEROP_SHOW"]) process.stdout.write(`${JSON.stringify([framework.name, ...said], null, 1)}\n`);
    });

    it.each(framework.ways)("accepts the card, and shows a reply%s", (way) => {
      expect(shown(said, `${hello}.0${way}`)).toBe("Hello, Ada!");
    });

    it.each(framework.ways)("shows what is streamed as one text%s", (way) => {
      expect(shown(said, `${tell}.0${way}`)).toBe(framework.own?.[`${tell}.0${way}`] ?? story);
    });

    it.each(framework.ways)("shows why a task failed%s", (way) => {
      expect(shown(said, `${fail}.0${way}`)).toBe(framework.own?.[`${fail}.0${way}`] ?? "The oven is broken.");
    });

    it.each(framework.sendsFiles === true ? framework.ways : [])("shows why a message was refused%s", (way) => {
      expect(shown(said, `${video}.0${way}`)).toContain("video/mp4");
    });

    it("rolls the dice of the project that `parley init` makes", async () => {
      const rolled = await runClient(framework, [urlOf("fresh"), JSON.stringify([["roll 2d6"], ["roll", "2d6"]])]);
      for (const way of framework.ways) {
        expect(shown(rolled, `0.0${way}`)).toMatch(/\d+ \+ \d+ = \d+/);
        expect(shown(rolled, `1.0${way}`)).toContain("Which dice? For example 2d6.");
        expect(shown(rolled, `1.1${way}`)).toMatch(/\d+ \+ \d+ = \d+/);
      }
    });
  });
});

const command: PeerProgram = { name: "the command line of the Go SDK 2.3.1", environment: "go", program: "a2a" };

describePeer(command, () => {
  const run = (project: keyof typeof projects, ...args: readonly string[]) =>
    runCommand(command, ["send", urlOf(project), ...args]);

  it("shows a reply, and why a task failed", async () => {
    expect(await run("changed", "hello")).toEqual({ code: 0, printed: "[agent] Hello, Ada!\n" });
    expect((await run("changed", "fail")).printed).toMatch(/Status: +failed .*\n +The oven is broken\./);
  });

  it("shows each piece of a stream on a line of its own", async () => {
    const { printed } = await run("changed", "--stream", "tell");
    const pieces = [...printed.matchAll(/^\[artifact\+?\] (.*)$/gm)].map(([, piece]) => piece);
    expect(pieces.join("")).toBe(story);
  });

  it("shows why a message was refused, and fails", async () => {
    const parts = JSON.stringify([{ url: "https://example.com/a.mp4", mediaType: "video/mp4" }]);
    const { code, printed } = await run("changed", "--parts", parts);
    expect(printed).toContain("This agent does not read video/mp4");
    expect(code).toBe(1);
  });

  it("rolls the dice of the project that `parley init` makes", async () => {
    expect((await run("fresh", "roll 2d6")).printed).toMatch(/\[roll\] \d+ \+ \d+ = \d+/);
    expect((await run("fresh", "--stream", "roll 2d6")).printed).toMatch(/\[artifact\] \d+ \+ \d+ = \d+/);
    const { printed } = await run("fresh", "roll");
    const [, task = ""] = /^Task: +(\S+)$/m.exec(printed) ?? [];
    expect((await run("fresh", "--task", task, "2d6")).printed).toMatch(/\d+ \+ \d+ = \d+/);
  });
});
