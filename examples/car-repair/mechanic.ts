import { data, defineAgent, text, type Agent, type DelegateClient, type JsonObject } from "@parley/node";
import type { Client as Tools } from "@modelcontextprotocol/client";
import { mcpTools, type McpTool } from "@parley/mcp/tools";
import { Job, Order, Stock } from "./job.ts";
import { sentences } from "./words.ts";

/** A finished tool call. */
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
export type Think = (job: Job, done: readonly Done[], tools: readonly McpTool[]) => Promise<Step>;

/** The mechanic's dependencies: tools over MCP, and the supplier, another agent. */
export interface Workshop {
  tools(): Promise<Tools>;
  supplier(): Promise<DelegateClient>;
}

/** Maximum number of tool calls in a job, to limit the cost of a model that never finishes. */
const most = 20;

/** Makes the mechanic. If its process dies, only the call in progress is repeated. */
export function mechanic(think: Think, { tools, supplier }: Workshop): Agent {
  return defineAgent({
    name: "Mechanic",
    description: "Diagnoses a car, and orders the part that it needs.",
    version: "1.0.0",
    skills: [{ id: "diagnose", name: "Diagnose", description: "Diagnoses a car on the platform", tags: ["car"] }],
    defaultInputModes: ["application/json"],
    defaultOutputModes: ["text/plain", "application/json"],
    resumable: true,
    async *onMessage(turn) {
      const job = await turn.data(Job);
      const mcp = await mcpTools(turn, await tools());
      const done: Done[] = [];
      let step = await think(job, done, mcp.tools);
      while ("call" in step && done.length < most) {
        const { text: result } = yield* mcp.call(`call ${done.length}`, step.call.name, step.call.arguments);
        done.push({ ...step.call, result });
        yield turn.working(`${step.call.name}: ${result.slice(0, 200)}`);
        step = await think(job, done, mcp.tools);
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
