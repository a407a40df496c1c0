import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { connect, text, type Task } from "@parley/a2a";
import type { SendMessageResponse } from "@parley/a2a/model";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { csvPart, largeCsv } from "./support.ts";

const main = fileURLToPath(new URL("../dist/main.js", import.meta.url));

let folder: string;
const children: ChildProcess[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "analyst-"));
});
afterEach(async () => {
  await Promise.all(children.splice(0).map(kill));
  await rm(folder, { recursive: true, force: true });
});

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

interface Started {
  readonly child: ChildProcess;
  readonly url: string;
  /** Everything that it printed until it was ready. */
  readonly said: string;
}

async function start(port = "0"): Promise<Started> {
  const child = spawn(process.execPath, [main], { cwd: folder, env: { ...process.env, PORT: port } });
  children.push(child);
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    said += chunk.toString();
    const url = /^Data analyst at (http:\S+)\n/m.exec(said)?.[1];
    if (url !== undefined && said.includes("curl")) return { child, url, said };
  }
  throw new Error(`It did not start: ${said}`);
}

const repository = fileURLToPath(new URL("../../..", import.meta.url));
const cli = join(repository, "packages/cli/dist/main.js");

/** The text after the program in the lines that call the command line. */
function cliCommands(text: string): readonly string[] {
  return [...text.matchAll(/^ *node \S*packages\/cli\/dist\/main\.js (.+)$/gm)].map(([, rest = ""]) => rest);
}

async function parley(command: string): Promise<string> {
  const words = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? "");
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [cli, ...words], { cwd: folder });
  return stdout + stderr;
}

describe("the program", { timeout: 120_000 }, () => {
  it("prints its address and what to try next, and that works", async () => {
    const { url, said } = await start();
    expect(said.split("\n").find((line) => !line.startsWith("{"))).toBe(`Data analyst at ${url}`);
    expect(said).not.toContain("npx");
    expect(await readdir(join(folder, ".parley"))).toContain("data-analyst.db");

    const commands = cliCommands(said);
    expect(commands).toHaveLength(3);
    const printed: string[] = [];
    for (const command of commands) printed.push(await parley(command));
    expect(printed.find((text) => text.includes("webhook"))).toMatch(/webhook 1, signature verified[^]*✓ completed/);
    expect(await readdir(join(folder, "charts"))).toEqual(["chart.json", "chart.svg", "profile.json", "profile.md"]);

    const [, target = "", body = ""] = /curl -s (\S+) -H 'Content-Type: application\/json' -d '(.+)'/.exec(said) ?? [];
    const response = await fetch(target, { method: "POST", headers: { "content-type": "application/json" }, body });
    const { message } = (await response.json()) as SendMessageResponse;
    expect(message?.parts[0]?.text).toContain("I read CSV files");
  });

  it("does what its README shows", async () => {
    const { url } = await start();
    const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
    const local = readme
      .replaceAll("http://127.0.0.1:4000", url)
      .replaceAll("node_modules/vega-datasets", join(repository, "node_modules/vega-datasets"));
    const [first = "", second = "", webhooks = ""] = cliCommands(local);
    const context = /context ([\w-]+)/.exec(await parley(first))?.[1] ?? "";
    expect(await parley(second.replace("CONTEXT", context))).toContain("Number of rows by weather");
    expect(await parley(webhooks)).toMatch(/webhook 1, signature verified[^]*✓ completed/);
    const [, target = "", body = ""] =
      /^curl -s (\S+) -H 'Content-Type: application\/json' -d '([^']+)'/m.exec(local) ?? [];
    const response = await fetch(target, { method: "POST", headers: { "content-type": "application/json" }, body });
    const { task } = (await response.json()) as SendMessageResponse;
    expect(task?.artifacts?.map(({ name }) => name)).toEqual(["Profile of table.csv", "Mm by day"]);
  });

  it("names a port that is in use, and an invalid PORT", async () => {
    const { url } = await start();
    await expect(start(new URL(url).port)).rejects.toThrow(/another process uses this port.*PORT=4001 npm start/s);
    await expect(start("http")).rejects.toThrow(/PORT must be a number/);
  });

  it("resumes a lost run after SIGKILL, with artifacts equal to those of an undisturbed one", async () => {
    const parts = [text("chart average level by month"), csvPart("levels.csv", largeCsv(110_000))];
    const first = await start();
    const to = await connect(first.url, { reconnect: false });
    const undisturbed = (await to.sendMessage({ message: { parts } })).task as Task;
    let taskId = "";
    const stream = to.sendStreamingMessage({ message: { parts } });
    const seen = new Set<string>();
    await expect(async () => {
      for await (const event of stream) {
        taskId ||= event.task?.id ?? "";
        const words = event.statusUpdate?.status.message?.parts[0]?.text ?? "";
        seen.add(words);
        if (words.startsWith("Profiling: 20,000")) await kill(first.child);
      }
    }).rejects.toMatchObject({ name: "A2AError" });
    expect(seen).not.toContain("Profiling: 100,000 rows so far.");

    const second = await start();
    const task = await (await connect(second.url)).waitFor(taskId);
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task.artifacts).toEqual(undisturbed.artifacts);
  });
});
