import { defineAgent, text } from "@parley/node";
import { generate } from "./model.ts";

const pause = Number(process.env["PAUSE"] ?? 50);

export default defineAgent<{ checkpoint: number }>({
  name: "Storyteller",
  description: "Tells a story word by word.",
  version: "1.0.0",
  skills: [
    { id: "tell", name: "Tell a story", description: "Continues from a first line", tags: ["story", "streaming"] },
  ],
  resumable: true,
  async *onMessage(turn) {
    if (turn.text === "") {
      yield turn.reply("Give me a first line.");
      return;
    }
    let told = turn.checkpoint ?? 0;
    for await (const { text: word, last } of generate(turn.text, { after: told, clock: turn.clock, pause })) {
      const parts = [text(word)];
      const chunk =
        told === 0
          ? turn.artifact({ artifactId: "story", name: "story", parts, open: true })
          : turn.append("story", parts, { last });
      told += 1;
      yield [chunk, turn.saveCheckpoint(told)]; // stored together: after a crash the model continues at this token
    }
  },
});
