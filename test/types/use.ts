// A user's program that imports every entry point. The compiler must find every type that the declarations use.
import { defineAgent, memoryStore, serve } from "@parley/node";
import { connect, text, type Client, type Message } from "@parley/a2a";
import { bytesOf, isRawPart } from "@parley/a2a/model";
import { testAgent, type TestAgent } from "@parley/testing";

export const agent = defineAgent({
  name: "Echo",
  description: "Says it again.",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    yield turn.working("Thinking");
    yield turn.artifact({ name: "echo", parts: [text(turn.text)] });
  },
});

export async function lengths(message: Message): Promise<readonly number[]> {
  const server = await serve(agent, { port: 0, store: memoryStore() });
  const client: Client = await connect(server.url);
  const found: number[] = [];
  for await (const event of client.sendStreamingMessage({ message })) {
    for (const part of event.artifactUpdate?.artifact.parts ?? []) {
      const body = isRawPart(part) ? bytesOf(part) : new TextEncoder().encode(part.text ?? "");
      found.push((await new Response(body).arrayBuffer()).byteLength);
    }
  }
  await server.close();
  return found;
}

export async function tested(): Promise<readonly string[]> {
  const under: TestAgent = await testAgent(agent);
  const ada: Client = await under.as("ada");
  await ada.sendMessage("Hello");
  await under.clock.advance(1_000);
  await under.crash();
  await under.restart();
  await under.close();
  return under.problems;
}
