import { readFileSync, writeFileSync, writeSync } from "node:fs";
import { mcpPool, mcpTools } from "@parley/mcp/tools";
import { defineAgent, serve } from "@parley/node";
import { systemClock } from "@parley/server";
import { sqliteStore } from "@parley/sql/sqlite";

// The server of mcp.test.ts: node agent.ts FILE PORT. FILE.tools has the URL of one MCP server and the script of another. Prints "ready" once it listens.

const [path = "", port] = process.argv.slice(2);

// Each process runs one minute ahead of the previous one, so that the leases of a killed process have expired.
const lives = `${path}.lives`;
const life = Number(readFileSync(lives, "utf8")) + 1;
writeFileSync(lives, String(life));
const clock = { ...systemClock, now: () => Date.now() + life * 60_000 };

const [url = "", script = ""] = readFileSync(`${path}.tools`, "utf8").split("\n");
const pool = mcpPool({
  servers: { remote: { url }, local: { command: process.execPath, args: [script, `${path}.calls`] } },
  policy: { allowLoopback: true },
});

const agent = defineAgent({
  name: "Mechanic",
  description: "Uses tools",
  version: "1.0.0",
  skills: [],
  defaultInputModes: ["text/plain", "application/json"],
  resumable: true,
  async *onMessage(turn) {
    // The first message names the job, which stays the same in each turn.
    const job = await turn.step("job", () => turn.text, { scope: "task" });
    const remote = await mcpTools(turn, pool.server("remote"));
    const local = await mcpTools(turn, pool.server("local"));
    const one = yield* remote.call("one", "act", { job, number: 1 });
    const two = yield* local.call("two", "act", { job, number: 2 });
    const three = yield* remote.call("three", "ask", { job, number: 3 });
    const four = yield* local.call("four", "act", { job, number: 4 });
    yield turn.completed([one, two, three, four].map(({ text }) => text).join(", "));
  },
});

/** The test kills every process, so deaths must not suspend a task. */
const lease = { maxDeaths: 1000, maxAttempts: 1000 };

const store = await sqliteStore({ path });
await serve(agent, { port: Number(port), store, clock, pollInterval: 20, logger: false, lease });
writeSync(1, "ready\n");
