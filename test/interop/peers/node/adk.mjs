// ADK for JavaScript with a remote agent: adk.mjs URL CONVERSATIONS.

import { InMemoryRunner, LogLevel, RemoteA2AAgent, setLogLevel } from "@google/adk";

// It logs to standard output what its events contain anyway.
setLogLevel(LogLevel.ERROR + 1);

const [, , url, conversations] = process.argv;
const agent = new RemoteA2AAgent({ name: "remote", agentCard: url });
const runner = new InMemoryRunner({ agent, appName: "interop" });

const partOf = (said) =>
  typeof said === "string"
    ? { text: said }
    : { inlineData: { data: Buffer.from(said.raw).toString("base64"), mimeType: said.mediaType } };

const shownOf = ({ text = "", inlineData: file }) =>
  file === undefined ? text : `[${file.displayName}: ${Buffer.from(file.data, "base64").toString()}]`;

for (const [name, conversation] of Object.entries(JSON.parse(conversations))) {
  const session = await runner.sessionService.createSession({ appName: "interop", userId: "ada" });
  for (const [turn, said] of conversation.entries()) {
    const step = `${name}.${turn}`;
    try {
      let [shown, pieces] = ["", ""];
      const newMessage = { role: "user", parts: [partOf(said)] };
      for await (const event of runner.runAsync({ userId: "ada", sessionId: session.id, newMessage })) {
        const words = (event.content?.parts ?? []).map(shownOf).join("");
        if (event.partial === true) pieces += words;
        // A complete event repeats its pieces.
        if (event.partial === true || words !== pieces) shown += words;
        shown += event.errorMessage ?? "";
      }
      console.log(JSON.stringify({ step, result: shown }));
    } catch (error) {
      console.log(JSON.stringify({ step, error: error.name, text: error.message }));
    }
  }
}
process.exit(0);
