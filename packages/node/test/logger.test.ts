import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  defineAgent,
  memoryStore,
  serve,
  standardLogger,
  type Logger,
  type ServeOptions,
  type StandardLoggerOptions,
} from "@parley/node";
import { connect } from "@parley/a2a";

/** Creates a logger. Returns the logger, and the text that it has written. */
function recorded(options: StandardLoggerOptions & { readonly isTTY?: boolean } = {}): {
  readonly logger: ReturnType<typeof standardLogger>;
  readonly lines: () => readonly string[];
  readonly records: () => readonly Record<string, unknown>[];
} {
  const { isTTY = false, ...rest } = options;
  let said = "";
  const logger = standardLogger({ stream: { isTTY, write: (words) => (said += words) }, ...rest });
  const lines = (): readonly string[] => said.split("\n").slice(0, -1);
  return { logger, lines, records: () => lines().map((line) => JSON.parse(line) as Record<string, unknown>) };
}

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** Returns objects that are nested this deep. */
function nested(depth: number): object {
  return depth === 0 ? {} : { inner: nested(depth - 1) };
}

describe("the standard logger", () => {
  it("writes lines of JSON if the stream is not a terminal", () => {
    const { logger, records } = recorded();
    logger.info("Hello", { taskId: "t1", turn: 2, nothing: undefined });
    logger.warn("Careful");
    expect(records()).toEqual([
      { time: expect.stringMatching(/^\d{4}-.*Z$/), level: "info", message: "Hello", taskId: "t1", turn: 2 },
      { time: expect.any(String), level: "warn", message: "Careful" },
    ]);
  });

  it("writes text on a terminal, with colors unless NO_COLOR or TERM=dumb is set", () => {
    vi.stubEnv("NO_COLOR", "");
    vi.stubEnv("TERM", "xterm");
    const said = (options: StandardLoggerOptions = {}): string => {
      const { logger, lines } = recorded({ isTTY: true, ...options });
      logger.error("It broke", { taskId: "t1", words: "two words" });
      return lines().join("\n");
    };
    expect(stripVTControlCharacters(said())).toMatch(/^\d\d:\d\d:\d\d error t1 It broke taskId=t1 words="two words"$/);
    expect(said()).toContain("\u001b[31merror");
    vi.stubEnv("NO_COLOR", "1");
    expect(said()).not.toContain("\u001b");
    vi.stubEnv("NO_COLOR", "");
    vi.stubEnv("TERM", "dumb");
    expect(said()).not.toContain("\u001b");
    expect(said({ format: "json" })).toMatch(/^\{.*\}$/);
  });

  it("leaves out records below its level, and rejects unknown levels", () => {
    const { logger, records } = recorded({ level: "warn" });
    for (const level of ["debug", "info", "warn", "error"] as const) logger[level](level);
    expect(records().map(({ level }) => level)).toEqual(["warn", "error"]);
    expect(() => standardLogger({ level: "loud" as "info" })).toThrow(
      'level must be one of debug, info, warn, error; got "loud"',
    );
  });

  it("writes an error with its stack, its members and its causes", () => {
    const inner = new TypeError("no route");
    const cause = Object.assign(new Error("cannot save", { cause: inner }), { code: "E42", fields: [] });
    const json = recorded();
    json.logger.error("It broke", { cause });
    expect(json.records()[0]).toMatchObject({
      message: "It broke",
      cause: {
        name: "Error",
        message: "cannot save",
        code: "E42",
        stack: expect.stringContaining("logger.test.ts"),
        cause: { name: "TypeError", message: "no route", stack: expect.stringContaining("logger.test.ts") },
      },
    });
    const human = recorded({ isTTY: true, colors: false });
    human.logger.error("It broke", { cause });
    const lines = human.lines();
    expect(lines[0]).toMatch(/ error It broke$/);
    expect(lines[1]).toBe("  Error: cannot save");
    expect(lines).toContain("    code: E42");
    expect(lines.slice(lines.indexOf("  caused by:"))[1]).toBe("    TypeError: no route");
    expect(lines.slice(1).every((line) => line.startsWith("  "))).toBe(true);
  });

  it("writes every error of an AggregateError", () => {
    const { logger, lines } = recorded({ isTTY: true, colors: false });
    logger.error("It broke", { cause: new AggregateError([new Error("one"), new Error("two")], "all failed") });
    expect(
      lines()
        .filter((line) => /^\s+(one of:|Error: |AggregateError: )/.test(line))
        .map((line) => line.trim()),
    ).toEqual(["AggregateError: all failed", "one of:", "Error: one", "one of:", "Error: two"]);
  });

  it("lets no content control the terminal or look like another record", () => {
    const evil = '\u001b[2J\u009b31m\u202e\r\n12:00:00 error Forged\n{"level":"error"}';
    const cause = new Error(evil);
    const human = recorded({ isTTY: true, colors: false });
    human.logger.warn(evil, { [evil]: evil, list: [evil], cause });
    // eslint-disable-next-line no-control-regex
    expect(human.lines().join("\n")).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(human.lines().filter((line) => !line.startsWith("  "))).toHaveLength(1);
    const json = recorded();
    json.logger.warn(evil, { [evil]: evil, cause });
    expect(json.lines()).toHaveLength(1);
    // eslint-disable-next-line no-control-regex
    expect(json.lines()[0]).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
    expect(json.records()[0]).toMatchObject({ message: evil, [evil]: evil, cause: { message: evil } });
  });

  it("limits the size of a record", () => {
    const long = "x".repeat(1_000_000);
    const wide = Array.from({ length: 100_000 }, () => [long, { long }]);
    const cause = Object.assign(new Error(long, { cause: new Error(long) }), { wide });
    for (const isTTY of [true, false]) {
      const { logger, lines } = recorded({ isTTY, colors: false });
      logger.error(long, { long, wide, deep: nested(100), many: Object.fromEntries(wide.entries()), cause });
      const said = lines().join("\n");
      expect(said.length).toBeLessThan(64_000);
      expect(said).toMatch(/… \(\d+ more characters\)/);
    }
  });

  it("never throws", () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    const hostile = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error("no");
        },
      },
    );
    const getter = {
      get secret(): string {
        throw new Error("no");
      },
      toJSON: () => "asked",
    };
    const { logger, records } = recorded();
    logger.info("cycle", {
      cycle,
      big: 1n,
      symbol: Symbol("s"),
      run() {},
      bytes: new Uint8Array(9),
      at: new Date(NaN),
      getter,
    });
    logger.info("hostile", { hostile });
    logger.info("thrown", { cause: "only text" });
    expect(records()).toMatchObject([
      { big: "1", symbol: "Symbol(s)", bytes: "(9 bytes)", at: "Invalid Date", getter: { toJSON: expect.any(String) } },
      { message: "hostile", unreadable: expect.any(String) },
      { cause: "only text" },
    ]);
    const broken = standardLogger({
      stream: {
        write: () => {
          throw new Error("closed");
        },
      },
    });
    expect(() => broken.error("lost")).not.toThrow();
  });

  it("survives a closed stream, and adds one listener to a stream of many loggers", async () => {
    const stream = new PassThrough();
    for (let i = 0; i < 20; i++) standardLogger({ stream });
    expect(stream.listenerCount("error")).toBe(1);
    stream.end();
    // Without an error listener on the stream, this call would make the test run fail.
    standardLogger({ stream }).error("too late");
    await new Promise((done) => stream.once("close", done).resume());
  });

  it("drops records that would wait for a slow reader, and counts them", () => {
    let said = "";
    const stream = { writableLength: 0, write: (words: string) => (said += words) };
    const logger = standardLogger({ stream });
    stream.writableLength = 2 << 20;
    for (let i = 0; i < 3; i++) logger.info("lost");
    stream.writableLength = 0;
    logger.info("seen");
    expect(
      said
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as object),
    ).toMatchObject([{ level: "warn", records: 3 }, { message: "seen" }]);
  });
});

describe("serve()", () => {
  const agent = defineAgent({
    name: "Broken",
    description: "Breaks.",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      yield turn.artifact({ artifactId: "x", parts: [{ text: "closed" }] });
      if (turn.text === "append") yield turn.append("x", [{ text: "more" }]);
      throw new Error("secret of the database");
    },
  });

  /** Returns the client's response, and the text on standard error. */
  async function said(words: string, options: ServeOptions = {}): Promise<{ client: string; stderr: string }> {
    let stderr = "";
    vi.spyOn(process.stderr, "write").mockImplementation((chunk) => {
      stderr += String(chunk);
      return true;
    });
    const server = await serve(agent, { port: 0, signals: false, store: memoryStore(), ...options });
    try {
      const client = await connect(server.url);
      const message = { messageId: crypto.randomUUID(), role: "ROLE_USER" as const, parts: [{ text: words }] };
      const { task } = await client.sendMessage({ message });
      return { client: JSON.stringify(task?.status), stderr };
    } finally {
      await server.close({ grace: 0 });
      vi.restoreAllMocks();
    }
  }

  it("logs by default the causes that clients do not get (§3.3.2)", async () => {
    const { client, stderr } = await said("throw");
    expect(client).toContain("TASK_STATE_FAILED");
    expect(client).not.toContain("secret");
    expect(JSON.parse(stderr)).toMatchObject({
      level: "error",
      message: "A task failed",
      taskId: expect.any(String),
      cause: { message: "secret of the database", stack: expect.stringContaining("logger.test.ts") },
    });
  });

  it("logs which event broke a rule, and how to correct it", async () => {
    const { client, stderr } = await said("append");
    expect(client).not.toContain("append");
    const { cause } = JSON.parse(stderr) as { cause: { message: string } };
    expect(cause.message).toMatch(/turn\.append\("x"\).*artifact "x" is closed: open it with/);
  });

  /** Returns the text on standard error, as if standard error were a terminal. */
  async function saidOnTerminal(words: string, options?: ServeOptions): Promise<string> {
    const before = Object.getOwnPropertyDescriptor(process.stderr, "isTTY");
    Object.defineProperty(process.stderr, "isTTY", { value: true, configurable: true });
    try {
      return stripVTControlCharacters((await said(words, options)).stderr);
    } finally {
      if (before === undefined) Reflect.deleteProperty(process.stderr, "isTTY");
      else Object.defineProperty(process.stderr, "isTTY", before);
    }
  }

  it("shows the events of a task on a terminal in development, one line each", async () => {
    const lines = (await saidOnTerminal("throw")).split("\n").filter((line) => /^\d/.test(line));
    const short = /taskId=\S*(\S{8}) /.exec(lines[0] ?? "")?.[1];
    expect(lines.map((line) => line.slice(9).replace(/ taskId=.*/, ""))).toEqual([
      `info  / ${short} Task created`,
      `info  / ${short} Task failed`,
      `error / ${short} A task failed`,
    ]);
  });

  it("shows only failures in production, and with a custom audit or logger", async () => {
    const audited: string[] = [];
    const failed = /^\S+ error \S+ \S+ A task failed .*\n(?: .*\n)*$/;
    expect(await saidOnTerminal("throw", { audit: ({ event }) => void audited.push(event) })).toMatch(failed);
    expect(audited).toContain("task-created");
    expect(await saidOnTerminal("throw", { logger: standardLogger({ format: "text" }) })).toMatch(failed);
    vi.stubEnv("NODE_ENV", "production");
    expect(await saidOnTerminal("throw")).toMatch(failed);
  });

  it("logs by level, nothing with logger: false, and everything to a custom logger", async () => {
    expect((await said("throw", { logger: "error" })).stderr).toContain("A task failed");
    expect((await said("throw", { logger: false })).stderr).toBe("");
    const lines: string[] = [];
    const note = (message: string): void => void lines.push(message);
    const logger: Logger = { debug() {}, info: note, warn: note, error: note };
    expect((await said("throw", { logger })).stderr).toBe("");
    expect(lines).toEqual(["A task failed"]);
    await expect(serve(agent, { port: 0, logger: "loud" as "info" })).rejects.toThrow("level must be one of");
  });
});
