import { setTimeout as sleep } from "node:timers/promises";
import { defineAgent, serve, silentLogger, type Turn } from "@parley/node";
import { postgresStore } from "@parley/sql/postgres";

// A node of a cluster: node worker.ts URL SCHEMA [OPTIONS]. Prints a line of JSON for each event; the first has the node's URL. OPTIONS are those
// of `serve()` as JSON. The nodes do not know that they share a machine, so they behave as if they ran on several.

const [database = "", schema = "", json = "{}"] = process.argv.slice(2);

/** Prints with one write, so that a line is complete even if the process dies immediately afterwards. */
const say = (event: string, fields: Record<string, unknown> = {}): void => {
  process.stdout.write(`${JSON.stringify({ event, ...fields })}\n`);
};

const card = { description: "A test", version: "1.0.0", skills: [] };

/** The action of a turn's first attempt, by command, until the turn is aborted. */
const first: Readonly<Record<string, (turn: Turn) => Promise<void>>> = {
  async hold({ signal }) {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  },
  /** Waits until the process has been paused for a while, and then tries a side effect. */
  async stopped(turn) {
    for (let last = Date.now(); Date.now() - last < 1_000; await sleep(5)) last = Date.now();
    say("continued", { aborted: turn.signal.aborted });
    await turn.step("late", () => say("late step"));
  },
  /** Kills the process once the task is stored and the caller has the response. */
  async poison() {
    await sleep(300);
    process.kill(process.pid, "SIGKILL");
  },
  /** Blocks the event loop. */
  async block() {
    const until = Date.now() + 2_000;
    while (Date.now() < until);
    say("unblocked");
  },
};

async function* work(turn: Turn) {
  const { taskId, attempt } = turn;
  const [what = "", ...rest] = turn.text.split(" ");
  turn.signal.addEventListener("abort", () => {
    say("aborted", { taskId, kind: (turn.signal.reason as { kind?: string }).kind });
  });
  say("begun", { taskId, attempt, text: turn.text });
  if (what === "poison" && attempt > 1) process.kill(process.pid, "SIGKILL");
  yield turn.working(`attempt ${attempt}`);
  await turn.flush();
  if (what === "wait") await sleep(Number(rest[0]));
  if (attempt === 1) {
    say("working", { taskId });
    try {
      await first[what]?.(turn);
    } catch (error) {
      say("refused", { taskId, message: String(error) });
    }
    yield turn.artifact({ artifactId: "1", parts: [{ text: "of the first attempt" }] });
  }
  const result = await turn.step("end", () => attempt);
  yield turn.artifact({ artifactId: `end of ${result}`, parts: [{ text: "done" }] });
}

const store = await postgresStore({ database, schema });
const server = await serve(
  [
    { path: "/", agent: defineAgent({ ...card, name: "Worker", resumable: true, onMessage: work }) },
    { path: "/plain", agent: defineAgent({ ...card, name: "Plain", onMessage: work }) },
  ],
  { port: 0, store, logger: silentLogger, lease: { isGone: () => false }, ...(JSON.parse(json) as object) },
);
say("ready", { url: server.url });
