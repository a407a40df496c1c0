import { A2AError, type StreamResponse, type TaskState } from "@parley/a2a/model";
import { describe, expect, test } from "vitest";
import { follow, type Follow } from "../src/follow.ts";
import { hintsFor } from "../src/invocation.ts";
import { recordedIo, type RecordedIo } from "./support/io.ts";

const ids = { taskId: "t1", contextId: "c1" };

const task = (state: TaskState, more: object = {}): StreamResponse => ({
  task: { id: "t1", contextId: "c1", status: { state }, ...more },
});

const status = (state: TaskState, text?: string): StreamResponse => ({
  statusUpdate: {
    ...ids,
    status: {
      state,
      ...(text === undefined ? {} : { message: { messageId: text, role: "ROLE_AGENT", parts: [{ text }] } }),
    },
  },
});

const chunk = (artifactId: string, text: string, append = false): StreamResponse => ({
  artifactUpdate: { ...ids, artifact: { artifactId, name: artifactId, parts: [{ text }] }, append },
});

async function shown(
  events: readonly StreamResponse[],
  init: Partial<Follow> & { recorded?: RecordedIo } = {},
): Promise<{ code: number; out: string; err: string; both: string }> {
  const { recorded = recordedIo(), ...rest } = init;
  const code = await follow(
    recorded.io,
    async function* () {
      yield* events;
    },
    { hints: hintsFor("http://a", {}), options: {}, ...rest },
  );
  return { code, out: recorded.out(), err: recorded.err(), both: recorded.both() };
}

describe("a stream on a terminal", () => {
  test("content goes to standard output as it grows, progress to standard error", async () => {
    const { code, out, err } = await shown([
      task("TASK_STATE_SUBMITTED"),
      status("TASK_STATE_WORKING", "Thinking"),
      chunk("poem", "Roses are "),
      chunk("poem", "red", true),
      status("TASK_STATE_COMPLETED", "There."),
    ]);
    expect(code).toBe(0);
    expect(out).toBe("Roses are red\nThere.\n");
    expect(err).toBe("task t1, context c1\n● submitted\n● working  Thinking\n◆ poem\n✓ completed\n");
  });

  test("two artifacts that grow at once keep their names", async () => {
    const { both } = await shown([
      task("TASK_STATE_WORKING"),
      chunk("a", "a1 "),
      chunk("b", "b1 "),
      chunk("a", "a2", true),
      status("TASK_STATE_COMPLETED"),
    ]);
    expect(both).toBe("task t1, context c1\n● working\n◆ a\na1 \n◆ b\nb1 \n◆ a\na2\n✓ completed\n");
  });

  test("a snapshot in the middle, as after a reconnect, shows only the new text", async () => {
    const { out, err } = await shown([
      task("TASK_STATE_WORKING"),
      chunk("a", "one "),
      chunk("a", "two ", true),
      task("TASK_STATE_WORKING", {
        artifacts: [{ artifactId: "a", name: "a", parts: [{ text: "one two " }, { text: "three " }] }],
      }),
      chunk("a", "four", true),
      status("TASK_STATE_COMPLETED"),
    ]);
    expect(out).toBe("one two three four\n");
    expect(err).toBe("task t1, context c1\n● working\n◆ a\n✓ completed\n");
  });

  test("a replaced artifact is shown again", async () => {
    const { out } = await shown([task("TASK_STATE_WORKING"), chunk("a", "draft\n"), chunk("a", "final\n")], {
      mayEndEarly: true,
    });
    expect(out).toBe("draft\nfinal\n");
  });

  test("data is printed readably, bytes are named, a link is shown", async () => {
    const parts = [
      { text: "see" },
      { data: { a: [1] } },
      { raw: "AAAA", filename: "x.bin" },
      { url: "https://x/y", mediaType: "text/csv" },
    ];
    const { out } = await shown([task("TASK_STATE_COMPLETED", { artifacts: [{ artifactId: "a", parts }] })]);
    expect(out).toBe('see\n{\n  "a": [\n    1\n  ]\n}\n[x.bin, 3 B]\nhttps://x/y, text/csv\n');
  });

  test("data is folded to one line on a terminal, and whole with --full and in a pipe", async () => {
    const parts = [{ data: Array.from({ length: 100 }, (_, i) => i) }];
    const events = [task("TASK_STATE_COMPLETED", { artifacts: [{ artifactId: "a", parts }] })];
    const terminal = await shown(events, { recorded: recordedIo({ terminal: true }) });
    expect(terminal.out).toMatch(/^\[0,1,2,[\d,]*… \(\d+ more characters; --full shows them\)\n$/);
    expect(terminal.out.length).toBe(101);
    const full = await shown(events, { recorded: recordedIo({ terminal: true }), options: { full: true } });
    expect(JSON.parse(full.out)).toHaveLength(100);
    expect(JSON.parse((await shown(events)).out)).toHaveLength(100);
  });

  test("a task that the caller continues does not repeat its earlier content", async () => {
    const artifacts = [{ artifactId: "a", name: "a", parts: [{ text: "old" }] }];
    const { out } = await shown(
      [task("TASK_STATE_WORKING", { artifacts }), chunk("b", "new"), status("TASK_STATE_COMPLETED")],
      { known: true },
    );
    expect(out).toBe("new\n");
  });

  test("an answered question is not shown again, one that is asked again is", async () => {
    const question = { messageId: "q", role: "ROLE_AGENT", parts: [{ text: "Which?" }] } as const;
    const waits: StreamResponse = {
      task: { id: "t1", status: { state: "TASK_STATE_INPUT_REQUIRED", message: question } },
    };
    const answered = await shown([waits, status("TASK_STATE_WORKING"), status("TASK_STATE_COMPLETED")], {
      known: true,
    });
    expect(answered.both).toBe("● working\n✓ completed\n");
    const asked = await shown([waits], { known: true });
    expect(asked.out).toBe("Which?\n");
    expect(asked.err).toContain("The agent is waiting for your answer");
  });

  test("a stream without a snapshot, or that appends to an unknown artifact, is understood", async () => {
    const { code, out } = await shown([chunk("a", "x", true), chunk("a", "y", true), status("TASK_STATE_COMPLETED")]);
    expect({ code, out }).toEqual({ code: 0, out: "xy\n" });
  });
});

describe("the exit code", () => {
  test.each<[string, StreamResponse[], number]>([
    ["is 0 for a reply", [{ message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "hi" }] } }], 0],
    ["is 0 for a task that completed", [task("TASK_STATE_COMPLETED")], 0],
    ["is 0 for a task that waits for input", [task("TASK_STATE_INPUT_REQUIRED")], 0],
    ["is 1 for a task that failed", [task("TASK_STATE_FAILED")], 1],
    ["is 1 for a task that was rejected", [task("TASK_STATE_REJECTED")], 1],
    ["is 1 for a task that was canceled", [task("TASK_STATE_CANCELED")], 1],
    ["is 1 for a stream that ends while the task works", [task("TASK_STATE_WORKING")], 1],
    ["is 1 for a stream of nothing", [], 1],
  ])("%s", async (_, events, code) => {
    expect((await shown(events)).code).toBe(code);
  });

  test("of a failed task has the reason", async () => {
    const { out, err } = await shown([task("TASK_STATE_WORKING"), status("TASK_STATE_FAILED", "The disk is full.")]);
    expect(err).toContain("✗ failed: The disk is full.\n");
    expect(out).toBe("");
  });
});

describe("the next step", () => {
  test("a question names the command that answers it, with the flags that are needed and no secret", async () => {
    const { err } = await shown([task("TASK_STATE_WORKING"), status("TASK_STATE_INPUT_REQUIRED", "Which?")], {
      hints: hintsFor("http://a?x=1", { token: "s3cret", header: ["X-Key: s3cret"], binding: "HTTP+JSON" }),
    });
    expect(err).toContain(
      `\n  parley send --token "$PARLEY_TOKEN" --header 'X-Key: …' --binding HTTP+JSON 'http://a?x=1' --task t1 "your answer"\n`,
    );
    expect(err).not.toContain("s3cret");
  });

  test("ids that an agent crafted as commands are quoted, and are not options", () => {
    const hints = hintsFor("http://a", {});
    expect(hints.watch("$(rm -rf ~)")).toBe("parley watch http://a '$(rm -rf ~)'");
    expect(hints.cancel("--out=/etc")).toBe("parley cancel -- http://a --out=/etc");
    expect(hints.answer("-x';id;'")).toBe(`parley send http://a --task='-x'\\'';id;'\\''' "your answer"`);
  });

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("%s leaves the task, says how to return to it, and exits with %i", async (signal, expected) => {
    const recorded = recordedIo();
    const code = await follow(
      recorded.io,
      async function* (aborted) {
        yield task("TASK_STATE_WORKING");
        recorded.interrupt(signal);
        aborted.throwIfAborted();
      },
      { hints: hintsFor("http://a", {}), options: {} },
    );
    expect(code).toBe(expected);
    expect(recorded.err()).toContain("Interrupted; the task keeps running.");
    expect(recorded.err()).toContain("\n  parley watch http://a t1\n  parley cancel http://a t1\n");
  });
});

test("an error in the middle of a stream says how to return to the task", async () => {
  const recorded = recordedIo();
  const following = follow(
    recorded.io,
    async function* () {
      yield chunk("a", "half");
      throw new A2AError("ConnectionLost");
    },
    { hints: hintsFor("http://a", {}), options: {} },
  );
  await expect(following).rejects.toThrow(A2AError);
  expect(recorded.both()).toBe("◆ a\nhalf\nTo see the rest of the task:\n  parley watch http://a t1\n");
});

test("a stream that ends in the middle of a line leaves no partial line", async () => {
  expect((await shown([chunk("a", "half")])).out).toBe("half\n");
});

describe("for programs", () => {
  test("every event is one line of JSON and nothing else is on standard output", async () => {
    const events = [
      task("TASK_STATE_WORKING"),
      chunk("a", "\u001b[1m\u009b\n"),
      status("TASK_STATE_INPUT_REQUIRED", "?"),
    ];
    const { out, err } = await shown(events, { options: { json: true } });
    expect(
      out
        .trimEnd()
        .split("\n")
        .map((text): unknown => JSON.parse(text)),
    ).toEqual(events);
    expect(err).toContain("parley send");
  });
});

describe("colours and control characters", () => {
  const events = [
    task("TASK_STATE_WORKING"),
    chunk("\u001b[2Jname", "\u001b[31mred"),
    status("TASK_STATE_FAILED", "\u001b[0m"),
  ];

  test("on a terminal the only escape sequences are our own colours", async () => {
    const { both } = await shown(events, { recorded: recordedIo({ terminal: true }) });
    // eslint-disable-next-line no-control-regex
    const sequences = both.match(/\u001b[^m]*m/g) ?? [];
    expect(new Set(sequences.map((text) => text.slice(1)))).toEqual(
      new Set(["[2m", "[22m", "[36m", "[39m", "[1m", "[31m"]),
    );
    expect(both).toContain("␛[2Jname");
    expect(both).toContain("␛[31mred");
    expect(both).toContain(": ␛[0m");
  });

  test("in a pipe there are no escape sequences", async () => {
    expect((await shown(events)).both).not.toContain("\u001b");
  });
});
