import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@parley/a2a";
import { defineAgent, standardLogger, type ServeOptions, type Store } from "@parley/node";
import type { TaskAppend } from "@parley/server/internal/store/index";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { run } from "../src/program.ts";
import { examples } from "./support/help.ts";
import { recordedIo } from "./support/io.ts";
import { startServer } from "./support/server.ts";

/** `parley ops` and `parley top`, at the API of a server and on the file of one (docs/operate.md). */

let folder = "";
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-ops-"));
});
afterAll(() => rm(folder, { recursive: true }));

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function parley(args: readonly string[], env: Record<string, string> = { USER: "ada" }): Promise<Ran> {
  const { io, out, err } = recordedIo({ env });
  const code = await run(args, io);
  return { code, out: out(), err: err() };
}

const agent = defineAgent({
  name: "Clerk",
  description: "Waits for payments.",
  version: "1.0.0",
  skills: [],
  resumable: true,
  async *onMessage(turn) {
    yield turn.working("On it");
    await turn.step("book", () => "booked");
    if (turn.text === "fail") throw new Error("the printer burns");
    if (turn.text === "hold") await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    yield* turn.waitFor("paid");
    yield turn.completed("Done");
  },
});

/** A server with the API of operators, and the command line for it. */
async function served(options: ServeOptions = {}) {
  const server = await startServer(agent, { operators: true, pollInterval: 20, ...options });
  onTestFinished(() => server.close({ grace: 0 }));
  const client = await connect(server.url);
  const at = ["--url", `${server.url}/ops`];
  const ops = (...args: readonly string[]) => parley(["ops", ...args, ...at]);
  const send = async (text: string): Promise<string> => {
    const { task } = await client.sendMessage({ message: text, configuration: { returnImmediately: true } });
    return task?.id ?? "";
  };
  return { server, client, at, ops, send };
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await condition()); tries += 1) {
    if (tries > 300) throw new Error("the condition does not hold");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A file that stays open, like a running server's, with a suspended task. */
async function suspended(taskId: string, of = "/", owner = "o") {
  const path = join(folder, `it's ${(files += 1)}.db`);
  const store: Store = await sqliteStore({ path, thread: false });
  onTestFinished(() => store.close());
  await store.append([taskOf(taskId, of, owner)]);
  return { path, store };
}

function taskOf(taskId: string, agentId: string, owner: string): TaskAppend {
  const state = "TASK_STATE_WORKING";
  const status = { state, timestamp: new Date(0).toISOString() };
  const json = JSON.stringify({ id: taskId, contextId: "c", status, history: [] });
  const record = { kind: "task", state, json, time: 1, actor: "user", turn: 1, attempt: 1 } as const;
  const effects = [{ effect: "run", run: { turn: 1, attempt: 4, input: 1, deaths: 3, suspended: true } }] as const;
  return { task: { agent: agentId, owner, taskId }, create: { contextId: "c" }, records: [record], effects };
}

describe("parley ops at a server", () => {
  test("says why a task waits with the command that helps, and that command helps", async () => {
    const { ops, send } = await served();
    const id = await send("Go");
    await until(async () => (await ops("why", id)).out.includes("waits for the event"));
    const { out } = await ops("why", id);
    expect(out).toMatch(
      /^The task waits for the event "paid", which .*\n {2}since \d{4}-\S+Z \(\d+ s\)\n {2}\$ parley ops drop-wait .* --url http/,
    );
    const command =
      /\$ parley (.*)\n/
        .exec(out)?.[1]
        ?.split(" ")
        .map((word) => word.replaceAll("'", "")) ?? [];
    expect(await parley(command)).toMatchObject({ code: 0, out: "The wait is over.\n", err: "" });
    await until(async () => (await ops("why", id)).out.startsWith("The task is over: completed"));
    const shown = await ops("show", id);
    expect(shown.out).toContain("drop-wait");
    expect(JSON.parse((await ops("show", id, "--json")).out)).toMatchObject({
      task: { taskId: id },
      why: { kind: "done" },
    });
  });

  test("lists, counts, and names nodes and acts, as text and as JSON", async () => {
    const { ops, send } = await served();
    const id = await send("Go");
    await until(async () => (await ops("why", id)).out.includes("waits for the event"));
    const log = await ops("log", id);
    expect(log.out).toMatch(/^ENTRY +TIME .*\n1 +\S+ +user +turn 1, attempt 1 +task +(submitted|working)\n/);
    const first = await ops("log", id, "--limit", "1");
    expect(first.err).toBe("More with --after 1\n");
    expect((await ops("log", id, "--after", "1")).out).not.toMatch(/^1 /m);
    const { entries } = JSON.parse((await ops("log", id, "--json")).out) as { readonly entries: readonly object[] };
    expect(entries[0]).toMatchObject({ seq: 1, kind: "task" });
    expect((await ops("list", "--state", "working")).out).toMatch(
      new RegExp(`^TASK +STATE .*\n${id} +working, waits for a time or an event {2}`),
    );
    expect(await ops("list", "--state", "failed")).toMatchObject({ code: 0, out: "", err: "No tasks.\n" });
    expect(JSON.parse((await ops("list", "--json")).out)).toMatchObject({ tasks: [{ taskId: id }] });
    expect((await ops("counts")).out).toContain("runs: 0 held, 0 free, 0 suspended");
    expect(JSON.parse((await ops("counts", "--json")).out)).toMatchObject({ states: { TASK_STATE_WORKING: 1 } });
    expect((await ops("nodes")).out).toMatch(/answers/);
    const late = await ops("cancel", id, "--seq", "1");
    expect(late).toMatchObject({ code: 1, out: "" });
    expect(late.err).toMatch(/The task has changed: its last record is (\d+), not 1\. It is now working, seq \1/);
    expect(await ops("cancel", id, "--reason", "stuck")).toMatchObject({ code: 0, out: "Canceled.\n" });
    const audit = (await ops("audit", "--json")).out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
    expect(audit).toMatchObject([
      { act: "cancel", outcome: "done", reason: "stuck" },
      { act: "cancel", outcome: "refused" },
    ]);
    expect(await ops("why", "unknown")).toMatchObject({
      code: 1,
      err: expect.stringContaining("no agent has a task unknown"),
    });
  });

  test("says how to find the cause of a failed task in the log, and that command finds it", async () => {
    let text = "";
    const logger = standardLogger({ format: "json", stream: { write: (part) => (text += part) } });
    const { ops, send } = await served({ logger });
    const failed = await send("fail");
    await until(async () => (await ops("why", failed)).out.includes("failed"));
    const { out } = await ops("why", failed);
    expect(out).toContain("failed, because its agent threw an error. For details, filter the log of its server");
    const [, command = ""] = /with: parley (logs --task \S+)\. /.exec(out) ?? [];
    const file = join(folder, "agent.log");
    await writeFile(file, text);
    const found = await parley([...command.split(" "), file]);
    expect(found).toMatchObject({ code: 0, out: expect.stringContaining("Error: the printer burns") });
  });

  test("pauses an agent, drains a node, retries a step and continues a failed task", async () => {
    const { ops, send } = await served();
    const failed = await send("fail");
    await until(async () => (await ops("why", failed)).out.includes("failed"));
    const resumed = await ops("resume", failed);
    expect(resumed.out).toMatch(new RegExp(`^Task .* continues task ${failed}\\.\n$`));
    expect(await ops("pause", "/typo")).toEqual({
      code: 1,
      out: "",
      err: "parley: No node serves agent /typo, and it has no tasks. Served agents: /\n",
    });
    expect((await ops("pause", "/", "--reason", "bad prompt")).code).toBe(0);
    const id = await send("Go");
    expect((await ops("why", id)).out).toMatch(
      /^Agent \/ is paused: bad prompt\n {2}since \d{4}-\S+Z \(\d+ s\)\n {2}\$ parley ops unpause \//,
    );
    expect((await ops("unpause", "/")).code).toBe(0);
    await until(async () => (await ops("why", id)).out.includes("waits for the event"));
    expect((await ops("retry-step", id, "book")).code).toBe(0);
    expect((await ops("retry-step", id, "fly")).code).toBe(1);
    const { nodes } = JSON.parse((await ops("nodes", "--json")).out) as { nodes: readonly { name: string }[] };
    const name = nodes[0]?.name ?? "";
    expect((await ops("drain", name)).code).toBe(0);
    expect((await ops("nodes")).out).toContain("drains, answers");
    expect((await ops("undrain", name)).code).toBe(0);
  });

  test("names nodes and owners in short, accepts these names, and keeps the exact ones in JSON", async () => {
    const { ops, send } = await served();
    const id = await send("Go");
    await until(async () => (await ops("why", id)).out.includes("waits for the event"));
    const held = await send("hold");
    await until(async () => (await ops("why", held)).out.includes("executes turn 1"));
    const { nodes } = JSON.parse((await ops("nodes", "--json")).out) as { nodes: readonly { name: string }[] };
    const name = nodes[0]?.name ?? "";
    const short = `${hostname().split(" ", 1)[0]}/${process.pid}/${(JSON.parse(name) as string[])[3]?.slice(0, 4)}`;
    expect((await ops("why", held)).out).toContain(`Node ${short} executes turn 1`);
    expect((await ops("nodes")).out).toContain(`\n${short} `);
    expect((await ops("show", held)).out).toMatch(new RegExp(`\nowner +anonymous\n[^]*\nnode +${short}\n`));
    expect((await ops("list", "--node", short)).out).toMatch(new RegExp(`\n${held} .* ${short} +anonymous\n$`));
    expect((await ops("list", "--owner", "anonymous")).out).toContain(id);
    expect((await ops("list", "--owner", "acme/anonymous")).err).toBe("No tasks.\n");
    const { tasks } = JSON.parse((await ops("list", "--json", "--node", short)).out) as { tasks: readonly object[] };
    expect(tasks).toMatchObject([{ taskId: held, node: name, owner: '[null,"anonymous"]' }]);
    expect(await ops("drain", short)).toMatchObject({
      code: 0,
      out: `Draining node ${short}: it starts no new turns.\n`,
    });
    expect((await ops("drain", name)).err).toContain(`Node ${short} is draining already`);
    expect((await ops("audit")).out).toContain(`  drain  done  ${short}  draining\n`);
    expect((await ops("undrain", short)).code).toBe(0);
    await ops("cancel", held);
  });

  test("reports a missing API and wrong options", async () => {
    const nowhere = await parley(["ops", "counts", "--url", "http://127.0.0.1:1/ops"]);
    expect(nowhere).toMatchObject({ code: 1, out: "" });
    expect(nowhere.err).toContain("no operators' API at http://127.0.0.1:1/ops");
    const server = await startServer(agent);
    onTestFinished(() => server.close({ grace: 0 }));
    for (const path of ["/ops", "/typo", ""]) {
      const { code, out, err } = await parley(["ops", "list", "--url", server.url + path]);
      const why = `no operators' API at ${server.url}${path}: HTTP ${path === "" ? "200 with another answer" : "404"}.`;
      const hint =
        path === "/ops"
          ? "Start the server with the option operators, or pass --url, --store or --database-url"
          : `Pass --url with its path, such as ${server.url}/ops`;
      expect({ code, out, err }).toEqual({
        code: 1,
        out: "",
        err: `parley: ${why} ${hint}\n`,
      });
    }
    expect((await parley(["ops", "counts", "--url", "ftp://x"])).code).toBe(2);
    expect((await parley(["ops", "list", "--limit", "0"])).code).toBe(2);
  });
});

describe("parley ops on a file", () => {
  test("lists and resumes suspended tasks, whose deaths are counted from 0, once", async () => {
    const { path, store } = await suspended("one");
    const ops = (...args: readonly string[]) => parley(["ops", ...args, "--store", path]);
    expect((await ops("list", "--suspended")).out).toMatch(/\none +suspended /);
    const quoted = `'${path.replaceAll("'", String.raw`'\''`)}'`;
    expect((await ops("why", "one")).out).toMatch(
      /\(3 deaths\)\n {2}since 1970-01-01T00:00:00\.001Z \(\d+ d\)\n {2}\$ parley ops resume one --store \S+/,
    );
    expect((await ops("why", "one")).out).toContain(`resume one --store ${quoted}\n`);
    expect(await ops("resume", "one")).toMatchObject({ code: 0, out: "Resumed.\n", err: "" });
    expect((await store.head({ agent: "/" }, "one"))?.run).toEqual({ turn: 1, attempt: 4, input: 1 });
    expect(await ops("list", "--suspended")).toMatchObject({ out: "", err: "No tasks.\n" });
    const again = await ops("resume", "one");
    expect(again.err).toContain("neither suspended nor failed");
    expect(JSON.parse((await ops("audit", "--json", "--limit", "1")).out)).toMatchObject({
      by: "ada",
      outcome: "refused",
    });
    expect(await ops("cancel", "one")).toMatchObject({ code: 0 });
    expect((await store.head({ agent: "/" }, "one"))?.state).toBe("TASK_STATE_CANCELED");
  });

  test("lists the candidates of a short name that several nodes or owners have", async () => {
    const { path, store } = await suspended("of-ada", "/", '["acme","ada"]');
    const ops = (...args: readonly string[]) => parley(["ops", ...args, "--store", path]);
    const nodes = [1, 2].map((start) => JSON.stringify(["web boot pid:[1]", 7, start, `abcd-${start}`, "group"]));
    for (const node of nodes) expect((await ops("drain", node)).code).toBe(0);
    expect(await ops("undrain", "web/7/abcd")).toEqual({
      code: 1,
      out: "",
      err: `parley: web/7/abcd is the short name of 2 nodes. Pass one of\n  '${nodes[0]}'\n  '${nodes[1]}'\n`,
    });
    expect((await ops("undrain", nodes[0] ?? "")).code).toBe(0);
    expect(await ops("undrain", "web/7/abcd")).toMatchObject({ code: 0 });
    expect((await ops("list", "--owner", "acme/ada")).out).toMatch(/\nof-ada .* acme\/ada\n$/);
    await store.append([taskOf("of-another", "/", '[null,"acme/ada"]')]);
    const { err } = await ops("list", "--owner", "acme/ada");
    expect(err).toContain('short name of 2 owners. Pass one of\n  \'[null,"acme/ada"]\'\n  \'["acme","ada"]\'\n');
    expect((await ops("list", "--owner", '["acme","ada"]')).out).not.toContain("of-another");
    await store.append([taskOf("of-a-name", "/", "acme/ada")]);
    expect((await ops("list", "--owner", "acme/ada")).out).toMatch(/\nof-a-name .* acme\/ada\n$/);
  });

  test("refuses a task that is unknown or another agent's, and a file that is not a database", async () => {
    const { path, store } = await suspended("two", "/planner");
    const refused = await parley(["ops", "resume", "two", "--agent", "/", "--store", path]);
    expect(refused).toMatchObject({ code: 1, out: "", err: expect.stringContaining("agent / has no task two") });
    expect((await store.head({ agent: "/planner" }, "two"))?.run?.suspended).toBe(true);
    const missing = join(folder, "missing.db");
    const gone = await parley(["ops", "list", "--store", missing]);
    expect(gone).toMatchObject({ code: 1, out: "", err: expect.stringContaining("missing.db") });
    await expect(stat(missing)).rejects.toThrow("ENOENT");
    const text = join(folder, "text.db");
    await writeFile(text, "This is not a database. ".repeat(100));
    expect(await parley(["ops", "list", "--store", text])).toMatchObject({ code: 1, out: "" });
    expect((await parley(["ops", "resume", "--store", path])).code).toBe(2);
  });
});

describe("the agent of a task", () => {
  test("need not be named if only one agent has it, for each command", async () => {
    const { path, store } = await suspended("two", "/planner");
    await store.append([taskOf("other", "/", "o")]);
    const ops = (...args: readonly string[]) => parley(["ops", ...args, "--store", path]);
    expect((await ops("why", "two")).out).toContain("resume two --agent /planner --store");
    expect((await ops("show", "two")).out).toMatch(/^task +two\nagent +\/planner\n/);
    expect((await ops("log", "two")).out).toMatch(/^ENTRY .*\n1 /);
    expect((await ops("resume", "two")).out).toBe("Resumed.\n");
    expect((await ops("cancel", "two")).out).toBe("Canceled.\n");
    const { stdout } = { stdout: (await ops("audit", "--json")).out.trim().split("\n") };
    expect(stdout.map((line) => (JSON.parse(line) as { agent: string }).agent)).toEqual(["/planner", "/planner"]);
  });

  test("is in the error if several agents have the task, or the named one does not, with the commands to run", async () => {
    const { path, store } = await suspended("it's", "/a");
    await store.append([taskOf("it's", "/b c", "o")]);
    const at = `--store '${path.replaceAll("'", String.raw`'\''`)}'`;
    const ops = (...args: readonly string[]) => parley(["ops", ...args, "--store", path]);
    const runs = (command: string, more = "") =>
      ["/a", "'/b c'"]
        .map(
          (agent) => `\n  $ parley ops ${command.replace("TASK", String.raw`'it'\''s'`)} --agent ${agent}${more} ${at}`,
        )
        .join("");
    const several = "parley: several agents have a task it's. Run";
    expect(await ops("why", "it's")).toEqual({ code: 1, out: "", err: `${several}${runs("why TASK")}\n` });
    const act = await ops("retry-step", "it's", "pay", "--seq", "7", "--reason", "a b");
    expect(act.err).toBe(`${several}${runs("retry-step TASK pay", " --seq 7 --reason 'a b'")}\n`);
    const wrong = await ops("cancel", "it's", "--agent", "/typo");
    expect(wrong.err).toBe(`parley: agent /typo has no task it's. Run${runs("cancel TASK")}\n`);
    expect((await ops("show", "none")).err).toBe("parley: no agent has a task none\n");
    // One of these commands works.
    expect((await ops("why", "it's", "--agent", "/b c")).out).toContain("resume 'it'\\''s' --agent '/b c'");
  });

  test("of a drained node is known, or the answer says that nobody checked the name", async () => {
    const { ops } = await served();
    expect((await ops("drain", "typo")).out).toBe(
      "Draining node typo: it starts no new turns. The nodes are not known here, so nobody checked the name: parley ops undrain withdraws the order.\n",
    );
    expect((await ops("drain", "typo")).code).toBe(1);
  });
});

describe("parley top", () => {
  test("prints one view, as text on a terminal and as a line of JSON elsewhere", async () => {
    const { at } = await served();
    const { out } = await parley(["top", "--once", ...at]);
    expect(JSON.parse(out)).toMatchObject({ counts: { queue: { count: 0 } }, nodes: [{ self: true }] });
    const { io, out: drawn } = recordedIo({ terminal: true });
    expect(await run(["top", "--once", ...at], io)).toBe(0);
    expect(drawn()).toMatch(/^parley top {2}2.*\n\nNODE/);
    expect(drawn()).not.toContain("\u001b[2J");
  });

  test("draws the view again until it is interrupted", async () => {
    const { at } = await served();
    const { io, out, interrupt } = recordedIo({ terminal: true });
    const running = run(["top", "--interval", "1", ...at], io);
    await until(async () => out().split("\u001b[2J").length > 2);
    interrupt("SIGINT");
    expect(await running).toBe(0);
    expect(out()).toMatch(/ended 0\/s/);
  });
});

describe("every example of the help runs", () => {
  const some = examples.filter(({ command }) => /^(?:ops|top)\b/.test(command));

  test.each(some)("$line", async ({ command, line }) => {
    const { ops, send, at } = await served();
    const id = await send(/ops (?:resume|show)/.test(line) ? "fail" : "Go");
    await until(async () => /failed|waits for the event/.test((await ops("why", id)).out));
    const { task, waits } = JSON.parse((await ops("show", id, "--json")).out) as {
      readonly task: { readonly seq: number };
      readonly waits: readonly { readonly wait?: string }[];
    };
    const { nodes } = JSON.parse((await ops("nodes", "--json")).out) as { readonly nodes: readonly { name: string }[] };
    const name = nodes[0]?.name ?? "";
    if (command.endsWith("unpause")) await ops("pause", "/");
    if (command.endsWith("undrain")) await ops("drain", name);
    const { path } = await suspended(id);
    const isDirect = line.includes("--store");
    const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, ...kinds]) => kinds.join("")).slice(1);
    const named: Readonly<Record<string, string>> = {
      TASK: id,
      WAIT: waits[0]?.wait ?? "",
      NODE: name,
      pay: "book",
      "7": `${task.seq}`,
      "/planner": "/",
      ".parley/parley.db": path,
    };
    const args = words.map((word) => named[word] ?? word);
    const once = command === "top" ? ["--once"] : [];
    expect(await parley([...args, ...(isDirect ? [] : at), ...once])).toMatchObject({ code: 0 });
  });
});
