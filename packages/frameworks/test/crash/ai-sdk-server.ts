import { appendFileSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { fromAISDK } from "@parley/frameworks/ai-sdk";
import { serve } from "@parley/node";
import { systemClock } from "@parley/server";
import { sqliteStore } from "@parley/sql/sqlite";
import { calls, says, Scripted, type ModelCall, type ModelPart } from "../scripted.ts";
import { versions } from "../versions.ts";

// The server of ai-sdk.test.ts: node ai-sdk-server.ts FILE PORT. Agents of both versions look something up, and pay once that is approved.
// Each call of a model or a tool is a line of FILE.calls: the job, and the number of the call in the script. Prints "ready" once it listens.

const [path = "", port] = process.argv.slice(2);

// Each life begins a minute later than the one before, so that the leases of a killed process are over.
const lives = `${path}.lives`;
const life = Number(readFileSync(lives, "utf8")) + 1;
writeFileSync(lives, String(life));
const clock = { ...systemClock, now: () => Date.now() + life * 60_000 };

function called(job: string, number: number): void {
  appendFileSync(`${path}.calls`, `${job} ${number}\n`);
}

/** The script: a model's answer for each result that the prompt has. */
const script = (job: string): readonly (readonly ModelPart[])[] => [
  [...says("Loo", "king ", "it ", "up.").slice(0, -1), ...calls([`look ${job}`, "look", { job }])],
  [...says("I ", "would ", "pay.").slice(0, -1), ...calls([`pay ${job}`, "pay", { job }])],
  says("I ", "have ", "paid ", "it."),
];

/** What a job is told that its reader follows through kills: one step after the other, until it has seen as many lives as its name says. */
function step(job: string, done: number): readonly ModelPart[] {
  const said = says("Step ", `${done} `, "is ", "done.");
  if (life > Number(/\d+$/.exec(job)?.[0])) return said;
  return [...said.slice(0, -1), ...calls([`look ${done}`, "look", { job, number: done * 2 + 2 }])];
}

async function* model({ prompt }: ModelCall): AsyncGenerator<ModelPart> {
  const job = /job-[\w-]+/.exec(JSON.stringify(prompt))?.[0] ?? "";
  const results = prompt.filter(({ role }) => role === "tool").flatMap(({ content }) => content as ModelPart[]);
  const done = results.filter(({ type }) => type === "tool-result").length;
  called(job, done * 2 + 1);
  for (const part of job.startsWith("job-read") ? step(job, done) : (script(job)[done] ?? [])) {
    await setTimeout(15);
    yield part;
  }
}

const tool =
  (usual: number) =>
  async ({ job, number = usual }: { job: string; number?: number }): Promise<{ done: string }> => {
    called(job, number);
    await setTimeout(15);
    return { done: job };
  };

/** Every process is killed from outside: no death suspends a task. */
const lease = { maxDeaths: 1000, maxAttempts: 1000 };

const inputSchema = { type: "object", properties: { job: { type: "string" } } };
const card = { name: "Payer", description: "Pays", version: "1.0.0", skills: [] };

await serve(
  versions.map(({ name, ToolLoopAgent, jsonSchema, tool: toolOf, stepCountIs }) => {
    const schema = jsonSchema(inputSchema);
    const tools = {
      look: toolOf({ inputSchema: schema, execute: tool(2) }),
      pay: toolOf({ inputSchema: schema, needsApproval: true, execute: tool(4) }),
    };
    const agent = new ToolLoopAgent({ model: new Scripted(model), tools, stopWhen: stepCountIs(500) });
    return { path: `/${name.replace(" ", "-")}`, agent: fromAISDK(agent, card) };
  }),
  { port: Number(port), store: await sqliteStore({ path }), clock, pollInterval: 20, logger: false, lease },
);
writeSync(1, "ready\n");
