import { defineExtension } from "@parley/a2a/extensions";
import * as z from "zod";

/** The extension of the guide: a request can have a cheat code, which unlocks a fortune. The card has hints. */
export const konamiCode = defineExtension({
  uri: "https://example.com/ext/konami-code/v1",
  description: "Provide cheat codes to unlock new fortunes",
  kind: "data",
  required: false,
  params: {
    hints: ["When your sims need extra cash fast", "You might deny it, but we've seen the evidence of those cows."],
  },
  paramsSchema: z.object({ hints: z.array(z.string()) }),
  // In the metadata of a request it is `https://example.com/ext/konami-code/v1/code`.
  metadata: { request: { code: z.string().min(1).max(64) } },
});
