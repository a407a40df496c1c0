import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  adkForJavaScript,
  adkForPython,
  crewai,
  goCommand,
  javaScriptSdk,
  mastra,
  pythonSdk,
  strands,
  type Caller,
  type Saying,
} from "./callers.ts";
import { describePeer, runClient, runCommand, type Said } from "./peer.ts";
import { command, startProject, type Project } from "./project.ts";

/* How third-party clients show our agent to their users. docs/frameworks.md has the table. */

const conversations: Readonly<Record<string, readonly Saying[]>> = {
  hello: ["hello"],
  tell: ["tell"],
  fail: ["fail"],
  refuse: ["refuse"],
  video: [{ raw: "a film", mediaType: "video/mp4" }],
  order: ["order", '{"size": 3}'],
  show: ["show"],
  photo: [{ raw: "a photo", mediaType: "image/png" }],
};
const story = "The rain came over the hills.";
const question = "Which size? Answer with a size.";
const pieces = story.replaceAll(" ", "\n ");

const pizzeria = join(import.meta.dirname, "pizzeria.ts");
let project: Project | undefined;
beforeAll(async () => {
  project = await startProject(pizzeria);
});
afterAll(() => project?.stop());
const url = (): string => project?.url ?? "";

/** The text shown for a message: its answer, or its error. */
const shown = (said: ReadonlyMap<string, Said>, step: string): string => {
  const { result, text } = said.get(step) ?? {};
  return typeof result === "string" ? result : (text ?? "");
};

const doctor = (asked: Project | undefined) =>
  promisify(execFile)(process.execPath, [command, "doctor", asked?.url ?? ""]);

/** The exact text that each client shows. */
const usual: Readonly<Record<string, string>> = {
  "hello.0": "Hello, Ada!",
  "tell.0": story,
  "fail.0": "The oven is broken.",
  "order.1": "One pizza of size 3.",
  "show.0": "[menu.png: a pizza]",
  "photo.0": "I see a photo.",
};

/** Text that each client shows with additions, such as the name of an error or the JSON Schema of a form. */
const contained: Readonly<Record<string, string>> = {
  "order.0": question,
  "refuse.0": "There are no anchovies",
  "video.0": "This agent does not read video/mp4",
};

/** Deviating texts of a client. */
type Own = Readonly<Record<string, string>>;

const callers: readonly (Caller & { readonly own: Own })[] = [
  { ...adkForPython, own: {} },
  {
    ...adkForJavaScript,
    // It does not show file names.
    own: { "show.0": "[undefined: a pizza]" },
  },
  {
    ...mastra,
    own: {
      // Its streams have only artifact text, without status messages and files.
      "fail.0 stream": "",
      "show.0 stream": "",
      // It sends a line of text instead of each file.
      "video.0": question,
      "video.0 stream": question,
      "photo.0": question,
      "photo.0 stream": question,
    },
  },
  {
    ...strands,
    own: {
      // Its SDK collects a stream as one part per piece, and it joins parts with line breaks.
      "tell.0": pieces,
      // It neither reads nor sends files.
      "show.0": "",
      "video.0": "message.parts must hold at least one part",
      "photo.0":
        "JSON-RPC Error code=-32602 data=None message='Invalid parameters: message.parts must hold at least one part'",
    },
  },
  {
    ...crewai,
    own: {
      // It reads a task after the end, and shows the last history message before the artifacts.
      "order.1": `${question} One pizza of size 3.`,
      // It joins the pieces of a stream with spaces.
      "tell.0 stream": story.replaceAll(" ", "  "),
      // It does not show files, and sends them only with an additional package.
      "show.0": "",
      "show.0 stream": "",
      "video.0": question,
      "video.0 stream": question,
      "photo.0": question,
      "photo.0 stream": question,
    },
  },
  { ...pythonSdk, own: {} },
  { ...javaScriptSdk, own: {} },
];

for (const { own, ...caller } of callers) {
  describePeer(caller, () => {
    let said: ReadonlyMap<string, Said> = new Map();
    beforeAll(async () => {
      said = await runClient(caller, [url(), JSON.stringify(conversations)]);
      if (process.env["INTEROP_SHOW"]) process.stdout.write(`${JSON.stringify([caller.name, ...said], null, 1)}\n`);
    });
    const stepsOf = (steps: typeof usual) =>
      caller.ways.flatMap((way) => Object.entries(steps).map(([step, text]) => [step + way, text] as const));

    it.each(stepsOf(usual))("shows an answer correctly: %s", (step, text) => {
      expect(shown(said, step)).toBe(own[step] ?? text);
    });

    it.each(stepsOf(contained))("shows a question, or the reason for a rejection: %s", (step, text) => {
      expect(shown(said, step)).toContain(own[step] ?? text);
    });
  });
}

describePeer({ ...adkForPython, name: `${adkForPython.name}, and a card that lists gRPC` }, () => {
  let served: Project | undefined;
  beforeAll(async () => {
    served = await startProject(pizzeria, ["--grpc"]);
  });
  afterAll(() => served?.stop());

  it("rejects it, as `parley doctor` warns with a fix, but the Python SDK accepts it", async () => {
    const args = [served?.url ?? "", JSON.stringify({ hello: conversations["hello"] })];
    const grpc = (served?.url ?? "").replace("http://", "");
    const refused = shown(await runClient(adkForPython, args), "hello.0");
    expect(refused).toMatch(new RegExp(`Agent card RPC URL must use https, or http on a loopback host: ${grpc}$`));
    const { stdout } = await doctor(served);
    expect(stdout).toContain(`ADK for Python (from 2.13) rejects this card: GRPC at ${grpc} is neither https`);
    expect(stdout).toContain("→ Remove gRPC from the card");
    expect(shown(await runClient(pythonSdk, args), "hello.0")).toBe("Hello, Ada!");
  });

  it("accepts the card without gRPC, as `parley doctor` confirms", async () => {
    expect((await doctor(project)).stdout).toContain("ADK for Python accepts this card");
  });
});

describePeer(goCommand, () => {
  const send = (...args: readonly string[]) => runCommand(goCommand, ["send", url(), ...args]);
  const ways = [{ way: [] }, { way: ["--stream"] }];
  const partOf = (mediaType: string): string => JSON.stringify([{ raw: "YSBwaG90bw==", mediaType }]);

  it("shows a reply, and why a task failed", async () => {
    expect(await send("hello")).toEqual({ code: 0, printed: "[agent] Hello, Ada!\n" });
    expect((await send("fail")).printed).toMatch(/Status: +failed .*\n +The oven is broken\./);
    expect((await send("--stream", "fail")).printed).toContain("[status] failed: The oven is broken.\n");
  });

  it("shows an answer that arrived in pieces as one text", async () => {
    expect((await send("tell")).printed).toContain(`[story] ${story}\n`);
  });

  it("shows each piece of a stream on a line of its own", async () => {
    const { printed } = await send("--stream", "tell");
    const pieces = [...printed.matchAll(/^\[artifact\+?\] (.*)$/gm)].map(([, piece]) => piece);
    expect(pieces.join("")).toBe(story);
  });

  it.each(ways)("shows why the agent rejected a message, and fails: $way", async ({ way }) => {
    const { code, printed } = await send(...way, "refuse");
    expect(printed).toContain("There are no anchovies");
    expect(code).toBe(1);
  });

  it.each(ways)("shows why the server rejected a message, and fails: $way", async ({ way }) => {
    const { code, printed } = await send(...way, "--parts", partOf("video/mp4"));
    expect(printed).toContain("This agent does not read video/mp4");
    expect(code).toBe(1);
  });

  it("shows that the answer has a file, and sends a file", async () => {
    expect((await send("show")).printed).toContain("[menu.png] [binary 7 bytes]\n");
    expect((await send("--stream", "show")).printed).toContain("[artifact] [binary 7 bytes]\n");
    expect((await send("--parts", partOf("image/png"))).printed).toBe("[agent] I see a photo.\n");
  });

  it.each(ways)("shows the question of a form, and answers it with JSON: $way", async ({ way }) => {
    const { printed } = await send(...way, "order");
    expect(printed).toContain(question);
    const [, task = ""] = /^Task: +(\S+)$/m.exec(printed) ?? [];
    expect((await send(...way, "--task", task, '{"size": 3}')).printed).toContain("] One pizza of size 3.\n");
  });
});
