import { defineAgent, type Agent, type AgentEvent, type AgentYield, type Turn } from "@parley/server";
import {
  answerText,
  artifactText,
  chunkText,
  commandOf,
  paced,
  questionText,
  stampedText,
  type Bell,
} from "./commands.ts";

function chunk(turn: Turn, number: number, text: string): AgentEvent {
  const parts = [{ text }];
  return number === 0 ? { kind: "artifact", artifact: { artifactId: "a1", parts } } : turn.append("a1", parts);
}

/** The agent of Parley's servers, which obeys the commands. */
export function benchmarkAgent(bell: Bell): Agent {
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
  return defineAgent({
    name: "Benchmark",
    description: "Does what its first words say.",
    version: "1.0.0",
    skills: [],
    onMessage,
  });
}

/** A resumable agent that does nothing until it is resumed, and then reports the resumption. */
export function resumableAgent(): Agent {
  return defineAgent({
    name: "Resumable",
    description: "Waits until another process takes its task over.",
    version: "1.0.0",
    skills: [],
    resumable: true,
    async *onMessage(turn) {
      yield turn.working();
      if (turn.attempt === 1) await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      yield turn.artifact({ parts: [{ text: answerText }] });
    },
  });
}
