import { defineAgent } from "@parley/a2a";
import * as z from "zod";

/* The agent.ts of a project of `parley init`, after a user has changed it: it streams, fails and asks with a form. */

const Order = z.object({ size: z.number().int() });

export default defineAgent({
  name: "pizzeria",
  description: "Tells stories, fails, and takes orders.",
  version: "0.1.0",
  skills: [{ id: "order", name: "Order", description: "Takes an order.", tags: ["pizza"] }],
  defaultOutputModes: ["text/plain", "application/json"],
  async *onMessage(turn) {
    if (turn.text === "hello") {
      yield turn.reply("Hello, Ada!");
    } else if (turn.text === "tell") {
      const [first, ...rest] = ["The", " rain", " came", " over", " the", " hills."];
      yield turn.artifact({ artifactId: "story", name: "story", parts: [{ text: first }], open: true });
      for (const [at, text] of rest.entries()) {
        await turn.flush();
        yield turn.append("story", [{ text }], { last: at === rest.length - 1 });
      }
    } else if (turn.text === "fail") {
      yield turn.failed("The oven is broken.");
    } else {
      const { size } = await turn.data(Order, { ask: "Which size? Answer with a size." });
      yield turn.artifact({ name: "order", parts: [{ text: `One pizza of size ${size}.` }] });
    }
  },
});
