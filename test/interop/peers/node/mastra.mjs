// Mastra with a remote agent: mastra.mjs URL CONVERSATIONS. Each message is sent for an answer, then for a stream.

import { A2AAgent } from "@mastra/core/a2a";

const [, , url, conversations] = process.argv;

// It sends no other parts than text.
const messagesOf = (said) => (typeof said === "string" ? said : "hello");

async function tell(step, ask) {
  try {
    console.log(JSON.stringify({ step, result: await ask() }));
  } catch (error) {
    console.log(JSON.stringify({ step, error: error.name, text: error.message }));
  }
}

for (const [number, conversation] of JSON.parse(conversations).entries()) {
  const agents = { generate: new A2AAgent({ url }), stream: new A2AAgent({ url }) };
  const suspended = { generate: false, stream: false };
  for (const [turn, said] of conversation.entries()) {
    await tell(`${number}.${turn}`, async () => {
      const options = { runId: `run-${number}` };
      const answer = suspended.generate
        ? await agents.generate.resumeGenerate(said, options)
        : await agents.generate.generate(messagesOf(said), options);
      suspended.generate = answer.finishReason === "suspended";
      return answer.text;
    });
    await tell(`${number}.${turn} stream`, async () => {
      const options = { runId: `run-${number}` };
      const answer = suspended.stream
        ? await agents.stream.resumeStream(said, options)
        : await agents.stream.stream(messagesOf(said), options);
      let shown = "";
      for await (const { type, payload } of answer.fullStream) {
        if (type === "text-delta") shown += payload.text;
        if (type === "error") shown += String(payload.error?.message ?? payload.error);
        suspended.stream = type === "tool-call-suspended";
        if (suspended.stream) shown += JSON.stringify(payload.suspendPayload?.task?.status.message?.parts ?? payload);
      }
      return shown;
    });
  }
}
process.exit(0);
