import { data, defineAgent, text, type Agent, type DelegateClient, type JsonObject } from "@parley/node";
import type { Client as Tools, Tool } from "@modelcontextprotocol/client";
import { Job, Order, Stock } from "./job.ts";
import { sentences } from "./words.ts";

/** A call of a tool that is over. */
export interface Done {
  name: string;
  arguments: JsonObject;
  result: string;
}

/** What to do next: call a tool, or report the fault and the part it needs. */
export type Step =
  | { readonly call: { readonly name: string; readonly arguments: JsonObject } }
  | { readonly diagnosis: string; readonly part: string };

/** Decides on the next step: a model, or the scripted one of `scripted.ts`. */
export type Think = (job: Job, done: readonly Done[], tools: readonly Tool[]) => Promise<Step>;

/** What the mechanic works with: its tools, over MCP, and the supplier, another agent. */
export interface Workshop {
  tools(): Promise<Tools>;
  supplier(): Promise<DelegateClient>;
}

/** The maximum number of tool calls in a job, so a model that does not finish costs no more. */
const most = 20;

/** How much of a result is kept, in characters: a tool may return anything. */
const longest = 20_000;

/** Makes the mechanic. When its process dies, only the call that was under way is repeated. */
export function mechanic(think: Think, { tools, supplier }: Workshop): Agent {
  return defineAgent<{ checkpoint: Done[] }>({
    name: "Mechanic",
    description: "Diagnoses a car, and orders the part that it needs.",
    version: "1.0.0",
    skills: [{ id: "diagnose", name: "Diagnose", description: "Diagnoses a car on the platform", tags: ["car"] }],
    defaultInputModes: ["application/json"],
    defaultOutputModes: ["text/plain", "application/json"],
    resumable: true,
    async *onMessage(turn) {
      const job = await turn.data(Job);
      const mcp = await tools();
      const offered = (await mcp.listTools()).tools;
      const done = [...(turn.checkpoint ?? [])];
      let step = await think(job, done, offered);
      while ("call" in step && done.length < most) {
        const { content } = await mcp.callTool(step.call, { signal: turn.signal });
        const result = content.map((each) => (each.type === "text" ? each.text : "")).join("\n");
        done.push({ ...step.call, result: result.slice(0, longest) });
        yield [turn.working(`${step.call.name}: ${result.slice(0, 200)}`), turn.saveCheckpoint(done)];
        await turn.flush(); // It is stored before the next call begins.
        step = await think(job, done, offered);
      }
      if ("call" in step) {
        yield turn.failed("I did not find out what is wrong.");
        return;
      }
      const { part, diagnosis } = step;
      const other = await supplier();
      const asked = yield* turn.delegate(other, sentences[job.language].inStock(part, job.vehicle));
      if ((await asked.data(Stock)).available === 0) {
        yield turn.failed(`${diagnosis} Part ${part} is out of stock.`);
        return;
      }
      const order = Order.parse({ order: part });
      yield* turn.delegate(other, [text(`I order one ${part}.`), data(order)]);
      yield turn.artifact({ name: "diagnosis", parts: [text(`${diagnosis} Part ${part} is ordered.`)] });
    },
  });
}
