import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteStore, sqliteWebhookMemory } from "@parley/sql/sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parkedFeature, pushFeature, type StoredConfig } from "@parley/server/internal/push/stored";
import { run } from "../src/program.ts";
import { recordedIo } from "./support/io.ts";
import { at, config, parked, reason, refused, storeWebhooks, type Row } from "./support/webhooks.ts";

/** `parley push` shows and changes the webhooks in a server's file. */

let folder = "";
let files = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-push-"));
});
afterAll(() => rm(folder, { recursive: true }));

const never = Date.UTC(2999, 0, 1);

/** A server's file with these rows, and `push` on it. */
async function given(rows: Readonly<Record<string, Row>> = {}) {
  const file = join(folder, `${(files += 1)}.db`);
  await storeWebhooks(file, rows);
  return {
    file,
    push: (...args: readonly string[]) => push([...args.slice(0, 1), "--store", file, ...args.slice(1)]),
    async rows(feature: string) {
      const reading = await sqliteStore({ path: file, thread: false });
      const found = await reading.features({ agent: "/" }, "t", feature);
      await reading.close();
      return found.map(({ value, ...row }) => ({ ...row, config: JSON.parse(value) as StoredConfig }));
    },
  };
}

async function push(args: readonly string[], init: Parameters<typeof recordedIo>[0] = { cwd: folder }) {
  const { io, out, err } = recordedIo(init);
  const code = await run(["push", ...args], io);
  return { code, out: out(), err: err() };
}

describe("parley push list", () => {
  test("lists due webhooks, then parked ones with the reason and how to continue", async () => {
    const { file, push } = await given({
      idle: {},
      parked,
      waits: { due: never, config: config({ attempts: 2, problem: { at, reason } }) },
      claimed: { due: never + 1, config: config({ claim: "x" }) },
    });
    expect(await push("list")).toEqual({
      code: 0,
      out: [
        "TASK  WEBHOOK  STATE       TIME                      ADDRESS                   PROBLEM",
        `t     waits    due         2999-01-01T00:00:00.000Z  https://hooks.example/in  ${reason}`,
        "t     claimed  delivering  2999-01-01T00:00:00.001Z  https://hooks.example/in",
        `t     parked   parked      2026-01-31T12:00:00.000Z  https://hooks.example/in  ${reason}`,
        "",
      ].join("\n"),
      err: `To retry a parked webhook:\n  parley push retry --store=${file} t parked\n`,
    });
    expect((await push("list", "--state", "due")).out).toMatch(/waits.*\n.*claimed.*\n$/);
    expect((await push("list", "--state", "parked")).out).toMatch(/^.*\n.*parked.*\n$/);
    expect(await push("list", "--limit", "1")).toMatchObject({
      out: expect.stringMatching(/waits.*\n$/) as unknown,
      err: "There may be more; raise --limit.\n",
    });
  });

  test("names the agents if there are several, and lists one agent's webhooks", async () => {
    const { push } = await given({ a: { due: at }, b: { task: { agent: "/other", taskId: "u" }, due: at } });
    expect((await push("list")).out).toMatch(/^AGENT +TASK.*\n\/ +t +a .*\n\/other +u +b .*\n$/);
    expect((await push("list", "--agent", "/other")).out).not.toMatch(/ a /);
  });

  test("with --json prints one document, without secrets", async () => {
    const { push } = await given({ parked });
    const { code, out } = await push("list", "--json");
    expect(code).toBe(0);
    expect(out).toMatch(/^[^\n]*\n$/);
    expect(JSON.parse(out)).toEqual({
      webhooks: [
        {
          task: { agent: "/", owner: "ada", taskId: "t" },
          configId: "parked",
          url: "https://hooks.example/in",
          version: "1.0",
          state: "parked",
          delivered: 2,
          cursor: 4,
          attempts: 10,
          due: at,
          problem: { at, reason, status: 500 },
          refused,
        },
      ],
    });
    for (const printed of [out, (await push("list")).out, (await push("show", "t")).out]) {
      expect(printed).not.toMatch(/secret|pass|sealed/);
    }
  });

  test("says so if the list is empty", async () => {
    const { push } = await given({ idle: {} });
    expect(await push("list")).toEqual({ code: 0, out: "", err: "No pending webhooks.\n" });
    expect(await push("list", "--state", "parked")).toEqual({ code: 0, out: "", err: "No parked webhooks.\n" });
    expect(JSON.parse((await push("list", "--json")).out)).toEqual({ webhooks: [] });
  });

  test("shows text of callers and receivers without effect on the terminal", async () => {
    const problem = { at, reason: "\u001b[2Jgone" };
    const url = "https://hooks.example/\u202e";
    const { push } = await given({ "-x\u001b[1m": { ...parked, config: config({ problem, url }) } });
    const { out, err } = await push("list");
    for (const text of [out, err, (await push("show", "t")).out]) {
      for (const character of ["\u001b", "\u202e"]) expect(text).not.toContain(character);
    }
    expect(out).toContain("␛[2Jgone");
    expect(err).toContain("-- t '-x␛[1m'");
  });

  test("colours are for terminals", async () => {
    const { file } = await given({ parked });
    const list = ["list", "--store", file];
    expect((await push(list, { terminal: true })).out).toContain("\u001b[31mparked");
    expect((await push(list, { terminal: true, env: { NO_COLOR: "1" } })).out).not.toContain("\u001b");
  });
});

describe("parley push show", () => {
  test("shows all of a webhook, and the events that its receiver refused", async () => {
    const { push } = await given({ idle: {}, parked });
    const { code, out, err } = await push("show", "t");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toBe(
      [
        "webhook    idle",
        "address    https://hooks.example/in",
        "owner      ada",
        "version    1.0",
        "state      idle",
        "delivered  2",
        "",
        "webhook    parked",
        "address    https://hooks.example/in",
        "owner      ada",
        "version    1.0",
        "state      parked",
        "since      2026-01-31T12:00:00.000Z",
        "delivered  2",
        "attempts   10",
        `problem    ${reason} (2026-01-31T12:00:00.000Z)`,
        "  REJECTED  TIME                      PROBLEM",
        "  7         2026-01-31T12:00:00.000Z  The receiver answered with 400.",
        "",
      ].join("\n"),
    );
  });

  test("suggests other places to look if a task has no webhooks", async () => {
    const { file, push } = await given({ idle: {} });
    expect(await push("show", "nothing")).toEqual({
      code: 1,
      out: "",
      err: `parley: task nothing of agent / has no webhooks in ${file}. Does it belong to another --agent?\n`,
    });
    expect((await push("show", "t", "--agent", "/other")).code).toBe(1);
  });
});

describe("parley push retry", () => {
  test("starts a parked webhook again, and says so", async () => {
    const { push, rows } = await given({ parked });
    const before = Date.now();
    expect(await push("retry", "t", "parked")).toEqual({
      code: 0,
      out: "",
      err: "Retrying now, at https://hooks.example/in.\n",
    });
    expect(await rows(parkedFeature)).toEqual([]);
    const [row] = await rows(pushFeature);
    expect(row?.config.attempts).toBeUndefined();
    expect(row?.due).toBeGreaterThanOrEqual(before);
  });

  test("says if there is nothing to retry", async () => {
    const { push } = await given({ idle: {}, claimed: { due: never, config: config({ claim: "x" }) } });
    expect(await push("retry", "t", "idle")).toMatchObject({ code: 0, err: "Everything is already delivered.\n" });
    expect(await push("retry", "t", "claimed")).toMatchObject({ code: 0, err: "It is being delivered now.\n" });
  });

  test("delivers a refused event once more; with --json it prints the webhooks afterwards", async () => {
    const { push, rows } = await given({ parked });
    const { code, out, err } = await push("retry", "t", "parked", "--seq", "7", "--json");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(JSON.parse(out)).toMatchObject({ webhooks: [{ configId: "parked", state: "due", refused }] });
    expect(await rows(pushFeature)).toMatchObject([{ config: { again: [7] } }]);
  });

  test("names the missing task, webhook or event", async () => {
    const { file, push } = await given({ parked });
    const see = `See parley push show --store=${file} t\n`;
    expect((await push("retry", "none", "parked")).err).toMatch(/task none of agent \/ has no webhooks/);
    expect(await push("retry", "t", "x")).toEqual({
      code: 1,
      out: "",
      err: `parley: task t has no webhook x. ${see}`,
    });
    expect((await push("retry", "t", "parked", "--seq", "8")).err).toBe(
      `parley: task t has no rejected event 8 of webhook parked. ${see}`,
    );
  });
});

describe("parley push drop", () => {
  test("drops a refused event, then the webhook", async () => {
    const { push, rows } = await given({ parked });
    expect(await push("drop", "t", "parked", "--seq", "7")).toMatchObject({
      code: 0,
      err: "Rejected event 7 is dropped.\n",
    });
    expect((await rows(parkedFeature))[0]?.config.refused).toBeUndefined();
    expect(await push("drop", "t", "parked")).toMatchObject({ code: 0, err: "Deleted the webhook.\n" });
    expect(await rows(parkedFeature)).toEqual([]);
    expect((await push("drop", "t", "parked")).code).toBe(1);
  });
});

describe("--audit", () => {
  test("appends a record of each change, and of each failed one", async () => {
    const { file, push } = await given({ parked });
    const audit = `${file}.audit`;
    await push("retry", "t", "parked", "--audit", audit);
    await push("drop", "t", "parked", "--audit", audit);
    await push("drop", "t", "parked", "--audit", audit);
    const lines = (await readFile(audit, "utf8")).trimEnd().split("\n");
    const about = { event: "administration", agent: "/", taskId: "t", subject: expect.stringMatching(/./) as string };
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { ...about, action: "push.retry", outcome: "success" },
      { ...about, action: "push.drop", outcome: "success" },
      { ...about, action: "push.drop", outcome: "failed" },
    ]);
  });

  test("changes nothing if the record cannot be written", async () => {
    const { push, rows } = await given({ parked });
    expect(await push("drop", "t", "parked", "--audit", folder)).toMatchObject({
      code: 1,
      err: expect.stringContaining("cannot open the audit file") as string,
    });
    expect(await rows(parkedFeature)).toHaveLength(1);
  });
});

describe("the file", () => {
  test("that is missing is not created, and one that is not a database is rejected", async () => {
    const empty = await mkdtemp(join(folder, "empty-"));
    const io = { cwd: empty };
    expect(await push(["list"], io)).toEqual({
      code: 1,
      out: "",
      err: "parley: cannot open the store .parley/parley.db: no such file. Pass --store with the file of the server\n",
    });
    expect(await readdir(empty)).toEqual([]);
    await writeFile(join(empty, "text.db"), "This is a text, and no database. ".repeat(100));
    expect(await push(["list", "--store", "text.db"], io)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/cannot open the store text.db/) as unknown,
    });
    const theirs = await sqliteWebhookMemory({ path: join(empty, "other.db") });
    await theirs.close?.();
    expect(await push(["list", "--store", "other.db"], io)).toEqual({
      code: 1,
      out: "",
      err: expect.stringMatching(/cannot open the store other.db: .*not a Parley database/) as unknown,
    });
    expect(await push(["list", "--store", "memory"], io)).toMatchObject({
      code: 2,
      err: expect.stringMatching(/--store must be a file/) as unknown,
    });
  });

  test("works while a server uses the file", async () => {
    const { file, push } = await given({ parked });
    const server = await sqliteStore({ path: file });
    expect(await push("retry", "t", "parked")).toMatchObject({ code: 0 });
    const due = await server.dueFeatures({ feature: pushFeature, agents: ["/"], now: Infinity, limit: 9 });
    expect(due.map(({ key }) => key)).toEqual(["parked"]);
    await server.close();
  });
});

test("wrong usage of parley push exits with 2", async () => {
  for (const [args, message] of [
    [[], /Usage: parley push/],
    [["dance"], /unknown command 'dance'/],
    [["show"], /<task> is missing/],
    [["retry", "t"], /<webhook> is missing/],
    [["list", "--state", "late"], /--state <state> must be one of due, parked; got "late"/],
    [["list", "--limit", "2000"], /from 1 to 1000/],
    [["retry", "t", "w", "--seq", "x"], /whole number/],
  ] as const) {
    expect(await push(args)).toMatchObject({ code: 2, out: "", err: expect.stringMatching(message) as unknown });
  }
});
