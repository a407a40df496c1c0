import { access, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bearer } from "@parley/a2a/auth";
import type { Server } from "@parley/node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import scripted from "./fixtures/agent.ts";
import { parleyHere } from "./support/in-process.ts";
import { parley, start } from "./support/parley.ts";
import { startServer } from "./support/server.ts";

/** Every command against a server of our own, with the real binary. Setup, and further options of a tested command, run in this process. */

let server: Server;
let url = "";
beforeAll(async () => {
  server = await startServer(scripted);
  url = server.url;
});
afterAll(() => server.close({ grace: 0 }));

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-cli-"));
});
afterEach(() => rm(folder, { recursive: true }));

interface Line {
  readonly task?: { readonly id: string; readonly contextId: string; readonly status: { readonly state: string } };
}

/** All lines of JSON; fails if anything else is among them. */
function jsonLines<T = Line>(text: string): readonly T[] {
  expect(text.endsWith("\n")).toBe(true);
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => JSON.parse(line) as T);
}

/** Starts a task and gives its id. */
async function started(text: string): Promise<{ id: string; contextId: string }> {
  const { out } = await parleyHere(["send", url, text, "--no-wait", "--json"]);
  const [line] = jsonLines(out);
  return line!.task!;
}

describe("parley card", () => {
  test("shows what the agent is, what it can do, and its addresses", async () => {
    const { code, out, err } = await parley(["card", url]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain("Scripted 1.2.3\nDoes what it is told.\n");
    expect(out).toMatch(/^interfaces +JSONRPC 1\.0 {2}http:/m);
    expect(out).toMatch(/^ +HTTP\+JSON 1\.0 {2}http:/m);
    expect(out).toMatch(/^capabilities +streaming$/m);
    expect(out).toContain("  Obey  [test, script]\n    Follows the script.\n    > stream\n    > ask\n");
  });

  test("--json prints the card itself, in the form of 1.0", async () => {
    const { code, out, err } = await parleyHere(["card", url, "--json"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const headers = { "A2A-Version": "1.0" };
    expect(jsonLines(out)).toEqual([
      await (await fetch(new URL("/.well-known/agent-card.json", url), { headers })).json(),
    ]);
  });
});

describe.each(["JSONRPC", "HTTP+JSON", "GRPC"])("parley send over %s", (binding) => {
  const words = (...args: string[]) => ["send", url, ...args, "--binding", binding];
  const send = (...args: string[]) => parleyHere(words(...args), { cwd: folder });

  test("prints a plain reply", async () => {
    expect(await send("hello")).toEqual({ code: 0, out: "You said: hello\n", err: "" });
  });

  test("prints growing content to standard output, and progress to standard error", async () => {
    const { code, out, err } = await parley(words("stream"), { cwd: folder });
    expect({ code, out }).toEqual({
      code: 0,
      out: 'Roses are red,\nviolets are blue.\n{\n  "petals": 5\n}\n',
    });
    expect(err).toMatch(/^task \S+, context \S+\n/);
    expect(err).toMatch(/● working {2}Thinking\n◆ poem\n◆ facts\n✓ completed\n$/);
  });

  test("--json prints each event on its own line", async () => {
    const { code, out, err } = await send("stream", "--json");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const kinds = jsonLines<object>(out).map((line) => Object.keys(line).join());
    expect(kinds[0]).toBe("task");
    expect(kinds.filter((kind) => kind === "artifactUpdate")).toHaveLength(4);
    expect(kinds.at(-1)).toBe("statusUpdate");
  });

  test("--no-stream prints one answer at the end", async () => {
    const { code, out } = await send("stream", "--no-stream", "--json");
    expect(code).toBe(0);
    expect(jsonLines(out)).toMatchObject([{ task: { status: { state: "TASK_STATE_COMPLETED" } } }]);
  });
});

describe("parley send", () => {
  const send = (...args: string[]) => parleyHere(["send", url, ...args], { cwd: folder });

  test("takes the text from standard input", async () => {
    const { out } = await parley(["send", url, "-"], { stdin: "Grüße\n" });
    expect(out).toBe("You said: Grüße\n");
  });

  test("sends files with their names and types", async () => {
    await writeFile(join(folder, "a.csv"), "x,y\n1,2\n");
    const { code, out } = await send("parts", "--file", "a.csv", "--file", "https://example.com/b.svg");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual([
      { text: "parts" },
      { raw: btoa("x,y\n1,2\n"), filename: "a.csv", mediaType: "text/csv" },
      { url: "https://example.com/b.svg", filename: "b.svg", mediaType: "image/svg+xml" },
    ]);
  });

  test("says which media types it accepts", async () => {
    expect((await send("modes", "--accept", "text/plain, image/png")).out).toBe("text/plain image/png\n");
  });

  test.each([
    ["fail", "✗ failed: It broke."],
    ["reject", "✗ rejected: Not today."],
  ])("exits with 1 when the task does (%s), also with --json", async (text, reason) => {
    const { code, out, err } = await parley(["send", url, text], { cwd: folder });
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain(reason);
    expect(await send(text, "--json")).toMatchObject({ code: 1, err: "" });
  });

  test("prints a question of the agent with the command that answers it, and that command works", async () => {
    const asked = await send("ask");
    expect(asked).toMatchObject({ code: 0, out: "A draft.\nWhat shall I say?\n" });
    const [, command = ""] = /\n {2}parley (send .*) "your answer"\n$/.exec(asked.err) ?? [];
    const answered = await parleyHere([...command.split(" "), "Hello"]);
    expect(answered).toMatchObject({ code: 0, out: "You said Hello.\n" });
  });

  test("a question with --json keeps the command on standard error", async () => {
    const { code, out, err } = await send("ask", "--json");
    expect(code).toBe(0);
    expect(jsonLines(out).at(-1)).toMatchObject({ statusUpdate: { status: { state: "TASK_STATE_INPUT_REQUIRED" } } });
    expect(err).toMatch(/^The agent is waiting for your answer:\n {2}parley send /);
  });

  test("continues the given conversation", async () => {
    const { contextId } = await started("stream");
    const { out } = await send("stream", "--context", contextId, "--json");
    expect(jsonLines(out)[0]).toMatchObject({ task: { contextId } });
  });

  test("--no-wait only starts the task, and says how to return to it", async () => {
    const { code, err } = await send("hang", "--no-wait");
    expect(code).toBe(0);
    const [, id = ""] = /parley watch \S+ (\S+)\n {2}parley cancel /.exec(err) ?? [];
    expect((await parleyHere(["cancel", url, id])).code).toBe(0);
  });

  test("an unknown task is the agent's error: 1", async () => {
    const { code, out, err } = await send("hello", "--task", "no-such-task");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^parley: .*\(TaskNotFound\)\n$/);
  });

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("%s leaves the task running and says how to return to it", async (signal, code) => {
    const running = start(["send", url, "hang"]);
    await running.until("err", /Hanging/);
    running.child.kill(signal);
    const { code: ended, err } = await running.done;
    expect(ended).toBe(code);
    const [, id = ""] = /parley watch \S+ (\S+)\n {2}parley cancel /.exec(err) ?? [];
    const { out } = await parleyHere(["task", url, id, "--json"]);
    expect(JSON.parse(out)).toMatchObject({ status: { state: "TASK_STATE_WORKING" } });
    await parleyHere(["cancel", url, id]);
  });

  test("a reader that disconnects ends it silently", async () => {
    const running = start(["send", url, "hang", "--json"]);
    await running.until("out", /Hanging/);
    const [line] = jsonLines((await running.until("out", /^.*\n/))[0]);
    running.child.stdout.destroy();
    await parleyHere(["cancel", url, line!.task!.id]);
    const { code, err } = await running.done;
    expect({ code, err }).toEqual({ code: 0, err: "" });
  });
});

describe("artifacts on disk", () => {
  const out = () => join(folder, "out");

  test("stay in their folder under safe names, and are never overwritten", async () => {
    const { code, err } = await parley(["send", url, "files", "--out", "out"], { cwd: folder });
    expect(code).toBe(0);
    expect(err).toContain("saved out/escape.svg (image/svg+xml, 5 B)\n");
    expect((await readdir(out())).sort()).toEqual(["escape-2.svg", "escape.svg", "loot.json", "loot.png"]);
    expect(await readdir(folder)).toEqual(["out"]);
    expect(await readFile(join(out(), "escape.svg"), "utf8")).toBe("bytes");
    await expect(access(join(folder, "..", "escape.svg"))).rejects.toThrow("ENOENT");
  });

  test("of a plain reply are its files", async () => {
    await writeFile(join(folder, "a.csv"), "x\n");
    await parleyHere(["send", url, "parts", "--file", "a.csv", "--out", "out"], { cwd: folder });
    expect(await readdir(out())).toEqual(["reply.json"]);
  });

  test("of a task that is read or watched later, too", async () => {
    const { id } = await started("stream");
    expect(await parleyHere(["watch", url, id, "--out", "out"], { cwd: folder })).toMatchObject({ code: 0 });
    expect(await readFile(join(out(), "poem.txt"), "utf8")).toBe("Roses are red,\nviolets are blue.");
    expect(await parleyHere(["task", url, id, "--out", "out"], { cwd: folder })).toMatchObject({ code: 0 });
    expect((await readdir(out())).sort()).toEqual(["facts-2.json", "facts.json", "poem-2.txt", "poem.txt"]);
  });

  test("of an earlier turn are not saved again", async () => {
    const asked = await parleyHere(["send", url, "ask"]);
    const [, id = ""] = /--task (\S+)/.exec(asked.err) ?? [];
    await parleyHere(["send", url, "Hello", "--task", id, "--out", "out"], { cwd: folder });
    expect(await readdir(out())).toEqual(["answer.txt"]);
  });
});

describe("parley watch, task, tasks, cancel", () => {
  test("a task is watched until it ends, and its end sets the exit code", async () => {
    const { id } = await started("hang");
    const watching = start(["watch", url, id]);
    await watching.until("err", /Hanging/);
    const canceled = await parley(["cancel", url, id, "--json"]);
    expect(canceled.code).toBe(0);
    expect(JSON.parse(canceled.out)).toMatchObject({ id, status: { state: "TASK_STATE_CANCELED" } });
    const { code, err } = await watching.done;
    expect(code).toBe(1);
    expect(err).toContain("✗ canceled");
  });

  test("a task that has ended is shown at once", async () => {
    const { id } = await started("stream");
    await parleyHere(["watch", url, id]);
    const { code, out } = await parleyHere(["watch", url, id]);
    expect(code).toBe(0);
    expect(out).toContain("violets are blue.");
  });

  test("a missing authorization names the next step", async () => {
    const { id } = await started("auth");
    const watching = start(["watch", url, id]);
    await watching.until("err", /waiting for an authorization[^]*parley watch/);
    await parleyHere(["cancel", url, id]);
    expect((await watching.done).out).toContain("Sign in at https://example.com");
  });

  test("an authorization happens at a link, whose host is shown, and the task continues", async () => {
    const { id } = await started("authorize");
    const watching = start(["watch", url, id]);
    const [, link = ""] = await watching.until(
      "err",
      /Authorize it at 127\.0\.0\.1:\d+, until \S+Z:\n {2}(http:\S+)\n[^]*parley watch/,
    );
    const body = new URLSearchParams({ request: new URL(link).searchParams.get("request") ?? "", decision: "approve" });
    expect((await fetch(link, { method: "POST", body })).status).toBe(200);
    const { code, out } = await watching.done;
    expect(code).toBe(0);
    expect(out).toContain("Pay 20 EUR?");
    expect(out).toContain("Paid.");
    expect(out).not.toContain("urn:parley");
  });

  test("a task is shown with its messages and artifacts, with as much history as requested", async () => {
    const { id, contextId } = await started("stream");
    await parleyHere(["watch", url, id]);
    const { code, out, err } = await parley(["task", url, id]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain(`task     ${id}\ncontext  ${contextId}\nstate    completed\n`);
    expect(out).toContain("\nuser:\n  stream\n");
    expect(out).toContain("\n◆ poem\n  Roses are red,\n  violets are blue.\n");
    const short = await parleyHere(["task", url, id, "--history", "0", "--json"]);
    expect(JSON.parse(short.out)).not.toHaveProperty("history");
  });

  test("a task that does not exist, or cannot be canceled, is an error: 1", async () => {
    const { id } = await started("stream");
    await parleyHere(["watch", url, id]);
    expect(await parleyHere(["task", url, "nothing"])).toMatchObject({ code: 1, out: "" });
    expect(await parleyHere(["watch", url, "nothing"])).toMatchObject({ code: 1, out: "" });
    expect(await parleyHere(["cancel", url, id])).toMatchObject({ code: 1, out: "" });
  });

  test("tasks are listed page by page, filtered, and continue where a list ended", async () => {
    const own = await startServer(scripted);
    try {
      for (const text of ["stream", "stream", "ask", "fail"]) await parleyHere(["send", own.url, text]);
      const all = await parleyHere(["tasks", own.url, "--json"]);
      const { tasks } = JSON.parse(all.out) as { tasks: { id: string; contextId: string }[] };
      expect(JSON.parse(all.out)).toMatchObject({ totalSize: 4, nextPageToken: "" });
      const table = (await parley(["tasks", own.url])).out.trimEnd().split("\n");
      expect(table[0]).toMatch(/^TASK +STATE +SINCE +CONTEXT$/);
      expect(table.slice(1).map((row) => row.split(/ +/)[0])).toEqual(tasks.map((task) => task.id));

      const first = await parleyHere(["tasks", own.url, "--limit", "3"]);
      expect(first.err).toMatch(/^3 of 4; more with --page \S+\n$/);
      const [, page = ""] = /--page (\S+)/.exec(first.err) ?? [];
      const rest = await parleyHere(["tasks", own.url, "--page", page.replaceAll("'", ""), "--json"]);
      expect(JSON.parse(rest.out)).toMatchObject({ tasks: [{ id: tasks[3]!.id }], nextPageToken: "" });

      const state = await parleyHere(["tasks", own.url, "--state", "input-required", "--json"]);
      expect(JSON.parse(state.out)).toMatchObject({ totalSize: 1 });
      const context = await parleyHere(["tasks", own.url, "--context", tasks[0]!.contextId, "--json"]);
      expect(JSON.parse(context.out)).toMatchObject({ totalSize: 1, tasks: [{ id: tasks[0]!.id }] });
      const recent = await parleyHere(["tasks", own.url, "--since", "1h", "--json"]);
      expect(JSON.parse(recent.out)).toMatchObject({ totalSize: 4 });
      expect(await parleyHere(["tasks", own.url, "--since", "2100-01-01T00:00Z"])).toEqual({
        code: 0,
        out: "",
        err: "No tasks.\n",
      });
    } finally {
      await own.close({ grace: 0 });
    }
  });
});

describe("an agent's text cannot control the terminal", () => {
  test.each([{}, { FORCE_COLOR: "1" }])("with the environment %j", async (env) => {
    const { code, out, err } = await parley(["send", url, "ansi"], { env });
    expect(code).toBe(0);
    expect(out).toBe('␛[31mred␛[0m <U+009B>2J\n{\n  "key": "\\u001b[1m"\n}\ndone␍over\n');
    // eslint-disable-next-line no-control-regex
    expect(err.replace(/\u001b\[\d+m/g, "")).not.toMatch(/[\u001b\u0007\u009b]/);
    expect(err).toContain("␛]0;owned␇");
    expect(err.includes("\u001b[")).toBe("FORCE_COLOR" in env);
  });

  test("not even with --json, which prints the values unchanged", async () => {
    const { out } = await parleyHere(["send", url, "ansi", "--json"]);
    // eslint-disable-next-line no-control-regex
    expect(out).not.toMatch(/[\u001b\u0007\u009b]/);
    expect(JSON.stringify(jsonLines(out))).toContain("\u009b2J");
  });
});

describe("an agent behind a token", () => {
  let guarded: Server;
  beforeAll(async () => {
    guarded = await startServer(scripted, { authenticator: bearer({ s3cret: { subject: "alice" } }) });
  });
  afterAll(() => guarded.close({ grace: 0 }));

  test("is called with --token, or PARLEY_TOKEN", async () => {
    expect(await parleyHere(["send", guarded.url, "whoami", "--token", "s3cret"])).toMatchObject({ out: "alice\n" });
    const env = { PARLEY_TOKEN: "s3cret" };
    expect(await parley(["send", guarded.url, "whoami"], { env })).toMatchObject({ code: 0, out: "alice\n" });
    const header = ["--header", "Authorization: Bearer s3cret"];
    expect(await parleyHere(["send", guarded.url, "whoami", ...header])).toMatchObject({ code: 0, out: "alice\n" });
  });

  test("without a token, asks for one", async () => {
    const { code, out, err } = await parleyHere(["send", guarded.url, "whoami"]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain("pass --token TOKEN or set PARLEY_TOKEN");
  });

  test("never has its token in a suggested command", async () => {
    const { err } = await parleyHere(["send", guarded.url, "ask", "--token", "s3cret"]);
    expect(err).toContain('--token "$PARLEY_TOKEN"');
    expect(err).not.toContain("s3cret");
  });
});
