import { defineAgent, memoryStore, type AgentEvent, type AgentYield, type Turn } from "@parley/a2a";
import { serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { answerText, artifactText, Bell, chunkText, commandOf, paced, questionText, stampedText } from "./commands.ts";
import { control } from "./control.ts";
import { tenExtensions } from "./extensions.ts";
import { fill } from "./fill.ts";

// Parley with its defaults, except for the store, and for ten extensions that callers may ask for:
// node parley.js memory|FILE [extensions]

const [place = "memory", more] = process.argv.slice(2);
const bell = new Bell();

function chunk(turn: Turn, number: number, text: string): AgentEvent {
  const parts = [{ text }];
  return number === 0 ? { kind: "artifact", artifact: { artifactId: "a1", parts } } : turn.append("a1", parts);
}

async function* onMessage(turn: Turn): AsyncGenerator<AgentYield, AgentEvent | void, void> {
  const { name, count, gap } = commandOf(turn.text);
  switch (name) {
    case "emit":
      bell.ring();
      return turn.reply(answerText);
    case "reply":
      return turn.reply(answerText);
    case "ask":
      return turn.inputRequired(questionText);
    case "task":
      yield turn.artifact({ parts: [{ text: artifactText }] });
      return;
    case "stream":
      for (let number = 0; number < count; number++) yield chunk(turn, number, chunkText(number));
      if (gap > 0) await bell.wait();
      return;
    case "pace":
      yield turn.working();
      await bell.wait();
      for await (const number of paced(count, gap)) yield chunk(turn, number, stampedText(number));
      return;
    case "hold":
      yield turn.working();
      for (let number = 0; ; number++) {
        await bell.wait();
        yield chunk(turn, number, chunkText(number));
      }
  }
}

const agent = defineAgent({
  name: "Benchmark",
  description: "Does what its first words say.",
  version: "1.0.0",
  skills: [],
  onMessage,
});
const store = place === "memory" ? memoryStore() : await sqliteStore({ path: place });
const extensions = more === "extensions" ? tenExtensions : [];
const { url, port } = await serve(agent, { port: 0, store, extensions });
control(
  { jsonRpc: url, rest: url },
  { grpc: () => `127.0.0.1:${port}`, fill: (input: Parameters<typeof fill>[1]) => fill(store, input) },
);
