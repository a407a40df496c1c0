import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { connect, type Task } from "@parley/a2a";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { reservePort } from "../../../test/ports.ts";
import { useDatabase } from "../../../test/postgres/database.ts";
import { compiled } from "../../../test/programs.ts";

/** The order desk as a process. DBOS and the store of Parley share a database. */

const database = useDatabase();
const program = compiled(fileURLToPath(new URL("program.ts", import.meta.url)));
const folder = await mkdtemp(join(tmpdir(), "parley-orders-"));
afterAll(() => rm(folder, { recursive: true }));

/** Runs the program, again whenever it has died. `dies`: the line of the shop after which it dies once. */
async function running(name: string, dies: readonly string[] = []) {
  const port = await reservePort();
  const file = join(folder, name);
  let child: ChildProcess | undefined;
  let deaths = 0;
  let over = false;
  async function start(how: readonly string[]): Promise<void> {
    const started = spawn(process.execPath, [program, database().url, String(port), file, ...how], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    child = started;
    started.on("exit", () => {
      if (over) return;
      deaths += 1;
      // A program that cannot start is not retried forever: its clients report it.
      if (deaths < 5) void start([]);
    });
    await Promise.race([once(createInterface(started.stdout), "line"), once(started, "exit")]);
  }
  onTestFinished(async () => {
    over = true;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  await start(dies);
  const lines = async (word: string): Promise<readonly string[]> =>
    (await readFile(file, "utf8")).split("\n").filter((line) => line.startsWith(`${word} `));
  const client = await connect(`http://127.0.0.1:${port}`, { retry: { maxDelay: 500 } });
  return { client, lines, deaths: () => deaths };
}

/** The agent's output, in order. */
const said = ({ history = [] }: Task): readonly (string | undefined)[] =>
  history.filter(({ role }) => role === "ROLE_AGENT").map(({ parts }) => parts[0]?.text);

test.each([
  ["none", "0"],
  ["before", "1"],
  ["after", "2"],
  ["charge", "1"],
  ["after", "4"],
])("buys a lamp, and reports each step once: killed after %s %s", async (word, count) => {
  const { client, lines, deaths } = await running(`${word}-${count}`, [word, count]);
  const conversation = client.conversation();
  const asked = await conversation.send("A lamp");
  expect(asked.task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  const { task } = await conversation.send("Yes, please");
  expect(said(await client.getTask(task!))).toEqual([
    "A lamp is reserved",
    "It costs 6 euros. Shall I buy it?",
    "Paid: r-1",
    "A lamp is on its way",
  ]);
  expect(new Set(await lines("charge"))).toEqual(new Set([`charge ${task?.id}`]));
  expect(deaths()).toBe(word === "none" ? 0 : 1);
});

test("buys nothing for an order that was canceled, or rejected", async () => {
  const { client, lines } = await running("canceled");
  const first = client.conversation();
  const { task } = await first.send("A sofa");
  await client.cancelTask(task!);
  const second = client.conversation();
  await second.send("A carpet");
  const refused = await second.send("No");
  expect(refused.task?.status.state).toBe("TASK_STATE_REJECTED");
  expect(await lines("charge")).toEqual([]);
});
