import { defineAgent, text } from "@parley/server";
import type { Authenticator } from "@parley/a2a/auth";

/** The agent that each peer implements in its own language, and that we implement for them. It does what the message says. */
export const agent = defineAgent({
  name: "Parley",
  description: "Does what it is told",
  version: "1.0.0",
  skills: [{ id: "echo", name: "Echo", description: "Says it again", tags: ["echo"] }],
  defaultInputModes: ["text/plain", "application/json", "application/octet-stream"],
  defaultOutputModes: ["text/plain", "application/json", "application/octet-stream"],
  async *onMessage(turn) {
    if (turn.text === "message") return turn.reply("direct");
    if (turn.text === "bytes")
      return turn.reply(String(Buffer.from(turn.message.parts[1]?.raw ?? "", "base64").length));
    if (turn.text === "ask") return yield turn.inputRequired("more");
    yield turn.working();
    if (turn.text === "fail") return yield turn.failed("failed");
    if (turn.text === "hold") await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    else if (turn.text === "parts") yield turn.artifact({ parts: turn.message.parts.slice(1) });
    else yield turn.artifact({ name: "echo", parts: [text(turn.text)] });
    return undefined;
  },
});

/** Accepts anyone, with a name: the extended card requires one. */
export const anyone: Authenticator = {
  authenticate: () => ({ subject: "anyone" }),
  securitySchemes: {},
  securityRequirements: [],
};
