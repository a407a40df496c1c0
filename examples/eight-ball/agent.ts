import { defineAgent } from "@parley/node";
import { fortuneOf } from "./fortunes.ts";
import { konamiCode } from "./konami-code.ts";

export default defineAgent({
  name: "Magic 8-ball",
  description: "An agent that can tell your future... maybe.",
  version: "0.1.0",
  skills: [
    {
      id: "fortune",
      name: "Fortune teller",
      description: "Seek advice from the mystical magic 8-ball",
      tags: ["mystical", "untrustworthy"],
    },
  ],
  extensions: [konamiCode],
  onMessage: (turn) => turn.reply(fortuneOf(turn.text, turn.ext(konamiCode)?.request.code)),
});
