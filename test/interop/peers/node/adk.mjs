// ADK for JavaScript with a remote agent: adk.mjs URL CONVERSATIONS.

import { InMemoryRunner, LogLevel, RemoteA2AAgent, setLogLevel } from "@google/adk";

// It logs to the standard output what it also says in its events.
setLogLevel(LogLevel.ERROR + 1);

const [, , url, conversations] = process.argv;
const agent = new RemoteA2AAgent({ name: "remote", agentCard: url });
const runner = new InMemoryRunner({ agent, appName: "interop" });

const partOf = (said) =>
  typeof said === "string"
    ? { text: said }
    : { inlineData: { data: Buffer.from("video").toString("base64"), mimeType: said.mediaType } };

for (const [number, conversation] of JSON.parse(conversations).entries()) {
  const session = await runner.sessionService.createSession({ appName: "interop", userId: "ada" });
  for (const [turn, said] of conversation.entries()) {
    const step = `${number}.${turn}`;
    try {
      let [shown, pieces] = ["", ""];
      const newMessage = { role: "user", parts: [partOf(said)] };
      for await (const event of runner.runAsync({ userId: "ada", sessionId: session.id, newMessage })) {
        const words = (event.content?.parts ?? []).map((part) => part.text ?? "").join("");
        if (event.partial === true) pieces += words;
        // A whole event repeats its pieces.
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
