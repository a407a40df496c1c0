import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { connect } from "@parley/a2a";
import { expect, onTestFinished, test } from "vitest";
import { compiled } from "../programs.ts";
import { diskFolder } from "../temporary.ts";

/** With `processes`, the first process sees how the others die, so a kill is not a crash of the task (docs/decisions/suspended-tasks.md). */

const script = compiled(fileURLToPath(new URL("members-server.ts", import.meta.url)));

async function members() {
  const folder = await mkdtemp(join(diskFolder(), "parley-members-"));
  const path = join(folder, "tasks.db");
  const program = spawn(process.execPath, [script, path], { stdio: ["ignore", "pipe", "inherit"] });
  const lines: string[] = [];
  createInterface({ input: program.stdout }).on("line", (line) => lines.push(line));
  onTestFinished(async () => {
    program.kill("SIGTERM");
    const late = setTimeout(() => program.kill("SIGKILL"), 20_000);
    if (program.exitCode === null && program.signalCode === null) await once(program, "exit");
    clearTimeout(late);
    await rm(folder, { recursive: true });
  });
  const find = (pattern: RegExp): readonly string[] | null =>
    lines.map((line) => pattern.exec(line)).find((match) => match !== null) ?? null;
  await expect.poll(() => find(/^url (.*)$/)).not.toBeNull();
  const client = await connect(find(/^url (.*)$/)?.[1] ?? "");
  const send = async (text: string): Promise<string> =>
    (await client.sendMessage({ message: text, configuration: { returnImmediately: true } })).task?.id ?? "";
  const stateOf = async (id: string): Promise<string> => (await client.getTask(id)).status.state;
  return { lines, find, send, stateOf, finish: () => writeFile(`${path}.done`, "") };
}

test("a task whose processes are killed from outside, one after the other, is not suspended", async () => {
  const { lines, find, send, stateOf, finish } = await members();
  const id = await send("Go");
  for (let attempt = 1; attempt <= 6; attempt += 1) {
    const step = new RegExp(`^in step ${attempt} (\\d+)$`);
    await expect.poll(() => lines).toContainEqual(expect.stringMatching(step));
    if (attempt < 6) process.kill(Number(find(step)?.[1]), "SIGKILL");
  }
  await finish();
  await expect.poll(() => stateOf(id)).toBe("TASK_STATE_COMPLETED");
  expect(lines.filter((line) => line.startsWith("Task suspended"))).toEqual([]);
});

test("one that ends its process itself is suspended", async () => {
  const { lines, send, stateOf } = await members();
  const id = await send("crash");
  const suspended = (): readonly string[] => lines.filter((line) => line.startsWith("Task suspended"));
  await expect.poll(suspended).toHaveLength(1);
  expect(suspended()[0]).toContain('"option":"lease.maxDeaths"');
  expect(suspended()[0]).toContain(`parley ops resume ${id}`);
  expect(lines.filter((line) => line.startsWith("in step")).length).toBeLessThanOrEqual(4);
  expect(await stateOf(id)).toMatch(/SUBMITTED|WORKING/);
});
