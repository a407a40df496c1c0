import { defineAgent } from "@parley/node";
import { toJsonLines } from "./convert.ts";

export default defineAgent({
  name: "Table converter",
  description: "Converts CSV files to JSON Lines.",
  version: "1.0.0",
  skills: [{ id: "convert", name: "Convert", description: "Converts a CSV file to JSON Lines", tags: ["csv", "json"] }],
  defaultInputModes: ["text/plain", "text/csv"],
  defaultOutputModes: ["application/jsonl"],
  resumable: true,
  async *onMessage(turn) {
    const [file] = turn.files();
    if (file === undefined) {
      yield turn.reply("Send me a CSV file.");
      return;
    }
    const name = file.name.replace(/(\.csv)?$/i, ".jsonl");
    yield turn.working(`Converting ${file.name} to ${name}`);
    try {
      yield* turn.file(toJsonLines(file.stream()), { name, mediaType: "application/jsonl" });
    } catch (error) {
      turn.signal.throwIfAborted();
      yield turn.failed(`This is not a table: ${(error as Error).message}`);
    }
  },
});
