import { defineAgent, MessageRefused } from "@parley/server";
import * as z from "zod";

/* The agent.ts of a `parley init` project after changes by a user: it streams, fails, rejects, asks with a form, and accepts and returns files. */

const Order = z.object({ size: z.number().int() });

export default defineAgent({
  name: "pizzeria",
  description: "Tells stories, fails, and takes orders.",
  version: "0.1.0",
  skills: [{ id: "order", name: "Order", description: "Takes an order.", tags: ["pizza"] }],
  defaultInputModes: ["text/plain", "application/json", "image/png"],
  defaultOutputModes: ["text/plain", "image/png"],
  async *onMessage(turn) {
    const [photo] = turn.files();
    if (photo !== undefined) {
      yield turn.reply(`I see ${await photo.text()}.`);
    } else if (turn.text === "hello") {
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
    } else if (turn.text === "refuse") {
      throw new MessageRefused([{ field: "message.parts[0].text", description: "There are no anchovies" }]);
    } else if (turn.text === "show") {
      yield* turn.file(new TextEncoder().encode("a pizza"), { name: "menu.png", mediaType: "image/png" });
    } else {
      const { size } = await turn.data(Order, { ask: "Which size? Answer with a size." });
      yield turn.artifact({ name: "order", parts: [{ text: `One pizza of size ${size}.` }] });
    }
  },
});
