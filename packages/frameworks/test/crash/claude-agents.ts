import { setTimeout } from "node:timers/promises";
import { fromClaude } from "@parley/frameworks/claude";
import { scriptedQuery, type Asked, type Block } from "../claude/scripted.ts";
import type { Agent } from "@parley/server";
import { called, card, jobIn } from "./life.ts";

/* The Claude agent looks something up, and pays after an approval. A call has the number of its round: one model call with the tools of its answer,
 * whose results are stored together. */

const rounds = (round: number, job: string): readonly Block[] => {
  const call = (name: string): Block => ({
    type: "tool_use",
    id: `${name} ${round} ${crypto.randomUUID()}`,
    name,
    input: { job },
  });
  if (round === 1) return [{ type: "text", text: "Looking it up." }, call("look")];
  if (round === 2) return [{ type: "text", text: "I would pay." }, call("pay")];
  return round === 3 ? [call("pay")] : [{ type: "text", text: "I have paid it." }];
};

/** The round after the last result. */
function roundOf({ lines }: Asked): number {
  const contents = lines.flatMap(
    ({ message }) => message.content as { readonly type: string; readonly content?: unknown }[],
  );
  const last = contents.findLast(({ type }) => type === "tool_result")?.content;
  if (last === undefined) return 1;
  return last === "looked up" ? 2 : last === "paid" ? 4 : 3;
}

const query = scriptedQuery({
  async model(asked) {
    const job = jobIn(asked.lines);
    const round = roundOf(asked);
    called(job, round);
    await setTimeout(30);
    return rounds(round, job);
  },
  pause: () => setTimeout(15),
  async tool(name, { job }) {
    called(String(job), name === "look" ? 1 : 3);
    await setTimeout(15);
    return name === "look" ? "looked up" : "paid";
  },
});

export const agents: Readonly<Record<string, Agent>> = {
  claude: fromClaude(query, { ...card, options: { allowedTools: ["look"] } }),
};
