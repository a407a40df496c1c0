// Mastra with a remote agent: mastra.mjs URL CONVERSATIONS. Sends each message twice: for an answer, then for a stream.

import { A2AAgent } from "@mastra/core/a2a";

const [, , url, conversations] = process.argv;

// An error of a stream is thrown to its reader, and again as an unhandled rejection.
process.on("unhandledRejection", () => {});

const messagesOf = (said) =>
  typeof said === "string"
    ? said
    : [{ role: "user", content: [{ type: "file", data: Buffer.from(said.raw), mediaType: said.mediaType }] }];

const filesOf = (artifacts = []) =>
  artifacts
    .flatMap(({ parts }) => parts)
    .filter(({ kind }) => kind === "file")
    .map(({ file }) => `[${file.name}: ${Buffer.from(file.bytes, "base64").toString()}]`)
    .join("");

async function tell(step, ask) {
  try {
    console.log(JSON.stringify({ step, result: await ask() }));
  } catch (error) {
    console.log(JSON.stringify({ step, error: error.name, text: error.message }));
  }
}

for (const [name, conversation] of Object.entries(JSON.parse(conversations))) {
  const agents = { generate: new A2AAgent({ url }), stream: new A2AAgent({ url }) };
  const suspended = { generate: false, stream: false };
  for (const [turn, said] of conversation.entries()) {
    await tell(`${name}.${turn}`, async () => {
      const options = { runId: `run-${name}` };
      const answer = suspended.generate
        ? await agents.generate.resumeGenerate(said, options)
        : await agents.generate.generate(messagesOf(said), options);
      suspended.generate = answer.finishReason === "suspended";
      return answer.text + filesOf(answer.task?.artifacts);
    });
    await tell(`${name}.${turn} stream`, async () => {
      const options = { runId: `run-${name}` };
      const answer = suspended.stream
        ? await agents.stream.resumeStream(said, options)
        : await agents.stream.stream(messagesOf(said), options);
      let shown = "";
      for await (const { type, payload } of answer.fullStream) {
        if (type === "text-delta") shown += payload.text;
        if (type === "error") shown += String(payload.error?.message ?? payload.error);
        suspended.stream = type === "tool-call-suspended";
        if (suspended.stream)
          shown += payload.suspendPayload.task.status.message.parts.map(({ text }) => text).join("");
      }
      return shown;
    });
  }
}
process.exit(0);
