import { defineAgent } from "@parley/node";

/** `2d6`, `d20`: how many dice, of how many sides. */
const dice = /\b([1-9]\d?)?d([1-9]\d{0,2})\b/i;

export default defineAgent({
  name: "{{NAME}}",
  description: "Rolls dice.",
  version: "0.1.0",
  defaultOutputModes: ["text/plain", "application/json"],
  skills: [
    { id: "roll", name: "Roll dice", description: "Rolls dice such as 2d6 or d20.", tags: ["dice"], examples: ["2d6"] },
  ],

  // Called with each message. What it yields is stored and streamed; falling off the end completes the task.
  async *onMessage(turn) {
    const [, count = "1", sides] = dice.exec(turn.text) ?? [];
    if (sides === undefined) {
      yield turn.inputRequired("Which dice? For example 2d6.");
      return;
    }
    yield turn.working(`Rolling ${count}d${sides}`);
    const rolls = Array.from({ length: Number(count) }, () => 1 + Math.floor(Math.random() * Number(sides)));
    const total = rolls.reduce((sum, roll) => sum + roll, 0);
    yield turn.artifact({
      name: "roll",
      parts: [{ text: `${rolls.join(" + ")} = ${total}` }, { data: { rolls, total } }],
    });
  },
});
