/* What the guides print: the topic "Extensions" of A2A 1.0, and of 0.3. */

const uri = "https://example.com/ext/konami-code/v1";
const question = "Oh magic 8-ball, will it rain today?";
const metadata = { [`${uri}/code`]: "motherlode" };

/** The extension on the card. */
export const declaration = {
  uri,
  description: "Provide cheat codes to unlock new fortunes",
  required: false,
  params: {
    hints: ["When your sims need extra cash fast", "You might deny it, but we've seen the evidence of those cows."],
  },
};

/** The rest of the card, which the agent declares itself. */
export const card = {
  name: "Magic 8-ball",
  description: "An agent that can tell your future... maybe.",
  version: "0.1.0",
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [
    {
      id: "fortune",
      name: "Fortune teller",
      description: "Seek advice from the mystical magic 8-ball",
      tags: ["mystical", "untrustworthy"],
    },
  ],
};

/** A request and its response. */
export interface Exchange {
  readonly version: string;
  /** The header of both. */
  readonly header: string;
  readonly request: object;
  readonly response: { readonly jsonrpc: string; readonly id: string; readonly result: object };
  /** The message in the result. */
  readonly reply: object;
}

const reply03 = {
  kind: "message",
  messageId: "2",
  role: "agent",
  parts: [{ kind: "text", text: "That's a bingo!" }],
};
const reply10 = { messageId: "2", role: "ROLE_AGENT", parts: [{ text: "That's a bingo!" }] };

export const exchanges: readonly Exchange[] = [
  {
    version: "0.3",
    header: "X-A2A-Extensions",
    request: {
      jsonrpc: "2.0",
      method: "message/send",
      id: "1",
      params: {
        message: { kind: "message", messageId: "1", role: "user", parts: [{ kind: "text", text: question }] },
        metadata,
      },
    },
    response: { jsonrpc: "2.0", id: "1", result: reply03 },
    reply: reply03,
  },
  {
    version: "1.0",
    header: "A2A-Extensions",
    request: {
      jsonrpc: "2.0",
      method: "SendMessage",
      id: "1",
      params: {
        message: { messageId: "1", role: "ROLE_USER", parts: [{ text: question }] },
        metadata,
      },
    },
    response: { jsonrpc: "2.0", id: "1", result: { message: reply10 } },
    reply: reply10,
  },
];
