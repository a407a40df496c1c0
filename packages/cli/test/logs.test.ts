import { appendFile, mkdtemp, rename, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnSync } from "node:child_process";
import { connect } from "@parley/a2a";
import { defineAgent, memoryStore, serve, standardLogger, auditLog } from "@parley/node";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { Filter, recordOf } from "../src/logs/record.ts";
import { run } from "../src/program.ts";
import { parleyHere } from "./support/in-process.ts";
import { recordedIo } from "./support/io.ts";
import { parleyCommand, start } from "./support/parley.ts";

/** `parley logs`, over the log of a real server and over lines of strangers (docs/operate.md). */

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-logs-"));
});
afterEach(() => rm(folder, { recursive: true }));

const traceId = "0af7651916cd43dd8448eb211c80319c";
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;
/** What a terminal would act on. */
// eslint-disable-next-line no-control-regex
const acting = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\u{e0000}-\u{e00ff}]/u;

const json = (fields: object): string => `${JSON.stringify(fields)}\n`;

/** Runs the command on a text as standard input. */
const piped = (stdin: string, ...args: readonly string[]) => parleyHere(["logs", ...args], { stdin });

async function file(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

/** The log of a server with two conversations: the first has two tasks, one of which fails. */
async function servedLog(): Promise<{ readonly text: string; readonly ids: readonly (readonly [string, string])[] }> {
  let text = "";
  const logger = standardLogger({ stream: { write: (words) => (text += words) } });
  const agent = defineAgent({
    name: "Clerk",
    description: "Works.",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      turn.logger.info("Looked into the archive", { shelf: 7 });
      yield turn.working("Looking");
      if (turn.text === "fail") throw new Error("the archive is closed");
      yield turn.completed("Found");
    },
  });
  const server = await serve(agent, { port: 0, signals: false, store: memoryStore(), logger, audit: auditLog(logger) });
  const ids: [string, string][] = [];
  const send = async (words: string, contextId?: string, headers = {}): Promise<void> => {
    const client = await connect(server.url, { headers });
    const { task } = await client.sendMessage({
      message: { parts: [{ text: words }], ...(contextId && { contextId }) },
    });
    ids.push([task?.id ?? "", task?.contextId ?? ""]);
  };
  try {
    await send("go", undefined, { traceparent });
    await send("go");
    await send("fail", ids[0]?.[1]);
  } finally {
    await server.close({ grace: 0 });
  }
  return { text, ids };
}

describe("the log of a server", () => {
  test("is shown as on the server's terminal", async () => {
    const { text, ids } = await servedLog();
    const { code, out, err } = await piped(text);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const [taskId = "", contextId = ""] = ids[0] ?? [];
    const short = taskId.slice(-8);
    const lines = out.split("\n").map((line) => line.slice(9));
    expect(lines.filter((line) => line.includes(short))).toEqual([
      `info  / ${short} Looked into the archive shelf=7`,
      `info  / ${short} Task created taskId=${taskId} contextId=${contextId} traceId=${traceId}`,
      `info  / ${short} Task working`,
      `info  / ${short} Task completed`,
    ]);
    expect(out).toMatch(/error \/ \S+ A task failed .*\n {2}Error: the archive is closed\n {6}at /);
  });

  test("is filtered by task, context, trace, level and time, alone and together", async () => {
    const { text, ids } = await servedLog();
    const [[first, context] = ["", ""], [second] = [""], [third] = [""]] = ids;
    const tasksWith = async (...args: readonly string[]): Promise<Record<string, number>> => {
      const { code, out } = await piped(text, "--json", ...args);
      expect(code).toBe(0);
      const counts: Record<string, number> = {};
      for (const line of out.trim().split("\n").filter(Boolean)) {
        const { taskId } = JSON.parse(line) as { taskId: string };
        counts[taskId] = (counts[taskId] ?? 0) + 1;
      }
      return counts;
    };
    expect(await tasksWith()).toEqual({ [first]: 4, [second]: 4, [third]: 5 });
    expect(await tasksWith("--task", first)).toEqual({ [first]: 4 });
    expect(await tasksWith("--task", first.slice(-8))).toEqual({ [first]: 4 });
    expect(await tasksWith("--task", first.slice(-7))).toEqual({});
    expect(await tasksWith("--context", context)).toEqual({ [first]: 4, [third]: 5 });
    expect(await tasksWith("--trace", traceId.toUpperCase())).toEqual({ [first]: 4 });
    expect(await tasksWith("--trace", traceparent)).toEqual({ [first]: 4 });
    expect(await tasksWith("--level", "error")).toEqual({ [third]: 1 });
    expect(await tasksWith("--level", "error", "--task", first)).toEqual({});
    expect(await tasksWith("--since", "1h", "--until", "2100-01-01T00:00:00Z")).toEqual({
      [first]: 4,
      [second]: 4,
      [third]: 5,
    });
    expect(await tasksWith("--until", "1h")).toEqual({});
    expect(await tasksWith("--since", "2100-01-01T00:00:00Z")).toEqual({});
  });

  test("finds the lines of a context that name only its task, and those of tracedLogger", async () => {
    const lines = [
      json({ message: "before", taskId: "t1" }),
      json({ message: "told", taskId: "t1", contextId: "c1" }),
      json({ message: "alone", taskId: "t1" }),
      json({ message: "other", taskId: "t2", contextId: "c2" }),
      json({ message: "of the trace", trace_id: traceId }),
    ].join("");
    const messages = async (...args: readonly string[]): Promise<unknown> =>
      (await piped(lines, "--json", ...args)).out
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { message: string }).message);
    expect(await messages("--context", "c1")).toEqual(["told", "alone"]);
    expect(await messages("--trace", traceId)).toEqual(["of the trace"]);
  });
});

describe("lines of others", () => {
  test("are shown unchanged without a filter, and hidden with one", async () => {
    const lines = `node: warning\n\n${json({ level: "warn", message: "careful" })}[1,2]\n{"half":`;
    expect((await piped(lines)).out).toBe('node: warning\n\n--:--:-- warn  careful\n[1,2]\n{"half":\n');
    expect((await piped(lines, "--level", "info")).out).toBe("--:--:-- warn  careful\n");
    expect((await piped(lines, "--json")).out).toBe('{"level":"warn","message":"careful"}\n');
  });

  test("from pino, or with the prefix of a container, are shown with their fields", async () => {
    const pino = {
      level: 50,
      time: Date.now(),
      pid: 7,
      msg: "broke",
      err: { type: "Error", message: "no", stack: "Error: no\n  at x" },
    };
    const { out } = await piped(`web-1  | ${json(pino)}${json({ level: "notice", time: "noon", n: 1 })}`);
    expect(out).toMatch(/^web-1 {2}\| \d\d:\d\d:\d\d error broke pid=7\n {2}Error: no\n {4}at x\n/);
    expect(out).toContain("--:--:--       " + " level=notice time=noon n=1\n");
  });

  test("without any JSON are reported, because a filter cannot search them", async () => {
    const { code, out, err } = await piped("12:00:00 info text\n", "--task", "t");
    expect({ code, out }).toEqual({ code: 0, out: "" });
    expect(err).toMatch(/^parley: the log has no JSON lines\b.*--log-format json\n$/);
  });

  test("keep the digits and texts of their JSON", async () => {
    const line = '{"a": 12345678901234567890.10,\r "b": "\u202e\\u001b\u009b", "a": 1}';
    const { out } = await piped(`${line}\r\n`, "--json");
    expect(out).toBe('{"a": 12345678901234567890.10,  "b": "\\u202e\\u001b\\u009b", "a": 1}\n');
  });

  test("cannot act on a terminal, whatever their bytes are", async () => {
    const text = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
      fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value))),
      fc
        .dictionary(
          fc.constantFrom(
            "time",
            "level",
            "message",
            "msg",
            "cause",
            "err",
            "agent",
            "taskId",
            "event",
            "__proto__",
            "x",
          ),
          fc.oneof(
            fc.jsonValue(),
            fc.string({ unit: "binary" }),
            fc.constant("Audit"),
            fc.constant("\u001b[2J\n\u202e"),
          ),
        )
        .map((fields) => Buffer.from(JSON.stringify(fields))),
    );
    const input = fc.array(text).map((lines) => Buffer.concat(lines.flatMap((line) => [line, Buffer.from("\n")])));
    const property = fc.asyncProperty(
      input,
      fc.constantFrom([], ["--json"], ["--level", "info"]),
      async (bytes, args) => {
        const { io, both } = recordedIo();
        const stdin = (async function* () {
          for (let at = 0; at < bytes.length; at += 7) yield bytes.subarray(at, at + 7);
        })();
        expect(await run(["logs", ...args], { ...io, stdin })).toBe(0);
        expect(both()).not.toMatch(acting);
      },
    );
    await fc.assert(property, { numRuns: 60 });
  });

  test("nested a million deep are shown, or left out", async () => {
    const deep = `{"message":"deep","x":${"[".repeat(200_000)}${"]".repeat(200_000)}}\n`;
    expect((await piped(deep)).out).toMatch(/deep x=\[\[\[.*"…"/);
    expect((await piped(deep, "--json")).out).toBe(deep);
  });
});

describe("memory", () => {
  test("holds the beginning of an endless line", async () => {
    const piece = Buffer.alloc(1 << 16, "x");
    const memory = (): number => process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed;
    const before = memory();
    let most = 0;
    const stdin = (async function* () {
      for (let at = 0; at < 8192; at++) {
        if (at % 256 === 0) most = Math.max(most, memory());
        yield piece;
      }
      yield Buffer.from(`\n${json({ message: "after" })}`);
    })();
    const { io, out, err } = recordedIo();
    expect(await run(["logs"], { ...io, stdin })).toBe(0);
    expect(most - before).toBeLessThan(100 << 20);
    expect(out()).toMatch(/^x{32000}… \(1016576 more characters\) … \(535\.8 MB more\)\n\S+ +after\n$/);
    expect(err()).toBe("");
    const long = `{"message":"${"y".repeat(2 << 20)}"}\n`;
    expect(await piped(long, "--json")).toMatchObject({
      out: "",
      err: expect.stringContaining("1 line of more than 1.0 MB left out"),
    });
  });

  test("holds the newest tasks of a context", () => {
    const filter = new Filter({ context: "c" });
    const sees = (fields: object): boolean => {
      const record = recordOf({ text: JSON.stringify(fields), leftOut: 0 });
      return record !== undefined && filter.accepts(record);
    };
    const id = (n: number): string => `${"t".repeat(240)}${n}`;
    for (let n = 0; n < 20_000; n++) sees({ taskId: id(n), contextId: "c" });
    expect(sees({ taskId: id(19_999) })).toBe(true);
    expect(sees({ taskId: id(0) })).toBe(false);
  });
});

describe("several files", () => {
  test("are merged by time, each in its order", async () => {
    const at = (second: number, message: string): string =>
      json({ time: `2026-01-31T12:00:0${second}Z`, level: "info", message });
    const one = await file("one.log", at(1, "a") + at(4, "d") + "trace of d\n" + at(7, "g"));
    const two = await file("two.log", at(2, "b") + at(3, "c") + at(5, "e"));
    const { out } = await parleyHere(["logs", one, two, "-"], { stdin: at(6, "f") });
    expect(out.split("\n").map((line) => line.split(" ").at(-1))).toEqual(["a", "b", "c", "d", "d", "e", "f", "g", ""]);
  });
});

describe("--follow", () => {
  /** Follows a file in this process. */
  function following(path: string) {
    const { io, out, interrupt } = recordedIo();
    const done = run(["logs", path, "--follow"], io);
    const shows = (text: string): Promise<void> => expect.poll(out, { timeout: 5000 }).toBe(text);
    return { shows, stop: () => (interrupt("SIGINT"), done) };
  }

  test("shows appended lines, even after the file is replaced or truncated", async () => {
    const path = await file("agent.log", "one\n");
    const { shows, stop } = following(path);
    await shows("one\n");
    await appendFile(path, "tw");
    await appendFile(path, "o\n");
    await shows("one\ntwo\n");
    // As logrotate does. The program writes to the old file until it opens the new one.
    await rename(path, `${path}.1`);
    await appendFile(`${path}.1`, "three\nfour");
    await writeFile(path, "five\n");
    await shows("one\ntwo\nthree\nfour\nfive\n");
    await truncate(path);
    await appendFile(path, "6\n");
    await shows("one\ntwo\nthree\nfour\nfive\n6\n");
    expect(await stop()).toBe(0);
  });

  test("waits for a file that is gone", async () => {
    const path = await file("agent.log", "one\n");
    const { shows, stop } = following(path);
    await shows("one\n");
    await rm(path);
    await writeFile(path, "two\n");
    await shows("one\ntwo\n");
    expect(await stop()).toBe(0);
  });

  test("ends at a signal, as a process", async () => {
    const path = await file("agent.log", "one\n");
    const { child, done, until } = start(["logs", path, "--follow"]);
    await until("out", /one\n/);
    await appendFile(path, "two\n");
    await until("out", /two\n/);
    child.kill("SIGINT");
    expect(await done).toEqual({ code: 0, out: "one\ntwo\n", err: "" });
  });
});

describe("the command", () => {
  test("shows the program's last lines after Ctrl-C", async () => {
    const { io, out, interrupt } = recordedIo();
    const stdin = (async function* () {
      yield "one\n";
      interrupt("SIGINT");
      yield "stopped\n";
    })();
    expect(await run(["logs"], { ...io, stdin })).toBe(0);
    expect(out()).toBe("one\nstopped\n");
  });

  test("ends at SIGTERM while standard input is open", async () => {
    const { io, interrupt } = recordedIo();
    const stdin = (async function* () {
      yield "one\n";
      await new Promise((resolve) => {
        interrupt("SIGTERM");
        onTestFinished(() => resolve(undefined));
      });
    })();
    expect(await run(["logs"], { ...io, stdin })).toBe(0);
  });

  test("ends quietly if nobody reads its output", async () => {
    const path = await file("agent.log", "x".repeat(100).concat("\n").repeat(20_000));
    const command = [...parleyCommand, "logs", path].map((word) => `'${word}'`).join(" ");
    const { stdout, stderr, status } = spawnSync("sh", ["-c", `${command} | head -n 1`], { encoding: "utf8" });
    expect({ stdout, stderr, status }).toEqual({ stdout: `${"x".repeat(100)}\n`, stderr: "", status: 0 });
  });

  test("colors only on a terminal, without NO_COLOR", async () => {
    const colored = async (terminal: boolean, env: Record<string, string> = {}): Promise<boolean> => {
      const { io, out } = recordedIo({ terminal, env, stdin: json({ level: "error", message: "broke" }) });
      expect(await run(["logs"], io)).toBe(0);
      return out().includes("\u001b[31merror");
    };
    expect(await colored(true)).toBe(true);
    expect(await colored(true, { NO_COLOR: "1" })).toBe(false);
    expect(await colored(false)).toBe(false);
    expect(await colored(false, { FORCE_COLOR: "1" })).toBe(true);
  });

  test.each([
    [["missing.log"], "cannot read missing.log: no such file"],
    [["."], "cannot read .: is a folder"],
    [["--level", "loud"], '--level <level> must be one of debug, info, warn, error; got "loud"'],
    [["--trace", "xyz"], '--trace <id> must be a trace ID of 32 hexadecimal digits, or a traceparent; got "xyz"'],
    [["--since", "soon"], "--since <time> must be a time (2026-01-31T12:00:00Z) or an age (30m, 2h, 7d)"],
    [["--follow"], "--follow needs a file: standard input is shown until it ends"],
  ])("rejects %s", async (args, message) => {
    const { code, out, err } = await parleyHere(["logs", ...args], { cwd: folder });
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(`parley: ${message}`);
  });

  test("does not wait for a log that nobody pipes", async () => {
    const { io, err } = recordedIo({ interactive: true });
    expect(await run(["logs"], io)).toBe(2);
    expect(err()).toBe("parley: no log. Pass a file, or pipe one: parley serve agent.ts 2>&1 | parley logs\n");
  });
});
