import { defineAgent, type Agent, type AgentDefinition } from "@parley/server";

let count = 0;

/** A message with a new id. */
export function message(text: string, more: object = {}) {
  return { messageId: `m${count++}`, role: "ROLE_USER", parts: [{ text }], ...more };
}

/** Does what the message says: answers, works, asks, waits to be canceled, fails. */
export function obedient(definition: Partial<AgentDefinition> = {}): Agent {
  return defineAgent({
    name: "Obedient",
    description: "Does what it is told.",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      if (turn.text === "reply") return turn.reply("Hello");
      yield turn.working();
      if (turn.text === "ask") return yield turn.inputRequired("Which one?");
      if (turn.text === "fail") throw new Error("postgres://user:secret@db");
      if (turn.text === "wait") await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      yield turn.artifact({ artifactId: "a", parts: [{ text: "al" }, { data: { n: null, list: [1.5] } }] });
      yield turn.artifact({ artifactId: "b", parts: [{ raw: "AAEC", filename: "f.bin", mediaType: "application/x" }] });
    },
    ...definition,
  });
}
