import { join } from "node:path";
import { text } from "@parley/a2a";
import { connect } from "@parley/a2a/client";
import { expect, it, onTestFinished } from "vitest";
import { Program } from "./program.ts";

/** The examples of the guides as the programs that `npm start -- NAME` runs, with SQLite on disk. Their processes are killed with SIGKILL. */
async function run(name: string, environment: Readonly<Record<string, string>> = {}): Promise<Program> {
  const program = await Program.in(join(import.meta.dirname, "../../examples", name, "main.ts"), environment);
  onTestFinished(() => program.end());
  return program;
}

it("helsinki: books each part once, although its process is killed while two of them are booked", async () => {
  const program = await run("helsinki");
  const client = await connect(program.url);
  const { task: flight } = await client.sendMessage("Book a flight to Helsinki.");
  await program.kill();
  // The two wait so long for their bookings that the process is killed before they end.
  const slow = { PAUSE: "600000" };
  await program.start(slow);
  const { id = "", contextId = "" } = flight ?? {};
  const begin = (request: string) =>
    client.sendMessage({
      message: { contextId, referenceTaskIds: [id], parts: [text(request)] },
      configuration: { returnImmediately: true },
    });
  const begun = await Promise.all(["Book a hotel.", "Book snowmobiling."].map(begin));
  const working = async () => (await client.listTasks({ contextId, status: "TASK_STATE_WORKING" })).tasks.length;
  await expect.poll(working).toBe(2);
  await program.kill();
  await program.start();
  const tasks = await Promise.all(begun.map(({ task }) => client.waitFor(task!)));
  for (const [at, name] of ["hotel", "snowmobiling"].entries()) {
    expect(tasks[at]?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(tasks[at]?.artifacts).toMatchObject([{ name, parts: [{}, { data: { on: id } }] }]);
  }
  expect((await client.listTasks({ contextId })).tasks).toHaveLength(3);
});
