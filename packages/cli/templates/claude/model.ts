import type { Options } from "@anthropic-ai/claude-agent-sdk";
import type { ClaudeContent, ClaudePrompt, ClaudeQuery } from "@parley/frameworks/claude";

interface Dice {
  readonly count: number;
  readonly sides: number;
}

interface Roll {
  handler(dice: Dice, extra: unknown): Promise<{ readonly content: unknown }>;
}

type Block =
  | ClaudeContent
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: Dice }
  | { readonly type: "tool_result"; readonly tool_use_id: string; readonly content: string };

/** A line of the transcript. */
interface Line {
  readonly type: string;
  readonly message: { readonly content: readonly Block[] };
}

const say = (text: string): Block => ({ type: "text", text });
const call = (input: Dice): Block => ({ type: "tool_use", id: crypto.randomUUID(), name: "mcp__dice__roll", input });

/** Rolls the dice of the user's message, such as `2d6`, and tells the total. */
function answer(lines: readonly Line[]): Block {
  const blocks = lines.flatMap(({ type, message }) => (type === "user" ? message.content : []));
  // After a crash, the session is told to continue.
  const last = blocks.findLastIndex((block) => block.type === "text" && !block.text.startsWith("Continue"));
  const result = JSON.stringify(blocks.slice(last).find(({ type }) => type === "tool_result"));
  const [list] = /\[[\d,]+\]/.exec(result ?? "") ?? [];
  if (list !== undefined) {
    const rolls = list.slice(1, -1).split(",").map(Number);
    return say(`${rolls.join(" + ")} = ${rolls.reduce((sum, roll) => sum + roll, 0)}`);
  }
  const prompt = blocks[last];
  const said = prompt?.type === "text" ? prompt.text : "";
  if (said.startsWith("The user did not approve")) return say("I have not rolled.");
  const [approved] = /\{.*\}/.exec(said) ?? [];
  if (approved !== undefined) return call(JSON.parse(approved) as Dice);
  const [, count, sides] = /(\d*)d(\d+)/.exec(said) ?? [];
  if (sides === undefined) return say("Which dice? For example 2d6.");
  return call({ count: Number(count || 1), sides: Number(sides) });
}

/** In place of `query()`: its answers depend only on the conversation. */
export function scriptedQuery(roll: Roll): ClaudeQuery {
  return async function* (parameters: { prompt: AsyncIterable<ClaudePrompt>; options?: Options }) {
    const { canUseTool, resume, sessionId = "", sessionStore } = parameters.options ?? {};
    const key = { projectKey: "script", sessionId: resume ?? sessionId };
    const stored = (resume !== undefined && (await sessionStore?.load(key))) || [];
    const lines = stored.map(({ type, message }): Line => ({ type, message: message as Line["message"] }));
    const write = async (type: string, ...content: readonly Block[]): Promise<Line> => {
      const line = { type, message: { content } };
      lines.push(line);
      await sessionStore?.append(key, [line]);
      return line;
    };
    for await (const { message } of parameters.prompt) {
      await write("user", ...message.content);
      break;
    }
    for (;;) {
      const block = answer(lines);
      yield await write("assistant", block);
      if (block.type !== "tool_use") break;
      const { id, name, input } = block;
      const { signal } = new AbortController();
      const permission = await canUseTool?.(name, { ...input }, { signal, toolUseID: id, requestId: id });
      const isAllowed = permission?.behavior === "allow";
      const { content } = isAllowed ? await roll.handler(input, {}) : { content: "The user is asked" };
      yield await write("user", { type: "tool_result", tool_use_id: id, content: JSON.stringify(content) });
      if (!isAllowed) break;
    }
    yield { type: "result", subtype: "success", stop_reason: "end_turn" };
  };
}
